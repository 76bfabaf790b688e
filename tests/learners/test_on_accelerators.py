"""What learners do where no branch and no sequence of blocks pays: lowered for a GPU, and run here.

There is no GPU here: JAX is told that it has one, so that programs are traced as they are there. A branch
whose number is a constant, as in `jnp.diag`, is none by the time that the program runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.tiers import few

import credo
from credo.core.platforms import accelerated
from credo.core.types import Array
from credo.covariances import LowRankCovariance


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[bool], None]]:
    """Say whether programs are traced as they are on a GPU."""

    def say(there: bool) -> None:
        jax.clear_caches()  # of programs that were traced in the other way
        monkeypatch.setattr(jax, "default_backend", lambda: "cuda" if there else "cpu")

    yield say
    jax.clear_caches()


def _linear(likelihood: Any) -> Any:
    return credo.Model(lambda w, x: x @ w, likelihood)


def _network(rule: Any, family: Any, curvature: Any) -> tuple[Any, Any, int, bool]:
    options = {} if rule is credo.bong else {"learning_rate": 1e-3}
    net = credo.MLP(3, (41,))  # a layer of four blocks, with some inputs left over
    learner = rule(credo.Model(net, credo.Categorical(3)), family, curvature, **options)
    params = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64), net.init(0, (200,)))
    assert learner.init(params).size > 8192
    return learner, learner.init(params, var=0.01), 200, True


def _standardised(inner: Any) -> tuple[Any, Any, int, bool]:
    learner = credo.Standardized(inner)
    return learner, learner.init(jnp.zeros(10), size=10), 10, False


CASES: dict[str, Callable[[], tuple[Any, Any, int, bool]]] = {
    "BONG, low rank": lambda: _network(credo.bong, credo.LowRank(3), "lin-hess"),
    "BLR, low rank, LIN-EF": lambda: _network(credo.blr, credo.LowRank(3), "lin-ef"),
    "BOG, diagonal": lambda: _network(credo.bog, credo.Diagonal(), "lin-hess"),
    "standardised": lambda: _standardised(credo.extended_kalman(_linear(credo.Normal(1.0)))),
}


def _rows(inputs: int, labels: bool) -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    xs = rng.normal(size=(12, inputs))
    xs[8, :3] = 1e4  # far from the rows before
    return jnp.asarray(xs), jnp.asarray(rng.integers(0, 2, 12) if labels else rng.normal(size=12))


def _undecided(text: str) -> int:
    """The branches of a program whose number it does not hold as a constant."""
    known, count = set[str](), 0
    for line in text.splitlines():
        if "func.func" in line:
            known.clear()
        if found := re.match(r"\s*(%\w+) = stablehlo\.constant", line):
            known.add(found.group(1))
        if found := re.match(r'\s*(%\w+)(?::\d+)? = "stablehlo\.(?:case|if)"\((%\w+)\)', line):
            decided = found.group(2) in known
            count += not decided
            known |= {found.group(1)} if decided else set()
    return count


def _numbers(belief: Any) -> list[Array]:
    """What a belief says: rows of a precision may have either sign, and stand for the same one."""
    cov = getattr(belief, "cov", None)
    if not isinstance(cov, LowRankCovariance):
        return jax.tree.leaves(belief)
    return [belief.mean, cov.base, cov.precise(jnp.cos(jnp.linspace(0.0, 9.0, cov.size)))]


def _lowered(learner: Any, belief: Any, x: Array, y: Array) -> str:
    step = jax.jit(lambda learner, belief, x, y: learner.step(belief, x, y))
    text: str = step.trace(learner, belief, x, y).lower(lowering_platforms=("cuda",)).as_text()
    return text


@pytest.mark.slow
@pytest.mark.parametrize("name", few(CASES, "standardised"))
def test_a_step_has_no_branch_and_the_same_values(name: str, gpu: Callable[[bool], None]) -> None:
    ends, branches, loops = [], [], []
    for there in (False, True):
        gpu(there)
        learner, belief, inputs, labels = CASES[name]()
        xs, ys = _rows(inputs, labels)
        text = _lowered(learner, belief, xs[0], ys[0])
        branches.append(_undecided(text))
        loops.append(text.count("stablehlo.while"))
        ends.append(_numbers(credo.run(learner, belief, xs, ys)[0]))
    assert branches[0] > 0
    assert branches[1] == 0
    assert loops[1] < loops[0] or inputs == 10  # a layer is one block
    for one, other in zip(*ends, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-10)


@pytest.mark.slow
def test_the_banks_step_has_no_branch(gpu: Callable[[bool], None]) -> None:
    gpu(True)
    learner = credo.auto(4, "regression")
    assert _undecided(_lowered(learner, learner.init(), jnp.zeros(4), jnp.asarray(0.0))) == 0


def test_the_default_device_says_where_a_program_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not accelerated()
    monkeypatch.setattr(jax, "default_backend", lambda: "cuda")
    assert accelerated()
    with jax.default_device(jax.devices("cpu")[0]):
        assert not accelerated()
