"""What is particular to one family: the square-root update, the low-rank projection, and their limits."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.covariances.reference import close, dense

from credo.core.errors import CredoError
from credo.covariances import DenseCovariance, Diagonal, Full, LowRank, LowRankCovariance, RootCovariance

P = 6
RNG = np.random.default_rng(11)


def test_the_root_update_is_andrews_formula() -> None:
    root, factor = RNG.normal(size=(P, P)), RNG.normal(size=(2, P))
    a = root.T @ factor.T  # A = W' B'
    lower = np.linalg.cholesky(np.eye(2) + a.T @ a)
    expected = root - root @ a @ np.linalg.inv(lower).T @ np.linalg.inv(np.eye(2) + lower) @ a.T
    close(RootCovariance(jnp.asarray(root)).condition(jnp.asarray(factor)).root, expected)
    close(expected @ expected.T, np.linalg.inv(np.linalg.inv(root @ root.T) + factor.T @ factor))


def test_the_root_update_is_sound_in_single_precision_with_tiny_noise() -> None:
    cov = jax.jit(Full().init)(jnp.ones(P, jnp.float32))
    condition = jax.jit(lambda c, b: c.condition(b))
    factor = jnp.asarray(RNG.normal(size=(1, P)) * 1e3, jnp.float32)
    for _ in range(20):
        cov = condition(cov, factor)
    values = np.linalg.eigvalsh(np.asarray(cov.dense(), np.float64))
    assert values.min() > -1e-6 and np.all(np.abs(values[1:] - 1.0) < 1e-4)


@pytest.mark.parametrize(("rank", "k"), [(2, 1), (2, 4), (5, 1)])
def test_the_projection_keeps_the_diagonal_of_the_precision_and_the_leading_directions(
    rank: int, k: int
) -> None:
    base, kept = RNG.uniform(0.5, 2.0, P), RNG.normal(size=(rank, P))
    factor = RNG.normal(size=(k, P))
    got = LowRankCovariance(jnp.asarray(base), jnp.asarray(kept)).condition(jnp.asarray(factor))
    exact = np.diag(base) + kept.T @ kept + factor.T @ factor
    close(np.diag(got.precision()), np.diag(exact))
    stacked = np.concatenate([kept, factor])
    _, values, right = np.linalg.svd(stacked, full_matrices=False)
    best = (right[:rank].T * values[:rank] ** 2) @ right[:rank]
    close(np.asarray(got.factor).T @ np.asarray(got.factor), best)
    assert got.rank == rank


def test_the_projection_equals_the_exact_update_where_the_rank_suffices() -> None:
    base = RNG.uniform(0.5, 2.0, P)
    cov = LowRank(4).init(jnp.asarray(1 / base))
    exact = np.diag(base)
    for seed in range(4):
        factor = np.random.default_rng(seed).normal(size=(1, P))
        cov = cov.condition(jnp.asarray(factor))
        exact = exact + factor.T @ factor
        close(dense(cov), np.linalg.inv(exact))


@pytest.mark.slow
def test_low_rank_with_no_directions_is_finite_and_differentiable() -> None:
    def total(scale: jax.Array) -> jax.Array:
        cov = LowRank(3).init(jnp.ones(P)).condition(scale * jnp.ones((1, P)))
        cov = cov.affine(jnp.asarray(0.9), scale * 0.1).condition(scale * jnp.eye(P)[:2])
        return cov.logdet() + cov.push(jnp.ones((1, P)))[0, 0]

    total, h = jax.jit(total), 1e-6
    slope = (total(1.3 + h) - total(1.3 - h)) / (2 * h)
    np.testing.assert_allclose(jax.jit(jax.grad(total))(1.3), slope, rtol=1e-7)


def test_affine_of_low_rank_is_the_precision_of_the_moved_covariance() -> None:
    base, factor = RNG.uniform(0.5, 2.0, P), RNG.normal(size=(3, P))
    gamma, noise = RNG.uniform(0.2, 1.1, P), RNG.uniform(0.01, 1.0, P)
    cov = LowRankCovariance(jnp.asarray(base), jnp.asarray(factor))
    pairs: list[tuple[Any, Any]] = [(0.9, 0.2), (gamma, noise), (gamma, 0.2), (0.9, noise)]
    for a, d in pairs:
        moved = cov.affine(jnp.asarray(a), jnp.asarray(d))
        a_, d_ = np.broadcast_to(a, P), np.broadcast_to(d, P)
        exact = np.linalg.inv(np.diag(a_) @ dense(cov) @ np.diag(a_) + np.diag(d_))
        close(moved.precision(), exact)


@pytest.mark.slow
def test_low_rank_linear_projects_the_dense_result() -> None:
    cov = LowRankCovariance(jnp.asarray(RNG.uniform(0.5, 2.0, P)), jnp.asarray(RNG.normal(size=(2, P))))
    turn = np.linalg.qr(RNG.normal(size=(P, P)))[0]
    moved = cov.linear(jnp.asarray(turn), jnp.zeros((P, P)))
    exact = np.linalg.inv(turn @ dense(cov) @ turn.T)
    close(np.diag(moved.precision()), np.diag(exact))
    scaled = cov.linear(jnp.asarray(0.5 * np.eye(P)), jnp.zeros((P, P)))
    close(np.diag(scaled.precision()), np.diag(4 * np.linalg.inv(dense(cov))))


@pytest.mark.slow
def test_a_collapsed_low_rank_mixture_has_its_variances_and_the_correlations_of_the_mean_precision() -> None:
    rng, shares = np.random.default_rng(5), np.array([0.2, 0.8])
    bases, gaps = rng.uniform(0.5, 2.0, (2, 5)), rng.normal(size=(2, 5))
    gaps -= shares @ gaps
    rows = np.zeros((2, 4, 5))
    rows[:, :2] = rng.normal(size=(2, 2, 5))  # so that four directions hold both
    family = LowRank(4)
    both = jax.vmap(lambda base, factor: LowRankCovariance(base, factor, family))(
        jnp.asarray(bases), jnp.asarray(rows)
    )
    precisions = [np.diag(base) + factor.T @ factor for base, factor in zip(bases, rows, strict=True)]
    each = np.stack([np.diag(np.linalg.inv(one)) for one in precisions])
    variances = shares @ (each + gaps**2)
    mean = np.linalg.inv(np.tensordot(shares, precisions, 1))
    stretch = np.sqrt(variances / np.diag(mean))
    collapsed = both.collapse(jnp.asarray(shares), jnp.asarray(gaps))
    np.testing.assert_allclose(collapsed.dense(), stretch[:, None] * mean * stretch[None, :], atol=1e-10)


def test_diagonal_families_differ_in_what_they_keep() -> None:
    factor = jnp.ones((1, 3))
    kept_precision = Diagonal("precision").init(jnp.ones(3)).condition(factor)
    kept_variance = Diagonal("covariance").init(jnp.ones(3)).condition(factor)
    close(kept_precision.diag(), np.full(3, 1 / 2))
    close(kept_variance.diag(), np.full(3, 1 - 1 / 4))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LowRank(0), "rank must be a whole number at least 1; got 0"),
        (lambda: LowRank(2.5), r"rank must be a whole number at least 1; got 2\.5"),  # type: ignore[arg-type]
        (lambda: LowRank(4).init(jnp.ones(3)), "rank must be at most the number of parameters P = 3; got 4"),
        (
            lambda: LowRank(4).from_dense(jnp.eye(3)),
            "rank must be at most the number of parameters P = 3; got 4",
        ),
        (
            lambda: Full("square"),  # type: ignore[arg-type]  # refused at run time
            "form must be one of root, dense; got 'square'",
        ),
        (
            lambda: Diagonal("precison"),  # type: ignore[arg-type]  # refused at run time
            r"keep must be one of precision, covariance.*did you mean 'precision'\?",
        ),
    ],
)
def test_impossible_families_are_refused(make: Any, message: str) -> None:
    with pytest.raises(CredoError, match=message):
        make()


@pytest.mark.parametrize("keep", ["precision", "covariance"])
def test_diagonal_variances_stay_positive_in_single_precision_with_tiny_noise(keep: Any) -> None:
    cov = Diagonal(keep).init(jnp.ones(P, jnp.float32))
    condition = jax.jit(lambda c, b: c.condition(b))
    for seed in range(50):
        factor = np.random.default_rng(seed).normal(size=(2, P)) * 1e6
        cov = condition(cov, jnp.asarray(factor, jnp.float32))
        assert np.all(np.asarray(cov.diag()) > 0), seed


def test_a_low_rank_belief_keeps_the_digits_that_move_the_mean_in_single_precision() -> None:
    """Along a column that W knows well, J - c W is the small difference of large numbers."""
    rng, units = np.random.default_rng(0), np.array([1.0, 1.0, 10.0, 10.0, 1e2, 3e3])
    kept = (rng.normal(size=(2, P)) * units * np.array([[30.0], [1.0]])).astype(np.float32)
    rows = (rng.normal(size=(1, P)) * units).astype(np.float32)
    cross, _ = LowRankCovariance(jnp.ones(P, jnp.float32), jnp.asarray(kept)).couple(jnp.asarray(rows))
    kept, rows = kept.astype(np.float64), rows.astype(np.float64)
    error = np.asarray(cross.dense(), np.float64) - rows @ np.linalg.inv(np.eye(P) + kept.T @ kept)
    assert np.abs(error @ rows.T).max() < 1e-3  # of a variance of about 1; it was .19


def test_a_dense_covariance_stays_symmetric_where_its_precision_is_raised_and_it_grows() -> None:
    size = 9
    cov, rows = (
        Full("dense").init(jnp.ones(size)),
        jnp.asarray(np.random.default_rng(3).normal(size=(1, size))),
    )

    def step(cov: DenseCovariance, _: None) -> tuple[DenseCovariance, None]:
        grown = cov.scale(jnp.asarray(1.1)).add_precision(jnp.full(size, 0.1 / 1.1))
        return grown.condition(rows), None

    last = jax.jit(lambda cov: jax.lax.scan(step, cov, None, 500)[0])(cov)
    matrix = np.asarray(last.dense())
    np.testing.assert_array_equal(matrix, matrix.T)
    assert np.linalg.eigvalsh(matrix)[0] > 0
