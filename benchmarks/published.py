"""The published updates, transcribed the straightforward way: the baseline of the grid's speed.

BONG and BLR with Monte Carlo empirical Fisher (MC-EF) and linearised Hessian (LIN-HESS), for full and for
diagonal-plus-low-rank (DLR) covariances, written as in the paper (Jones, Chang & Murphy 2024, arXiv
2405.19681, appendix) and as in its public JAX code: a flat vector of parameters, dense matrices with
parameters along rows, `jacrev` through the flat vector, `pinv` for every inverse, `lstsq` for the noise, one
projection an inner iteration. Each is compiled and scanned as a user would do. It is here to be compared with
and is no part of credo.

Where the public code differs from its own paper, the paper's formula is taken, in the order of products that
costs least: its BLR/DLR step forms two P x P matrices (28 GB at P = 42,310) and uses two different diagonals
in one Woodbury identity; here they are products with vectors and one diagonal. Its predict step, which
inverts once more, is left out because nothing moves in these benchmarks.

The projection comes in two kinds: `svd` is `jnp.linalg.svd(full_matrices=False)` of the (P, L) factor, as the
paper states it; `gram` is that of the small L x L Gram matrix, as the public code does it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

__all__ = [
    "DLR",
    "Full",
    "Problem",
    "bernoulli",
    "categorical",
    "dlr_blr_lin_hess",
    "dlr_bong_lin_hess",
    "full_blr_lin_hess",
    "full_blr_mc_ef",
    "full_bong_lin_hess",
    "full_bong_mc_ef",
    "project_gram",
    "project_svd",
    "scan",
]

Vector = jax.Array
Project = Callable[[jax.Array], tuple[jax.Array, jax.Array]]


class Problem(NamedTuple):
    """What the published code asks of a model: E y and Cov y at (theta, x), and log p(y | mean, cov)."""

    mean: Callable[[Vector, Any], jax.Array]
    cov: Callable[[Vector, Any], jax.Array]
    log_prob: Callable[[jax.Array, jax.Array, Any], jax.Array]


class Full(NamedTuple):
    """A Gaussian by its mean (P,) and covariance (P, P)."""

    mean: jax.Array
    cov: jax.Array


class DLR(NamedTuple):
    """A Gaussian by its mean (P,) and precision diag(y) + W W': `diag` is y (P, 1), `factor` W (P, R)."""

    mean: jax.Array
    diag: jax.Array
    factor: jax.Array


def categorical(apply: Callable[[Vector, Any], jax.Array], eps: float = 1e-6) -> Problem:
    """One-hot observations with logits `apply`; the covariance diag(p) - p p' + eps I, as published."""

    def probs(theta: Vector, x: Any) -> jax.Array:
        return jax.nn.softmax(apply(theta, x))

    def cov(theta: Vector, x: Any) -> jax.Array:
        p = probs(theta, x)
        return jnp.diag(p) - jnp.outer(p, p) + eps * jnp.eye(p.shape[0], dtype=p.dtype)

    return Problem(probs, cov, lambda mean, _, y: jnp.sum(y * jnp.log(jnp.maximum(mean, 1e-30))))


def bernoulli(apply: Callable[[Vector, Any], jax.Array], eps: float = 1e-6) -> Problem:
    """Observations (1,) in {0, 1} with logit `apply`."""

    def probs(theta: Vector, x: Any) -> jax.Array:
        return jax.nn.sigmoid(apply(theta, x)).reshape(1)

    def cov(theta: Vector, x: Any) -> jax.Array:
        p = probs(theta, x)
        return jnp.diag(p * (1 - p)) + eps * jnp.eye(1, dtype=p.dtype)

    def log_prob(mean: jax.Array, _: jax.Array, y: jax.Array) -> jax.Array:
        low = jnp.finfo(mean.dtype).tiny
        return jnp.sum(y * jnp.log(mean + low) + (1 - y) * jnp.log(1 - mean + low))

    return Problem(probs, cov, log_prob)


