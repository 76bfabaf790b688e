"""Plain gradient steps of a diagonal plus low-rank precision in its own parameters (mu, y, W), and its start.

Source: Jones, Chang & Murphy 2024 (BONG, arXiv 2405.19681), the diagonal plus low-rank BOG and BBB, rederived
and checked against automatic differentiation of the evidence lower bound.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from credo.covariances.retraction import retract
from credo.linalg.matrices import column_sums, scale_rows, solve_lower

__all__ = ["ascend_factors", "random_factor"]


def random_factor(var: jax.Array, rank: int, share: float) -> tuple[jax.Array, jax.Array]:
    """A start (y, W) with random directions, whose expected precision is 1 / var.

    y = (1 - e) / var and W of Gaussian columns, normalised and scaled by sqrt(e P / (R var)). The directions
    come from a fixed seed, so that the same family always starts from the same belief.

    Arguments:
        var: the variances (P,).
        rank: the number R of directions.
        share: e, the share of the precision that they carry.
    """
    drawn = jax.random.normal(jax.random.key(0), (rank, var.shape[0]), var.dtype)
    unit = drawn / jnp.sqrt(jnp.sum(drawn**2, axis=1, keepdims=True))
    height = jnp.sqrt(share * var.shape[0] / (rank * var))
    return (1.0 - share) / var, scale_rows(unit, height)


def ascend_factors(
    base: jax.Array,
    factor: jax.Array,
    rows: jax.Array,
    diagonal: jax.Array | None,
    prior: tuple[jax.Array, jax.Array] | None,
    rate: jax.Array,
    retraction: str,
    tied: bool = False,
) -> tuple[jax.Array, jax.Array]:
    """y + a diag(T) / 2 and W + a W T, with T = S (B' B + diag(d) + L0 - L) S; without a prior L0 - L is left
    out.

    Arguments:
        base, factor: y (P,) and W (R, P).
        rows: B (k, P).
        diagonal: d (P,), or None.
        prior: y and W of L0, or None.
        rate: a.
        retraction: how y stays positive.
        tied: whether y is one number for all parameters; its gradient is then the sum of theirs.

    Cost: P (R^2 + R k).
    """
    eye = jnp.eye(factor.shape[0], dtype=base.dtype)
    var = 1.0 / base
    spread = scale_rows(factor, var)
    chol = jnp.linalg.cholesky(eye + spread @ factor.T)
    arms = solve_lower(chol, spread)  # S = diag(1/y) - arms' arms

    def cover(block: jax.Array) -> jax.Array:
        """The product block S."""
        return scale_rows(block, var) - (block @ arms.T) @ arms

    level = jnp.zeros_like(base) if diagonal is None else diagonal
    blocks = [(rows, 1.0)]
    if prior is not None:
        level = level + prior[0] - base
        blocks += [(prior[1], 1.0), (factor, -1.0)]
    middle = scale_rows(arms, level) @ arms.T
    bend = var**2 * level - 2.0 * var * level * column_sums(arms**2) + column_sums(arms * (middle @ arms))
    here = cover(factor)
    drive = scale_rows(here, level)
    for block, sign in blocks:
        bend = bend + sign * column_sums(cover(block) ** 2)
        drive = drive + sign * (here @ block.T) @ block
    if tied:
        bend = jnp.full_like(bend, jnp.sum(bend))
    grown = base * retract(0.5 * rate * bend / base, retraction)
    return grown, factor + rate * cover(drive)
