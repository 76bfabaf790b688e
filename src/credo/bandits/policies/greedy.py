"""Policies that look at means alone, or at nothing."""

from __future__ import annotations

import jax.numpy as jnp

from credo.bandits.policies.base import Policy, share_ties
from credo.core.errors import (
    CredoError,
    require_integer,
    require_interval,
    require_nonnegative,
    require_positive,
)
from credo.core.records import record, static_field
from credo.core.types import Array, ArrayLike
from credo.likelihoods import Expectation

__all__ = ["Boltzmann", "EpsilonGreedy", "Fixed", "Greedy", "SquareCB", "Uniform"]


@record
class Greedy(Policy):
    """Choose the arm with the largest mean; arms that tie share equally.

    Arguments:
        floor: the least probability of an allowed arm, in [0, 1].

    Raises:
        CredoError: `floor` is outside [0, 1].

    Example:
        >>> import credo, jax.numpy as jnp
        >>> from credo.likelihoods import LatentExpectation
        >>> distribution = LatentExpectation(credo.Normal(1.0), jnp.array([[0.0], [1.0]]), jnp.eye(2))
        >>> Greedy().pmf(distribution).tolist()
        [0.0, 1.0]
    """

    def probabilities(self, expectation: Expectation, allowed: Array, t: Array, key: Array) -> Array:
        """All on the largest mean."""
        return share_ties(expectation.mean, allowed)


@record
class EpsilonGreedy(Policy):
    """Choose any allowed arm with probability epsilon_t = epsilon (1 + t)^-decay, else the largest mean.

    Source: Sutton & Barto, section 2.2; with decay = 1, Auer, Cesa-Bianchi & Fischer 2002.

    Arguments:
        epsilon: the probability of exploration at t = 0, in [0, 1].
        decay: the power at which it falls, at least 0; 0 keeps it constant.
        floor: the least probability of an allowed arm, in [0, 1].

    Raises:
        CredoError: a number is outside its range.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> from credo.likelihoods import LatentExpectation
        >>> distribution = LatentExpectation(credo.Normal(1.0), jnp.array([[0.0], [1.0]]), jnp.eye(2))
        >>> EpsilonGreedy(0.5, decay=1.0).pmf(distribution, t=1).tolist()
        [0.125, 0.875]
    """

    epsilon: ArrayLike = 0.1
    decay: ArrayLike = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require_interval("epsilon", self.epsilon, 0.0, 1.0)
        require_nonnegative("decay", self.decay)

    def probabilities(self, expectation: Expectation, allowed: Array, t: Array, key: Array) -> Array:
        """A mixture of uniform and greedy."""
        best = share_ties(expectation.mean, allowed)
        fall = (1.0 + t.astype(best.dtype)) ** -jnp.asarray(self.decay, best.dtype)
        epsilon = jnp.asarray(self.epsilon, best.dtype) * fall
        count = jnp.maximum(jnp.sum(allowed), 1).astype(best.dtype)
        return (1.0 - epsilon) * best + epsilon * allowed.astype(best.dtype) / count


@record
class Boltzmann(Policy):
    """Choose each arm with probability proportional to exp(mean / temperature).

    Source: Sutton & Barto, section 2.8. It ignores how uncertain the means are.

    Arguments:
        temperature: in units of the reward, above 0.
        floor: the least probability of an allowed arm, in [0, 1].

    Raises:
        CredoError: `temperature` is not above 0, or `floor` is outside [0, 1].

    Example:
        >>> import credo, jax.numpy as jnp
        >>> from credo.likelihoods import LatentExpectation
        >>> distribution = LatentExpectation(credo.Normal(1.0), jnp.array([[0.0], [1.0]]), jnp.eye(2))
        >>> [round(p, 3) for p in Boltzmann(1.0).pmf(distribution).tolist()]
        [0.269, 0.731]
    """

    temperature: ArrayLike = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive("temperature", self.temperature)

    def probabilities(self, expectation: Expectation, allowed: Array, t: Array, key: Array) -> Array:
        """The soft maximum of the means."""
        mean = expectation.mean
        top = jnp.max(jnp.where(allowed, mean, -jnp.inf))
        gaps = jnp.where(allowed, mean - top, 0.0)
        return jnp.where(allowed, jnp.exp(gaps / jnp.asarray(self.temperature, mean.dtype)), 0.0)


