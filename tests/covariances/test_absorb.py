"""Kalman's update in one call: the mean's move is that of the exact posterior, whatever is kept after."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.covariances.reference import alike, close, dense
from tests.covariances.test_protocol import COVARIANCES, P

from credo.covariances import Covariance, LowRank, LowRankCovariance, RootCovariance

ABSORB = jax.jit(lambda cov, rows, residual, root: cov.absorb(rows, residual, root))
MANY = {
    **COVARIANCES,
    "factor-analysis": LowRankCovariance(
        COVARIANCES["low-rank"].base,  # type: ignore[attr-defined]
        COVARIANCES["low-rank"].factor,  # type: ignore[attr-defined]
        LowRank(2, projection="factor-analysis"),
    ),
}


def local(count: int, inner: int | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows J (count, P), residuals, and A (count, inner), or a diagonal one."""
    rng = np.random.default_rng(count)
    root = rng.uniform(0.2, 1.5, count) if inner is None else rng.normal(size=(count, inner))
    return rng.normal(size=(count, P)), rng.normal(size=count), root


@pytest.mark.table
@pytest.mark.parametrize("name", list(MANY))
@pytest.mark.parametrize(
    ("count", "inner"), [(1, None), (3, None), (3, 2), (P, None), (8, None), (8, 3), (2, 6)]
)
def test_the_mean_moves_by_the_exact_posterior_and_the_covariance_is_conditioned(
    name: str, count: int, inner: int | None
) -> None:
    cov: Any = MANY[name]
    rows, residual, root = local(count, inner)
    shift, kept = ABSORB(cov, *map(jnp.asarray, (rows, residual, root)))
    square = np.diag(root**2) if inner is None else root @ root.T
    prec = np.linalg.inv(dense(cov)) + rows.T @ square @ rows
    close(shift, np.linalg.solve(prec, rows.T @ residual))
    factor = root[:, None] * rows if inner is None else root.T @ rows
    close(dense(kept), dense(cov.condition(jnp.asarray(factor))))
    assert alike(kept, cov)
    if not cov.forgets:
        close(dense(kept), np.linalg.inv(prec))


@pytest.mark.table
@pytest.mark.parametrize("count", [1, 2, 8])
def test_in_single_precision_a_tiny_noise_costs_few_digits(count: int) -> None:
    """The move and the variances against double precision, in posterior standard deviations; the worst of 20
    draws. What the other form of the update gives, for fewer or more rows, is worse than the bounds.
    """
    sd, rng = 0.01, np.random.default_rng(1)
    moves, spreads, others = [], [], []
    for _ in range(20):
        root = np.linalg.qr(rng.normal(size=(4, 4)))[0] * np.array([3.0, 1.0, 0.3, 1.0])
        rows = rng.normal(size=(count, 4)) * np.array([1.0, 1.0, 0.1, 0.01])
        residual = rng.normal(size=count) / sd**2
        posterior = np.linalg.inv(np.linalg.inv(root @ root.T) + rows.T @ rows / sd**2)
        exact, sds = posterior @ rows.T @ residual, np.sqrt(np.diag(posterior))
        cov = RootCovariance(jnp.asarray(root, jnp.float32))
        given = [jnp.asarray(a, jnp.float32) for a in (rows, residual, np.full(count, 1 / sd))]
        shift, kept = ABSORB(cov, *given)
        by_gain, other = Covariance.absorb(cov, *given)
        if count < 4:
            by_gain = other.mv(given[1] @ given[0])  # the form that many rows take
        moves.append(np.max(np.abs(np.asarray(shift) - exact) / sds))
        others.append(np.max(np.abs(np.asarray(by_gain) - exact) / sds))
        spreads.append(np.max(np.abs(np.asarray(kept.sd) / sds - 1)))
    assert max(moves) < (0.02 if count < 4 else 0.2) and max(spreads) < 0.02
    assert max(others) > 3 * max(moves)
