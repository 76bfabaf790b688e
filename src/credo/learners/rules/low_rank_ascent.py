"""Plain gradient steps of a diagonal plus low-rank precision in its own parameters (mu, y, W).

Source: Jones, Chang & Murphy 2024 (BONG, arXiv 2405.19681), the diagonal plus low-rank BOG and BBB, rederived
and checked against automatic differentiation of the evidence lower bound.
"""

from __future__ import annotations

import jax.numpy as jnp

from credo.core.types import Array
from credo.learners.rules.retraction import Retraction, retract
from credo.linalg.matrices import cholesky, column_sums, scale_rows, solve_lower

__all__ = ["ascend_factors"]


def ascend_factors(
    base: Array,
    factor: Array,
    rows: Array,
    diagonal: Array | None,
    prior: tuple[Array, Array] | None,
    rate: Array,
    retraction: Retraction,
    tied: bool = False,
) -> tuple[Array, Array]:
    """The step to y + a diag(T) / 2 and W + a W T, with T = S (B' B + diag(d) + L0 - L) S.

    `prior` is y and W of L0; without it, L0 - L is left out. Where `tied`, y is one number for all
    parameters, whose gradient is the sum of theirs. Cost: P (R^2 + R k).
    """
    eye = jnp.eye(factor.shape[0], dtype=base.dtype)
    var = 1.0 / base
    spread = scale_rows(factor, var)
    chol = cholesky(eye + spread @ factor.T)
    arms = solve_lower(chol, spread)  # S = diag(1/y) - arms' arms

    def cover(block: Array) -> Array:
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
    new_base = base * retract(0.5 * rate * bend / base, retraction)
    return new_base, factor + rate * cover(drive)