def _gradients(problem: Problem, draws: jax.Array, x: Any, y: Any) -> jax.Array:
    """grad log p at every draw (M, P)."""

    def log_likelihood(theta: Vector) -> jax.Array:
        return problem.log_prob(problem.mean(theta, x), problem.cov(theta, x), y)

    slopes: jax.Array = jax.vmap(jax.grad(log_likelihood))(draws)
    return slopes


def _linearized(problem: Problem, mean: Vector, x: Any, y: Any) -> tuple[jax.Array, jax.Array, jax.Array]:
    """y - E y (C,), H = d E[y] / d theta (C, P) and R = Cov[y] (C, C) at the mean."""
    predicted = jnp.atleast_1d(problem.mean(mean, x))
    jacobian = jnp.atleast_2d(jax.jacrev(problem.mean)(mean, x))
    return y - predicted, jacobian, jnp.atleast_2d(problem.cov(mean, x))


def full_bong_mc_ef(problem: Problem, samples: int) -> Callable[..., Any]:
    """Precision + mean of g g', by `pinv` there and back; mean + covariance times the mean gradient."""

    def update(key: jax.Array, state: Full, x: Any, y: Any) -> Full:
        draws = jax.random.multivariate_normal(key, state.mean, state.cov, (samples,))
        grads = _gradients(problem, draws, x, y)
        precision = jnp.linalg.pinv(state.cov) + grads.T @ grads / samples
        cov = jnp.linalg.pinv(precision)
        return Full(state.mean + cov @ jnp.mean(grads, axis=0), cov)

    return update


def full_bong_lin_hess(problem: Problem) -> Callable[..., Any]:
    """The extended Kalman filter, its gain by `lstsq`."""

    def update(key: jax.Array, state: Full, x: Any, y: Any) -> Full:
        residual, jacobian, noise = _linearized(problem, state.mean, x, y)
        cross = state.cov @ jacobian.T
        total = noise + jacobian @ cross
        gain = jnp.linalg.lstsq(total, cross.T)[0].T
        return Full(state.mean + gain @ residual, state.cov - gain @ total @ gain.T)

    return update


def _full_blr(start: Full, state: Full, gradient: Vector, hessian: jax.Array, rate: float) -> Full:
    prior = jnp.linalg.pinv(start.cov)
    precision = jnp.linalg.pinv(state.cov)
    cov = jnp.linalg.pinv((1 - rate) * precision + rate * prior - rate * hessian)
    pull = prior @ (start.mean - state.mean)
    return Full(state.mean + rate * cov @ (pull + gradient), cov)


def full_blr_mc_ef(problem: Problem, samples: int, rate: float, iterations: int) -> Callable[..., Any]:
    """Each iteration: draws from the iterate, three `pinv`."""

    def update(key: jax.Array, start: Full, x: Any, y: Any) -> Full:
        def iterate(state: Full, key: jax.Array) -> tuple[Full, None]:
            draws = jax.random.multivariate_normal(key, state.mean, state.cov, (samples,))
            grads = _gradients(problem, draws, x, y)
            return _full_blr(start, state, jnp.mean(grads, axis=0), -grads.T @ grads / samples, rate), None

        return jax.lax.scan(iterate, start, jax.random.split(key, iterations))[0]

    return update


def full_blr_lin_hess(problem: Problem, rate: float, iterations: int) -> Callable[..., Any]:
    """Each iteration: the Jacobian at the iterate, three `pinv` of P x P and one of R."""

    def update(key: jax.Array, start: Full, x: Any, y: Any) -> Full:
        def iterate(state: Full, _: None) -> tuple[Full, None]:
            residual, jacobian, noise = _linearized(problem, state.mean, x, y)
            weighted = jacobian.T @ jnp.linalg.pinv(noise)
            return _full_blr(start, state, weighted @ residual, -weighted @ jacobian, rate), None

        return jax.lax.scan(iterate, start, None, length=iterations)[0]

    return update


