"""A regressor for River."""

from __future__ import annotations

import functools
import math
import numbers
import random
from collections.abc import Callable, Mapping
from typing import Any, Literal, Unpack, overload

import jax
import jax.numpy as jnp
import numpy as np
from river import base, proba

from credo.core.errors import CredoError, shown
from credo.core.locked_calls import in_turn
from credo.core.types import ArrayLike
from credo.estimators.parameters import spelled_out
from credo.estimators.river_base import (
    Frame,
    RiverEstimator,
    Row,
    columns_of,
    like_frame,
    observations,
    weight_of,
)
from credo.likelihoods import Normal, Predictive
from credo.live.feature_values import origin_of
from credo.recipes.language import Network
from credo.recipes.options import NumberWords
from credo.tables.cells import LARGEST_TARGET

__all__ = ["RiverRegressor"]


class RiverForecast(proba.base.ContinuousDistribution):
    """The distribution of the target, as `RiverRegressor.predict_one(x, with_dist=True)` returns it.

    Arguments:
        answer: the forecast of the target less the origin, its mean and its sd, asked for once at most.
        origin: what is added to it.
        n_samples: how many rows it was learned from.
        seed: the seed of `sample`.

    Example:
        >>> import credo
        >>> distribution = credo.Normal(4.0).plugin(jnp.ones(1))
        >>> forecast = RiverForecast(lambda: (distribution, 1.0, 2.0), origin=10.0, n_samples=3)
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
        self.seed = seed
        self.origin = origin
        self._ask = answer
        self._count = n_samples

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

    mu = mean
    sigma = sd
    """The mean and the standard deviation, by the names that River's normal distribution has for them."""

    @property
    def mode(self) -> float:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The median, which is the mode of a symmetric forecast."""
        return self.quantile(0.5)

    @property
    def n_samples(self) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The number of rows that the forecast was learned from."""
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
    if isinstance(leaf, float):
        return jnp.asarray(leaf, jnp.float32)
    return jnp.asarray(leaf)


class RiverRegressor(RiverEstimator, base.MiniBatchRegressor):
    """A regressor that River can use: credo's learners behind `learn_one` and `predict_one`.

    Features may appear and vanish at any time, as for `RiverClassifier`. The target is standardised by the
    targets before it, too; the first ten, which say in which units it is, are learned once all have come.

    Arguments:
        model, posterior, method, curvature, drift, prior_var, noise_var: as for `credo learn`; see
            `credo.sessions.Options`. By default a bank of learners.
        learning_rate, iterations, seed, budget: as for `credo learn`, too.
        scale: whether numbers are standardised; False behind a scaler of River's own.

    Raises:
        CredoError: (with the first row) a setting is unknown or out of its range, or two do not fit together.

    Cost: as for `RiverClassifier`.

    Example:
        >>> import credo
        >>> model = credo.RiverRegressor("linear")
        >>> for a in range(200):
        ...     model.learn_one({"a": float(a % 7)}, 100.0 + 2.0 * (a % 7))
        >>> round(model.predict_one({"a": 3.0})), model.predict_one({"a": 3.0}, with_dist=True).sd < 2.0
        (106, True)
    """

    _task = "regression"

    @spelled_out(NumberWords)
    def __init__(
        self,
        model: Network | str | None = "auto",
        *,
        seed: int = 0,
        scale: bool = True,
        **options: Unpack[NumberWords],
    ) -> None:
        self._begin()
        self._origin: float | None = None
        """The first target, from which the others are counted, so that single precision can hold them."""
        self._target = np.zeros((), np.float32)

    @in_turn
    def learn_one(self, x: Row, y: float, w: float = 1.0) -> None:
        """Learn a row.

        Arguments:
            x: its features.
            y: its target.
            w: its weight; 0 leaves it out.

        Raises:
            CredoError: a value or the target cannot be used; nothing is changed.
        """
        target = target_of(y)
        weight = weight_of(w)
        if weight == 0.0:
            return self._leave_out(x)
        slots, live = self._ready(x, 0)
        row = slots.row(x)
        self._slots = slots
        self._live = live
        if self._origin is None:
            self._origin = origin_of(target)
        self._target[()] = target - self._origin
        live.step(row, self._target, weight)

    @overload
    def predict_one(self, x: Row, with_dist: Literal[False] = False) -> float: ...

    @overload
    def predict_one(self, x: Row, with_dist: Literal[True]) -> RiverForecast: ...

    @in_turn
    def predict_one(self, x: Row, with_dist: bool = False) -> float | RiverForecast:
        """The forecast of a row: its mean, 0 before the first row.

        Arguments:
            x: the features of a row; those that were never learned from are left out.
            with_dist: whether to return the whole distribution, before the first row a standard normal.

        Raises:
            CredoError: a feature holds something else than before.
        """
        row = self._slots.row(x)
        if self._live is None or self._origin is None:
            blank = RiverForecast(lambda: (Normal(1.0).plugin(jnp.zeros(1)), 0.0, 1.0), 0.0, 0)
            if with_dist:
                return blank
            return 0.0
        if with_dist:
            return RiverForecast(self._live.predictive(row), self._origin, self._live.rows)
        mean: float = self._live.forecast(row)
        return mean + self._origin

    @in_turn
    def learn_many(self, X: Frame, y: Any) -> None:
        """Learn the rows of a data frame in order, as `learn_one` does one by one.

        Arguments:
            X: their features.
            y: their targets, a series.

        Raises:
            CredoError: a value or a target cannot be used; nothing is changed.
        """
        columns = columns_of(X)
        targets = targets_of(observations(y, len(X)))
        if not len(targets):
            return
        slots, live = self._made_for(self._slots, self._slots.column_arrivals(columns), 0)
        rows = slots.rows(columns, len(targets))
        self._slots = slots
        self._live = live
        if self._origin is None:
            self._origin = origin_of(float(targets[0]))
        live.learn_rows(rows, (targets - self._origin).astype(np.float32))

    @in_turn
    def predict_many(self, X: Frame) -> Any:
        """The means of the forecasts for the rows of a data frame, a series."""
        columns = columns_of(X)
        rows = self._slots.rows(columns, len(X))
        if self._live is None or self._origin is None or not len(X):
            return like_frame(X, np.zeros(len(X)))
        return like_frame(X, self._live.forecast_rows(rows).astype(float) + self._origin)

    def _words(self, x: Row) -> str:
        if self._live is None:
            return "none yet"
        forecast = self.predict_one(x, with_dist=True)
        return f"{forecast.mean:.6g} ± {forecast.sd:.3g}"

    def _extras(self) -> dict[str, Any]:
        return {"origin": self._origin}

    def _take(self, extras: Mapping[str, Any]) -> None:
        self._origin = float(extras["origin"])


def target_of(y: object) -> float:
    """A target as a number; a CredoError if it is none, not finite, or too large."""
    if isinstance(y, numbers.Real | np.bool_):
        try:
            value = float(y)
        except OverflowError:
            value = math.inf
        if abs(value) <= LARGEST_TARGET:
            return value
    raise CredoError(f"y must be a finite number of at most {LARGEST_TARGET:g}; got {shown(y)}.", field="y")


def targets_of(values: np.ndarray) -> np.ndarray:
    """The targets of several rows (n,), float64, as `target_of` reads each."""
    if values.dtype.kind not in "fiub":
        return np.array([target_of(value) for value in values.tolist()], float)
    targets = values.astype(float)
    bad = ~(np.abs(targets) <= LARGEST_TARGET)
    if bad.any():
        target_of(values[int(np.argmax(bad))].item())
    return targets
