"""The negative binomial against SciPy, autodiff and sums, and what it is worth on counts of a session."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats as st
from scipy import special
from tests.tiers import few

import credo
from credo.core.errors import CredoError
from credo.learners.votes import CountVotes, votes_of
from credo.likelihoods import NegativeBinomial, Poisson
from credo.likelihoods.quantiles import digamma_gap
from credo.recipes.members import POISSON, Member, members_of
from credo.sessions.bank_summary import contrasts, wide_counts

LEARNED = NegativeBinomial()
MEANS, DISPERSIONS = (0.3, 8.0, 300.0), (1e-3, 0.1, 2.0)
CASES = [(mean, a, y) for mean in MEANS for a in DISPERSIONS for y in (0.0, 3.0, 400.0)]
ETAS = jnp.log(jnp.asarray([case[:2] for case in CASES]))
COUNTS = jnp.asarray([case[2] for case in CASES])
PEERS: list[Any] = [st.nbinom(1 / a, 1 / (1 + a * mean)) for mean, a, _ in CASES]


def test_density_moments_and_distribution_function_are_scipys() -> None:
    logs = jax.jit(jax.vmap(LEARNED.log_prob))(ETAS, COUNTS)
    below = jax.jit(jax.vmap(LEARNED.cdf))(ETAS, COUNTS)
    means, variances = jax.vmap(LEARNED.mean)(ETAS), jax.vmap(LEARNED.variance)(ETAS)
    for k, (peer, (_, _, y)) in enumerate(zip(PEERS, CASES, strict=True)):
        np.testing.assert_allclose(logs[k], peer.logpmf(y), rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(below[k], peer.cdf(y), atol=1e-10)
        np.testing.assert_allclose([means[k, 0], variances[k, 0]], peer.stats("mv"), rtol=1e-10)


@pytest.mark.slow
def test_the_score_is_the_gradient_and_the_information_is_that_of_the_mean() -> None:
    gradient = jax.jit(jax.vmap(jax.grad(LEARNED.log_prob)))(ETAS, COUNTS)
    score = jax.jit(jax.vmap(LEARNED.score))(ETAS, COUNTS)
    np.testing.assert_allclose(score[:, 0], gradient[:, 0], rtol=1e-8, atol=1e-10)
    expected = np.asarray([peer.logpmf(y) > -15.0 for peer, (_, _, y) in zip(PEERS, CASES, strict=True)])
    assert 12 < expected.sum() < len(CASES)
    np.testing.assert_allclose(score[expected], gradient[expected], rtol=1e-8, atol=1e-10)
    assert bool(jnp.all(score[:, 1] <= gradient[:, 1] + 1e-10))
    eta, y = jnp.log(jnp.asarray([8.0, 0.5])), np.arange(600.0)
    chances = np.exp(jax.jit(jax.vmap(LEARNED.log_prob, (None, 0)))(eta, y))
    hessian = jax.jit(jax.vmap(jax.hessian(LEARNED.log_prob), (None, 0)))(eta, y)
    exact = -np.tensordot(chances, hessian, 1)
    root = LEARNED.fisher_root(eta, jnp.asarray(8.0))
    ours = root @ root.T
    np.testing.assert_allclose(ours[0, 0], exact[0, 0], rtol=1e-10)
    np.testing.assert_allclose([exact[0, 1], ours[0, 1]], 0.0, atol=1e-10)
    assert float(ours[1, 1]) == pytest.approx(float(exact[1, 1]), rel=1 / 3)  # as the docstring says
    known = NegativeBinomial(0.5)
    np.testing.assert_allclose(known.fisher_root(eta[:1], 8.0), root[:1, :1], rtol=1e-12)
    np.testing.assert_allclose(
        known.score(eta[:1], 3.0), LEARNED.score(eta, jnp.asarray(3.0))[:1], rtol=1e-12
    )
    at = np.array([0.01, 1.0, 40.0, 1e6])
    peer = special.digamma(at + 7.0) - special.digamma(at)
    np.testing.assert_allclose(digamma_gap(jnp.asarray(at), jnp.full(4, 7.0)), peer, rtol=1e-8)


def test_a_small_dispersion_is_a_poisson_and_no_count_overshoots() -> None:
    eta = jnp.asarray([2.0, np.log(1e-9)])
    for y in (0.0, 7.0, 30.0):
        np.testing.assert_allclose(LEARNED.log_prob(eta, y), Poisson().log_prob(eta[:1], y), rtol=1e-6)
    for y in (0.0, 40.0, 1e6):
        at = jnp.log(jnp.asarray([4.0, 0.2]))
        step = LEARNED.score(at, y) / jnp.diagonal(LEARNED.fisher_root(at, y)) ** 2
        assert float(at[0] + step[0]) <= np.log(max(y, 4.0)) + 1e-9
    for y in (1e3, 1e6):
        step = LEARNED.score(at, y) / jnp.diagonal(LEARNED.fisher_root(at, y)) ** 2
        assert float(at[1] + step[1]) <= np.log(((y - 4) ** 2 - 4) / 16) + 1.0 + 1e-9


def test_no_count_says_more_of_the_dispersion_than_half_a_nat() -> None:
    counts = jnp.arange(0.0, 400.0)
    for mean, a in ((20.0, 0.2525), (20.0, 0.25), (3.0, 1.0), (300.0, 0.1)):  # at the first, one gave 2.5e4
        eta = jnp.log(jnp.asarray([mean, a]))
        roots = jax.vmap(LEARNED.fisher_root, (None, 0))(eta, counts)
        assert float(jnp.max(roots[:, 1, 1] ** 2)) <= 0.5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mean", "a", "start", "var", "most"),
    [
        pytest.param(20.0, 0.25, np.log(20.0), 0.01, 1.2, marks=pytest.mark.thorough),
        (20.0, 0.25, 0.0, 4.0, 1.2),
        pytest.param(3.0, 1.0, 0.0, 1.0, 1.2, marks=pytest.mark.thorough),
        # a mean of 300 that was taken for 1: 119 before scores were bounded
        pytest.param(300.0, 0.1, 0.0, 4.0, 1.7, marks=pytest.mark.thorough),
        (1000.0, 0.05, 0.0, 4.0, 2.5),  # 258 before
    ],
)
def test_a_learned_dispersion_is_as_certain_as_it_says(
    mean: float, a: float, start: float, var: float, most: float
) -> None:
    rng = np.random.default_rng(1)
    ys = jnp.asarray(rng.negative_binomial(1 / a, 1 / (1 + a * mean), size=(200, 400)).astype(float))
    learner = credo.extended_kalman(credo.Model(lambda w, x: w, LEARNED))
    prior = learner.init(jnp.asarray([start, -1.0]), var=jnp.asarray([var, 1.0]))

    def scores(y: Any) -> Any:
        belief, _ = credo.run(learner, prior, None, y)
        return (belief.mean - jnp.log(jnp.asarray([mean, a]))) / belief.sd

    z = np.asarray(jax.jit(jax.vmap(scores))(ys))
    rms = np.sqrt((z**2).mean(axis=0))
    # of 200 streams the root mean square of honest scores has a standard error of .05
    assert 0.8 < rms[0] < 1.25 and 0.8 < rms[1] < most, rms


@pytest.mark.slow
@pytest.mark.parametrize("var", few([0.01, 1.0], 1.0))
def test_the_forecast_integrates_over_the_mean(var: float) -> None:
    grid = np.linspace(1.0 - 14 * np.sqrt(var), 1.0 + 14 * np.sqrt(var), 2001)
    weights = st.norm.pdf(grid, 1.0, np.sqrt(var)) * (grid[1] - grid[0])

    @jax.jit
    def ours(a: Any, y: Any) -> tuple[Any, ...]:
        distribution = NegativeBinomial(a).linearized(jnp.ones(1), jnp.full((1, 1), var))
        return distribution.log_prob(y), distribution.cdf(y), distribution.mean, distribution.var

    for a in (1e-4, 0.3, 3.0):
        for y in (0.0, 5.0, 60.0):
            peer: Any = st.nbinom(1 / a, 1 / (1 + a * np.exp(grid)))
            log_prob, below, mean, spread = ours(a, y)
            np.testing.assert_allclose(log_prob, np.log(peer.pmf(y) @ weights), atol=1e-8)
            np.testing.assert_allclose(below, peer.cdf(y) @ weights, atol=1e-8)
        first = weights @ np.exp(grid)
        np.testing.assert_allclose(mean, first, rtol=1e-10)
        np.testing.assert_allclose(
            spread, first + weights @ ((1 + a) * np.exp(2 * grid)) - first**2, rtol=1e-10
        )
    both = LEARNED.linearized(jnp.asarray([1.0, -1.0]), jnp.diag(jnp.asarray([var, 1e-12])))
    alone = NegativeBinomial(float(np.exp(-1.0))).linearized(jnp.ones(1), jnp.full((1, 1), var))

    @jax.jit
    def of(predictive: Any) -> tuple[Any, Any]:
        return predictive.log_prob(4.0), predictive.quantile(0.9)

    (density, place), (other, there) = of(both), of(alone)
    np.testing.assert_allclose(density, other, atol=1e-6)
    np.testing.assert_allclose(place, there)


@pytest.mark.slow
def test_draws_have_the_moments() -> None:
    draws = NegativeBinomial(0.5).plugin(jnp.log(jnp.asarray([4.0]))).sample(jax.random.key(0), (20_000,))
    assert float(draws.mean()) == pytest.approx(4.0, abs=0.1)  # four standard errors of sqrt(12 / 20,000)
    assert float(draws.var()) == pytest.approx(12.0, rel=0.1)


def test_what_does_not_fit_is_refused() -> None:
    for likelihood, size, words in ((LEARNED, 1, "2 outputs"), (NegativeBinomial(0.5), 2, "1 output")):
        with pytest.raises(CredoError, match=words):
            likelihood.check(size)
    with pytest.raises(CredoError, match="dispersion must be"):
        NegativeBinomial(0.0)
    with pytest.raises(CredoError, match="one count"):
        LEARNED.log_prob(jnp.zeros(2), jnp.ones(2))
    assert not bool(LEARNED.observed(-1.0)) and isinstance(votes_of(LEARNED), CountVotes)


def test_a_filter_learns_the_dispersion() -> None:
    rng = np.random.default_rng(0)
    y = jnp.asarray(rng.poisson(20.0 * rng.gamma(2.0, 0.5, 2000)).astype(float))  # a = 1/2
    learner = credo.extended_kalman(credo.Model(lambda w, x: w, LEARNED))
    start = learner.init(jnp.log(jnp.asarray([10.0, 0.05])), var=0.5)
    belief, _ = credo.run(learner, start, jnp.zeros((2000, 1)), y)
    mean, dispersion = np.exp(np.asarray(belief.params))
    assert mean == pytest.approx(20.0, rel=0.07) and dispersion == pytest.approx(0.5, rel=0.15)


def test_a_bank_of_counts_has_poisson_members_beside_others() -> None:
    members = members_of("count", 3, 2)
    networks = [one for one in members if isinstance(one, Member)]
    poisson = [one for one in networks if one.dispersion == POISSON]
    assert 0 < len(poisson) < len(networks) and all("Poisson" in str(one) for one in poisson)
    weights = np.full(len(members), 1 / len(members))
    assert wide_counts(members, weights) == pytest.approx((len(networks) - len(poisson)) / len(members))
    assert wide_counts(members_of("regression", 3, 1), np.full(12, 1 / 12)) == 0.0
    np.testing.assert_array_equal(contrasts(2, 0), [[1.0, 0.0]])
