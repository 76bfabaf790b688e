"""What a low-rank precision forgets: exact diagonals, divergences, spherical bases, random starts."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.covariances.reference import close

from credo.covariances import LowRank
from credo.covariances.low_rank import PROJECTIONS, project, random_factor
from credo.learners.rules.base import retract, retract_matrix

P, N, RANK = 8, 5, 2


def problem(seed: int, scale: float = 1.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A diagonal y, rows B, and the precision diag(y) + B' B."""
    rng = np.random.default_rng(seed)
    base, rows = np.exp(rng.normal(size=P)), scale * rng.normal(size=(N, P))
    return base, rows, np.diag(base) + rows.T @ rows


def kept(seed: int, projection: str, scale: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    base, rows, _ = problem(seed, scale)
    new_base, factor = jax.jit(project, static_argnums=(2, 3))(
        jnp.asarray(base), jnp.asarray(rows), RANK, projection
    )
    return np.asarray(new_base), np.asarray(factor)


def divergence(made: tuple[np.ndarray, np.ndarray], exact: np.ndarray) -> float:
    """KL(q || p) of Gaussians of one mean, q with the kept precision and p with the exact one."""
    ratio = np.linalg.solve(np.diag(made[0]) + made[1].T @ made[1], exact)
    result: float = 0.5 * (np.trace(ratio) - np.linalg.slogdet(ratio)[1] - P)
    return result


@pytest.mark.parametrize("projection", ["svd", "whitened"])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_svd_and_whitened_projections_keep_the_diagonal_of_the_precision(
    projection: str, scale: float
) -> None:
    for seed in range(3):
        base, factor = kept(seed, projection, scale)
        exact = problem(seed, scale)[2]
        np.testing.assert_allclose(base + np.sum(factor**2, axis=0), np.diag(exact), rtol=1e-10)
        assert factor.shape == (RANK, P) and np.all(base >= problem(seed, scale)[0] * (1 - 1e-12))


def test_svd_keeps_the_leading_directions_and_whitened_those_relative_to_the_diagonal() -> None:
    base, rows, _ = problem(0)
    _, values, right = np.linalg.svd(rows)
    close(kept(0, "svd")[1].T @ kept(0, "svd")[1], (right[:RANK].T * values[:RANK] ** 2) @ right[:RANK])
    left, _, _ = np.linalg.svd(rows / np.sqrt(base))
    turned = left[:, :RANK].T @ rows
    close(kept(0, "whitened")[1].T @ kept(0, "whitened")[1], turned.T @ turned)


def test_factor_analysis_lowers_the_divergence_and_nearly_keeps_the_diagonal() -> None:
    for seed in range(5):
        exact = problem(seed)[2]
        plain, better = kept(seed, "svd"), kept(seed, "factor-analysis")
        assert divergence(better, exact) < 0.9 * divergence(plain, exact)
        made = better[0] + np.sum(better[1] ** 2, axis=0)
        np.testing.assert_allclose(made, np.diag(exact), rtol=0.15)
        assert np.all(better[0] > 0)


def test_factor_analysis_is_three_steps_of_expectation_maximisation_in_dense_algebra() -> None:
    for seed, scale in ((0, 1.0), (1, 1e-2), (2, 1e3)):
        base, _, exact = problem(seed, scale)
        diagonal, factor = kept(seed, "svd", scale)
        for _ in range(3):
            b = factor @ np.linalg.inv(np.diag(diagonal) + factor.T @ factor)
            moment = np.eye(RANK) - b @ factor.T + b @ exact @ b.T
            factor = np.linalg.solve(moment, b @ exact)
            left = np.diag(exact) - np.sum(factor * (b @ exact), axis=0)
            diagonal = np.maximum(left, base)
        made = kept(seed, "factor-analysis", scale)
        close(made[0] + np.sum(made[1] ** 2, axis=0), diagonal + np.sum(factor**2, axis=0))
        close(made[1].T @ made[1], factor.T @ factor)


@pytest.mark.thorough
def test_factor_analysis_never_takes_precision_away() -> None:
    """Where the direction that is kept takes more of a parameter's precision than there is, its diagonal
    stays at what it was before any data: the filter would diverge else (UCI's power plant did, at rank 1).
    """
    floored = 0
    for seed in range(80):
        rng = np.random.default_rng(seed)
        base, rows = np.exp(rng.normal(size=4)), 3 * rng.normal(size=(3, 4)) * np.array([5.0, 1.0, 1.0, 0.2])
        new_base, factor = project(jnp.asarray(base), jnp.asarray(rows), 1, "factor-analysis")
        assert np.all(np.asarray(new_base) >= base)
        added = np.diag(new_base) + factor.T @ factor - np.diag(base)
        assert np.linalg.eigvalsh(added).min() > -1e-12
        floored += int(np.any(np.asarray(new_base) == base))
    assert floored > 1


def test_all_projections_are_exact_where_the_rank_suffices() -> None:
    rng = np.random.default_rng(4)
    base, rows = np.exp(rng.normal(size=P)), np.zeros((N, P))
    rows[[0, 3]] = rng.normal(size=(2, P))
    for projection in PROJECTIONS:
        new_base, factor = project(jnp.asarray(base), jnp.asarray(rows), RANK, projection)
        close(np.diag(new_base) + factor.T @ factor, np.diag(base) + rows.T @ rows)


@pytest.mark.parametrize("projection", PROJECTIONS)
def test_nothing_to_keep_is_no_trouble(projection: Any) -> None:
    base = jnp.linspace(0.5, 2.0, P)
    new_base, factor = project(base, jnp.zeros((N, P)), RANK, projection)
    close(new_base, base)
    assert not np.any(factor)


@pytest.mark.parametrize("projection", PROJECTIONS)
def test_a_spherical_base_is_one_number_and_keeps_the_trace(projection: Any) -> None:
    family = LowRank(RANK, "spherical", projection)
    cov = family.init(jnp.linspace(0.5, 2.0, P))
    close(np.sum(cov.base), np.sum(1 / np.linspace(0.5, 2.0, P)))
    rows = np.random.default_rng(1).normal(size=(N, P))
    after = cov.condition(jnp.asarray(rows))
    assert np.ptp(after.base) == 0.0 and np.ptp(cov.base) == 0.0
    made = np.trace(after.precision())
    exact = np.trace(cov.precision()) + np.sum(rows**2)
    np.testing.assert_allclose(made, exact, rtol=0.05 if projection == "factor-analysis" else 1e-12)


@pytest.mark.parametrize("share", [0.1, 0.6])
def test_a_random_start_has_the_expected_precision_of_the_prior(share: float) -> None:
    """Relative to 1 / var the diagonal of the precision averages to 1 exactly, and to 1 per parameter."""
    size, rank = 4000, 20
    var = np.exp(np.random.default_rng(0).normal(size=size))
    base, factor = random_factor(jnp.asarray(var), rank, share)
    relative = np.asarray(base + np.sum(factor**2, axis=0)) * var
    close(relative.mean(), 1.0)
    close(base * var, np.full(size, 1 - share))
    # a sum of `rank` squares of near-normal deviates: share / rank times a chi-squared
    spread = share * np.sqrt(2 / rank)
    assert abs(relative.std() / spread - 1) < 4 / np.sqrt(size) * 2
    # off the diagonal it averages to zero
    first = np.asarray(factor[:, 0] @ factor) * np.sqrt(var[0] * var)
    assert abs(first[1:].mean()) < 4 * first[1:].std() / np.sqrt(size)
    same = random_factor(jnp.asarray(var), rank, share)[1]
    np.testing.assert_array_equal(same, factor)


def test_the_family_decides_about_the_random_start_before_the_rule() -> None:
    var = jnp.ones(P)
    assert not np.any(LowRank(RANK).init(var).factor)
    assert np.any(LowRank(RANK).init(var, random=0.1).factor)
    assert not np.any(LowRank(RANK, random=0.0).init(var, random=0.1).factor)
    assert np.any(LowRank(RANK, random=0.2).init(var).factor)


def test_retractions_agree_to_first_order_and_the_safe_one_stays_positive() -> None:
    steps = jnp.asarray([-1e9, -3.0, -1.0, -1e-4, 0.0, 1e-4, 2.0])
    safe, exact = retract(steps, "safe"), retract(steps, "exact")
    assert np.all(safe >= 0.5) and np.array_equal(np.isnan(exact), steps <= -1)
    close(exact[3:], 1 + steps[3:])
    assert np.abs(safe[3:] - exact[3:]).max() <= 0.5e-8 * (1 + 1e-6)
    close(safe[1], 1 - 3 + 4.5)
    change = np.random.default_rng(0).normal(size=(4, 4))
    change = change + change.T
    values, vectors = retract_matrix(jnp.asarray(change), "safe")
    grown = (vectors * values[None, :]) @ vectors.T
    below = np.linalg.eigh(change)
    minus = (below[1] * np.minimum(below[0], 0) ** 2) @ below[1].T
    close(grown, np.eye(4) + change + 0.5 * minus)
