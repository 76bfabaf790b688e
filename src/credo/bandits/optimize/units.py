"""The units in which a learner sees values: standardised, and bent where values reach far to the bad side."""

from __future__ import annotations

import jax.numpy as jnp

from credo.core.records import record, static_field
from credo.core.types import Array, ArrayLike

__all__ = ["Units"]


@record
class Units:
    """The units in which a learner sees values: (value - mean) / sd, of the values so far.

    If values are bent, the distance from the best one is bent first,

        u = bend log(1 + sign (best - value) / bend),   seen = -sign (u - mean) / sd,

    which is nearly the distance itself where `bend` is large beside it, and a logarithm if it is small, so
    that values that are bad by far do not hide the differences between good ones. Source: Snelson, Rasmussen
    & Ghahramani 2004, "Warped Gaussian processes", with this bend.

    Attributes:
        mean, sd: the mean and standard deviation of values, or of u; sd is 1 if there is no spread yet.
        best: the best value; None if values are not bent.
        bend: the distance at which values begin to be bent, above 0.
        sign: 1 if large values are good, else -1.

    Example:
        >>> units = Units(jnp.asarray(2.0), jnp.asarray(4.0))
        >>> float(units.into(6.0)), float(units.back(1.0))
        (1.0, 6.0)
        >>> bent = Units(jnp.asarray(0.0), jnp.asarray(1.0), jnp.asarray(3.0), jnp.asarray(1.0), sign=-1.0)
        >>> round(float(bent.into(103.0)), 2), round(float(bent.back(bent.into(7.0))), 5)
        (4.62, 7.0)
    """

    mean: Array
    sd: Array
    best: Array | None = None
    bend: Array | None = None
    sign: float = static_field(default=1.0)

    def into(self, value: ArrayLike) -> Array:
        """A value in these units; values better than the best by nearly the bend or more are cut there."""
        number = jnp.asarray(value, self.mean.dtype)
        if self.best is None or self.bend is None:
            return (number - self.mean) / self.sd
        far = jnp.maximum(self.sign * (self.best - number) / self.bend, -0.999)
        return -self.sign * (self.bend * jnp.log1p(far) - self.mean) / self.sd

    def back(self, value: ArrayLike) -> Array:
        """A value in these units, in units of the function."""
        number = jnp.asarray(value, self.mean.dtype)
        if self.best is None or self.bend is None:
            return self.mean + self.sd * number
        far = jnp.expm1((self.mean - self.sign * self.sd * number) / self.bend)
        return self.best - self.sign * self.bend * far

    def moments(self, mean: Array, sd: Array) -> tuple[Array, Array]:
        """The mean and standard deviation of values that are normal in these units, in those of the function.

        Exact: a bent value is log-normal, but for its sign and place.
        """
        if self.best is None or self.bend is None:
            return self.back(mean), self.sd * sd
        width = self.sd * sd / self.bend
        centre = (self.mean - self.sign * self.sd * mean) / self.bend + 0.5 * width**2
        value = self.best - self.sign * self.bend * jnp.expm1(centre)
        return value, self.bend * jnp.exp(centre) * jnp.sqrt(jnp.expm1(width**2))
