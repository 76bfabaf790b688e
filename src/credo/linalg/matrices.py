"""Small linear algebra with safe derivatives.

Matrices that act on data are stored by rows: a factor `B` (k, P) stands for the precision `B' B`, so that
each row lies contiguously in memory.

A system with one output has 1 x 1 matrices. They are factorised by plain arithmetic, because a call of LAPACK
costs more than a whole step of a small filter, and keeps the compiler from merging what stands around it.

Kalman's gain is taken in the small space of the rows, for a curvature V = A A' that is given by its root A: a
matrix (k, m), or the diagonal (k,) of a diagonal one.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np

from credo.core.types import Array, DTypeLike
from credo.linalg.entries import SMALL, diagonal, framed, identity, lower, raised

__all__ = [
    "attenuate",
    "bend",
    "cholesky",
    "column_sums",
    "crossed",
    "eigh",
    "inverse",
    "inverse_gram",
    "kalman_weights",
    "log_det",
    "mixing",
    "precision",
    "psd_root",
    "ridge_root",
    "rounded",
    "rows_times",
    "safe_sqrt",
    "scale_rows",
    "solve",
    "solve_lower",
    "spread_root",
    "symmetric",
    "symmetric_root",
    "triangularize",
]


def precision(dtype: DTypeLike) -> np.finfo[np.floating]:
    """The resolution of floating-point numbers of a dtype (`eps`, `tiny`)."""
    return jnp.finfo(dtype)


def scale_rows(rows: Array, scale: Array) -> Array:
    """Multiply every row of `rows` (..., P) elementwise by `scale`, a scalar or an array (P,)."""
    return rows * jnp.broadcast_to(scale, rows.shape)


def rows_times(rows: Array, matrix: Array) -> Array:
    """The product J M of rows (k, P) with a matrix (P, Q).

    An entry of the matrix is tied to the rows, and counts for nothing. Where `jax.vmap` takes several
    matrices and the same rows, each matrix then has rows of its own; otherwise XLA makes one product of all,
    in a loop that is 20 times slower on a CPU.
    """
    return (rows + 0.0 * matrix[:1, :1]) @ matrix


def column_sums(rows: Array) -> Array:
    """The sums (P,) over rows (k, P), as a product with ones: XLA's reduction is 30 times slower on a CPU."""
    return jnp.ones(rows.shape[0], rows.dtype) @ rows


def crossed(left: Array, right: Array) -> Array:
    """The sum of outer products left' right (P, Q) of rows (k, P) and (k, Q).

    One row is multiplied elementwise, so that the compiler merges the product with what follows it.
    """
    if left.shape[0] == 1:
        return left[0][:, None] * right[0][None, :]
    return left.T @ right


def symmetric(matrix: Array) -> Array:
    """The symmetric part of a square matrix."""
    if matrix.shape[-1] == 1:
        return matrix
    return 0.5 * (matrix + matrix.T)


def cholesky(matrix: Array) -> Array:
    """The lower triangular L (n, n) with L L' = M, or NaN if M is not positive definite."""
    if matrix.shape[-1] == 1:
        return jnp.where(matrix > 0, jnp.sqrt(jnp.where(matrix > 0, matrix, 1.0)), jnp.nan)
    if matrix.shape[-1] > SMALL:
        chol: Array = jnp.linalg.cholesky(matrix)
        return chol
    # the same, with a mask that is one constant; see `identity`
    factor: Array = jax.lax.linalg.cholesky_p.bind(symmetric(matrix))
    return jnp.where(lower(matrix.shape[-1]), factor, jnp.zeros_like(factor))


def solve(matrix: Array, right: Array) -> Array:
    """Solve M X = R for a square M (n, n) and R (n,) or (n, k).

    A small M is brought to a triangle together with R, by Householder's reflections. Elimination needs fewer
    products, but its pivots become a loop of many small kernels, which cost more to compile and to run.
    """
    size = matrix.shape[-1]
    if size == 1:
        return right / matrix.reshape((1,) * right.ndim)
    if size > SMALL:
        solution: Array = jnp.linalg.solve(matrix, right)
        return solution
    return _reflected(matrix, right.reshape(size, -1)).reshape(right.shape)