@record
class Uniform(Policy):
    """Choose every allowed arm with the same probability.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> from credo.likelihoods import LatentExpectation
        >>> distribution = LatentExpectation(credo.Normal(1.0), jnp.array([[0.0], [1.0]]), jnp.eye(2))
        >>> Uniform().pmf(distribution).tolist()
        [0.5, 0.5]
    """

    def probabilities(self, expectation: Expectation, allowed: Array, t: Array, key: Array) -> Array:
        """The same for all."""
        return allowed.astype(expectation.mean.dtype)


@record
class Fixed(Policy):
    """Choose one arm always; if it is not allowed, any allowed arm with the same probability.

    Arguments:
        arm: the arm, from 0.
        floor: the least probability of an allowed arm, in [0, 1].

    Raises:
        CredoError: `arm` is below 0, or `floor` is outside [0, 1]; and in `pmf`, there is no such arm.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> from credo.likelihoods import LatentExpectation
        >>> distribution = LatentExpectation(credo.Normal(1.0), jnp.array([[0.0], [1.0]]), jnp.eye(2))
        >>> Fixed(0).pmf(distribution).tolist()
        [1.0, 0.0]
    """

    arm: int = static_field(default=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        require_integer("arm", self.arm, 0)

    def probabilities(self, expectation: Expectation, allowed: Array, t: Array, key: Array) -> Array:
        """All on the arm."""
        if self.arm >= expectation.size:
            raise CredoError(f"arm must be in 0..{expectation.size - 1}; got {self.arm}.", field="arm")
        return jnp.where(jnp.arange(expectation.size) == self.arm, 1.0, 0.0).astype(expectation.mean.dtype)


@record
class SquareCB(Policy):
    """Choose an arm with probability 1 / (A + gamma_t gap), and the arm with the largest mean otherwise.

    gamma_t = gamma (1 + t)^exponent, the gap is that to the largest mean, and A arms are allowed. Source:
    Abe & Long 1999, ICML; Foster & Rakhlin 2020, ICML, whose regret bound holds for any regression with few
    squared errors. Only means matter.

    Arguments:
        gamma: how fast probabilities fall with the gap, per unit of reward, at least 0.
        exponent: the power of t with which gamma grows, at least 0; the bound asks for 1/2.
        floor: the least probability of an allowed arm, in [0, 1].

    Raises:
        CredoError: a number is outside its range.

    Example:
        >>> import credo, jax.numpy as jnp
        >>> from credo.likelihoods import LatentExpectation
        >>> distribution = LatentExpectation(credo.Normal(1.0), jnp.array([[0.0], [1.0]]), jnp.eye(2))
        >>> for t in (0, 8):
        ...     print([round(p, 3) for p in SquareCB(8.0).pmf(distribution, t=t).tolist()])
        [0.1, 0.9]
        [0.038, 0.962]
    """

    gamma: ArrayLike = 10.0
    exponent: ArrayLike = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        require_nonnegative("gamma", self.gamma)
        require_nonnegative("exponent", self.exponent)

    def probabilities(self, expectation: Expectation, allowed: Array, t: Array, key: Array) -> Array:
        """Inverse-gap weights; arms that tie for the largest mean share what is left."""
        mean = expectation.mean
        gap = jnp.where(allowed, jnp.max(jnp.where(allowed, mean, -jnp.inf)) - mean, jnp.inf)
        gamma = jnp.asarray(self.gamma, mean.dtype) * (1.0 + t.astype(mean.dtype)) ** jnp.asarray(
            self.exponent, mean.dtype
        )
        count = jnp.maximum(jnp.sum(allowed), 1).astype(mean.dtype)
        best = gap == 0
        others = jnp.where(best | ~allowed, 0.0, 1.0 / (count + gamma * jnp.where(allowed, gap, 0.0)))
        rest = (1.0 - jnp.sum(others)) / jnp.maximum(jnp.sum(best), 1).astype(mean.dtype)
        return jnp.where(best, rest, others)
