"""The protocol of rules: how far to go, learning rates, and how a step stays positive definite.

A step in a precision or covariance changes a positive matrix M to M^1/2 (I + X) M^1/2. Where X has an
eigenvalue below -1, the result is no covariance. The safe retraction replaces 1 + x by 1 + x + x^2 / 2 for
x < 0, which is never below 1/2 and agrees with the step to first order. On whole matrices the same is
M + D + D inv(M) D / 2 (Lin, Schmidt & Khan 2020, arXiv 2002.10060, for the natural gradient).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, Literal, TypeAlias, get_args

import jax.numpy as jnp

from credo.core.errors import require_interval, require_positive
from credo.core.records import record, static_field
from credo.core.types import Array, ArrayLike, DTypeLike
from credo.covariances import Covariance, Readable
from credo.learners.curvatures import Local
from credo.linalg.matrices import eigh, symmetric

__all__ = [
    "RETRACTIONS",
    "Measure",
    "Rate",
    "Retraction",
    "Rule",
    "Schedule",
    "Step",
    "as_rate",
    "grown_root",
    "rate_at",
    "retract",
    "retract_matrix",
]

Retraction: TypeAlias = Literal["safe", "exact"]
"""The way in which a step stays positive definite."""

RETRACTIONS: tuple[Retraction, ...] = get_args(Retraction)
"""All retractions."""


def retract(change: Array, retraction: Retraction) -> Array:
    """The factor in place of 1 + x, elementwise; NaN if an exact step leaves the positive numbers."""
    if retraction == "exact":
        return jnp.where(change > -1.0, 1.0 + change, jnp.nan)
    return 1.0 + change + jnp.where(change < 0, 0.5 * change**2, 0.0)


def retract_matrix(change: Array, retraction: Retraction) -> tuple[Array, Array]:
    """The eigenvalues (n,), retracted, and eigenvectors (n, n) of I + X for a symmetric X (n, n)."""
    values, vectors = eigh(symmetric(change))
    return retract(values, retraction), vectors


def grown_root(root: Array, change: Array, retraction: Retraction) -> Array:
    """A root of W (I + X) W'."""
    values, turn = retract_matrix(change, retraction)
    return (root @ turn) * jnp.sqrt(values)[None, :]


@record
class Schedule:
    """A learning rate that changes along the stream.

    Arguments:
        function: a function from the number of the step (0 at the first observation) to the rate, such as an
            optax schedule. Compiled code is kept per function, so make it only once.

    Example:
        >>> float(Schedule(lambda t: 0.5 / (1 + t))(jnp.asarray(1)))
        0.25
    """

    function: Callable[[Array], ArrayLike] = static_field()

    def __call__(self, t: Array) -> ArrayLike:
        """The rate at step t."""
        return self.function(t)


Rate: TypeAlias = ArrayLike | Schedule | Callable[[Array], ArrayLike]
"""A learning rate: a number, or a schedule over the steps of the stream."""


def as_rate(field: str, value: Rate, high: float | None = None) -> ArrayLike | Schedule:
    """The rate as a number above 0 (and at most `high`), or as a schedule made from a function."""
    if callable(value):
        if isinstance(value, Schedule):
            return value
        return Schedule(value)
    require_positive(field, value)
    if high is not None:
        require_interval(field, value, 0.0, high)
    return value


def rate_at(rate: Rate, t: Array, dtype: DTypeLike, high: float | None = None) -> Array:
    """The rate at the belief's time t (1 at the first observation), as a scalar of this dtype.

    With `high`, a rate outside [0, high], of a schedule or traced, becomes NaN, and the update is rejected.
    """
    value = rate(jnp.maximum(t - 1, 0)) if callable(rate) else rate
    scalar = jnp.asarray(value).astype(dtype)
    if high is None:
        return scalar
    return jnp.where((scalar >= 0) & (scalar <= high), scalar, jnp.nan)


Measure: TypeAlias = Callable[[Array, Readable, Array | int], Local]
"""Measures the (weighted) local model at a belief (mean, cov), in the given inner iteration."""


@record
class Step:
    """The result of a rule's update with one observation.

    Attributes:
        mean, cov: the new mean (P,) and covariance.
        local: the first local model, at the prior.
        inner: J S0 J' (k, k), for the rows J of that local model and the prior covariance S0.
        vouched: whether the mean is NaN wherever the covariance is not finite; see `Updatable.vouches`.

    Example:
        A step that leaves the prior as it was:

        >>> import jax.numpy as jnp
        >>> from credo.covariances import Full
        >>> from credo.learners import Local, Step
        >>> cov, one = Full().init(jnp.ones(2)), jnp.ones(1)
        >>> local = Local(jnp.asarray([[1.0, 2.0]]), 0.5 * one, one, one)
        >>> Step(jnp.zeros(2), cov, local, cov.push(local.rows)).inner.tolist()
        [[5.0]]
    """

    mean: Array
    cov: Covariance
    local: Local
    inner: Array
    vouched: bool = static_field(default=False)


class Rule(ABC):
    """The map from a prior N(mean, cov) and measurements at an observation to a new mean and covariance.

    To add a rule, write a record with `update`. A rule relies only on the roles of a covariance
    (`credo.covariances`) and on the `Local` model of a curvature, so it works with every family and every
    curvature.

    Example:
        A rule that takes in half of what an observation says:

        >>> import credo, jax.numpy as jnp
        >>> from credo.learners import Rule, Step
        >>> @credo.record
        ... class Cautious(Rule):
        ...     trust: float = 0.5
        ...
        ...     def update(self, mean, cov, measure, t):
        ...         local = measure(mean, cov, 0)
        ...         part = local.weighted(jnp.asarray(self.trust, mean.dtype))
        ...         shift, new_cov = cov.absorb(part.rows, part.residual, part.root)
        ...         return Step(mean + shift, new_cov, local, cov.push(local.rows))
        >>> model = credo.Model(lambda w, x: x @ w, credo.Normal(0.1))
        >>> learner = credo.RecursiveLearner(model, credo.Full(), rule=Cautious(0.25))
        >>> belief, info = learner.step(learner.init(jnp.zeros(2)), jnp.ones(2), 1.0)
        >>> [round(value, 3) for value in belief.mean.tolist()]
        [0.417, 0.417]
    """

    random_start: ClassVar[float] = 0.0
    """The share of a low-rank prior's precision that starts in random directions.

    It is above 0 for rules that have a stationary point at W = 0."""

    @abstractmethod
    def update(self, mean: Array, cov: Covariance, measure: Measure, t: Array) -> Step:
        """One measurement update.

        Arguments:
            mean, cov: the prior of this step.
            measure: measures the observation at a belief; see `Measure`.
            t: the time of the belief, for schedules.

        Returns:
            The new mean and covariance, with the first local model for the evidence.
        """
