"""Learners of particles where the posterior is known: Kalman's, or on a grid."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo.core.errors import CredoError
from credo.core.records import record
from credo.core.types import Array
from credo.particles import FlowProposal, KernelProposal, Metropolis, NonparametricVariational
from credo.particles.conditioning import Evidence, condition
from credo.particles.linear_outputs import LinearOutputs, Moments, linear_outputs
from credo.particles.moves import Target

RNG = np.random.default_rng(0)
T, RUNS, N = 4, 24, 200
WALK = credo.LinearGaussian(jnp.array([[0.9, 0.2], [0.0, 0.8]]), 0.1, jnp.array([[0.3, 0.1], [0.1, 0.2]]))
MODEL = credo.Model(lambda z, x: x @ z, credo.Normal(jnp.array([0.5, 0.2])))
XS, YS = jnp.asarray(RNG.normal(size=(T, 2, 2))), jnp.asarray(RNG.normal(size=(T, 2)))
DRAWS = RNG.normal(size=(40, 2))
WHITE = jnp.asarray((DRAWS - DRAWS.mean(0)) @ np.linalg.inv(np.linalg.cholesky(np.cov(DRAWS.T))).T)
"""Particles with the mean 0 and the covariance I."""


def kalman(dynamics: credo.Dynamics) -> Any:
    learner = credo.extended_kalman(MODEL, dynamics=dynamics)
    return credo.run(learner, learner.init(jnp.zeros(2)), XS, YS)


def cov_of(belief: Any) -> np.ndarray:
    return np.cov(belief.values.T)


WEIGHTED = {
    "guided": {"proposal": "guided"},
    "adapted": {"proposal": "adapted"},
    "EDH": {"proposal": FlowProposal(local=False)},
    "LEDH": {"proposal": FlowProposal()},
    "moved": {"move": Metropolis(2), "threshold": 0.9},
    "Liu-West": {"proposal": KernelProposal(0.98)},
}


SAMPLE = ("adapted", "EDH", "moved", "Liu-West")
"""Those that run every time; the others are made of the same parts."""


@pytest.mark.slow
@pytest.mark.table
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.thorough] * (name not in SAMPLE)) for name in WEIGHTED]
)
def test_weighted_learners_agree_with_kalman_within_their_noise(name: str) -> None:
    learner = credo.particle_filter(MODEL, N, WALK, **WEIGHTED[name])  # type: ignore[arg-type]
    exact, exact_trace = kalman(WALK)

    @jax.jit
    @jax.vmap
    def go(key: jax.Array) -> Any:
        belief, trace = credo.run(learner, learner.init(jnp.zeros(2), key=key), XS, YS)
        return belief.mean, belief.var, jnp.exp(jnp.sum(trace.log_evidence - exact_trace.log_evidence))

    for found, wanted in zip(
        go(jax.random.split(jax.random.key(0), RUNS)), (exact.mean, exact.var, 1.0), strict=True
    ):
        error = np.std(found, axis=0, ddof=1) / np.sqrt(RUNS)
        assert np.all(error < 0.2)
        # 5 standard errors, and a bias of the order 1 / N, which means and variances have
        assert np.all(np.abs(np.mean(found, axis=0) - wanted) < 5 * error + 2 / N), (found, wanted)


@pytest.mark.slow
@pytest.mark.parametrize("dynamics", [WALK, credo.Static()])
def test_the_affine_map_is_kalmans_filter(dynamics: credo.Dynamics) -> None:
    learner = credo.gaussian_map(MODEL, 40, dynamics)
    belief, trace = credo.run(learner, learner.init(jnp.zeros(2), values=WHITE), XS, YS)
    exact, exact_trace = kalman(dynamics)
    np.testing.assert_allclose(belief.mean, exact.mean, atol=1e-11)
    np.testing.assert_allclose(cov_of(belief), exact.cov.dense(), atol=1e-11)
    np.testing.assert_allclose(trace.log_evidence, exact_trace.log_evidence, atol=1e-11)


@pytest.mark.parametrize("local", [False, True])
def test_the_flow_of_daum_and_huang_is_kalmans_update(local: bool) -> None:
    learner = credo.daum_huang(MODEL, 40, local=local)
    belief, trace = credo.run(learner, learner.init(jnp.zeros(2), values=WHITE), XS, YS)
    exact, exact_trace = kalman(credo.Static())
    np.testing.assert_allclose(belief.mean, exact.mean, atol=1e-11)
    np.testing.assert_allclose(cov_of(belief), exact.cov.dense(), atol=1e-11)
    np.testing.assert_allclose(trace.log_evidence, exact_trace.log_evidence, atol=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("learner", "close"),
    [
        (credo.fokker_planck(MODEL, 40), 0.1),
        (credo.svgd(MODEL, 40), 0.15),
    ],
)
def test_flows_along_gradients_end_at_the_posterior(learner: Any, close: float) -> None:
    belief, _ = learner.update(learner.init(jnp.zeros(2), values=WHITE), XS[0], YS[0])
    rule = credo.extended_kalman(MODEL)
    exact, _ = rule.update(rule.init(jnp.zeros(2)), XS[0], YS[0])
    sd = np.sqrt(np.diag(exact.cov.dense()))
    np.testing.assert_allclose((belief.mean - exact.mean) / sd, 0.0, atol=close)
    np.testing.assert_allclose(
        cov_of(belief) / np.outer(sd, sd), exact.cov.dense() / np.outer(sd, sd), atol=close
    )


BENT = credo.Model(lambda z, x: jnp.exp(0.8 * z), credo.Normal(0.05))
GRID = np.linspace(-8, 8, 4001)


def on_the_grid(var: float, y: float) -> tuple[float, float, float]:
    """The posterior mean and variance under the prior N(0, var), and the evidence."""
    joint = np.exp(-0.5 * GRID**2 / var - 0.5 * (y - np.exp(0.8 * GRID)) ** 2 / 0.05)
    joint *= (GRID[1] - GRID[0]) / (2 * np.pi * np.sqrt(var * 0.05))
    total = joint.sum()
    mean = joint @ GRID / total
    return mean, joint @ (GRID - mean) ** 2 / total, total


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({"proposal": FlowProposal(steps=4)}, id="LEDH"),
        pytest.param({"proposal": FlowProposal(False, 4)}, id="EDH", marks=pytest.mark.thorough),
        pytest.param({"proposal": "guided"}, id="guided", marks=pytest.mark.thorough),
        pytest.param({"proposal": "adapted"}, id="adapted"),
        pytest.param(None, id="tempered", marks=pytest.mark.thorough),
    ],
)
def test_weights_correct_a_linearisation_that_is_far_off(settings: Any) -> None:
    walk = credo.RandomWalk(1.0)
    tempered = credo.tempered_smc(BENT, 400, walk)
    learner: Any = tempered if settings is None else credo.particle_filter(BENT, 400, walk, **settings)

    @jax.jit
    @jax.vmap
    def go(key: jax.Array) -> Any:
        belief, info = learner.step(learner.init(jnp.zeros(1), key=key), None, jnp.full(1, 3.0))
        return belief.mean[0], belief.var[0], jnp.exp(info.log_evidence)

    for found, wanted in zip(
        go(jax.random.split(jax.random.key(1), RUNS)), on_the_grid(2.0, 3.0), strict=True
    ):
        error = np.std(found, ddof=1) / np.sqrt(RUNS)
        assert abs(np.mean(found) - wanted) < 5 * error + 0.01 * abs(wanted), (np.mean(found), wanted, error)


def test_proposals_that_look_at_the_observation_need_noise_that_is_known() -> None:
    for dynamics in (credo.Transition(lambda z, key, dt: z), credo.Inflation(0.1)):
        learner = credo.particle_filter(MODEL, 10, dynamics, proposal="guided")
        with pytest.raises(CredoError, match="dynamics must have normal noise that is known here"):
            learner.step(learner.init(jnp.zeros(2)), XS[0], YS[0])


def test_outputs_that_are_regressed_on_a_set_are_those_of_least_squares_around_any_moments() -> None:
    model = credo.Model(lambda z, x: jnp.stack([jnp.sin(z[0]) + z[1] ** 2, z[0] * z[2]]), credo.Normal(1.0))
    learner = credo.gaussian_map(model, 30)
    values = jnp.array([[1.0, -0.5, 2.0]]) + jax.random.normal(jax.random.key(0), (30, 3))
    weights = jax.nn.softmax(jax.random.normal(jax.random.key(1), (30,)))
    belief = credo.replace(learner.init(jnp.zeros(3)), values=values, log_weights=jnp.log(weights))
    root = jnp.array([[2.0, 0.0, 0.0], [0.3, 1.0, 0.0], [-1.0, 0.5, 0.7]])
    place = np.array([0.2, 0.4, -0.3])
    found = jax.jit(lambda at: linear_outputs(learner, belief, None, Moments(at, root)))(place)
    # weighted least squares with an intercept
    etas, shares = np.asarray(learner.outputs(belief, None)), np.asarray(weights)
    design = np.concatenate([np.ones((30, 1)), values], axis=1)
    gram = design.T @ (shares[:, None] * design)
    slopes = np.linalg.solve(gram, design.T @ (shares[:, None] * etas))
    rest = etas - design @ slopes
    cov = rest.T @ (shares[:, None] * rest) / (1 - shares @ shares)
    assert np.allclose(found.eta, slopes[0] + place @ slopes[1:], atol=1e-10)
    assert np.allclose(found.rows, slopes[1:].T @ np.asarray(root), atol=1e-10)
    assert found.rest is not None and np.allclose(found.rest, cov, atol=1e-10)


@pytest.mark.slow
def test_one_round_component_takes_in_normal_rows_exactly() -> None:
    """In one dimension nothing is lost: precisions add up."""
    model = credo.Model(lambda z, x: x * z, credo.Normal(0.5))
    learner = NonparametricVariational(model, 16, components=1)
    belief = learner.init(jnp.ones(1), key=4)
    centre, scale = learner.read(belief)
    mean, precision = centre[0, 0], 1.0 / scale[0] ** 2
    update = jax.jit(learner.update)
    for x, y in ((1.0, 3.0), (-2.0, 0.5)):
        belief, info = update(belief, jnp.array([x]), jnp.array([y]))
        mean = (precision * mean + x * y / 0.5) / (precision + x * x / 0.5)
        precision = precision + x * x / 0.5
        assert info.ok
    centre, scale = learner.read(belief)
    np.testing.assert_allclose([centre[0, 0], 1.0 / scale[0] ** 2], [mean, precision], rtol=1e-6)


def test_what_is_not_linear_in_the_outputs_counts_as_noise_beside_that_of_the_likelihood() -> None:
    """With a normal likelihood that is Kalman's update, with the sum of both covariances."""
    noise, rest = np.array([0.5, 0.2]), np.array([[0.4, 0.1], [0.1, 0.3]])
    eta, rows, y = RNG.normal(size=2), RNG.normal(size=(2, 3)), RNG.normal(size=2)
    model = credo.Model(lambda z, x: z[:2], credo.Normal(jnp.asarray(noise)))
    unravel = credo.gaussian_map(model, 4).init(jnp.zeros(3)).unravel
    evidence = Evidence(model, unravel, None, jnp.asarray(y), jnp.ones(()))
    outputs = LinearOutputs(jnp.asarray(eta), jnp.asarray(rows), jnp.asarray(rest))
    innovation = rows @ rows.T + rest + np.diag(noise)
    np.testing.assert_allclose(outputs.cov, rows @ rows.T + rest, atol=1e-12)
    for iterations in (1, 2):
        distribution = outputs.condition(evidence, iterations)
        np.testing.assert_allclose(
            distribution.mean, rows.T @ np.linalg.solve(innovation, y - eta), atol=1e-10
        )
        cov = np.eye(3) - rows.T @ np.linalg.solve(innovation, rows)
        np.testing.assert_allclose(
            np.linalg.inv(np.eye(3) + distribution.rows.T @ distribution.rows), cov, atol=1e-10
        )


