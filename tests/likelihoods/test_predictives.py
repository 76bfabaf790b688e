"""Predictives: moments, densities, quantiles, mixtures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hypothesis.strategies as hs
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats as st
from hypothesis import given
from scipy import integrate

from credo.core.errors import CredoError
from credo.learners.conjugate import NegativeBinomialPredictive
from credo.likelihoods import (
    Bernoulli,
    Categorical,
    Likelihood,
    LikelihoodBase,
    Normal,
    NormalPredictive,
    Poisson,
    Predictive,
    PredictiveRows,
    StudentT,
    StudentTPredictive,
)
from credo.likelihoods.mixture import integration_nodes
from credo.likelihoods.softmax_normal import ClassPredictive

ONE = jnp.ones((1, 1))
CONTINUOUS = {
    "normal": NormalPredictive(jnp.asarray([0.3]), 0.7 * ONE),
    "student": StudentTPredictive(jnp.asarray(3.0), jnp.asarray([0.3]), 0.7 * ONE),
    "t-likelihood": StudentT(3.0, 0.5).linearized(jnp.asarray([0.3]), 0.2 * ONE),
    "heavy": StudentT(1.2, 0.5).plugin(jnp.asarray([0.3])),
    "normal-mixture": Normal(0.1).mixture(jnp.asarray([[-1.0], [0.2], [3.0]])),
}
DISCRETE = {
    "bernoulli": Bernoulli().linearized(jnp.asarray([0.3]), 2.0 * ONE),
    "poisson": Poisson().linearized(jnp.asarray([1.3]), 0.3 * ONE),
    "large-poisson": Poisson().plugin(jnp.log(jnp.asarray([3e4]))),
    "negative-binomial": NegativeBinomialPredictive(jnp.asarray(2.5), jnp.asarray(0.3)),
}
CDF = jax.jit(lambda predictive, y: predictive.cdf(y))
QUANTILE = jax.jit(lambda predictive, p: predictive.quantile(p))
LOG_PROB = jax.jit(lambda predictive, y: predictive.log_prob(y))


@pytest.mark.slow
@given(name=hs.sampled_from(list(CONTINUOUS)), p=hs.floats(1e-4, 1 - 1e-4))
def test_the_cdf_of_a_quantile_is_the_probability(name: str, p: float) -> None:
    y = QUANTILE(CONTINUOUS[name], p)
    np.testing.assert_allclose(CDF(CONTINUOUS[name], y), p, atol=1e-9)
    np.testing.assert_allclose(QUANTILE(CONTINUOUS[name], CDF(CONTINUOUS[name], y)), y, rtol=1e-6, atol=1e-8)


@pytest.mark.slow
@given(name=hs.sampled_from(list(DISCRETE)), p=hs.floats(1e-4, 1 - 1e-4))
def test_a_discrete_quantile_is_the_smallest_whole_number_that_reaches_the_probability(
    name: str, p: float
) -> None:
    y = float(QUANTILE(DISCRETE[name], p))
    assert y == round(y) and y >= 0
    assert float(CDF(DISCRETE[name], y)) >= p - 1e-12
    assert float(CDF(DISCRETE[name], y - 1)) < p + 1e-12


@given(count=hs.integers(0, 12), name=hs.sampled_from(["poisson", "negative-binomial"]))
def test_the_quantile_at_a_jump_is_the_place_of_the_jump(count: int, name: str) -> None:
    p = float(CDF(DISCRETE[name], float(count)))
    assert float(QUANTILE(DISCRETE[name], p * (1 - 1e-12))) == count
    assert float(QUANTILE(DISCRETE[name], p * (1 + 1e-12))) == count + 1


@pytest.mark.slow
def test_quantiles_of_scipys_distributions() -> None:
    p = jnp.asarray([0.001, 0.1, 0.5, 0.9, 0.999])
    cases = [
        (CONTINUOUS["normal"], st.norm(0.3, np.sqrt(0.7))),
        (CONTINUOUS["student"], st.t(3.0, 0.3, np.sqrt(0.7))),
        (CONTINUOUS["heavy"], st.t(1.2, 0.3, 0.5)),
        (DISCRETE["large-poisson"], st.poisson(3e4)),
        (DISCRETE["negative-binomial"], st.nbinom(2.5, 0.3 / 1.3)),
    ]
    for predictive, frozen in cases:
        np.testing.assert_allclose(QUANTILE(predictive, p), frozen.ppf(p), rtol=1e-8)
        y = frozen.ppf(np.asarray(p))
        np.testing.assert_allclose([CDF(predictive, v) for v in y], frozen.cdf(y), atol=1e-10)
        density = "logpdf" if hasattr(frozen, "logpdf") and frozen.dist.name in ("norm", "t") else "logpmf"
        log_prob = getattr(frozen, density)
        np.testing.assert_allclose([LOG_PROB(predictive, v) for v in y], log_prob(y), rtol=1e-9)
    for name in ("normal", "student", "negative-binomial"):
        predictive, frozen = next((a, b) for a, b in cases if a is (CONTINUOUS | DISCRETE)[name])
        np.testing.assert_allclose(
            [predictive.mean, predictive.var], [frozen.mean(), frozen.var()], rtol=1e-10
        )
        np.testing.assert_allclose(predictive.interval(0.8), frozen.interval(0.8), rtol=1e-8)


def test_several_outputs_have_their_joint_density_and_separate_quantiles() -> None:
    loc, matrix = jnp.asarray([0.5, -1.0]), jnp.asarray([[1.0, 0.4], [0.4, 0.5]])
    y = jnp.asarray([0.1, 0.2])
    normal, student = NormalPredictive(loc, matrix), StudentTPredictive(jnp.asarray(5.0), loc, matrix)
    stats: Any = st
    distributions = stats.multivariate_normal(loc, matrix), stats.multivariate_t(loc, matrix, 5.0)
    np.testing.assert_allclose(normal.log_prob(y), distributions[0].logpdf(y), atol=1e-12)
    np.testing.assert_allclose(student.log_prob(y), distributions[1].logpdf(y), atol=1e-12)
    p = jnp.asarray([0.1, 0.5, 0.9])
    wanted = st.norm.ppf(np.asarray(p)[:, None], loc, np.sqrt(np.diag(matrix)))
    np.testing.assert_allclose(normal.quantile(p), wanted, atol=1e-10)
    assert student.quantile(p).shape == (3, 2) and student.quantile(0.5).shape == (2,)
    np.testing.assert_allclose(student.var, np.diag(matrix) * 5 / 3, atol=1e-12)


@pytest.mark.table
@pytest.mark.parametrize(("mean", "var"), [(0.0, 1.0), (1.5, 0.3), (-2.0, 4.0), (3.0, 0.01)])
def test_the_linearized_bernoulli_is_the_integral_of_the_sigmoid(mean: float, var: float) -> None:
    predictive = Bernoulli().linearized(jnp.asarray([mean]), jnp.asarray([[var]]))

    def integrand(eta: float) -> float:
        return float(st.norm.pdf(eta, mean, np.sqrt(var)) / (1 + np.exp(-eta)))

    centre, reach = mean, 12 * np.sqrt(var)
    exact = integrate.quad(integrand, centre - reach, centre + reach, epsabs=1e-13, points=[centre])[0]
    np.testing.assert_allclose(predictive.mean, exact, atol=1e-6)
    np.testing.assert_allclose(predictive.probs, [1 - exact, exact], atol=1e-6)
    np.testing.assert_allclose(predictive.log_prob(1.0), np.log(exact), atol=1e-5)
    np.testing.assert_allclose(predictive.var, exact * (1 - exact), atol=1e-6)


def test_class_probabilities_sum_to_one_and_match_the_log_probabilities() -> None:
    rng = np.random.default_rng(0)
    half = rng.normal(size=(4, 4))
    predictive = Categorical(4).linearized(jnp.asarray(rng.normal(size=4) * 3), jnp.asarray(half @ half.T))
    np.testing.assert_allclose(predictive.probs.sum(), 1.0, atol=1e-12)
    np.testing.assert_allclose(
        [jnp.exp(predictive.log_prob(c)) for c in range(4)], predictive.probs, atol=1e-12
    )
    np.testing.assert_array_equal(predictive.mean, predictive.probs)
    np.testing.assert_allclose(predictive.var, predictive.probs * (1 - predictive.probs), atol=1e-12)
    assert isinstance(predictive, ClassPredictive)
    draws = rng.multivariate_normal(predictive.loc, half @ half.T, 200_000)
    probs = np.exp(draws) / np.exp(draws).sum(1, keepdims=True)
    # These logits have correlations near 1, which are integrated to first order.
    assert np.abs(probs.mean(0) - predictive.probs).max() < 1.5e-2
    with pytest.raises(CredoError, match="quantile of several outputs"):
        predictive.quantile(0.5)


@pytest.mark.parametrize("size", [1, 2, 3, 10])
def test_integration_nodes_have_exact_mean_and_covariance(size: int) -> None:
    nodes, log_weights = map(np.asarray, integration_nodes(size, jnp.float64))
    weights = np.exp(log_weights)
    np.testing.assert_allclose(weights.sum(), 1.0, atol=1e-12)
    np.testing.assert_allclose(weights @ nodes, np.zeros(size), atol=1e-12)
    np.testing.assert_allclose((nodes.T * weights) @ nodes, np.eye(size), atol=1e-10)


@pytest.mark.slow
def test_a_mixture_is_what_its_samples_say() -> None:
    mixture, n = CONTINUOUS["normal-mixture"], 40_000
    draws = np.asarray(jax.jit(lambda m: m.sample(jax.random.key(1), (n,)))(mixture))
    assert abs(draws.mean() - mixture.mean) < 4.5 * np.sqrt(mixture.var / n)
    fourth = ((draws - draws.mean()) ** 4).mean()
    assert abs(draws.var() - mixture.var) < 4.5 * np.sqrt(fourth / n)
    for y in (-1.0, 0.0, 2.5):
        assert abs((draws <= y).mean() - CDF(mixture, y)) < 4.5 * np.sqrt(0.25 / n)
        each = st.norm.pdf(y, [-1.0, 0.2, 3.0], np.sqrt(0.1))
        np.testing.assert_allclose(mixture.log_prob(y), np.log(each.mean()), rtol=1e-10)
    assert mixture.sample(jax.random.key(0)).shape == () and mixture.sample(
        jax.random.key(0), (2, 3)
    ).shape == (2, 3)


@pytest.mark.slow
def test_predictives_sample_themselves() -> None:
    n = 40_000
    for predictive in (CONTINUOUS["normal"], StudentTPredictive(jnp.asarray(9.0), jnp.asarray([0.3]), ONE)):
        draws = np.asarray(predictive.sample(jax.random.key(3), (n,)))
        assert abs(draws.mean() - predictive.mean) < 4.5 * np.sqrt(predictive.var / n)
        assert abs((draws <= 1.0).mean() - predictive.cdf(1.0)) < 4.5 * np.sqrt(0.25 / n)
    counts = np.asarray(DISCRETE["negative-binomial"].sample(jax.random.key(3), (n,)))
    assert abs(counts.mean() - DISCRETE["negative-binomial"].mean) < 4.5 * np.sqrt(counts.var() / n)


@pytest.mark.slow
def test_rows_answer_for_each_row() -> None:
    each = [Categorical(3).plugin(jnp.asarray(e)) for e in np.random.default_rng(0).normal(size=(4, 3))]
    rows: Any = PredictiveRows(jax.tree.map(lambda *v: jnp.stack(v), *each))
    for name in ("mean", "var", "sd", "probs"):
        np.testing.assert_allclose(getattr(rows, name), [getattr(e, name) for e in each], atol=1e-12)
    labels = jnp.asarray([0, 2, 1, 1])
    np.testing.assert_allclose(
        rows.log_prob(labels), [e.log_prob(y) for e, y in zip(each, labels, strict=True)]
    )
    assert rows.sample(jax.random.key(0), (5,)).shape == (4, 5)
    normal = PredictiveRows(NormalPredictive(jnp.zeros((4, 1)), jnp.ones((4, 1, 1))))
    assert normal.quantile(jnp.asarray([0.1, 0.9])).shape == (4, 2) and normal.cdf(jnp.zeros(4)).shape == (4,)


def test_what_a_predictive_cannot_say_it_refuses() -> None:
    with pytest.raises(CredoError, match="probs is for classifiers"):
        _ = CONTINUOUS["normal"].probs
    with pytest.raises(CredoError, match="probs is for classifiers"):
        _ = DISCRETE["poisson"].probs
    with pytest.raises(CredoError, match="has no mean"):
        _ = Likelihood(lambda eta, y: -eta).plugin(jnp.zeros(1)).mean


def test_what_a_likelihood_or_predictive_does_not_write_is_refused_in_a_sentence() -> None:
    class Bare(LikelihoodBase):
        pass

    class Silent(Predictive):
        pass

    eta = jnp.zeros(1)
    with pytest.raises(CredoError, match=r"log_prob\(eta, y\); write this method in Bare"):
        Bare().log_prob(eta, eta)
    with pytest.raises(CredoError, match=r"no cdf\(eta, y\); write this method in Bare"):
        Bare().cdf(eta, eta)
    silent = Silent()
    asks: list[Callable[[], object]] = [
        lambda: silent.mean,
        lambda: silent.var,
        lambda: silent.log_prob(1.0),
        lambda: silent.sample(jax.random.key(0)),
        lambda: silent.cdf(1.0),
        lambda: silent.quantile(0.5),
    ]
    for ask in asks:
        with pytest.raises(CredoError, match="the predictive distribution Silent has no"):
            ask()
