"""The trials of a search: which points were tried, and what came out.

A learner sees values in units: standardised, and bent where values reach far to the bad side.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from credo.core.records import record, replace, static_field
from credo.core.types import Array, ArrayLike

__all__ = ["Trials", "Units"]


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


@record
class Trials:
    """The record of some trials: the state of a search, of a fixed size.

    Attributes:
        rows: the points that were tried, encoded (N, D); the first `count` rows count.
        values: their values (N,).
        count: how many there are.
        asked: how many points were asked for.
        key: the key from which all draws come.
        believed: how many of the last ones were not told: a search that is fitted has them come out as they
            are expected to, whatever their values are.

    Example:
        >>> trials = Trials.start(0, 2, 1).tell(jnp.zeros(1), 3.0)
        >>> int(trials.count), float(trials.units().mean)
        (1, 3.0)
    """

    rows: Array
    values: Array
    count: Array
    asked: Array
    key: Array
    believed: Array

    @staticmethod
    def start(key: Array, capacity: int, size: int) -> Trials:
        """No trials yet, with room for some."""
        kind = jnp.result_type(float)
        none = jnp.zeros((), jnp.int32)
        return Trials(jnp.zeros((capacity, size), kind), jnp.zeros(capacity, kind), none, none, key, none)

    @property
    def capacity(self) -> int:
        """The number N of trials for which there is room."""
        return self.values.shape[0]

    @property
    def numbers(self) -> Array:
        """The places 0 to N - 1."""
        return jnp.arange(self.capacity, dtype=jnp.int32)

    def tell(self, row: Array, value: ArrayLike) -> Trials:
        """The trials with one more; a value that is not finite, or one without room, changes nothing."""
        number = jnp.asarray(value, self.values.dtype)
        good = jnp.isfinite(number) & jnp.all(jnp.isfinite(row)) & (self.count < self.capacity)
        here = (self.numbers == self.count) & good
        return replace(
            self,
            rows=jnp.where(here[:, None], row[None, :].astype(self.rows.dtype), self.rows),
            values=jnp.where(here, number, self.values),
            count=self.count + good.astype(jnp.int32),
        )

    def units(self) -> Units:
        """The units of the values so far, by Welford's sums, which do not depend on the room that is left."""

        def add(carry: tuple[Array, Array], item: tuple[Array, Array]) -> tuple[tuple[Array, Array], None]:
            mean, squares = carry
            number, value = item
            gap = value - mean
            later = mean + gap / (number + 1).astype(mean.dtype)
            told = number < self.count
            new = jnp.where(told, later, mean), jnp.where(told, squares + gap * (value - later), squares)
            return new, None

        zero = jnp.zeros((), self.values.dtype)
        (mean, squares), _ = jax.lax.scan(add, (zero, zero), (self.numbers, self.values))
        var = squares / jnp.maximum(self.count.astype(zero.dtype), 1.0)
        spread = var > (1e-6 * jnp.abs(mean)) ** 2  # less than that is rounding
        return Units(mean, jnp.sqrt(jnp.where(spread, var, 1.0)))

    def scores(self, sign: float) -> Array:
        """The values (N,) times the sign, -inf if there is no trial."""
        return jnp.where(self.numbers < self.count, sign * self.values, -jnp.inf)

    def best(self, how_many: int, sign: float) -> Array:
        """The rows of the best trials, best first (M, D); if there are fewer, the best one again."""
        places = jnp.argsort(-self.scores(sign), stable=True)[: min(how_many, self.capacity)]
        good = self.numbers[: places.shape[0]] < self.count
        return self.rows[jnp.where(good, places, places[0])]