def test_with_a_total_one_component_goes_to_the_posterior_of_prior_and_all_rows() -> None:
    """From anywhere, here from the prior twice: a batch of two rows stands for six."""
    model = credo.joint(credo.Model(lambda z, x: x * z, credo.Normal(0.5)))
    learner = NonparametricVariational(model, 16, components=1, total=6, iterations=60)
    xs, ys = jnp.array([[1.0], [-2.0]]), jnp.array([[3.0], [0.5]])
    belief = learner.init(jnp.full(1, 0.7), var=0.4, key=4)
    precision = 1 / 0.4 + 3 * 5.0 / 0.5
    mean = (0.7 / 0.4 + 3 * (3.0 - 1.0) / 0.5) / precision
    for _ in range(2):
        belief, info = learner.update(belief, xs, ys)
        centre, scale = learner.read(belief)
        assert info.ok
        np.testing.assert_allclose([centre[0, 0], 1.0 / scale[0] ** 2], [mean, precision], rtol=1e-6)


@pytest.mark.table
@pytest.mark.parametrize("kind", ["random-walk", "langevin"])
def test_metropolis_steps_lead_to_their_target_and_stay(kind: Any) -> None:
    count, mean, cov = 4000, np.array([1.0, -0.5]), np.array([[1.0, 0.6], [0.6, 0.8]])
    root = jnp.asarray(np.linalg.cholesky(cov))

    def target(u: jax.Array) -> jax.Array:
        gaps = jnp.linalg.solve(root, (u - jnp.asarray(mean)[None, :]).T)
        return -0.5 * jnp.sum(gaps**2, axis=0)

    own = jnp.asarray(mean)[None, :] + jax.random.normal(jax.random.key(0), (count, 2)) @ root.T
    for steps, start in ((3, own), (60, jnp.zeros((count, 2)))):
        moved, taken = Metropolis(steps, kind).walk(jax.random.key(1), start, target)
        # 5 standard errors of independent draws, which moments of normal numbers have
        scale = np.sqrt(np.outer(np.diag(cov), np.diag(cov)) + cov**2)
        assert np.all(np.abs(moved.mean(0) - mean) < 5 * np.sqrt(np.diag(cov) / count)), moved.mean(0)
        assert np.all(np.abs(np.cov(moved.T) - cov) < 5 * scale / np.sqrt(count)), np.cov(moved.T)
        assert 0.2 < taken < 0.8


