"""The probability that an arm is best, against fine integration, closed forms and draws."""

from __future__ import annotations

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

import credo
from credo.bandits import probability_best
from credo.bandits.best.of_any_distribution import (
    best_of_betas,
    best_of_draws,
    best_of_gammas,
    best_of_separate_draws,
)
from credo.bandits.best.of_normals import best_of_normals, student_distribution, student_terms
from credo.bandits.best.quadrature import noise_nodes, wide_noise_nodes
from credo.core.groups import pick
from credo.likelihoods import DrawnExpectation, IndependentExpectation, LatentExpectation, WeightedExpectation

PROMISED = 1e-4
"""The error that `best_of_normals` promises."""

_best = jax.jit(lambda location, scale: best_of_normals(location, scale))


def _integral(distributions: list[Any]) -> list[float]:
    """P(each arm is best): Gauss's rule with 30 nodes between each two of 25 quantiles of every arm."""
    tails = [1e-9, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.03, 0.1, 0.2, 0.3, 0.4]
    probabilities = np.array([*tails, 0.5, *(1 - np.array(tails[::-1]))])
    ends = np.unique(np.concatenate([distribution.ppf(probabilities) for distribution in distributions]))

    def one(arm: int) -> float:
        def integrand(x: np.ndarray) -> np.ndarray:
            others = [distribution.cdf(x) for i, distribution in enumerate(distributions) if i != arm]
            return np.asarray(distributions[arm].pdf(x) * np.prod(others, axis=0))

        pairs = itertools.pairwise(ends)
        return float(sum(scipy.integrate.fixed_quad(integrand, low, high, n=30)[0] for low, high in pairs))

    return [one(arm) for arm in range(len(distributions))]


@pytest.mark.parametrize(
    ("location", "scale"),
    [
        ([0.0, 0.5, 1.0], [1.0, 1.0, 1.0]),
        ([0.0, 0.0, 1e-4], [1.0, 1e-4, 1e-4]),  # sds 1e4 apart: a fixed rule of 96 nodes is off by .38
        ([0.3, 0.2, -500.0], [1e-3, 10.0, 300.0]),
        ([1e3, 1e3 + 1.0, 0.0], [0.5, 1e-2, 100.0]),
    ],
)
def test_normal_arms_agree_with_a_fine_integral(location: list[float], scale: list[float]) -> None:
    distributions = [scipy.stats.norm(m, s) for m, s in zip(location, scale, strict=True)]
    expected = _integral(distributions)
    double = _best(jnp.array(location), jnp.array(scale))
    np.testing.assert_allclose(double, expected, atol=PROMISED / 4)
    single = _best(jnp.array(location, jnp.float32), jnp.array(scale, jnp.float32))
    assert single.dtype == jnp.float32
    # the locations themselves are rounded, by up to 6e-8 of their size
    rounding = 1e-7 * max(abs(m) for m in location) / min(scale)
    np.testing.assert_allclose(single, expected, atol=PROMISED / 2 + rounding)


def test_two_normal_arms_are_compared_in_closed_form() -> None:
    found = best_of_normals(jnp.array([0.0, 1.0]), jnp.array([1.0, 2.0]))
    np.testing.assert_allclose(found[1], scipy.stats.norm.cdf(1 / np.sqrt(5)), atol=1e-12)
    np.testing.assert_allclose(best_of_normals(jnp.zeros(2), jnp.zeros(2)), [0.5, 0.5])


def test_a_hundred_arms_take_merged_cells() -> None:
    # equal arms by symmetry; and the best of 99 against one sharp arm, by its closed form
    np.testing.assert_allclose(_best(jnp.zeros(100), jnp.ones(100)), 0.01, atol=1e-6)
    location, scale = jnp.zeros(100).at[0].set(2.5), jnp.ones(100).at[0].set(1e-4)
    expected = scipy.stats.norm.cdf(2.5) ** 99
    np.testing.assert_allclose(_best(location, scale)[0], expected, atol=PROMISED)


