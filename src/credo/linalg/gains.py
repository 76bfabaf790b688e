"""Kalman's gain in the small space of the rows, for a curvature V = A A' that is given by its root A.

A root A is a matrix (k, m), or the diagonal (k,) of a diagonal one.
"""

from __future__ import annotations

from credo.core.types import Array
from credo.linalg.matrices import identity, solve

__all__ = ["attenuate", "bend", "kalman_weights"]


def attenuate(root: Array, rows: Array) -> Array:
    """The product A' J (m, P) for rows J (k, P), and A (k, m) or the diagonal (k,) of a diagonal A."""
    return root[:, None] * rows if root.ndim == 1 else root.T @ rows


def bend(root: Array, outputs: Array) -> Array:
    """The product A A' z for z (k,) or (k, n), and A (k, m) or the diagonal (k,) of a diagonal A."""
    if root.ndim == 1:
        square = root**2
        return square * outputs if outputs.ndim == 1 else square[:, None] * outputs
    return root @ (root.T @ outputs)


def kalman_weights(root: Array, residual: Array, inner: Array) -> Array:
    """The weights w = inv(I + V M) e (k,), with V = A A' and M = J S J', by which the rows J S move the mean.

    The mean then moves by S J' inv(I + A A' J S J') e, as under the exact posterior of a local model; A is
    (k, m), or (k,) where it is diagonal. The system is solved in the small space of the rows, at a cost of
    k^3, and neither V nor the noise is inverted. It therefore holds where the model is certain (V = 0), so
    that a confident mistake is not attenuated, and where the noise is tiny.
    """
    system = identity(inner.shape[0], inner.dtype) + bend(root, inner)
    return solve(system, residual)