def test_a_step_of_linearisation_is_shortened_to_where_the_density_is_highest() -> None:
    """Among its shares; where the density is not known, as of a negative number's logarithm, it is not."""
    model = credo.Model(lambda z, x: jnp.log(z), credo.Normal(0.01))
    unravel = credo.gaussian_map(model, 4).init(jnp.ones(1)).unravel
    shares = np.array([1.0, 0.5, 0.25, 0.125, 0.0])
    for y, best in ((-4.0, 2), (-0.6, 0), (-1.6, 1)):
        evidence = Evidence(model, unravel, None, jnp.array([y]), jnp.ones(()))
        distribution = condition(evidence, jnp.array([0.5]), jnp.eye(1), 1, False)
        whole = 2.0 * (y - np.log(0.5)) / (0.01 + 4.0)  # the slope of the logarithm is 2 at one half
        with np.errstate(invalid="ignore"):
            height = -0.5 * (y - np.log(0.5 + shares * whole)) ** 2 / 0.01 - 0.5 * (shares * whole) ** 2
        assert np.nanargmax(height) == best
        np.testing.assert_allclose(distribution.mean, shares[best] * whole, rtol=1e-10)


@record
class Still(credo.particles.FokkerPlanckLearner):
    """A flow that moves nothing."""

    def carry(self, v: Array, log_weights: Array, target: Target) -> Array:
        """The particles as they are."""
        return v


def test_particles_that_a_flow_does_not_move_come_back_from_its_coordinates() -> None:
    learner = Still(credo.Model(lambda z, x: z, credo.Normal(1.0)), particles=8)
    belief = learner.init(jnp.zeros(2))
    after, info = learner.update(belief, None, jnp.asarray([2.0, -1.0]))
    assert info.ok
    np.testing.assert_allclose(after.values, belief.values, atol=1e-10)