def test_student_arms_and_mixtures_agree_with_a_fine_integral() -> None:
    students = jax.jit(lambda location, scale, df: best_of_normals(location, scale, None, df))
    for location, scale, df in (
        ([0.0, 1.0, 0.5], [1.0, 0.01, 3.0], [2.0, 4.0, 30.0]),
        ([0.0, 1.0, 0.5], [1.0, 1e-4, 0.3], [1.0, 1.0, 1.0]),  # an even rule in x is off by 1e-3
        ([0.0, 30.0, -900.0], [1.0, 1.0, 1e-2], [0.6, 1.5, 1e4]),  # tails that face each other
    ):
        distributions = [scipy.stats.t(n, m, s) for m, s, n in zip(location, scale, df, strict=True)]
        expected = _integral(distributions)
        for kind, error in ((jnp.float64, PROMISED), (jnp.float32, 1.5 * PROMISED)):
            found = students(jnp.array(location, kind), jnp.array(scale, kind), jnp.array(df, kind))
            np.testing.assert_allclose(found, expected, atol=error, err_msg=str(df))

    weights = jnp.array([[0.2, 0.8], [0.5, 0.5]])
    means, sds = jnp.array([[0.0, 1.0], [0.5, 0.8]]), jnp.array([[2.0, 1e-3], [1e-3, 0.5]])
    found = jax.jit(best_of_normals)(means, sds, jnp.log(weights))
    pairs = scipy.stats.norm.cdf(
        (means[0][:, None] - means[1][None, :]) / np.hypot(sds[0][:, None], sds[1][None, :])
    )
    np.testing.assert_allclose(found[0], weights[0] @ pairs @ weights[1], atol=PROMISED)


def test_the_student_distribution_agrees_with_scipy() -> None:
    z = np.linspace(-60, 60, 2001)
    distribution = jax.jit(lambda z, df: student_distribution(z, student_terms(df)))
    for df, error in ((0.5, 1e-5), (2.0, 5e-6), (5.0, 2e-6), (1e5, 1e-12)):
        cdf, density = distribution(jnp.asarray(z), jnp.asarray(df))
        np.testing.assert_allclose(cdf, scipy.stats.t.cdf(z, df), atol=error)
        np.testing.assert_allclose(density, scipy.stats.t.pdf(z, df), atol=1e-7)


def test_counts_agree_with_a_fine_integral() -> None:
    a, b = [1.0, 30.0, 3000.0], [1.0, 20.0, 2000.0]
    betas = [scipy.stats.beta(*counts) for counts in zip(a, b, strict=True)]
    expected = _integral(betas)
    np.testing.assert_allclose(jax.jit(best_of_betas)(jnp.array(a), jnp.array(b)), expected, atol=1e-5)
    shape, per = [0.5, 40.0, 400.0], [0.5, 30.0, 280.0]
    gammas = [scipy.stats.gamma(s, scale=1 / p) for s, p in zip(shape, per, strict=True)]
    expected = _integral(gammas)
    np.testing.assert_allclose(jax.jit(best_of_gammas)(jnp.array(shape), jnp.array(per)), expected, atol=1e-5)


def test_point_masses_tie_equally_and_masked_arms_say_nothing() -> None:
    location, scale = jnp.array([1.0, 1.0, 0.0, jnp.nan]), jnp.array([0.0, 0.0, 1.0, jnp.nan])
    allowed = jnp.array([True, True, True, False])
    over = float(scipy.stats.norm.sf(1.0))
    masked = jax.jit(lambda allowed: best_of_normals(location, scale, allowed=allowed))
    found = masked(allowed)
    np.testing.assert_allclose(found, [(1 - over) / 2, (1 - over) / 2, over, 0.0], atol=PROMISED)
    np.testing.assert_array_equal(masked(jnp.zeros(4, bool)), 0.0)


def test_the_probability_has_the_derivative_of_the_closed_form() -> None:
    # a third arm far below makes the quadrature out of the closed form for two
    def first(location: jax.Array, scale: jax.Array) -> jax.Array:
        return best_of_normals(location, scale)[0]

    location, scale = jnp.array([0.3, 0.0, -50.0]), jnp.array([1.0, 0.5, 1.0])
    by_location, by_scale = jax.jit(jax.grad(first, argnums=(0, 1)))(location, scale)
    spread = np.hypot(1.0, 0.5)
    height = scipy.stats.norm.pdf(0.3 / spread) / spread
    np.testing.assert_allclose(by_location, [height, -height, 0.0], atol=2e-4)
    np.testing.assert_allclose(by_scale[0], -height * 0.3 / spread**2, atol=2e-4)


_numbers = st.lists(
    st.tuples(st.floats(-3, 3), st.floats(-4, 1)), min_size=4, max_size=4
)  # one size, so one program