def project_svd(matrix: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Left singular vectors (P, L) and values, by the decomposition of the tall matrix itself."""
    vectors, values, _ = jnp.linalg.svd(matrix, full_matrices=False)
    return vectors, values


def project_gram(matrix: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The same by the decomposition of the small Gram matrix."""
    rotation, squares, _ = jnp.linalg.svd(matrix.T @ matrix, full_matrices=False, hermitian=True)
    values = jnp.sqrt(squares)
    return matrix @ (rotation * jnp.where(values > 0, 1 / jnp.where(values > 0, values, 1), 0)), values


def _keep(diag: jax.Array, stacked: jax.Array, rank: int, project: Project) -> tuple[jax.Array, jax.Array]:
    """The leading `rank` columns; the diagonal takes the rest."""
    vectors, values = project(stacked)
    extra = values[rank:] * vectors[:, rank:]
    return diag + jnp.einsum("ij,ij->i", extra, extra)[:, None], values[:rank] * vectors[:, :rank]


def _noise_root(noise: jax.Array) -> jax.Array:
    """A with A A' = inv(R), from the Cholesky factor of R by `lstsq`."""
    return jnp.linalg.lstsq(jnp.linalg.cholesky(noise), jnp.eye(noise.shape[0], dtype=noise.dtype))[0].T


def _solve(diag: jax.Array, stacked: jax.Array, columns: jax.Array) -> jax.Array:
    """inv(diag + stacked stacked') columns, by Woodbury and `pinv`."""
    small = jnp.eye(stacked.shape[1], dtype=stacked.dtype) + stacked.T @ (stacked / diag)
    return columns / diag - (stacked / diag @ jnp.linalg.pinv(small)) @ ((stacked / diag).T @ columns)


def dlr_bong_lin_hess(problem: Problem, project: Project = project_gram) -> Callable[..., Any]:
    """LOFI: Woodbury with the unprojected posterior, then the projection."""

    def update(key: jax.Array, state: DLR, x: Any, y: Any) -> DLR:
        residual, jacobian, noise = _linearized(problem, state.mean, x, y)
        root = _noise_root(noise)
        columns = jacobian.T @ root
        stacked = jnp.hstack([state.factor, columns])
        mean = state.mean + _solve(state.diag, stacked, columns @ root.T) @ residual
        return DLR(mean, *_keep(state.diag, stacked, state.factor.shape[1], project))

    return update


def dlr_blr_lin_hess(
    problem: Problem, rate: float, iterations: int, project: Project = project_gram
) -> Callable[..., Any]:
    """Each iteration: the Jacobian at the iterate, Woodbury with R + R + C columns, and a projection."""

    def update(key: jax.Array, start: DLR, x: Any, y: Any) -> DLR:
        def iterate(state: DLR, _: None) -> tuple[DLR, None]:
            residual, jacobian, noise = _linearized(problem, state.mean, x, y)
            root = _noise_root(noise)
            columns = jacobian.T @ root
            diag = (1 - rate) * state.diag + rate * start.diag
            keep = jnp.sqrt(1 - rate)
            take = jnp.sqrt(rate)
            stacked = jnp.hstack([keep * state.factor, take * start.factor, take * columns])
            gap = (start.mean - state.mean)[:, None]
            pull = start.diag * gap + start.factor @ (start.factor.T @ gap)
            force = pull + columns @ (root.T @ residual[:, None])
            mean = state.mean + rate * _solve(diag, stacked, force)[:, 0]
            return DLR(mean, *_keep(diag, stacked, state.factor.shape[1], project)), None

        return jax.lax.scan(iterate, start, None, length=iterations)[0]

    return update


def scan(update: Callable[..., Any]) -> Callable[..., Any]:
    """`run(key, state, xs, ys)`: a compiled scan over a stream that returns the last state."""

    @jax.jit
    def run(key: jax.Array, state: Any, xs: Any, ys: Any) -> Any:
        def body(state: Any, row: Any) -> tuple[Any, None]:
            key, x, y = row
            return update(key, state, x, y), None

        return jax.lax.scan(body, state, (jax.random.split(key, len(xs)), xs, ys))[0]

    return run
