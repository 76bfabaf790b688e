"""The errors of log p where outputs are uncertain: those that docs/explanation/correctness.md states."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special as ss
import scipy.stats as st

import credo
from credo.beliefs.conjugate import InverseGamma
from credo.likelihoods import LikelihoodBase, MixturePredictive, Normal

PAGE = Path(__file__).parents[2] / "docs/explanation/correctness.md"
VARIANCES = (0.01, 1.0, 10.0, 100.0)
LEAST = 1e-5
Case = tuple[float, np.ndarray]


def stated() -> dict[str, dict[float, float]]:
    """The rows of the table, by their first words."""
    rows = re.findall(
        r"^\| (`.*?) \| ([-0-9e.]+) \| ([-0-9e.]+) \| ([-0-9e.]+) \| ([-0-9e.]+) \|$", PAGE.read_text(), re.M
    )
    assert len(rows) == 9
    return {name: dict(zip(VARIANCES, map(float, bounds), strict=True)) for name, *bounds in rows}


TABLE = stated()


def log_integral(log_p: Callable[[np.ndarray], np.ndarray], mean: float, var: float, at: float) -> float:
    """log of the integral of p(y | eta) N(eta | mean, var), on a dense grid about the mean and `at`."""
    sd = np.sqrt(var)
    grid = np.unique(
        np.concatenate([mean + sd * np.linspace(-10, 10, 20001), at + np.linspace(-30, 30, 20001)])
    )
    logs = log_p(grid) + st.norm.logpdf(grid, mean, sd)
    gaps = np.diff(grid)
    widths = 0.5 * (np.append(gaps, 0.0) + np.append(0.0, gaps))
    return float(np.asarray(ss.logsumexp(logs + np.log(widths))))


@functools.cache
def log_prob(likelihood: LikelihoodBase, size: int) -> Callable[..., jax.Array]:
    """log p(y) of one output in single precision, compiled once."""

    @jax.jit
    def function(mean: jax.Array, cov: jax.Array, y: jax.Array) -> jax.Array:
        return likelihood.linearized(mean, cov).log_prob(y)

    return function


def means(var: float) -> np.ndarray:
    spread: np.ndarray = np.array([-4.0, -1.5, -0.3, 0.0, 1.0, 2.5, 4.0])
    return np.asarray(max(np.sqrt(var), 1.0) * spread)


def error_of_one(
    likelihood: LikelihoodBase, var: float, exact: Callable[[float], Iterator[tuple[float, float]]]
) -> float:
    """The largest error of log p over means and observations, relative to log p where that is large."""
    function, worst = log_prob(likelihood, 1), 0.0
    for mean in means(var):
        for y, log_p in exact(mean):
            ours = function(
                jnp.full(1, mean, jnp.float32), jnp.full((1, 1), var, jnp.float32), jnp.float32(y)
            )
            worst = max(worst, abs(float(ours) - log_p) / max(1.0, abs(log_p) / 10))
    return worst


@pytest.mark.parametrize("var", VARIANCES)
def test_labels(var: float) -> None:
    def exact(mean: float) -> Iterator[tuple[float, float]]:
        yield 1.0, log_integral(lambda u: -np.logaddexp(0, -u), mean, var, 0.0)
        yield 0.0, log_integral(lambda u: -np.logaddexp(0, u), mean, var, 0.0)

    assert error_of_one(credo.Bernoulli(), var, exact) < TABLE["`Bernoulli`"][var]


def test_labels_far_from_what_was_forecast_keep_their_digits() -> None:
    """P(1) of a mean of -60 is e^-60, where E[sigmoid] by wide nodes is whatever one node says."""
    for var in (1e-3, 1.0, 30.0, 1e4):
        function = jax.jit(lambda m, v: credo.Bernoulli().linearized(m[None], v[None, None]).log_prob(1.0))
        exact = log_integral(lambda u: -np.logaddexp(0, -u), -60.0, var, 0.0)
        np.testing.assert_allclose(function(jnp.asarray(-60.0), jnp.asarray(var)), exact, atol=1e-7)


def log_count(y: float, log_rate: np.ndarray) -> np.ndarray:
    logs: np.ndarray = y * log_rate - np.exp(np.minimum(log_rate, 700)) - ss.gammaln(y + 1)
    return logs


@pytest.mark.table
@pytest.mark.parametrize("var", VARIANCES)
def test_counts(var: float) -> None:
    def exact(mean: float) -> Iterator[tuple[float, float]]:
        for y in (0.0, 3.0, 400.0):
            at = np.log(max(y, 0.5))
            yield y, log_integral(functools.partial(log_count, y), mean, var, at)

    assert error_of_one(credo.Poisson(), var, exact) < TABLE["`Poisson`"][var]
    wide = credo.Poisson().linearized(jnp.full(1, 0.3), jnp.full((1, 1), 0.5))
    first = np.exp(0.3 + 0.25)
    np.testing.assert_allclose(wide.mean, first, rtol=1e-12)
    np.testing.assert_allclose(wide.var, first + first**2 * np.expm1(0.5), rtol=1e-12)


@pytest.mark.parametrize("var", VARIANCES)
def test_heavy_tails(var: float) -> None:
    def exact(mean: float) -> Iterator[tuple[float, float]]:
        for y in (0.0, 3.0, 1e3):
            yield y, log_integral(functools.partial(st.t.logpdf, y, 4.0), mean, var, y)

    assert error_of_one(credo.StudentT(4.0), var, exact) < TABLE["`StudentT(4)`"][var]


@pytest.mark.parametrize("var", VARIANCES)
def test_normal_noise(var: float) -> None:
    def known(mean: float) -> Iterator[tuple[float, float]]:
        for y in (0.0, 30.0):
            yield y, float(st.norm.logpdf(y, mean, np.sqrt(var + 0.5)))

    bound = TABLE["`Normal`, known and unknown noise"][var]
    assert error_of_one(Normal(0.5), var, known) < bound
    unknown, belief = Normal(InverseGamma(3.0, 2.0)), InverseGamma(jnp.float32(3.0), jnp.float32(2.0))
    ours = unknown.linearized(jnp.zeros(1, jnp.float32), jnp.full((1, 1), var, jnp.float32), belief)
    scale = np.sqrt(2.0 / 3.0 * (1 + var))
    assert abs(float(ours.log_prob(4.0)) - st.t.logpdf(4.0, 6.0, 0.0, scale)) < bound


@pytest.mark.parametrize("var", VARIANCES)
def test_the_variance_of_noise(var: float) -> None:
    likelihood, worst = credo.HeteroscedasticNormal(), 0.0
    function = log_prob(likelihood, 2)
    cov = jnp.diag(jnp.array([0.3, var], jnp.float32))
    for mean in (-1.0, 0.0, 1.0):
        for y in (0.1, 1.0, 5.0):

            def log_p(u: np.ndarray, y: float = y) -> np.ndarray:
                logs: np.ndarray = st.norm.logpdf(y, 0.0, np.sqrt(0.3 + np.exp(np.clip(u, -700, 700))))
                return logs

            exact = log_integral(log_p, mean, var, 0.0)
            ours = function(jnp.array([0.0, mean], jnp.float32), cov, jnp.float32(y))
            worst = max(worst, abs(float(ours) - exact))
    assert worst < TABLE["`HeteroscedasticNormal`, of the log variance"][var]


def exact_classes(mean: np.ndarray, var: np.ndarray) -> np.ndarray:
    """log P of each class with independent logits: Gumbel noise, by dense sums (see `softmax_normal`)."""
    points, weights = np.polynomial.legendre.leggauss(160)
    points, weights = 8 * points, 8 * weights * st.norm.pdf(8 * points)
    sd = np.sqrt(var)
    low, high = (mean - 7 * sd - 4).max(), max((mean + 7 * sd).max(), ss.logsumexp(mean)) + 17
    grid = np.linspace(low, high, 600)
    log_cdf, log_density = np.empty((2, mean.size, grid.size))
    for j in range(mean.size):
        inner = np.clip(mean[j] + sd[j] * points[None, :] - grid[:, None], -700, 60)
        log_cdf[j] = np.log(np.maximum(np.exp(-np.exp(inner)) @ weights, 1e-300))
        log_density[j] = np.log(np.maximum(np.exp(inner - np.exp(inner)) @ weights, 1e-300))
    total = np.asarray(ss.logsumexp(log_density - log_cdf + log_cdf.sum(0), axis=1))
    return np.asarray(total + np.log(grid[1] - grid[0]))


@functools.cache
def class_log_probs(classes: int) -> Callable[..., jax.Array]:
    return jax.jit(lambda m, S: credo.Categorical(classes).linearized(m, S).log_probs)


@pytest.mark.table
@pytest.mark.parametrize("var", VARIANCES)
@pytest.mark.parametrize("classes", [3, 10, 100])
def test_classes(classes: int, var: float) -> None:
    """Whatever shift the logits have in common; the evidence of equal means is known to be -log C."""
    rng, worst = np.random.default_rng(classes), 0.0
    function, shift = class_log_probs(classes), rng.normal(size=classes)
    cov = var * np.eye(classes) + 0.3 * var * (shift[:, None] + shift[None, :]) + var
    for spread in (0.0, 0.7, 2.0):
        mean = spread * max(np.sqrt(var), 1.0) * rng.normal(size=classes)
        exact = exact_classes(mean, np.full(classes, var))
        ours = np.asarray(function(jnp.asarray(mean, jnp.float32), jnp.asarray(cov, jnp.float32)))
        np.testing.assert_allclose(np.asarray(ss.logsumexp(ours)), 0.0, atol=1e-5)
        worst = max(worst, float(np.abs(ours - exact)[exact > np.log(LEAST)].max()))
        if spread == 0.0:
            np.testing.assert_allclose(ours, -np.log(classes), atol=1e-4)
    assert worst < TABLE[f"`Categorical({classes})`, independent"][var]


@pytest.mark.parametrize("var", VARIANCES)
def test_correlated_classes(var: float) -> None:
    """Against 4 x 10^5 draws, for classes that are not too rare for these."""
    rng, classes = np.random.default_rng(1), 10
    factor = rng.normal(size=(classes, 60))
    cov = var * factor @ factor.T / 60
    mean = 0.5 * np.sqrt(var) * rng.normal(size=classes)
    draws = rng.multivariate_normal(mean, cov, 200_000)
    pairs = 0.5 * (ss.softmax(draws, axis=1) + ss.softmax(2 * mean - draws, axis=1))
    error = pairs.std(axis=0) / np.sqrt(len(pairs)) / pairs.mean(axis=0)
    likely = pairs.mean(axis=0) > 1e-2
    ours = np.asarray(class_log_probs(classes)(jnp.asarray(mean, jnp.float32), jnp.asarray(cov, jnp.float32)))
    gaps = np.abs(ours - np.log(pairs.mean(axis=0)))
    bound = TABLE["`Categorical(10)`, correlations near 0.1"][var]
    assert np.all(gaps[likely] < bound + 4 * error[likely])


def test_correlations_enter_with_the_right_slope() -> None:
    """d log P / d S_01 at independence, against tensor Gauss-Hermite nodes of four logits."""
    points, weights = np.polynomial.hermite_e.hermegauss(18)
    grid = np.stack(np.meshgrid(*[points] * 4, indexing="ij"), axis=-1).reshape(-1, 4)
    masses = np.prod(np.stack(np.meshgrid(*[weights] * 4, indexing="ij"), axis=-1).reshape(-1, 4), axis=1)
    mean, function = np.array([0.3, -0.5, 1.0, 0.0]), class_log_probs(4)

    def cov(link: float) -> np.ndarray:
        pair = np.zeros((4, 4))
        pair[0, 1] = pair[1, 0] = link
        return np.diag([1.3, 1.5, 1.2, 2.0]) + pair

    def exact(link: float) -> np.ndarray:
        probs = ss.softmax(mean + grid @ np.linalg.cholesky(cov(link)).T, axis=1)
        return np.asarray(np.log(masses @ probs / masses.sum()))

    def ours(link: float) -> np.ndarray:
        return np.asarray(function(jnp.asarray(mean), jnp.asarray(cov(link))))

    step = 0.02
    slope = (exact(step) - exact(-step)) / (2 * step)
    np.testing.assert_allclose(
        (ours(step) - ours(-step)) / (2 * step), slope, atol=8e-4 * np.abs(slope).max()
    )


def test_a_class_that_is_not_known_yet_has_no_part() -> None:
    """An `OpenCategorical` of 3 known classes of 8 is a `Categorical(3)`, and one with a reference too.

    Room for 8 classes takes more levels of the integral than 3 do.
    """
    rng = np.random.default_rng(2)
    half, mean = rng.normal(size=(8, 8)), rng.normal(size=8)
    cov = half @ half.T
    three = credo.Categorical(3).linearized(jnp.asarray(mean[:3]), jnp.asarray(cov[:3, :3])).probs
    of_eight = credo.OpenCategorical(8, known=3).linearized(jnp.asarray(mean), jnp.asarray(cov)).probs
    np.testing.assert_allclose(of_eight[:3], three, atol=2e-4)
    assert not np.any(of_eight[3:])
    with_reference = credo.OpenCategorical(3, known=3, reference=True)
    relative = np.array([[-1.0, 1.0, 0.0], [-1.0, 0.0, 1.0]])
    logits, spread = jnp.asarray(relative @ mean[:3]), jnp.asarray(relative @ cov[:3, :3] @ relative.T)
    np.testing.assert_allclose(with_reference.linearized(logits, spread).probs, three, atol=1e-12)


def test_two_classes_are_a_label() -> None:
    for mean, var in ((0.3, 0.5), (-2.0, 4.0), (3.0, 40.0)):
        two = credo.Categorical(2).linearized(jnp.array([0.0, mean]), jnp.diag(jnp.array([0.0, var])))
        one = credo.Bernoulli().linearized(jnp.array([mean]), jnp.array([[var]]))
        np.testing.assert_allclose(np.log(two.probs), np.log(one.probs), atol=1e-10)


def test_a_scale_is_that_of_the_covariance_and_a_factor_that_of_the_outputs() -> None:
    rng = np.random.default_rng(4)
    half, mean = rng.normal(size=(4, 4)), jnp.asarray(rng.normal(size=4))
    cov = jnp.asarray(half @ half.T)
    classes = credo.Categorical(4)
    scaled = classes.scaled(mean, cov, 0.3).probs
    np.testing.assert_allclose(scaled, classes.linearized(mean, 0.3 * cov).probs, atol=1e-12)
    sharper = classes.linearized(mean, cov).sharper(jnp.asarray(1.4)).probs
    np.testing.assert_allclose(sharper, classes.linearized(1.4 * mean, 1.4**2 * cov).probs, atol=1e-12)
    label = credo.Bernoulli().linearized(mean[:1], cov[:1, :1]).sharper(jnp.asarray(1.4)).probs
    other = credo.Bernoulli().linearized(1.4 * mean[:1], 1.4**2 * cov[:1, :1]).probs
    np.testing.assert_allclose(label, other, atol=1e-12)
    counts = credo.Poisson().linearized(mean[:1], cov[:1, :1])
    assert isinstance(counts, MixturePredictive)
    narrow, exact = counts.scaled(0.3), credo.Poisson().linearized(mean[:1], 0.3 * cov[:1, :1])
    for ours, due in ((narrow.mean, exact.mean), (narrow.var, exact.var), (narrow.cdf(2.0), exact.cdf(2.0))):
        np.testing.assert_allclose(ours, due, rtol=1e-6)
    np.testing.assert_allclose(narrow.log_prob(3.0), exact.log_prob(3.0), rtol=1e-9)


@pytest.mark.slow
def test_evidences_have_gradients_where_nothing_is_uncertain() -> None:
    """The derivative by the variance at 0 is half of the second derivative by the mean."""

    def probability(var: jax.Array) -> jax.Array:
        return credo.Bernoulli().linearized(jnp.array([0.7]), var[None, None]).mean

    slope = jax.grad(probability)(jnp.asarray(1e-4))
    p = 1 / (1 + np.exp(-0.7))
    np.testing.assert_allclose(slope, 0.5 * p * (1 - p) * (1 - 2 * p), rtol=2e-2)

    def likely(mean: jax.Array, scale: jax.Array) -> jax.Array:
        return credo.Categorical(3).scaled(mean, jnp.eye(3), scale).log_prob(1)

    for scale in (0.0, 0.5, 9.0):
        slopes = jax.grad(likely, argnums=(0, 1))(jnp.array([0.1, -0.2, 0.5]), jnp.asarray(scale))
        assert all(bool(jnp.all(jnp.isfinite(slope))) for slope in slopes)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_a_class_has_an_evidence_where_it_says_so(dtype: type) -> None:
    """At any size of the logits, from tiny ones to those that no number holds."""
    rng = np.random.default_rng(0)

    @jax.jit
    def both(mean: jax.Array, cov: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
        predictive = credo.Categorical(4).linearized(mean, cov)
        return predictive.has_log_prob(y), predictive.log_prob(y)

    said = 0
    for _ in range(400):
        size, spread = 10.0 ** rng.uniform(-20, 36, 2)
        root = rng.normal(size=(4, 4))
        mean, cov = size * rng.normal(size=4), spread * (root @ root.T)
        mean = np.where(rng.random(4) < 0.02, rng.choice([np.nan, np.inf]), mean)
        there, value = both(jnp.asarray(mean, dtype), jnp.asarray(cov, dtype), jnp.asarray(rng.integers(4)))
        said += bool(there)
        assert bool(jnp.isfinite(value)) or not bool(there)
    assert 80 < said < 400


def test_a_class_that_is_not_known_has_no_evidence() -> None:
    predictive = credo.OpenCategorical(4, known=3).linearized(jnp.zeros(4), jnp.eye(4))
    assert [bool(predictive.has_log_prob(y)) for y in range(4)] == [True, True, True, False]


def test_a_factor_that_classes_share_is_as_wrong_as_the_page_says() -> None:
    """With one factor the integral is over one number, which a dense grid gives."""
    grid = np.linspace(-8.0, 8.0, 4001)
    shares = st.norm.pdf(grid) / st.norm.pdf(grid).sum()

    @jax.jit
    def approximate(mean: jax.Array, cov: jax.Array) -> jax.Array:
        return credo.Categorical(10).linearized(mean, cov).probs

    for size, bound in ((0.5, 0.01), (1.0, 0.05), (2.0, 0.11), (3.0, 0.15)):
        rng = np.random.default_rng(0)
        errors = []
        for _ in range(20):
            mean, factor = rng.normal(size=10), size * rng.normal(size=10)
            exact = shares @ ss.softmax(mean + grid[:, None] * factor, axis=1)
            found = approximate(jnp.asarray(mean), jnp.asarray(np.outer(factor, factor) + 0.01 * np.eye(10)))
            errors.append(float(np.abs(np.asarray(found) - exact).max()))
        assert 0.5 * bound < max(errors) < bound
    assert f"0.01, 0.05, 0.11 and {bound} for s = 0.5, 1, 2 and 3" in PAGE.read_text(encoding="utf-8")