@given(arms=_numbers, shift=st.floats(-5, 5), power=st.floats(-2, 2), turn=st.permutations(range(4)))
def test_the_probability_moves_with_the_arms(
    arms: list[tuple[float, float]], shift: float, power: float, turn: list[int]
) -> None:
    location, scale = jnp.array([m for m, _ in arms]), 10.0 ** jnp.array([s for _, s in arms])
    found = _best(location, scale)
    np.testing.assert_allclose(jnp.sum(found), 1.0, atol=1e-12)
    order = jnp.array(turn)
    np.testing.assert_allclose(_best(location[order], scale[order]), found[order], atol=PROMISED)
    factor = 10.0**power
    np.testing.assert_allclose(_best(factor * location + shift, factor * scale), found, atol=PROMISED)


def test_draws_share_ties_and_mixtures_of_points_are_exact() -> None:
    values = jnp.array([[0.0, 1.0], [2.0, 1.0], [3.0, 3.0], [4.0, 0.0]])
    np.testing.assert_allclose(best_of_draws(values), [0.625, 0.375])
    weighted = best_of_draws(values, jnp.log(jnp.array([0.7, 0.1, 0.1, 0.1])))
    np.testing.assert_allclose(weighted, [0.25, 0.75], atol=1e-12)
    rng = np.random.default_rng(0)
    points, weights = rng.integers(0, 4, (3, 5)).astype(float), rng.dirichlet(np.ones(5), 3)
    expected = np.zeros(3)
    for i, j, k in np.ndindex(5, 5, 5):
        row = np.array([points[0, i], points[1, j], points[2, k]])
        best = row == row.max()
        expected += weights[0, i] * weights[1, j] * weights[2, k] * best / best.sum()
    found = jax.jit(best_of_separate_draws)(jnp.asarray(points), jnp.log(jnp.asarray(weights)))
    np.testing.assert_allclose(found, expected, atol=1e-12)


def _latent(cov: jax.Array, noise: credo.InverseGamma | None = None) -> LatentExpectation:
    return LatentExpectation(credo.Normal(1.0), jnp.array([[0.0], [0.5], [1.0]]), cov, noise)


@pytest.mark.thorough
def test_every_distribution_agrees_with_its_own_draws() -> None:
    key = jax.random.key(0)
    diagonal, noise = jnp.diag(jnp.array([1.0, 2.0, 0.1])), credo.InverseGamma(3.0, 3.0)
    correlated = diagonal + 0.5
    arms = jax.vmap(lambda a: credo.replace(credo.BetaBernoulli(), a=a).init())(jnp.array([1.0, 2.0, 3.0]))
    counts = jax.vmap(lambda belief: credo.BetaBernoulli().expect(belief, None))(arms)
    two = jax.tree.map(lambda *leaves: jnp.stack(leaves), _latent(diagonal), _latent(2 * diagonal))
    separate = LatentExpectation(
        credo.Bernoulli(), jnp.array([[[0.0]], [[0.5]], [[1.0]]]), jnp.ones((3, 1, 1)), None
    )
    distributions = {
        "correlated": _latent(correlated),
        "one noise": _latent(diagonal, noise),
        "counts": IndependentExpectation(counts),
        "a learner an arm": IndependentExpectation(separate),
        "hypotheses": WeightedExpectation(two, jnp.log(jnp.array([0.3, 0.7]))),
        "members": DrawnExpectation(jnp.arange(12.0).reshape(4, 3) % 5.0, jnp.full(4, -jnp.log(4.0))),
    }
    for name, distribution in distributions.items():
        found = jax.jit(lambda distribution: probability_best(distribution, key=key, draws=512))(distribution)
        draws = np.asarray(distribution.sample(jax.random.key(1), (20_000,)))
        expected = np.bincount(draws.argmax(axis=1), minlength=3) / len(draws)
        # 20,000 draws: 4 standard errors are .014; 512 evenly spread joint draws differ by less than .03
        error = 0.04 if name == "correlated" else 0.015
        np.testing.assert_allclose(found, expected, atol=error, err_msg=name)
        np.testing.assert_allclose(jnp.sum(found), 1.0, atol=1e-9, err_msg=name)


