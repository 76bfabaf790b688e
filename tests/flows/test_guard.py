"""The guard of credo.pfbr: weights that are exact for every number of particles, and temperatures."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.flows.test_learner import MODEL, WALK, YS, kalman
from tests.flows.test_operator import bent
from tests.tiers import few

import credo
from credo.core.types import Array
from credo.flows import Guard, Operator, SetDensity, load_operator, pfbr
from credo.flows.densities import NormalDensity
from credo.flows.guard import Chosen
from credo.particles import Metropolis

IDLE = Operator(dim=2, base=None, width=2, hidden=4, embedding=0).begin()
GROWTH = credo.Model(lambda z, x: z**2 / 20, credo.Normal(1.0))
GROW = credo.Transition.additive(lambda z, dt: 0.5 * z + 25 * z / (1 + z**2), 2.0)


def growth_evidence(ys: np.ndarray) -> float:
    """log p(y_1:T) of the growth model from N(0, 1), on a grid whose error is below 1e-6."""
    grid = np.linspace(-40.0, 40.0, 2001)
    weights = np.exp(-(grid**2) / 2)
    weights /= weights.sum()
    centres = 0.5 * grid + 25 * grid / (1 + grid**2)
    kernel = np.exp(-((grid[:, None] - centres[None, :]) ** 2) / 4)
    kernel /= kernel.sum(axis=0)
    total = 0.0
    for y in ys:
        joint = kernel @ weights * np.exp(-((y - grid**2 / 20) ** 2) / 2) / np.sqrt(2 * np.pi)
        total += float(np.log(joint.sum()))
        weights = joint / joint.sum()
    return total


class Stretched:
    """The map T z = 0.7 + 1.5 z of every coordinate."""

    def forward_density(self, points: Array) -> tuple[Array, Array]:
        """T z, and log |det T'|."""
        return 0.7 + 1.5 * points, jnp.full(len(points), points.shape[1] * np.log(1.5))

    def backward(self, points: Array) -> tuple[Array, Array]:
        """The origin of a point, and log |det T'| there."""
        return (points - 0.7) / 1.5, jnp.full(len(points), points.shape[1] * np.log(1.5))


def test_points_that_stay_and_those_that_move_weigh_by_the_density_of_the_mixture() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(24, 2))
    log_weights = np.log(rng.dirichlet(np.ones(24)))
    prior = NormalDensity(jnp.zeros(2), jnp.eye(2))
    guard = Guard(threshold=0.0)

    def log_likelihood(points: Array) -> Array:
        return -0.5 * jnp.sum((points - 1.0) ** 2, axis=1)

    def transport(*_: Any) -> Any:
        return Stretched()

    key = jax.random.key(0)
    found = guard.weigh(key, jnp.asarray(values), jnp.asarray(log_weights), prior, log_likelihood, transport)
    points = np.asarray(found.values)
    stayed = np.all(points == values, axis=1)
    np.testing.assert_allclose(points[~stayed], 0.7 + 1.5 * values[~stayed], rtol=1e-12)
    assert 0 < stayed.sum() < 24 and stayed.sum() == 12  # one of every pair

    def density(z: np.ndarray) -> np.ndarray:
        return np.asarray(np.exp(-0.5 * (z**2).sum(axis=1)) / (2 * np.pi))

    mixture = 0.5 * density(points) + 0.5 * density((points - 0.7) / 1.5) / 1.5**2
    weights = np.exp(log_weights) * density(points) / mixture
    weights *= np.exp(-0.5 * ((points - 1.0) ** 2).sum(axis=1))
    assert float(found.log_evidence) == pytest.approx(np.log(weights.sum()), abs=1e-12)
    np.testing.assert_allclose(np.exp(found.log_weights), weights / weights.sum(), rtol=1e-11)


@pytest.mark.optimised
@pytest.mark.parametrize("operator", few(["base", "bent"], "bent"))
def test_the_evidence_has_no_bias_with_32_particles_whatever_the_operator(operator: str) -> None:
    ys = np.array([3.07, 1.47, 0.24])
    flow = Operator(dim=1, width=2, hidden=4, embedding=0).begin()
    if operator == "bent":
        flow = bent(dim=1, width=2, hidden=4, embedding=0, steps=1)
    learner = pfbr(GROWTH, flow, 32, GROW, guard=True)

    def estimate(key: Array) -> Array:
        _, trace = credo.run(learner, learner.init(jnp.zeros(1), key=key), None, jnp.asarray(ys)[:, None])
        return jnp.exp(trace.log_evidence.sum())

    keys = jax.random.split(jax.random.key(1), 4000)
    ratios = np.asarray(jax.jit(lambda keys: jax.lax.map(estimate, keys, batch_size=100))(keys))
    ratios = ratios / np.exp(growth_evidence(ys))
    error = ratios.std() / np.sqrt(len(ratios))
    # at most 2%, as measured by four standard errors
    assert error < 0.02 and abs(ratios.mean() - 1) < 4 * error


