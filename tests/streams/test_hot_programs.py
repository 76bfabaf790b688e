"""What the programs that users run most start, in counts that no load disturbs.

The bounds are what a row takes now: a change that adds a kernel, a call of LAPACK or a pass over the
covariance fails, and whoever needs fewer lowers them. `tests/covariances/test_passes.py` has two more, the
low-rank updates. The two largest programs have some kernels to spare, for other processors: what a forecast
and an update compute twice costs sixty.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from tests.haste import KNOWN
from tests.hlo_counts import Counts, as_users_get, counts
from tests.tiers import few

import credo
from credo.live.passes import Score
from credo.programs.build import _learning
from credo.programs.packed import PackedBelief
from credo.programs.words import NEVER, WordLayout
from credo.streams.scoring import score_chunk

NUMBER, LABEL = jnp.zeros((), jnp.float32), jnp.zeros((), jnp.int32)


def _counts(learner: Any, belief: Any, inputs: int | None, y: Any, size: int, key: Any = None) -> Counts:
    """The counts of a step, compiled as a verb is."""
    x = None if inputs is None else jnp.zeros(inputs, jnp.float32)
    step = jax.jit(lambda learner, belief, x, y, key: learner.step(belief, x, y, key=key))
    return counts(as_users_get(step.lower(learner, belief, x, y, key)), size)


def _linear(likelihood: Any) -> Any:
    return credo.Model(lambda w, x: x @ w, likelihood)


def _tracker() -> Counts:
    move, look = jnp.asarray([[1.0, 1.0], [0.0, 1.0]], jnp.float32), jnp.eye(1, 2, dtype=jnp.float32)
    learner = credo.kalman(move, look, 0.01, 1.0)
    return _counts(learner, learner.init(jnp.zeros(2, jnp.float32)), None, jnp.zeros(1, jnp.float32), 4)


def _full(size: int, form: Any) -> Counts:
    learner = credo.extended_kalman(_linear(credo.Normal(1.0)), form=form)
    return _counts(learner, learner.init(jnp.zeros(size, jnp.float32)), size, NUMBER, size**2)


def _logistic() -> Counts:
    learner = credo.bong(_linear(credo.Bernoulli()), credo.Diagonal())
    return _counts(learner, learner.init(jnp.zeros(100, jnp.float32)), 100, LABEL, 100)


def _draws() -> Counts:
    learner = credo.bong(_linear(credo.Bernoulli()), credo.Full(), credo.MonteCarloEmpiricalFisher(10))
    belief = learner.init(jnp.zeros(100, jnp.float32))
    return _counts(learner, belief, 100, LABEL, 100**2, jax.random.key(0))


def _diagonal_network() -> Counts:
    net = credo.MLP(10, (20,))
    learner = credo.bong(credo.Model(net, credo.Categorical(10)), credo.Diagonal(), "lin-ef")
    belief = learner.init(net.init(0, (64,)))
    return _counts(learner, belief, 64, LABEL, belief.size)


def _run_length() -> Counts:
    net = credo.MLP(1, (5, 5), "tanh")
    inner = credo.extended_kalman(credo.Model(net, credo.Normal(1.0)), form="dense")
    learner = credo.RunLength(inner, 0.01, 1)
    belief = learner.init(net.init(0, (2,)))
    return _counts(learner, belief, 2, NUMBER, 51**2)


def _bank(classes: int) -> Counts:
    learner = credo.auto(10, "classification", classes)
    return _counts(learner, learner.init(), 10, LABEL, 10**6)


def _chunk(inputs: int, y: Any, *task: Any) -> Counts:
    """The counts of the program by which the command forecasts, scores and learns rows."""
    learner = credo.auto(inputs, *task)
    xs, ys = jnp.zeros((4, inputs), jnp.float32), jnp.broadcast_to(y, 4)
    rows = jax.jit(lambda *of: score_chunk(*of[:-1], count=of[-1]))
    return counts(as_users_get(rows.lower(learner, learner.init(), xs, ys, 4)), 10**6)


def _words(inputs: int, y: Any, *task: Any) -> Counts:
    """The counts of the same program on words, as the builder makes it, with what it reads and writes."""
    learner = credo.auto(inputs, *task)
    packed = PackedBelief.of(learner, learner.init())
    row = WordLayout.of((jnp.zeros(inputs, jnp.float32), y, None, None, None), NEVER)
    rows = _learning(packed.form, row, Score((), None), 4, (None,)).compiled
    arguments = (packed.setting, packed.state, jnp.zeros((4, row.size), jnp.uint32), jnp.int32(4), None)
    return counts(as_users_get(jax.jit(rows).lower(*arguments)), 10**6)


PROGRAMS: dict[str, tuple[Callable[[], Counts], Counts]] = {
    "a tracker of two numbers": (_tracker, Counts(32, 1, 8)),
    "full, root, P = 10": (lambda: _full(10, "root"), Counts(27, 0, 5)),
    "full, root, P = 500": (lambda: _full(500, "root"), Counts(35, 0, 5)),
    "full, dense, P = 500": (lambda: _full(500, "dense"), Counts(31, 0, 4)),
    "logistic, diagonal": (_logistic, Counts(41, 0, 13)),
    "draws, full, P = 100": (_draws, Counts(317, 0, 5)),
    "a network, diagonal": (_diagonal_network, Counts(60, 0, 14)),
    "run length": (_run_length, Counts(121, 0, 6)),
    "the bank of two classes": (lambda: _bank(2), Counts(480, 0, 0)),
    "the bank of three classes": (lambda: _bank(3), Counts(640, 10, 0)),
    "rows of numbers, with scores": (lambda: _chunk(4, NUMBER), Counts(835, 6, 0)),
    "rows of two classes, as words": (lambda: _words(10, LABEL, "classification", 2), Counts(615, 0, 0)),
    "rows of numbers, as words": (lambda: _words(4, NUMBER), Counts(795, 6, 0)),
    "rows of three classes, with scores": (lambda: _chunk(4, LABEL, "classification", 3), Counts(665, 10, 0)),
}


SCORED = "rows of three classes, with scores"
SMALL = [name for name in PROGRAMS if "scores" not in name and "bank" not in name]
NAMES = few(PROGRAMS, *SMALL, SCORED)


@pytest.mark.slow
@pytest.mark.table
@pytest.mark.skipif(not KNOWN, reason="counts of another version of XLA")
@pytest.mark.parametrize("name", NAMES)
def test_a_row_starts_no_more_than_it_did(name: str) -> None:
    program, most = PROGRAMS[name]
    got = program()
    assert got.kernels <= most.kernels, got
    assert got.lapack <= most.lapack, got
    assert got.passes <= most.passes, got