@jax.custom_jvp
def _reflected(matrix: Array, right: Array) -> Array:
    """`solve` for R (n, k), by the triangle of [M, R].

    Equations are brought to one size first: reflections mix them, and the rounding of a large one would
    otherwise stand where a small one was.
    """
    size = matrix.shape[-1]
    largest = jnp.max(jnp.abs(matrix), axis=1, keepdims=True)
    level = jnp.where(largest > 0, largest, jnp.ones_like(largest))
    both = jnp.linalg.qr(jnp.concatenate([matrix / level, right / level], axis=1), mode="r")
    solved: Array = jsl.solve_triangular(both[:, :size], both[:, size:])
    return solved


@_reflected.defjvp
def _reflected_jvp(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Array, Array]:
    solved = _reflected(*primals)
    change = jnp.linalg.solve(primals[0], tangents[1] - tangents[0] @ solved)
    return solved, change


def inverse(matrix: Array) -> Array:
    """The inverse of a square matrix."""
    inverted: Array = 1.0 / matrix if matrix.shape[-1] == 1 else jnp.linalg.inv(matrix)
    return inverted


def log_det(matrix: Array) -> Array:
    """The logarithm of the absolute value of the determinant of a square matrix."""
    if matrix.shape[-1] == 1:
        return jnp.log(jnp.abs(matrix[0, 0]))
    log_absolute: Array = jnp.linalg.slogdet(matrix)[1]
    return log_absolute


@jax.custom_jvp
def safe_sqrt(value: Array) -> Array:
    """A square root whose derivative at 0 is 0 instead of infinite. Negative rounding errors count as 0."""
    return jnp.sqrt(jnp.maximum(value, 0.0))


@safe_sqrt.defjvp
def _safe_sqrt_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    (value,) = primals
    (tangent,) = tangents
    root = safe_sqrt(value)
    positive = root > 0
    return root, jnp.where(positive, 0.5 / jnp.where(positive, root, 1.0), 0.0) * tangent


@jax.custom_jvp
def eigh(matrix: Array) -> tuple[Array, Array]:
    """Eigenvalues (ascending) and eigenvectors of a symmetric matrix, differentiable at equal eigenvalues.

    Between equal eigenvalues the basis is arbitrary, and the derivative leaves it unchanged (gauge zero).
    Results that do not depend on it, such as a projector on a whole eigenspace, have their exact derivative.
    """
    if matrix.shape[-1] == 1:
        return jnp.diagonal(matrix), jnp.ones_like(matrix)
    values, vectors = jnp.linalg.eigh(matrix)
    return values, vectors


@eigh.defjvp
def _eigh_jvp(
    primals: tuple[Array], tangents: tuple[Array]
) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    (matrix,) = primals
    (tangent,) = tangents
    values, vectors = eigh(matrix)
    inner = vectors.T @ symmetric(tangent) @ vectors
    return (values, vectors), (jnp.diagonal(inner), vectors @ mixing(values, inner))


def mixing(values: Array, inner: Array) -> Array:
    """The mixing of eigenvectors (n, n), as columns, where the matrix changes by `inner` in them.

    Between equal eigenvalues (n,) there is none.
    """
    gap = values[None, :] - values[:, None]
    machine = precision(values.dtype)
    tiny = machine.eps * jnp.maximum(jnp.max(jnp.abs(values)), machine.tiny) * 8
    apart = jnp.abs(gap) > tiny
    return jnp.where(apart, inner / jnp.where(apart, gap, 1.0), 0.0)


def psd_root(matrix: Array) -> Array:
    """A square root A (n, n), where A A' is the positive semi-definite part of a symmetric matrix."""
    values, vectors = eigh(symmetric(matrix))
    return vectors * safe_sqrt(values)[None, :]


def triangularize(*blocks: Array) -> Array:
    """A lower triangular L (P, P) with L L' = sum of block block', by a QR that squares nothing."""
    columns = jnp.concatenate([block.T for block in blocks], axis=0)
    if columns.shape[1] == 1:
        largest = jnp.max(jnp.abs(columns))
        unit = columns / jnp.where(largest > 0, largest, 1.0)
        return largest * safe_sqrt(unit.T @ unit)
    return jnp.linalg.qr(columns, mode="r").T


def solve_lower(chol: Array, rows: Array, *, transpose: bool = False) -> Array:
    """Solve L X = rows (or L' X = rows) with a small lower triangular L (k, k) and rows (k, ...).

    Many columns are multiplied by the small inverse instead, because XLA's triangular solve is 50 times
    slower than the product on a CPU; the factors that occur here, of I + A A', are well conditioned.
    """
    if chol.shape[-1] == 1:
        return rows / chol.reshape((1,) * rows.ndim)
    mode = 1 if transpose else 0
    if rows.ndim == 2 and rows.shape[1] > 2 * rows.shape[0]:
        eye = identity(chol.shape[0], chol.dtype)
        return jsl.solve_triangular(chol, eye, lower=True, trans=mode) @ rows
    return jsl.solve_triangular(chol, rows, lower=True, trans=mode)


