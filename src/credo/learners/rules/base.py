"""The protocol of rules: how far to go, given curvatures and a covariance family."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, TypeAlias

from credo.core.records import record
from credo.core.types import Array
from credo.covariances import Covariance, Readable
from credo.learners.curvatures import Local

__all__ = ["Measure", "Rule", "Step"]

Measure: TypeAlias = Callable[[Array, Readable, Array | int], Local]
"""Measures the (weighted) local model at a belief (mean, cov), in the given inner iteration."""


@record
class Step:
    """What a rule made of an observation.

    Attributes:
        mean, cov: the new mean (P,) and covariance.
        local: the first local model, at the prior.
        inner: J S0 J' (k, k) of its rows.
    """

    mean: Array
    cov: Covariance
    local: Local
    inner: Array


class Rule(ABC):
    """From a prior N(mean, cov) and a way to measure, the new mean and covariance.

    To add a rule, write a record with `update`. It needs of a family only the roles of its covariance
    (`credo.covariances`), and of a curvature only a `Local` model, so it works with all of them.

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
    """The share of a low-rank prior's precision that starts in random directions; above 0 for rules to which
    W = 0 is a stationary point."""

    @abstractmethod
    def update(self, mean: Array, cov: Covariance, measure: Measure, t: Array) -> Step:
        """One measurement update.

        Arguments:
            mean, cov: the prior of this step.
            measure: what is seen of the observation.
            t: the belief's time, for schedules.

        Returns:
            The new mean and covariance, with the first local model for the evidence.
        """
