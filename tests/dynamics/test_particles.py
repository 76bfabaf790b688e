"""How particles move: every dynamics by what it gives one particle, and transitions by functions."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats as scipy_stats
from tests.dynamics.test_dynamics import CENTRE, DIFFUSION, DRIFT, MATRIX, MEAN, MOVING, PRIOR, P

import credo
from credo.beliefs import Anchor
from credo.core.errors import CredoError
from credo.core.trees import ravel

N = 4000
stats: Any = scipy_stats  # its stubs are of other versions
KEY = jax.random.key(3)
UNRAVEL = ravel(jnp.zeros(P))[1]
TIME = jnp.asarray(2)
MOVING = MOVING | {"bound": credo.PriorBound(credo.RandomWalk(0.3)), "static": credo.Static()}


def particles() -> tuple[jax.Array, jax.Array]:
    """A set whose weighted mean and covariance are MEAN and MATRIX exactly, with uneven weights."""
    weights = np.random.default_rng(1).dirichlet(np.ones(N))
    draws = np.random.default_rng(0).normal(size=(N, P))
    draws -= weights @ draws
    white = np.linalg.inv(np.linalg.cholesky(draws.T @ (weights[:, None] * draws))) @ draws.T
    return jnp.asarray(MEAN + (np.linalg.cholesky(MATRIX) @ white).T), jnp.asarray(np.log(weights))


@pytest.mark.table
@pytest.mark.parametrize("name", MOVING)
@pytest.mark.parametrize("dt", [None, 0.5])
def test_a_set_gets_the_moments_that_the_dynamics_give_a_gaussian(name: str, dt: float | None) -> None:
    dynamics: Any = MOVING[name]
    values, log_weights = particles()
    anchor = Anchor(jnp.asarray(CENTRE), credo.Full().init(jnp.asarray(PRIOR)))
    if name in ("hybrid", "bayesian", "bound"):
        anchor = Anchor(jnp.asarray(CENTRE), credo.Diagonal().init(jnp.asarray(PRIOR)))
    moved = dynamics.propagate(values, log_weights, KEY, anchor, TIME, dt, UNRAVEL)
    # Forgetting acts on the marginal variances of a set, where it is not the same for all parameters.
    family = credo.Diagonal() if name in ("hybrid", "bayesian", "bound") else credo.Full()
    cov = family.from_dense(jnp.asarray(MATRIX)) if name not in ("hybrid", "bayesian", "bound") else None
    cov = credo.Diagonal().init(jnp.diagonal(jnp.asarray(MATRIX))) if cov is None else cov
    mean, expected = dynamics.move(jnp.asarray(MEAN), cov, anchor, TIME, dt)
    weights = jnp.exp(log_weights)
    centre = weights @ moved
    var = weights @ (moved - centre[None, :]) ** 2
    # The noise of N particles with these weights: their effective number is about N / 2.
    error = 5 * jnp.sqrt(expected.diag() / (N / 2))
    assert jnp.all(jnp.abs(centre - mean) < error)
    assert jnp.allclose(var, expected.diag(), rtol=5 * np.sqrt(2 / (N / 2)))


def test_transition_densities_are_those_of_the_noise() -> None:
    continuous = MOVING["sde"]
    later, value = jnp.array([0.2, -1.0, 0.4]), jnp.asarray(MEAN)
    got = continuous.log_transition(later, value, None, TIME, 0.5, UNRAVEL)
    dynamics = credo.LinearGaussian(jnp.asarray(DRIFT), 0.1, jnp.asarray(DIFFUSION))
    plain = dynamics.log_transition(later, value, None, TIME, None, UNRAVEL)
    expected = stats.multivariate_normal(DRIFT @ MEAN + 0.1, DIFFUSION).logpdf(np.asarray(later))
    assert abs(float(plain) - expected) < 1e-10 and np.isfinite(float(got))
    additive = credo.Transition.additive(lambda z, dt: jnp.sin(z), jnp.asarray([0.1, 0.2, 0.3]))
    got = additive.log_transition(later, value, None, TIME, 2.0, UNRAVEL)
    sd = np.sqrt(2 * np.array([0.1, 0.2, 0.3]))
    assert abs(float(got) - stats.norm(np.sin(MEAN), sd).logpdf(np.asarray(later)).sum()) < 1e-10
    correlated = credo.Transition.additive(lambda z, dt: z, jnp.asarray(DIFFUSION))
    got = correlated.log_transition(later, value, None, TIME, None, UNRAVEL)
    assert abs(float(got) - stats.multivariate_normal(MEAN, DIFFUSION).logpdf(np.asarray(later))) < 1e-10


def test_a_transition_takes_trees_settings_and_the_length_of_a_step() -> None:
    def move(z: Any, key: Any, dt: Any, settings: Any) -> Any:
        return {"a": z["a"] + dt * settings, "b": z["b"] + jax.random.normal(key, z["b"].shape)}

    tree = {"a": jnp.zeros(1), "b": jnp.zeros(2)}
    unravel = ravel(tree)[1]
    transition = credo.Transition(move, settings=jnp.asarray(3.0))
    values = jnp.zeros((50, 3))
    moved = transition.propagate(values, jnp.zeros(50), KEY, None, TIME, 0.5, unravel)
    assert jnp.all(moved[:, 0] == 1.5) and len(np.unique(moved[:, 1])) == 50


@pytest.mark.parametrize(
    ("transition", "sentence"),
    [
        (lambda: credo.Transition(3), r"move must be a function of \(z, key, dt\); got 3"),  # type: ignore[arg-type]
        (
            lambda: credo.Transition(lambda z, key, dt: z[:2]),
            r"move of the Transition must return a tree like z, with shapes \[\(3,\)\]; got \[\(2,\)\]",
        ),
        (lambda: credo.Transition(lambda z: z), "move of the Transition fails: .*takes 1 positional"),
    ],
)
def test_a_bad_transition_gets_a_sentence(transition: Any, sentence: str) -> None:
    with pytest.raises(CredoError, match=sentence):
        transition().propagate(jnp.zeros((4, P)), jnp.zeros(4), KEY, None, TIME, None, UNRAVEL)


def test_gaussian_beliefs_refuse_a_transition_and_ensembles_take_it() -> None:
    model = credo.Model(lambda z, x: z, credo.Normal(0.1))
    walk = credo.Transition(lambda z, key, dt: z + 0.5 + 0.1 * jax.random.normal(key, z.shape))
    learner = credo.extended_kalman(model, dynamics=walk)
    with pytest.raises(CredoError, match="a Transition moves the particles"):
        learner.predict(learner.init(jnp.zeros(2)))
    ensemble = credo.enkf(model, members=200, dynamics=walk)
    belief = ensemble.predict(ensemble.init(jnp.zeros(2), var=0.01))
    assert jnp.allclose(belief.mean, 0.5, atol=0.05) and jnp.allclose(belief.deviations.sum(axis=0), 0.0)
    with pytest.raises(CredoError, match="density"):
        walk.log_transition(jnp.zeros(2), jnp.zeros(2), None, TIME, None, ravel(jnp.zeros(2))[1])
