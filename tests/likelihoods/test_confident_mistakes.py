"""Gradients and curvatures by logits: exact where the papers invert a singular matrix, never attenuated."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from credo.likelihoods import Bernoulli, Categorical, Poisson


@pytest.mark.parametrize("seed", range(3))
def test_score_and_fisher_equal_the_pseudo_inverse_form(seed: int) -> None:
    rng = np.random.default_rng(seed)
    eta, jacobian, label = rng.normal(size=4), rng.normal(size=(4, 6)), 2
    p = np.exp(eta) / np.exp(eta).sum()
    noise = np.diag(p) - np.outer(p, p)  # R, singular
    moments = noise @ jacobian  # H = dE[y] / d theta
    residual = np.eye(4)[label] - p
    likelihood = Categorical(4)
    score = np.asarray(likelihood.score(jnp.asarray(eta), jnp.asarray(label)))
    root = np.asarray(likelihood.fisher_root(jnp.asarray(eta), jnp.asarray(label)))
    np.testing.assert_allclose(jacobian.T @ score, moments.T @ np.linalg.pinv(noise) @ residual, atol=1e-10)
    curvature = jacobian.T @ root @ root.T @ jacobian
    np.testing.assert_allclose(curvature, moments.T @ np.linalg.pinv(noise) @ moments, atol=1e-10)
    assert np.linalg.matrix_rank(root) == 3


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
@pytest.mark.parametrize("logit", [15.0, 40.0, 80.0, 1e4])
def test_a_confident_mistake_is_not_attenuated(logit: float, dtype: jnp.dtype) -> None:
    wrong = Categorical(3).score(jnp.asarray([logit, 0.0, 0.0], dtype), jnp.asarray(1))
    np.testing.assert_allclose(wrong, [-1.0, 1.0, 0.0], atol=1e-6)
    for sign in (1.0, -1.0):
        eta = jnp.asarray([sign * logit], dtype)
        score = Bernoulli().score(eta, jnp.asarray(0.5 - 0.5 * sign))
        np.testing.assert_allclose(score, [-sign], atol=1e-6)
        assert score.dtype == dtype
        assert float(Bernoulli().log_prob(eta, jnp.asarray(0.5 - 0.5 * sign))) == pytest.approx(
            -logit, rel=1e-6
        )


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_fisher_factors_do_not_underflow_before_the_probabilities_do(dtype: jnp.dtype) -> None:
    eta = jnp.asarray([60.0], dtype)  # 1 - p rounds to 0, yet p (1 - p) = exp(-60) is a number
    np.testing.assert_allclose(Bernoulli().fisher_root(eta, None)[0, 0], np.exp(-30.0), rtol=1e-5)
    root = np.asarray(Categorical(2).fisher_root(jnp.asarray([60.0, 0.0], dtype), None), np.float64)
    assert np.abs(root).max() < 1e-6
    for likelihood, logits in [
        (Categorical(3), [1e4, -1e4, 0.0]),
        (Bernoulli(), [-1e4]),
        (Poisson(), [-1e4]),
    ]:
        factor = likelihood.fisher_root(jnp.asarray(logits, dtype), jnp.asarray(0))
        assert bool(jnp.all(jnp.isfinite(factor)))


@pytest.mark.parametrize("y", [-1, 3, 7])
def test_labels_out_of_range_count_as_missing(y: int) -> None:
    assert not bool(Categorical(3).observed(jnp.asarray(y)))
    assert bool(Categorical(3).observed(jnp.asarray(2)))
    assert not bool(Categorical(3).observed(jnp.asarray(jnp.nan)))
    for value, bernoulli, poisson in [(jnp.nan, False, False), (2.0, False, True), (-1.0, False, False)]:
        assert bool(Bernoulli().observed(jnp.asarray(value))) == bernoulli
        assert bool(Poisson().observed(jnp.asarray(value))) == poisson
    assert bool(jax.jit(Poisson().observed)(3))


def test_a_confident_success_keeps_the_digits_of_its_score_in_single_precision() -> None:
    eta = jnp.asarray([30.0, 0.0, 1.0])
    for likelihood, logits, y in (
        (Categorical(3), eta, 0),
        (Bernoulli(), eta[:1], 1),
        (Bernoulli(), -eta[:1], 0),
    ):
        exact = likelihood.score(logits, y)
        single = likelihood.score(logits.astype(jnp.float32), y)
        np.testing.assert_allclose(single, exact, rtol=1e-5)
        assert np.all(np.asarray(exact) != 0)