@pytest.mark.slow
@pytest.mark.optimised
@pytest.mark.parametrize("fallback", few([True, False], False))
def test_the_evidence_has_no_bias_around_a_shipped_operator_in_a_world_of_four_modes(fallback: bool) -> None:
    ys = np.array([[3.07, 0.24], [1.47, 2.2], [0.24, 5.0]])
    exact = growth_evidence(ys[:, 0]) + growth_evidence(ys[:, 1])
    learner = pfbr(GROWTH, load_operator("linear-2"), 32, GROW, guard=True, fallback=fallback)

    def estimate(key: Array) -> Array:
        _, trace = credo.run(learner, learner.init(jnp.zeros(2), key=key), None, jnp.asarray(ys))
        return jnp.exp(trace.log_evidence.sum() - exact)

    keys = jax.random.split(jax.random.key(1), 4000)
    ratios = np.asarray(jax.jit(lambda keys: jax.lax.map(estimate, keys, batch_size=100))(keys))
    error = ratios.std() / np.sqrt(len(ratios))
    # a filter that kept too few of the modes would have half of the evidence or less
    assert error < 0.03 and abs(ratios.mean() - 1) < 4 * error


@pytest.mark.slow
def test_a_guard_mends_an_operator_that_does_nothing() -> None:
    learner = pfbr(MODEL, IDLE, 200, WALK, guard=Guard(0.7), fallback=False)
    belief, trace = credo.run(learner, learner.init(jnp.zeros(2), key=1), None, YS)
    exact, truth = kalman()
    # 200 particles of which about half count: four standard errors
    assert jnp.max(jnp.abs(belief.mean - exact.mean) / jnp.sqrt(jnp.diag(exact.cov.dense()))) < 0.4
    assert abs(trace.log_evidence.sum() - truth.log_evidence.sum()) < 1.0
    assert belief.log_density is not None and jnp.isfinite(belief.log_density).all()


@pytest.mark.slow
def test_a_guard_goes_by_temperatures_where_the_operator_is_far_from_the_target() -> None:
    precise = credo.Model(lambda z, x: z, credo.Normal(1e-4))
    learner = pfbr(precise, IDLE, 200, density="normal", guard=True, fallback=False)
    start = learner.init(jnp.zeros(2), key=1)
    belief, info = jax.jit(learner.update)(start, None, jnp.full(2, 2.0))
    exact = -4.0 / 1.0001 - jnp.log(2 * jnp.pi * 1.0001)
    # one importance step would have a few particles near (2, 2), and none within .01
    assert jnp.max(jnp.abs(belief.mean - 2.0)) < 4 * 0.01 / jnp.sqrt(200.0)
    assert jnp.all((belief.sd > 0.008) & (belief.sd < 0.012))
    assert abs(info.log_evidence - exact) < 1.0


@credo.record
class Box(SetDensity):
    """Uniform in (-5, 5)."""

    def log_prob(self, points: Array) -> Array:
        return jnp.where(jnp.abs(points[:, 0]) < 5, -jnp.log(10.0), -jnp.inf)


class Shrunk:
    """A map to a third."""

    def forward(self, points: Array) -> Array:
        return points / 3

    def forward_density(self, points: Array) -> tuple[Array, Array]:
        return points / 3, jnp.full(points.shape[0], -jnp.log(3.0))

    def backward(self, points: Array) -> tuple[Array, Array]:
        return 3 * points, jnp.full(points.shape[0], -jnp.log(3.0))


MOVE = Metropolis(2, "langevin")


@pytest.mark.slow
@pytest.mark.parametrize("move", few([None, MOVE], MOVE))
def test_a_guard_knows_the_constant_of_a_target_by_the_mixture_of_those_that_stay_and_those_that_move(
    move: Any,
) -> None:
    count = 4001
    points = jax.random.uniform(jax.random.key(2), (count, 1), minval=-5.0, maxval=5.0)
    equal = jnp.full(count, -jnp.log(count))

    def likelihood(rows: Array) -> Array:
        return jnp.log(30.0) - 0.5 * (rows[:, 0] / 0.3) ** 2 - jnp.log(0.3 * jnp.sqrt(2 * jnp.pi))

    def shrink(distribution: SetDensity, values: Array, log_weights: Array) -> Chosen:
        return Chosen([Shrunk()], jnp.zeros((), jnp.int32))

    guard = Guard(threshold=0.9, move=move)
    after = jax.jit(lambda key: guard.weigh(key, points, equal, Box(), likelihood, shrink))(jax.random.key(3))
    # the weights of points of density .2 (|x| < 5/3) and .05 have a mean square of 4.7
    slack = 1.0 if move is None else 3.0
    assert abs(after.log_evidence - jnp.log(3.0)) < slack * 4 * jnp.sqrt(3.7 / count)
    weights = jnp.exp(after.log_weights)
    assert abs(jnp.sqrt(weights @ after.values[:, 0] ** 2) - 0.3) < 0.03
    assert move is not None or jnp.all(after.log_weights == equal)
    assert jnp.allclose(after.heights, likelihood(after.values) - jnp.log(10.0))
