"""Predictive distributions p(y | x, past): mean, var, sd, log_prob, quantile, sample, probs.

One output always gives scalars: the predictive of a model with C = 1 has a scalar `mean`, and with C > 1 a
`mean` (C,).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax

from credo.core.errors import CredoError, require_integer, require_representable
from credo.core.inputs import of_numbers
from credo.core.records import record
from credo.core.types import Array, ArrayLike, PyTree
from credo.core.verbs import verb
from credo.linalg.matrices import safe_sqrt

__all__ = ["Predictive", "PredictiveRows"]


FIELDS = {"log_prob": "y", "cdf": "y", "quantile": "p"}
"""The argument of each member that takes a number, which it refuses if no array can hold it."""


class Predictive:
    """The base of all predictive distributions p(y | x, past), one of which every `forecast` returns.

    With one output every answer is a scalar; with C outputs it has the shape (C,). A subclass writes what its
    learner is asked for; whatever it does not write is refused in a sentence.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> learner = credo.extended_kalman(credo.Model(lambda w, x: x @ w, credo.Normal(0.25)))
        >>> predictive = learner.forecast(learner.init(jnp.zeros(1)), jnp.ones(1))
        >>> float(predictive.mean), float(predictive.var)
        (0.0, 1.25)
    """

    def __init_subclass__(cls, **words: Any) -> None:
        super().__init_subclass__(**words)
        for name, field in FIELDS.items():
            if name in cls.__dict__:
                setattr(cls, name, of_numbers(cls.__dict__[name], field))
        if "sample" in cls.__dict__:
            cls.sample = _of_whole_numbers(cls.__dict__["sample"])  # type: ignore[method-assign]

    @property
    def discrete(self) -> bool:
        """Whether y takes whole-number values."""
        return False

    @property
    def mean(self) -> Array:
        """E[y]: a scalar for one output, else (C,).

        Raises:
            CredoError: the distribution has no mean of its own; so for all members below.
        """
        raise self._missing("mean")

    @property
    def var(self) -> Array:
        """Var[y] of each output: a scalar for one output, else (C,)."""
        raise self._missing("var")

    @property
    def sd(self) -> Array:
        """The standard deviation of each output."""
        return safe_sqrt(self.var)

    @property
    def probs(self) -> Array:
        """The class probabilities (C,) of a classifier; for `Bernoulli`, those of 0 and of 1.

        Raises:
            CredoError: y is a number, not a class.
        """
        raise CredoError("probs is for classifiers; this predictive is of a number: use mean, var, quantile.")

    def log_prob(self, y: PyTree) -> Array:
        """log p(y), a scalar."""
        raise self._missing("log_prob(y)")

    def has_log_prob(self, y: PyTree) -> Array | None:
        """Whether log p(y) is finite, a boolean; None if log p(y) itself must say so."""
        return None

    def sample(self, key: Array, shape: tuple[int, ...] = ()) -> Array:
        """Draws of y with leading axes `shape`."""
        raise self._missing("sample(key, shape)")

    def cdf(self, y: PyTree) -> Array:
        """P(Y <= y), for each output."""
        raise self._missing("cdf(y)")

    def quantile(self, p: ArrayLike) -> Array:
        """The smallest y with P(Y <= y) >= p.

        Arguments:
            p: probabilities, of any shape.

        Returns:
            The quantiles, with the shape of p, followed by (C,) if there are several outputs.

        Raises:
            CredoError: y has no quantiles, as where several outputs are not normal.
        """
        raise self._missing("quantile(p)")

    def heavier(self, df: Array) -> Predictive:
        """The forecast with at most `df` degrees of freedom, above 2, and the same mean and variance.

        Normal and Student-t forecasts and mixtures of them have one. Heavier tails stay as they are.
        """
        raise self._missing("heavier(df)")

    def sharper(self, factor: Array) -> Predictive:
        """The forecast of classes for outputs that are multiplied by a factor, above 0.

        Forecasts of classes by outputs have one, and mixtures of them.
        """
        raise self._missing("sharper(factor)")

    def _missing(self, member: str) -> CredoError:
        """The refusal of a member that the subclass does not write."""
        name = type(self).__name__
        return CredoError(f"the predictive distribution {name} has no {member}; write this member in {name}.")

    def interval(self, level: float = 0.9) -> tuple[Array, Array]:
        """The central interval that holds y with probability `level`.

        Arguments:
            level: a probability, above 0 and below 1.

        Returns:
            The lower and the upper end of the interval.

        Raises:
            CredoError: y has no quantiles, as where several outputs are not normal.
        """
        require_representable("level", level)
        return self.quantile(0.5 - level / 2), self.quantile(0.5 + level / 2)


def _of_whole_numbers(sample: Callable[..., Array]) -> Callable[..., Array]:
    """`sample`, which refuses a shape that is none."""

    @functools.wraps(sample)
    def checked(self: Any, key: Array, shape: tuple[int, ...] = ()) -> Array:
        if not isinstance(shape, tuple | list):
            raise CredoError.must_be("shape", "a tuple of whole numbers", shape)
        for size in shape:
            require_integer("shape", size, 0)
        return sample(self, key, shape)

    return checked


@record
class PredictiveRows(Predictive):
    """The predictives of N rows, as `forecast_rows` returns them. Every answer has a leading axis N.

    Attributes:
        rows: a predictive whose arrays have a leading axis N.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> learner = credo.extended_kalman(credo.Model(lambda w, x: x @ w, credo.Normal(0.25)))
        >>> learner.forecast_rows(learner.init(jnp.zeros(1)), jnp.ones((3, 1))).mean.shape
        (3,)
    """

    rows: Predictive

    @property
    def mean(self) -> Array:
        """E[y] of each row, (N, ...)."""
        values: Array = jax.vmap(lambda row: row.mean)(self.rows)
        return values

    @property
    def var(self) -> Array:
        """Var[y] of each row, (N, ...)."""
        values: Array = jax.vmap(lambda row: row.var)(self.rows)
        return values

    @property
    def probs(self) -> Array:
        """The class probabilities of each row, (N, C)."""
        values: Array = jax.vmap(lambda row: row.probs)(self.rows)
        return values

    def log_prob(self, y: PyTree) -> Array:
        """log p(y_n) of each row, (N,)."""
        values: Array = jax.vmap(lambda row, value: row.log_prob(value))(self.rows, y)
        return values

    def sample(self, key: Array, shape: tuple[int, ...] = ()) -> Array:
        """Draws for each row, (N, *shape, ...)."""
        keys = jax.random.split(key, jax.tree.leaves(self.rows)[0].shape[0])
        values: Array = jax.vmap(lambda row, one: row.sample(one, shape))(self.rows, keys)
        return values

    def cdf(self, y: PyTree) -> Array:
        """P(Y_n <= y_n) of each row."""
        values: Array = jax.vmap(lambda row, value: row.cdf(value))(self.rows, y)
        return values

    def heavier(self, df: Array) -> PredictiveRows:
        """The rows with heavier tails."""
        return PredictiveRows(jax.vmap(lambda row: row.heavier(df))(self.rows))

    def sharper(self, factor: Array) -> PredictiveRows:
        """The rows, sharper."""
        return PredictiveRows(jax.vmap(lambda row: row.sharper(factor))(self.rows))

    @verb
    def quantile(self, p: ArrayLike) -> Array:
        """The quantiles of each row: (N,) and then the shape of p."""
        values: Array = jax.vmap(lambda row: row.quantile(p))(self.rows)
        return values
