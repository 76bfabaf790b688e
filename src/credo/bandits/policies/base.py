"""What a policy is."""

from __future__ import annotations

from abc import abstractmethod

import jax.numpy as jnp

from credo.core.records import record
from credo.core.trees import as_like
from credo.core.types import Array, ArrayLike
from credo.likelihoods import Expectation

__all__ = ["Policy"]


@record
class Policy:
    """The base of every policy.

    Arguments:
        floor: the least probability of an allowed arm; times the number of allowed arms it is at most 1.
    """

    floor: ArrayLike = 0.0

    def pmf(self, expectation: Expectation, allowed: Array, t: Array, key: Array) -> Array:
        """The probability of every arm (K,), which sums to 1 and is 0 for arms that are not allowed.

        Arguments:
            expectation: what is believed about the expected rewards.
            allowed: which arms may be chosen (K,).
            t: how many steps have passed.
            key: the key of this decision's draws.
        """
        raw = jnp.where(allowed, self.probabilities(expectation, allowed, t, key), 0.0)
        pmf = raw / jnp.sum(raw)
        floor = as_like(self.floor, pmf)
        return jnp.where(allowed, floor + (1.0 - floor * jnp.sum(allowed.astype(pmf.dtype))) * pmf, 0.0)

    @abstractmethod
    def probabilities(self, expectation: Expectation, allowed: Array, t: Array, key: Array) -> Array:
        """The probabilities before mask and floor (K,). The arguments are those of `pmf`."""
        raise NotImplementedError
