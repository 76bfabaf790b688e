"""Noise that follows the inputs, and the curvature that no observation can overshoot."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo.core.errors import CredoError
from credo.likelihoods import HeteroscedasticNormal, Normal, Poisson, Rows
from credo.likelihoods.scalar import secant_root

ETA = jnp.array([0.4, -0.7])
NOISE = HeteroscedasticNormal()


def test_density_score_and_information_are_those_of_a_normal() -> None:
    var = jnp.exp(ETA[1])
    known = Normal(var)
    for y in (-1.0, 0.5, 7.0):
        np.testing.assert_allclose(NOISE.log_prob(ETA, y), known.log_prob(ETA[:1], y), rtol=1e-12)
        np.testing.assert_allclose(NOISE.score(ETA, y), jax.grad(NOISE.log_prob)(ETA, y), rtol=1e-12)
        np.testing.assert_allclose(
            NOISE.cdf(ETA, jnp.asarray(y)), known.cdf(ETA[:1], jnp.asarray(y)), rtol=1e-12
        )
    inside = ETA[0] + 0.9 * jnp.sqrt(var)
    root = NOISE.fisher_root(ETA, inside)
    np.testing.assert_allclose(root @ root.T, jnp.diag(jnp.array([1 / var, 0.5])), rtol=1e-12)
    with pytest.raises(CredoError, match="needs a model with 2 outputs"):
        NOISE.check(1)


def test_the_forecast_integrates_both_outputs() -> None:
    cov = jnp.array([[0.5, 0.2], [0.2, 0.3]])
    predictive = NOISE.linearized(ETA, cov)
    np.testing.assert_allclose(predictive.mean, ETA[0], atol=1e-12)
    np.testing.assert_allclose(predictive.var, cov[0, 0] + jnp.exp(ETA[1] + 0.15), rtol=1e-8)  # log-normal
    draws = np.random.default_rng(0).multivariate_normal(np.asarray(ETA), np.asarray(cov), 400_000)
    density = np.exp(-0.5 * (1.5 - draws[:, 0]) ** 2 / np.exp(draws[:, 1])) / np.sqrt(
        2 * np.pi * np.exp(draws[:, 1])
    )
    # the mean of 400,000 densities, each of spread about 0.2, to three standard errors
    assert float(jnp.exp(predictive.log_prob(1.5))) == pytest.approx(float(density.mean()), abs=1e-3)


@pytest.mark.parametrize("y", [0.0, 1.0, 3.0, 1e6])
def test_a_step_for_a_count_ends_at_its_own_rate_at_most(y: float) -> None:
    likelihood, eta = Poisson("secant"), jnp.array([0.0])
    step = likelihood.score(eta, y) / likelihood.fisher_root(eta, y)[:, 0] ** 2
    assert float(step[0]) == pytest.approx(np.log(y) if y > 1 else y - 1, rel=1e-9)
    if y <= 1:
        np.testing.assert_array_equal(likelihood.fisher_root(eta, y), Poisson().fisher_root(eta, y))


def test_the_chord_keeps_its_digits_in_single_precision() -> None:
    ratios = np.array([0.0, 0.5, 1.0, 1.0 + 1e-7, 1.0 + 1e-4, 2.0, 1e30], np.float32)
    wide = ratios.astype(float)
    with np.errstate(all="ignore"):
        exact = np.where(wide > 1, np.sqrt((wide - 1) / np.log(wide)), 1.0)
    np.testing.assert_allclose(secant_root(jnp.asarray(ratios)), exact, rtol=1e-6)


@pytest.mark.parametrize("iterations", [1, 3])
@pytest.mark.parametrize("family", [credo.Full(), credo.Diagonal()], ids=str)
def test_a_chord_bounds_the_step_and_the_information_is_counted(family: Any, iterations: int) -> None:
    learner = credo.bong(credo.Model(lambda w, x: w, HeteroscedasticNormal()), family, iterations=iterations)
    belief, _ = learner.update(learner.init(np.zeros(2), var=4.0), 1.0, 30.0)
    np.testing.assert_allclose(1.0 / belief.cov.diag()[1], 0.25 + 0.5, rtol=1e-10)
    if iterations == 1:
        chord = 0.5 * (900.0 - 1.0) / np.log(900.0)
        assert float(belief.mean[1]) == pytest.approx(0.5 * 899.0 / (0.25 + chord), rel=1e-10)


def test_rows_that_are_joined_count_their_information() -> None:
    eta, y = jnp.array([0.1, 0.2, -0.3, 0.4]), jnp.array([9.0, -0.1])
    root = np.asarray(Rows(NOISE).information_root(eta, y))
    np.testing.assert_allclose(root @ root.T, np.diag([np.exp(-0.2), 0.5, np.exp(-0.4), 0.5]), rtol=1e-12)
    assert Rows(Poisson()).information_root(eta, jnp.ones(4)) is None


def test_one_outlier_cannot_carry_a_filter_away() -> None:
    learner = credo.extended_kalman(credo.Model(lambda w, x: w * x, Poisson("secant")))
    belief, info = learner.step(learner.init(jnp.zeros(()), var=4.0), 1.0, 1e6)
    assert bool(info.ok) and 0.0 < float(belief.params) < np.log(1e6)
