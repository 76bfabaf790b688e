"""Thompson sampling: each arm with the probability that it is the best."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from credo.bandits.policies.base import Policy
from credo.core.records import record, static_field
from credo.core.types import Array
from credo.likelihoods import Expectation

__all__ = ["Thompson"]


@record
class Thompson(Policy):
    """Thompson sampling (Thompson 1933): an arm is chosen with the probability that it is the best.

    Arguments:
        floor: see `Policy`.
        draws: how many joint draws of the expected rewards make the probabilities.
    """

    draws: int = static_field(default=100)

    def probabilities(self, expectation: Expectation, allowed: Array, t: Array, key: Array) -> Array:
        draws = jnp.where(allowed[None, :], expectation.sample(key, (self.draws,)), -jnp.inf)
        return jnp.mean(jax.nn.one_hot(jnp.argmax(draws, axis=1), draws.shape[1], dtype=draws.dtype), axis=0)