@pytest.mark.thorough
def test_arms_of_unlike_hypotheses_with_unknown_noise_agree_with_a_fine_integral() -> None:
    waves = credo.models.RandomFeatures.draw(0, 2, 5, 1.0)
    nets: list[Any] = [credo.Linear(), waves, credo.Linear()]
    noise = credo.Normal(credo.InverseGamma(2.0, 0.5))
    members = [credo.RecursiveLearner(credo.Model(net, noise), credo.Full("dense")) for net in nets]
    starts = (credo.Linear().init(0, (2,)), waves.init(), credo.Linear().init(1, (2,)))
    agent = credo.bandits.Agent(credo.Experts(members), 3, "arms")
    belief = agent.init(credo.adapt.Each(starts))
    rng = np.random.default_rng(2)
    for step in range(12):
        belief, _ = agent.update(belief, jnp.asarray(rng.normal(size=2)), step % 3, rng.normal() + step % 3)
    x = jnp.asarray([0.3, -0.4])
    distribution: Any = agent.expect(belief, x)
    found = np.asarray(probability_best(distribution, key=jax.random.key(0)))
    mixtures = []
    for arm in range(3):
        one = jax.tree.map(lambda leaf, arm=arm: leaf[arm], distribution.parts)
        mixtures.append((np.exp(one.log_weights), [pick(one.parts, place) for place in range(3)]))
    grid = np.linspace(-30.0, 30.0, 200_001)

    def of(arm: int, what: str) -> np.ndarray:
        weights, distributions = mixtures[arm]
        parts = [
            getattr(scipy.stats.t, what)(
                grid, float(distribution.df), float(distribution.location[0]), float(distribution.scale[0])
            )
            for distribution in distributions
        ]
        return np.asarray(weights @ np.stack(parts))

    for arm in range(3):
        others = np.prod([of(other, "cdf") for other in range(3) if other != arm], axis=0)
        expected = scipy.integrate.trapezoid(of(arm, "pdf") * others, grid)
        assert found[arm] == pytest.approx(expected, abs=1e-4)


@pytest.mark.slow
def test_two_joint_arms_and_arms_with_one_unknown_noise_have_a_closed_form() -> None:
    cov = jnp.array([[1.0, 0.6], [0.6, 2.0]])
    spread, key = np.sqrt(1.8), jax.random.key(0)
    noise = credo.InverseGamma(0.75, 0.6)
    unit = np.sqrt(0.6 / 0.75)
    for known, expected in (
        (None, float(scipy.stats.norm.cdf(0.5 / spread))),
        (noise, float(scipy.stats.t.cdf(0.5 / (spread * unit), 1.5))),
    ):
        distribution = LatentExpectation(credo.Normal(1.0), jnp.array([[0.5], [0.0]]), cov, known)
        found = probability_best(distribution, key=key)
        np.testing.assert_allclose(found, [expected, 1 - expected], atol=1e-5)
        alone = probability_best(distribution, jnp.array([False, True]), key=key)
        np.testing.assert_array_equal(alone, [0.0, 1.0])
    # a third arm far below leaves the gap of the others, a Student-t of 1.5 degrees of freedom
    distribution = LatentExpectation(credo.Normal(1.0), jnp.array([[0.5], [0.0], [-1e6]]), jnp.eye(3), noise)
    expected = float(scipy.stats.t.cdf(0.5 / (np.sqrt(2.0) * unit), 1.5))
    found = jax.jit(lambda distribution: probability_best(distribution, key=key))(distribution)
    np.testing.assert_allclose(found, [expected, 1 - expected, 0.0], atol=PROMISED)


@pytest.mark.parametrize(
    ("rule", "shape"), [(noise_nodes, 2.5), (noise_nodes, 8.0), (wide_noise_nodes, 0.75)]
)
def test_nodes_of_an_unknown_noise_integrate_what_it_is_averaged_over(rule: Any, shape: float) -> None:
    distribution = scipy.stats.invgamma(shape, scale=1.7)
    sds, weights = rule(credo.InverseGamma(shape, 1.7), jnp.float64)
    assert float(weights.sum()) == pytest.approx(1.0)
    for gap in (0.3, 1.0, 3.0):  # the chance that an arm which expects so much more is the better one
        exact = distribution.expect(
            lambda var, gap=gap: scipy.stats.norm.cdf(gap / np.sqrt(var)), epsabs=1e-9
        )
        assert float(weights @ scipy.stats.norm.cdf(gap / np.asarray(sds))) == pytest.approx(exact, abs=1e-4)


def test_no_draws_are_refused() -> None:
    with pytest.raises(credo.CredoError, match="draws"):
        probability_best(_latent(jnp.eye(3)), key=jax.random.key(0), draws=0)
