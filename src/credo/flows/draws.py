"""Draws whose first two moments are exact, which takes most of the noise of a finite set away.

A set of N draws has a mean and a covariance of its own. Their errors, of order sqrt(d / N), would be carried
from update to update. Deviates with mean 0 and covariance I, that are uncorrelated with the particles that
they move, leave none: the moments of the set are then those of the dynamics.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from credo.beliefs import NormalSource, Particles
from credo.beliefs.particles import MOVE
from credo.core.records import record
from credo.core.types import Array, ArrayLike, DTypeLike
from credo.covariances import Covariance
from credo.dynamics import Dynamics, Static, Transition
from credo.dynamics.transition import finite_moves
from credo.linalg.matrices import cholesky

__all__ = ["MatchedSource", "matched_move", "standard"]


@record
class MatchedSource(NormalSource):
    """Particles from N(mean, cov) that have this mean and covariance exactly (dividing by N - 1).

    Example:
        >>> import credo, jax.numpy as jnp
        >>> source = MatchedSource(jnp.zeros(2), credo.Diagonal().init(jnp.ones(2)))
        >>> bool(jnp.all(jnp.abs(jnp.cov(source.draw(jax.random.key(0), 50).T) - jnp.eye(2)) < 1e-5))
        True
    """

    def draw(self, key: Array, count: int) -> Array:
        size = self.cov.deviates
        if count < size + 2:
            return super().draw(key, count)
        noise = standard(key, count, size, self.mean.dtype)
        return self.mean[None, :] + jax.vmap(self.cov.color)(noise)


def standard(
    key: Array,
    count: int,
    size: int,
    dtype: DTypeLike,
    log_weights: Array | None = None,
    beside: Array | None = None,
) -> Array:
    """Draws (count, size) of a standard normal law, of mean 0 and covariance I exactly.

    The moments are those under `log_weights` (count,), by default equal; the draws are also uncorrelated with
    the columns `beside` (count, k). Where there are too few rows, the draws stay as they are.
    """
    draws = jax.random.normal(key, (count, size), dtype)
    others = jnp.zeros((count, 0), dtype) if beside is None else beside
    if count < size + others.shape[1] + 2:
        return draws
    weights = jnp.full(count, 1 / count, dtype) if log_weights is None else jnp.exp(log_weights)
    halves = jnp.sqrt(weights)[:, None]
    fixed, _ = jnp.linalg.qr(halves * jnp.concatenate([jnp.ones((count, 1), dtype), others], axis=1))
    rows = halves * draws
    rows = rows - fixed @ (fixed.T @ rows)
    spare = 1 - jnp.sum(weights**2)
    root = cholesky(rows.T @ rows / spare)
    white = jax.scipy.linalg.solve_triangular(root, rows.T, lower=True).T
    # without weight there is nothing to match
    matched = white / jnp.where(halves > 0, halves, 1)
    return jnp.where(jnp.all(jnp.isfinite(matched)), jnp.where(halves > 0, matched, draws), draws)


def matched_move(dynamics: Dynamics, belief: Particles, dt: ArrayLike | None) -> Array:
    """The particles (N, P) after a step of the dynamics, with matched noise where it is Gaussian.

    Dynamics that move particles by a function, or all of them together, do it their own way.
    """
    key = belief.step_key(MOVE)
    rest = (belief.anchor, belief.t, dt, belief.unravel)
    additive = isinstance(dynamics, Transition) and dynamics.mean_function is not None
    own = type(dynamics).propagate is not Dynamics.propagate
    if isinstance(dynamics, Static) or (own and not additive):
        return dynamics.propagate(belief.values, belief.log_weights, key, *rest)

    def law(value: Array) -> tuple[Array, Covariance]:
        return dynamics.conditional(value, *rest)

    means, covs = jax.vmap(law)(belief.values)
    means = finite_moves(means, belief.values) if additive else means
    size = jax.eval_shape(law, belief.values[0])[1].deviates
    noise = standard(key, means.shape[0], size, means.dtype, belief.log_weights, means)
    moved: Array = means + jax.vmap(lambda cov, row: cov.color(row))(covs, noise)
    return moved