def inverse_gram(gram: Array) -> Array:
    """inv(I + G) for a Gram matrix G (k, k)."""
    eye = identity(gram.shape[0], gram.dtype)
    chol = cholesky(eye + symmetric(gram))
    return solve_lower(chol, solve_lower(chol, eye), transpose=True)


def ridge_root(gram: Array) -> tuple[Array, Array]:
    """Factors of I + G = inv(d) L L' inv(d) for a Gram matrix G (k, k): L, and the scale d (k,) of the rows.

    Rows of any length are scaled to one. A few roundings on the diagonal keep rows that are nearly parallel
    from leaving the positive definite matrices.
    """
    unit = jax.lax.rsqrt(1.0 + diagonal(gram))
    alike = framed(symmetric(gram), unit) + identity(gram.shape[0], gram.dtype) * unit[None, :] ** 2
    return cholesky(raised(alike, 1.0 * precision(gram.dtype).eps * jnp.ones_like(unit))), unit


@jax.custom_jvp
def rounded(array: Array, clock: Array) -> Array:
    """The same numbers, rounded before they are used.

    A compiler may otherwise round a product and the sum that it enters once or twice, in a loop and alone not
    alike. `clock` is a whole number of at least 0, of which the compiler does not know that it is.
    """
    bits = {4: jnp.int32, 8: jnp.int64}[array.dtype.itemsize]
    zero = jnp.minimum(clock, 0).astype(bits)
    whole = jax.lax.bitcast_convert_type(array, bits)
    return jax.lax.bitcast_convert_type(whole ^ zero, array.dtype)


@rounded.defjvp
def _(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Array, Array]:
    return rounded(*primals), tangents[0]


def attenuate(root: Array, rows: Array) -> Array:
    """The product A' J (m, P) for rows J (k, P), and A (k, m) or the diagonal (k,) of a diagonal A."""
    if root.ndim == 1:
        return root[:, None] * rows
    return root.T @ rows


def bend(root: Array, outputs: Array) -> Array:
    """The product A A' z for z (k,) or (k, n), and A (k, m) or the diagonal (k,) of a diagonal A."""
    if root.ndim == 1:
        square = root**2
        if outputs.ndim == 1:
            return square * outputs
        return square[:, None] * outputs
    return root @ (root.T @ outputs)


def kalman_weights(root: Array, residual: Array, inner: Array) -> Array:
    """The weights w = inv(I + V M) e (k,), with V = A A' and M = J S J', by which the rows J S move the mean.

    The mean then moves by S J' inv(I + A A' J S J') e, as under the exact posterior of a local model; A is
    (k, m), or (k,) if it is diagonal. The system is solved in the small space of the rows, at a cost of
    k^3, and neither V nor the noise is inverted. It therefore holds where the model is certain (V = 0), so
    that a confident mistake is not attenuated, and where the noise is tiny.
    """
    system = identity(inner.shape[0], inner.dtype) + bend(root, inner)
    return solve(system, residual)


MANY_OUTPUTS = 32
"""The number of outputs from which a triangular root is taken instead of eigenvectors."""


def spread_root(cov: Array) -> Array:
    """A root A (C, C) of the covariance of C outputs, with A A' = M for the integral over them.

    Few outputs take the eigenvectors. Many take the Cholesky factor, at a tenth of the cost, where eps tr(M)
    is added to the diagonal, less than the rounding error of M; and the eigenvectors where that fails.
    """
    if cov.shape[0] < MANY_OUTPUTS:
        return psd_root(cov)
    level = precision(cov.dtype).eps * jnp.trace(cov)
    nudged = symmetric(cov) + level * jnp.eye(cov.shape[0], dtype=cov.dtype)
    chol = jnp.linalg.cholesky(nudged)
    good = jnp.all(jnp.isfinite(jnp.diagonal(chol)))
    root: Array = jax.lax.cond(good, lambda: chol, lambda: psd_root(cov))
    return root


def symmetric_root(cov: Array) -> Array:
    """The symmetric root of the positive semi-definite part of a matrix (C, C)."""
    if cov.shape[0] == 1:
        return safe_sqrt(cov)
    values, vectors = eigh(symmetric(cov))
    return (vectors * safe_sqrt(values)[None, :]) @ vectors.T
