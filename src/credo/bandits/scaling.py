"""Inputs in units of what has been seen: running means and standard deviations."""

from __future__ import annotations

import jax.numpy as jnp

from credo.core.records import record
from credo.core.trees import as_like
from credo.core.types import Array, ArrayLike, PyTree

__all__ = ["Scaler"]


@record
class Scaler:
    """The running mean and spread of inputs, by which later inputs are standardised.

    The moments are those of Welford (1962), which do not cancel. An input that never moved is only centred.

    Attributes:
        mean: the mean of each input (d,).
        squares: the sum of squared deviations from the mean (d,).
        count: how many rows were seen.
        clip: standardised inputs are cut off at plus and minus this many standard deviations.

    Example:
        >>> scaler = Scaler.start(jnp.zeros(1))
        >>> for value in (1.0, 3.0):
        ...     scaler = scaler.observe(jnp.array([value]))
        >>> scaler.apply(jnp.array([3.0])).tolist()
        [1.0]
    """

    mean: Array
    squares: Array
    count: Array
    clip: ArrayLike = 8.0

    @staticmethod
    def start(like: Array, clip: ArrayLike = 8.0) -> Scaler:
        """A scaler that has seen nothing.

        Arguments:
            like: one row of inputs (d,), or several (K, d); its values do not count.
            clip: see above.
        """
        size = jnp.shape(like)[-1]
        kind = jnp.asarray(like).dtype
        kind = kind if jnp.issubdtype(kind, jnp.floating) else jnp.result_type(float)
        return Scaler(jnp.zeros(size, kind), jnp.zeros(size, kind), jnp.zeros((), kind), clip)

    def observe(self, x: PyTree) -> Scaler:
        """The scaler after one row (d,), or after several (K, d)."""
        rows = jnp.atleast_2d(jnp.asarray(x, self.mean.dtype))
        size = rows.shape[0]
        count = self.count + size
        centre = jnp.sum(rows, axis=0) / size
        inside = jnp.sum((rows - centre[None, :]) ** 2, axis=0)
        gap = centre - self.mean
        mean = self.mean + gap * (size / count)
        squares = self.squares + inside + gap**2 * (self.count * size / count)
        return Scaler(mean, squares, count, self.clip)

    def apply(self, x: PyTree) -> Array:
        """Standardised inputs, of the shape of x."""
        rows = jnp.asarray(x, self.mean.dtype)
        var = self.squares / jnp.maximum(self.count, 1.0)
        # A spread that is the rounding of the mean is none.
        floor = (1e-5 * jnp.abs(self.mean)) ** 2
        sd = jnp.sqrt(jnp.where(var > floor, var, 1.0))
        shape = (1,) * (rows.ndim - 1) + self.mean.shape
        scaled = (rows - self.mean.reshape(shape)) / sd.reshape(shape)
        clip = as_like(self.clip, scaled)
        return jnp.clip(scaled, -clip, clip)
