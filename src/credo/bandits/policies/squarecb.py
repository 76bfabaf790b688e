"""Inverse-gap weighting: the smaller the mean, the rarer the arm."""

from __future__ import annotations

import jax.numpy as jnp

from credo.bandits.policies.base import Policy
from credo.core.errors import require_nonnegative
from credo.core.records import record
from credo.core.types import Array, ArrayLike
from credo.likelihoods import Expectation

__all__ = ["SquareCB"]


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
        >>> law = LatentExpectation(credo.Normal(1.0), jnp.array([[0.0], [1.0]]), jnp.eye(2))
        >>> for t in (0, 8):
        ...     print([round(p, 3) for p in SquareCB(8.0).pmf(law, t=t).tolist()])
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
