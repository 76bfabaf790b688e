"""Contexts in units of what has been seen: each is standardised by those before it."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from credo.adapt import RunningMoments
from credo.core.records import record
from credo.core.types import Array, ArrayLike, PyTree

__all__ = ["Scaler"]


@record
class Scaler:
    """The running moments of contexts, by which later contexts are standardised.

    They are `credo.adapt.RunningMoments`, which no single value can ruin.

    Attributes:
        moments: the moments of each input (d,).
        clip: standardised inputs are cut off at plus and minus this many standard deviations.

    Example:
        >>> scaler = Scaler.start(jnp.zeros(1))
        >>> for value in (10.0, 20.0, 30.0):
        ...     scaler = scaler.observe(jnp.array([value]))
        >>> scaler.apply(jnp.array([35.0])).tolist()
        [1.5]
    """

    moments: RunningMoments
    clip: ArrayLike = 8.0

    @staticmethod
    def start(like: Array, clip: ArrayLike = 8.0) -> Scaler:
        """A scaler that has seen nothing.

        Arguments:
            like: one row of inputs (d,), or several (K, d); its values do not count.
            clip: see above.
        """
        kind = jnp.asarray(like).dtype
        kind = kind if jnp.issubdtype(kind, jnp.floating) else jnp.result_type(float)
        return Scaler(RunningMoments.empty(jnp.shape(like)[-1:], kind), clip)

    def init_arguments(self) -> dict[str, PyTree]:
        """The arguments of `init` that a belief with this part began from: a context, by its shapes."""
        return {"context": np.zeros(np.shape(self.mean), self.mean.dtype)}

    @property
    def mean(self) -> Array:
        """The mean of each input (d,)."""
        return self.moments.mean

    def observe(self, x: PyTree) -> Scaler:
        """The scaler after one row (d,), or after several (K, d), one after the other."""
        rows = jnp.atleast_2d(jnp.asarray(x, self.moments.values.dtype))
        if rows.shape[0] == 1:
            return Scaler(self.moments.observe(rows[0]), self.clip)
        last, _ = jax.lax.scan(lambda moments, row: (moments.observe(row), None), self.moments, rows)
        return Scaler(last, self.clip)

    def apply(self, x: PyTree) -> Array:
        """Standardised inputs, of the shape of x; 0 if no spread is known."""
        rows = jnp.asarray(x, self.moments.values.dtype)
        if rows.ndim == 1:
            return self.moments.z(rows, self.clip)
        z: Array = jax.vmap(lambda row: self.moments.z(row, self.clip))(rows)
        return z
