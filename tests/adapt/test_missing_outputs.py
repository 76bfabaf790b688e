"""An observation of which one output is missing: every learner takes it, and goes on with the next one."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.adapt.setups import XS as ROWS
from tests.adapt.setups import YS, begin, linear
from tests.learners.test_partly_observed import HOLES, NOISES, XS, P
from tests.streams.setups import bitwise
from tests.worlds import FILTERS, PARTICLE_FILTERS, WRAPPERS, world
from tests.worlds import begin as begin_of

import credo
from credo.adapt import Experts, GammaWeight, InverseWishartNoise, OutlierIndicator, StudentTNoise, WoLF

OF_ONE_NUMBER = ("credo.Stacked", "credo.Stretched", "credo.adapt.LocalPolynomial")
"""Learners of one output."""

NOT_ONE = "credo.adapt.bank"
"""Learners side by side, for `vmap`."""

TAKERS = [name for name in (*FILTERS, *WRAPPERS, *PARTICLE_FILTERS) if name not in (*OF_ONE_NUMBER, NOT_ONE)]

REMEMBERED = ("credo.replay", "credo.WeightedPast", "credo.adapt.named.bam")
"""Learners that keep observations as they came, with what is missing."""


def _life(learner: Any, belief: Any, xs: jax.Array, ys: jax.Array) -> Any:
    infos = []
    for number in range(3):
        belief, info = learner.step(belief, xs[number], ys[number], key=jax.random.key(number))
        infos.append((info.ok, info.log_evidence))
    return belief, infos


@pytest.mark.table
@pytest.mark.parametrize("name", TAKERS)
def test_whole_half_whole_is_taken_and_leaves_no_nan(name: str) -> None:
    at = world(3)
    ys = at.ys.copy()
    ys[1, 1] = np.nan
    learner, start = begin_of(name, at)
    belief, infos = jax.jit(_life)(learner, start, jnp.asarray(at.xs), jnp.asarray(ys))
    assert [bool(ok) for ok, _ in infos] == [True] * 3
    assert np.isfinite([float(evidence) for _, evidence in infos]).all()
    floats = [
        np.asarray(leaf) for leaf in jax.tree.leaves(belief) if jnp.issubdtype(leaf.dtype, jnp.floating)
    ]
    assert sum(int(np.isnan(leaf).sum()) for leaf in floats) == (name in REMEMBERED)


ROBUST: dict[str, Any] = {
    "GammaWeight": lambda inner: GammaWeight(inner, 2.0, 1.0),
    "StudentTNoise": lambda inner: StudentTNoise(inner, 5.0),
    "StudentTNoise, bound": lambda inner: StudentTNoise(inner, 5.0, evidence="bound"),
    "InverseWishartNoise": lambda inner: InverseWishartNoise(inner, 5.0),
    "InverseWishartNoise, bound": lambda inner: InverseWishartNoise(inner, 5.0, evidence="bound"),
    "WoLF": lambda inner: WoLF(inner, 2.0),
    "WoLF, mahalanobis": lambda inner: WoLF(inner, 1.5, "mahalanobis"),
    "OutlierIndicator": lambda inner: OutlierIndicator(inner),
}


@pytest.mark.parametrize("noise", ["vector", "matrix"])
@pytest.mark.parametrize("name", ROBUST)
def test_a_robust_learner_learns_the_outputs_that_came_as_if_there_were_no_others(
    name: str, noise: str
) -> None:
    def learner(keep: Any) -> Any:
        var = np.asarray(NOISES[noise])
        var = var[keep] if var.ndim == 1 else var[np.ix_(keep, keep)]
        return ROBUST[name](credo.bong(credo.Model(linear, credo.Normal(jnp.asarray(var))), credo.Full()))

    whole, start = learner([0, 1, 2]), learner([0, 1, 2]).init(jnp.zeros(P))
    for row, keep in ((0, [0, 2]), (1, [1])):
        got, info = whole.step(start, XS[row], 3.0 * HOLES[row])
        part, told = learner(keep).step(start, XS[row][np.asarray(keep)], 3.0 * HOLES[row][np.asarray(keep)])
        assert bool(info.ok) and bool(told.ok)
        np.testing.assert_allclose(info.log_evidence, told.log_evidence, atol=1e-10)
        np.testing.assert_allclose(info.extras.weight, told.extras.weight, atol=1e-10)
        np.testing.assert_allclose(got.mean, part.mean, atol=1e-10)
        np.testing.assert_allclose(got.cov.dense(), part.cov.dense(), atol=1e-10)


def _kernel_of_the_seen(name: str, outputs: int, hidden: bool) -> Any:
    """The belief of a kernel rule after a row of which one output is hidden, or has no other."""
    at = world(3)
    learner, start = begin_of(name, at)
    y = at.ys[0].copy()
    y[outputs:] = np.nan if hidden else 5.0
    return learner.update(learner.predict(start), at.xs[0], y, key=0)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["credo.particles.KernelBayes", "credo.particles.KernelFilter"])
def test_a_kernel_rule_compares_what_was_observed(name: str) -> None:
    half, info = _kernel_of_the_seen(name, 2, hidden=True)
    other, _ = _kernel_of_the_seen(name, 2, hidden=False)
    assert bool(info.ok) and np.isfinite(np.asarray(half.values)).all()
    assert not np.allclose(half.values, other.values)


def _naive_loss(predictive: Any, y: Any) -> Any:
    """A user's own loss, which knows no missing output."""
    return jnp.sum((predictive.mean - y) ** 2)


