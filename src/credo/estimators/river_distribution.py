"""The forecast of a number as a distribution of River's."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable

import jax
import jax.numpy as jnp
from river import proba

from credo.core.errors import CredoError
from credo.core.types import ArrayLike
from credo.likelihoods import Predictive

__all__ = ["RiverForecast"]


class RiverForecast(proba.base.ContinuousDistribution):
    """What `RiverRegressor.predict_one(x, with_dist=True)` returns: the distribution of the target.

    Arguments:
        answer: the forecast of the target less the origin, its mean and its sd, asked for once at most.
        origin: what is added to it.
        n_samples: how many rows it was learned from.
        seed: the seed of `sample`.

    Example:
        >>> import credo
        >>> law = credo.Normal(4.0).plugin(jnp.ones(1))
        >>> forecast = RiverForecast(lambda: (law, 1.0, 2.0), origin=10.0, n_samples=3)
        >>> forecast.mean, forecast.sd, [round(end, 2) for end in forecast.interval(0.9)]
        (11.0, 2.0, [7.71, 14.29])
        >>> round(forecast.cdf(11.0), 2), round(forecast(11.0), 3)
        (0.5, 0.199)
    """

    def __init__(
        self,
        answer: Callable[[], tuple[Predictive, float, float]],
        origin: float,
        n_samples: int,
        seed: int | None = None,
    ) -> None:
        # River's own constructor seeds a generator, which costs more than the forecast
        self.seed, self.origin = seed, origin
        self._ask, self._count = answer, n_samples

    @functools.cached_property
    def _answer(self) -> tuple[Predictive, float, float]:
        return self._ask()

    @functools.cached_property
    def _rng(self) -> random.Random:  # type: ignore[override]
        return random.Random(self.seed)

    @functools.cached_property
    def predictive(self) -> Predictive:
        """The forecast of the target less the origin, with arrays for its numbers."""
        arrays: Predictive = jax.tree.map(_array, self._answer[0])
        return arrays

    @property
    def mean(self) -> float:
        """The expected target."""
        return self._answer[1] + self.origin

    @property
    def sd(self) -> float:
        """The standard deviation."""
        return self._answer[2]

    mu, sigma = mean, sd
    """The mean and the standard deviation, by the names that River's normal distribution has for them."""

    @property
    def mode(self) -> float:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The median, which is the mode of a symmetric forecast."""
        return self.quantile(0.5)

    @property
    def n_samples(self) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        """How many rows the forecast was learned from."""
        return self._count

    def __call__(self, x: float) -> float:
        """The density at x."""
        return float(jnp.exp(self.predictive.log_prob(self._inside(x))))

    def log_prob(self, x: float) -> float:
        """The log density at x, in nats."""
        return float(self.predictive.log_prob(self._inside(x)))

    def cdf(self, x: float) -> float:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The probability of at most x."""
        return float(self.predictive.cdf(self._inside(x)))

    def quantile(self, p: float) -> float:
        """The smallest target with a probability of at least p below it."""
        return float(self.predictive.quantile(p)) + self.origin

    def interval(self, coverage: float = 0.9) -> tuple[float, float]:
        """The central interval that holds the target with probability `coverage`.

        Raises:
            CredoError: `coverage` is not above 0 and below 1.
        """
        if not 0.0 < coverage < 1.0:
            raise CredoError(f"coverage must be above 0 and below 1; got {coverage!r}.", field="coverage")
        low, high = self.predictive.interval(coverage)
        return float(low) + self.origin, float(high) + self.origin

    def sample(self) -> float:  # pyright: ignore[reportIncompatibleMethodOverride]
        """A draw."""
        key = jax.random.key(self._rng.getrandbits(31))
        return float(self.predictive.sample(key)) + self.origin

    def update(self, x: float) -> None:
        """Refuse: a forecast does not learn."""
        raise NotImplementedError("a forecast does not learn; the regressor does.")

    revert = update

    def _inside(self, x: float) -> jax.Array:
        return jnp.asarray(x - self.origin, jnp.float32)

    def __str__(self) -> str:
        return f"mean={self.mean:.6g}, sd={self.sd:.3g}"

    def __repr__(self) -> str:
        return f"RiverForecast({self})"


def _array(leaf: ArrayLike) -> jax.Array:
    return jnp.asarray(leaf, jnp.float32) if isinstance(leaf, float) else jnp.asarray(leaf)
