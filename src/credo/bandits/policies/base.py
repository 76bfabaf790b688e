"""The common part of all policies: allowed arms, a floor under their probabilities, and a sum of 1."""

from __future__ import annotations

from dataclasses import field

import jax.numpy as jnp

from credo.core.errors import CredoError, require_interval
from credo.core.keys import as_key
from credo.core.records import record
from credo.core.types import Array, ArrayLike, Key
from credo.likelihoods import Expectation

__all__ = ["Policy", "share_ties"]


@record
class Policy:
    """The base of policies, which see only what is believed about the K expected rewards.

    A policy gives the probability of every arm, from which the arm is drawn, so that the probability on
    record is exact. A subclass is a record that writes `probabilities`; masks, floors and sums are kept here.

    Arguments:
        floor: the least probability of an allowed arm, in [0, 1]. Where the allowed arms are so many that
            floors would sum to more than 1, all have the same probability. The rest of the probability is
            shared as the policy says: floor + (1 - floor A) p, with A allowed arms.

    Raises:
        CredoError: the floor is outside [0, 1].
    """

    floor: ArrayLike = field(default=0.0, kw_only=True)

    def __post_init__(self) -> None:
        require_interval("floor", self.floor, 0.0, 1.0)

    def pmf(
        self, expectation: Expectation, allowed: Array | None = None, t: ArrayLike = 0, key: Key = 0
    ) -> Array:
        """The probability of each arm.

        Arguments:
            expectation: the distribution of the K expected rewards.
            allowed: whether each arm may be chosen (K,); None allows all.
            t: how many decisions or updates have been made.
            key: the key of whatever the policy draws to find its probabilities.

        Returns:
            Probabilities (K,), which sum to 1, with 0 if an arm is not allowed. Where no arm is allowed,
            all are 0.
        """
        allowed = jnp.ones(expectation.size, bool) if allowed is None else jnp.asarray(allowed, bool)
        wanted = self.probabilities(expectation, allowed, jnp.asarray(t), as_key(key))
        count = jnp.sum(allowed)
        uniform = jnp.where(allowed, 1.0 / jnp.maximum(count, 1).astype(wanted.dtype), 0.0)
        # a NaN, from a belief that broke, is no reason to stop choosing
        wanted = jnp.where(allowed & (wanted > 0), wanted, 0.0)
        total = jnp.sum(wanted)
        sound = jnp.isfinite(total) & (total > 0)
        wanted = jnp.where(sound, wanted / jnp.where(sound, total, 1.0), uniform)
        spent = jnp.minimum(jnp.asarray(self.floor, wanted.dtype) * count.astype(wanted.dtype), 1.0)
        return (1.0 - spent) * wanted + spent * uniform

    def probabilities(self, expectation: Expectation, allowed: Array, t: Array, key: Array) -> Array:
        """The probabilities (K,) before the floor, up to a factor; those of arms not allowed are ignored.

        Raises:
            CredoError: the subclass does not write it.
        """
        raise CredoError(f"{type(self).__name__} has no probabilities(...); write it.")


def share_ties(scores: Array, allowed: Array) -> Array:
    """All probability on the allowed arms with the largest score, shared equally."""
    usable = jnp.where(allowed & ~jnp.isnan(scores), scores, -jnp.inf)
    # A compiler may compute scores twice and round them differently, so that none would equal the largest.
    first = jnp.arange(usable.shape[0]) == jnp.argmax(usable)
    best = allowed & ((usable == jnp.max(usable)) | first)
    return best.astype(scores.dtype) / jnp.maximum(jnp.sum(best), 1).astype(scores.dtype)
