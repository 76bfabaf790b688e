"""Optimism: the arm with the largest upper bound of its expected reward."""

from __future__ import annotations

import jax.numpy as jnp

from credo.bandits.policies.base import Policy, share_ties
from credo.core.errors import CredoError, require_integer, require_nonnegative, require_positive
from credo.core.records import record, static_field
from credo.core.types import Array, ArrayLike
from credo.likelihoods import Expectation

__all__ = ["UCB", "BayesUCB"]


@record
class UCB(Policy):
    """Choose the arm with the largest mean + width sd of its expected reward; arms that tie share equally.

    Source: Auer 2002, JMLR 3; Li et al. 2010, WWW ("LinUCB").

    Arguments:
        width: how many standard deviations are added, at least 0.
        floor: the least probability of an allowed arm, in [0, 1].

    Raises:
        CredoError: `width` is below 0, or `floor` is outside [0, 1].

    Example:
        >>> import credo, jax.numpy as jnp
        >>> from credo.likelihoods import LatentExpectation
        >>> cov = jnp.diag(jnp.array([4.0, 1.0]))
        >>> law = LatentExpectation(credo.Normal(1.0), jnp.array([[0.0], [1.0]]), cov)
        >>> UCB(0.5).pmf(law).tolist(), UCB(1.5).pmf(law).tolist()
        ([0.0, 1.0], [1.0, 0.0])
    """

    width: ArrayLike = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require_nonnegative("width", self.width)

    def probabilities(self, expectation: Expectation, allowed: Array, t: Array, key: Array) -> Array:
        """All on the largest bound."""
        mean = expectation.mean
        return share_ties(mean + jnp.asarray(self.width, mean.dtype) * expectation.sd, allowed)


@record
class BayesUCB(Policy):
    """Choose the arm with the largest quantile 1 - 1 / ((t + 1) log(horizon)^exponent); ties share equally.

    Source: Kaufmann, Cappe & Garivier 2012, AISTATS. Their analysis of Bernoulli arms needs an exponent of at
    least 5; they recommend 0 in practice.

    Arguments:
        exponent: the power of log(horizon), at least 0.
        horizon: how many decisions are planned, above 1; it matters where `exponent` is above 0.
        draws: how many joint draws give the quantiles of a reward that depends on several outputs.
        floor: the least probability of an allowed arm, in [0, 1].

    Raises:
        CredoError: a number is outside its range.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> from credo.likelihoods import LatentExpectation
        >>> cov = jnp.diag(jnp.array([4.0, 1.0]))
        >>> law = LatentExpectation(credo.Normal(1.0), jnp.array([[0.0], [1.0]]), cov)
        >>> BayesUCB().pmf(law, t=1).tolist(), BayesUCB().pmf(law, t=100).tolist()
        ([0.0, 1.0], [1.0, 0.0])
    """

    exponent: ArrayLike = 0.0
    horizon: ArrayLike = 10_000.0
    draws: int = static_field(default=256)

    def __post_init__(self) -> None:
        super().__post_init__()
        require_nonnegative("exponent", self.exponent)
        require_positive("horizon", self.horizon)
        require_integer("draws", self.draws, 1)

    def probabilities(self, expectation: Expectation, allowed: Array, t: Array, key: Array) -> Array:
        """All on the largest quantile."""
        mean = expectation.mean
        log_horizon = jnp.log(jnp.maximum(jnp.asarray(self.horizon, mean.dtype), 2.7182818))
        times = (t.astype(mean.dtype) + 1.0) * log_horizon ** jnp.asarray(self.exponent, mean.dtype)
        level = 1.0 - 1.0 / jnp.maximum(times, 1.0 + 1e-6)
        try:
            bound = expectation.quantile(level)
        except CredoError:  # no distribution function where a reward depends on several outputs
            bound = jnp.quantile(expectation.sample(key, (self.draws,)), level, axis=0)
        return share_ties(bound, allowed)
