"""Small linear algebra with safe derivatives.

Matrices that act on data are stored by rows: a factor `B` (k, P) stands for the precision `B' B`, so that
each row lies contiguously in memory.

A system with one output has 1 x 1 matrices. They are factorised by plain arithmetic, because a call of LAPACK
costs more than a whole step of a small filter, and keeps the compiler from merging what stands around it.

Kalman's gain is taken in the small space of the rows, for a curvature V = A A' that is given by its root A: a
matrix (k, m), or the diagonal (k,) of a diagonal one.

The places of the diagonal and the triangle of small matrices are constants that a program has once.
In a scan, XLA moves every mask and every array of indices out of the loop on its own, and then no longer sees
that what two parts of a step compute from them is the same, such as a factor that a forecast and an update
both need.

`leading_axes` has the eigenvectors of Gram matrices whose rows may be of very different length.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np

from credo.core.types import Array, DTypeLike

__all__ = [
    "SMALL",
    "attenuate",
    "bend",
    "cholesky",
    "column_sums",
    "crossed",
    "diagonal",
    "eigh",
    "framed",
    "identity",
    "inverse",
    "inverse_gram",
    "kalman_weights",
    "leading_axes",
    "log_det",
    "lower",
    "mixing",
    "on_diagonal",
    "precision",
    "psd_root",
    "raised",
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

SMALL = 64
"""Up to here an identity matrix is a constant of the program, which holds all of its numbers."""


def identity(size: int, dtype: DTypeLike) -> Array:
    """The identity matrix (n, n), for small n as one constant for all of a program."""
    if size > SMALL:
        return jnp.eye(size, dtype=dtype)
    return jnp.asarray(_identity(size, np.dtype(dtype)))


@functools.lru_cache(maxsize=64)
def _identity(size: int, dtype: np.dtype) -> np.ndarray:
    eye = np.eye(size, dtype=dtype)
    eye.setflags(write=False)
    return eye


def on_diagonal(values: Array) -> Array:
    """Numbers (..., n) as diagonal matrices (..., n, n), for small n by one constant for all of a program.

    `jnp.diag` compares numbers of rows and columns. XLA moves that out of a loop once for each of its uses,
    no longer sees that these are equal, and computes in every use what depends on it.
    """
    size = values.shape[-1]
    if size > SMALL:
        return jnp.where(jnp.eye(size, dtype=bool), values[..., None], 0)
    return jnp.where(jnp.asarray(_identity(size, np.dtype(bool))), values[..., None], 0)


def lower(size: int) -> Array:
    """The places of the numbers of a lower triangular matrix (n, n), as one constant."""
    return jnp.asarray(_lower(size))


@functools.lru_cache(maxsize=64)
def _lower(size: int) -> np.ndarray:
    mask = np.tri(size, dtype=bool)
    mask.setflags(write=False)
    return mask


def diagonal(matrix: Array) -> Array:
    """The diagonal (n,) of a matrix (n, n), as a slice of its numbers.

    `jnp.diagonal` gathers them in a branch by platform, whose results XLA does not see to be equal in two
    parts of a step.
    """
    size = matrix.shape[0]
    own: Array = jax.lax.slice(matrix.reshape(-1), (0,), (size * size,), (size + 1,))
    return own


def framed(matrix: Array, scale: Array) -> Array:
    """diag(a) S diag(a) for a number a or an array (P,), symmetric to the last bit where S is."""
    if scale.ndim == 0:
        return matrix * scale**2
    return matrix * (scale[:, None] * scale[None, :])


def raised(matrix: Array, noise: Array) -> Array:
    """S + diag(d) for a number d or an array (P,). It touches P numbers of a matrix of which no other use is
    made; the sum with the matrix diag(d) would take a pass of its own. A small matrix is one kernel with what
    comes before and after.
    """
    size = matrix.shape[0]
    if size <= SMALL:
        small: Array = jnp.where(
            identity(size, np.dtype(bool)), matrix + jnp.broadcast_to(noise, (1, size)), matrix
        )
        return small
    places = jnp.arange(size)
    raised: Array = matrix.at[places, places].add(
        noise, indices_are_sorted=True, unique_indices=True, mode="promise_in_bounds"
    )
    return raised


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
    # What lies below the triangle is not read. Blanking it takes a mask, of which XLA keeps
    # one for each use, and solves for each.
    columns, _ = jnp.linalg.qr(jnp.concatenate([matrix / level, right / level], axis=1), mode="raw")
    both = columns.T
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


_SWEEPS = 8


@jax.custom_jvp
def leading_axes(gram: Array, level: Array) -> Array:
    """The eigenvectors of a Gram matrix (n, n) as rows, by falling eigenvalue; differentiable as `eigh` is.

    A library's eigenvectors are right to eps times the largest eigenvalue. Of a row whose square is smaller
    than that they know nothing, and the rounding of a long row then stands where the short one was. Where
    a long row is so long that its rounding exceeds a short one, and `level`, below which squares do not
    matter, Jacobi's rotations take over, which are right relative to each row (Demmel & Veselic 1992). The
    loop that holds them is not entered elsewhere.

    Cost: n^3; n^3 for each of at most 8 n^2 / 2 rotations where the rows are so different.
    """
    if gram.shape[0] == 1:
        return jnp.ones_like(gram)
    values = diagonal(gram)
    _, usual = eigh(gram)
    positive = jnp.where(values > 0, values, jnp.full_like(values, jnp.inf))
    least = jnp.maximum(jnp.min(positive), level)
    apart = jnp.max(values) * precision(gram.dtype).eps > least

    # The matrix is a state of the loop that changes: XLA would otherwise rotate it before it asks whether to.
    def rotate(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        return _jacobi(state[1]), jnp.zeros_like(gram), jnp.asarray(False)

    begin = (usual[:, ::-1].T, gram, apart)
    axes, _, _ = jax.lax.while_loop(lambda state: state[2], rotate, begin)
    return axes


@leading_axes.defjvp
def _leading_axes_jvp(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Array, Array]:
    (gram, level) = primals
    (tangent, _) = tangents
    axes = leading_axes(gram, level)
    values = jnp.diagonal(axes @ gram @ axes.T)
    inner = axes @ symmetric(tangent) @ axes.T
    return axes, mixing(values, inner).T @ axes


def _jacobi(gram: Array) -> Array:
    """The eigenvectors as rows, by cyclic rotations, until no two rows meet."""
    size = gram.shape[0]
    eps = precision(gram.dtype).eps
    first, second = (jnp.asarray(places, jnp.int32) for places in np.triu_indices(size, 1))

    def unfinished(state: tuple[Array, Array, Array]) -> Array:
        matrix, _, sweep = state
        root = jnp.sqrt(jnp.diagonal(matrix))
        meet = jnp.abs(matrix[first, second]) > 4.0 * eps * root[first] * root[second]
        return (sweep < _SWEEPS) & jnp.any(meet)

    def rotate(step: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        matrix, axes = state
        p = first[step]
        q = second[step]
        here = matrix[p, p]
        there = matrix[q, q]
        across = matrix[p, q]
        meet = jnp.abs(across) > eps * jnp.sqrt(here) * jnp.sqrt(there)
        slope = 0.5 * (there - here) / jnp.where(meet, across, 1.0)
        near = jnp.minimum(jnp.abs(slope), 1e8)
        tangent = jnp.where(slope < 0, -1.0, 1.0) / (near + jnp.sqrt(1.0 + near**2))
        tangent = jnp.where(jnp.abs(slope) > 1e8, 0.5 / jnp.where(slope == 0, 1.0, slope), tangent)
        tangent = jnp.where(meet, tangent, 0.0)
        cosine = jax.lax.rsqrt(1.0 + tangent**2)
        sine = cosine * tangent

        def turned(rows: Array) -> Array:
            upper = rows[p]
            lower = rows[q]
            return rows.at[p].set(cosine * upper - sine * lower).at[q].set(sine * upper + cosine * lower)

        matrix = turned(turned(matrix).T)
        # What the rotation makes 0 is 0, and both squares follow without cancellation.
        left = jnp.where(meet, 0.0, across)
        matrix = matrix.at[p, q].set(left).at[q, p].set(left)
        matrix = matrix.at[p, p].set(here - tangent * across).at[q, q].set(there + tangent * across)
        return matrix, turned(axes)

    def sweep(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        matrix, axes = jax.lax.fori_loop(0, first.shape[0], rotate, state[:2])
        return matrix, axes, state[2] + 1

    begin = (gram, identity(size, gram.dtype), jnp.zeros((), jnp.int32))
    matrix, axes, _ = jax.lax.while_loop(unfinished, sweep, begin)
    falling: Array = axes[jnp.argsort(-jnp.diagonal(matrix))]
    return falling