def _bank(loss: Any) -> Any:
    def expert(var: float) -> Any:
        return credo.bong(credo.Model(linear, credo.Normal(var)), credo.Full("dense"))

    return Experts([expert(0.3), expert(3.0)], loss=loss)


def test_a_loss_that_knows_no_missing_output_weighs_nobody_by_it() -> None:
    bank = _bank(_naive_loss)
    start = bank.step(bank.init(jnp.zeros(P)), XS[0], jnp.ones(3))[0]
    moved = bank.predict(start)
    belief, info = bank.update(moved, XS[1], HOLES[0])
    assert bool(info.ok) and not np.allclose(belief.beliefs.mean, moved.beliefs.mean)
    np.testing.assert_allclose(belief.log_weights, moved.log_weights, atol=1e-12)
    after, later = bank.step(belief, XS[2], jnp.ones(3))
    assert bool(later.ok) and np.isfinite(np.asarray(after.log_weights)).all()
    assert not np.allclose(after.log_weights, belief.log_weights)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_loss_that_is_not_finite_of_a_whole_observation_is_a_failed_update(value: float) -> None:
    inner = credo.extended_kalman(credo.Model(linear, credo.Normal(0.2)), form="dense")
    bank: Any = Experts([inner, inner], loss=lambda predictive, y: value + 0.0 * predictive.mean)
    moved = bank.predict(begin(bank))
    belief, info = bank.update(moved, ROWS[0], YS[0])
    assert not bool(info.ok) and float(info.log_evidence) == 0.0
    bitwise(belief, moved)


def test_a_loss_that_fails_for_one_expert_leaves_the_others_in_charge() -> None:
    def loss(predictive: Any, y: Any) -> Any:
        return jnp.where(predictive.var > 2.0, jnp.nan, (predictive.mean - y) ** 2)

    def expert(var: float) -> Any:
        return credo.extended_kalman(credo.Model(linear, credo.Normal(var)), form="dense")

    bank: Any = Experts([expert(0.2), expert(90.0)], loss=loss)
    belief, info = bank.step(begin(bank), ROWS[0], YS[0])
    assert bool(info.ok) and np.asarray(belief.weights).round(9).tolist() == [1.0, 0.0]


def test_the_squared_error_of_the_default_agent_is_of_what_was_observed() -> None:
    from credo.bandits.default import squared_error

    predictive = credo.Normal(0.3).plugin(jnp.arange(3.0))
    assert float(squared_error(predictive, jnp.asarray([1.0, jnp.nan, 4.0]))) == 1.0 + 4.0


def test_what_is_watched_is_the_error_of_the_outputs_that_came() -> None:
    inner = credo.bong(credo.Model(linear, credo.Normal(0.3)), credo.Full("dense"))
    watched = credo.Monitored(inner)
    start = watched.predict(watched.init(jnp.zeros(P)))
    half, _ = watched.update(start, XS[0], jnp.asarray([2.0, jnp.nan, 1.0]))
    whole, _ = watched.update(start, XS[0], jnp.asarray([2.0, float(np.sqrt(2.5)), 1.0]))
    # the mean square of (2, 1) is 2.5, and the forecast is 0
    np.testing.assert_allclose(half.changes.probs, whole.changes.probs, atol=1e-12)
