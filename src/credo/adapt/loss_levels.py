"""How large the losses of a learner are, and when they became larger: exact sums over a grid of levels."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from credo.core.records import record, replace
from credo.core.trees import as_like
from credo.core.types import Array, ArrayLike, DTypeLike

__all__ = ["LEVELS", "RATES", "SIZES", "LevelChanges", "Reported", "share_losses", "size_losses"]

LEVELS = 25
"""The number of levels."""

RATES = 1.0 / (1.0 + np.exp(7.0 - 0.4 * np.arange(LEVELS)))
"""The levels of losses between 0 and 1: .001 to .93, whose odds are 1.5 times those of the one before."""

SIZES = 0.02 * 1.3 ** np.arange(LEVELS)
"""The levels of the sizes of errors, .02 to 11, each 1.3 times the one before."""

FARTHEST = 10.0
"""The largest size of an error that counts as such, since one outlier is no change."""

FREEDOM = 2.0
"""The degrees of freedom of errors, a Student's t: with 4, one or two outliers would be a change."""

DOWN, UP, JUMP = 0.01, 0.001, 3
"""P(one level lower), P(one higher) before a row; the least number of levels that a change goes up."""

CAPACITY, YOUNG, LATEST = 20, 10, 100
"""How many times of the latest change are kept; how many rows a new one stays; the rows that are recent."""

_LONG_AGO = -(2**30)


def share_losses(loss: Array) -> Array:
    """The log likelihoods of the levels (K,) for a loss u in [0, 1]: u log rate + (1 - u) log(1 - rate).

    Between two levels a and b > a it has E exp(log p_b - log p_a) <= 1 for every loss with a mean of at most
    a, since it is linear in u, so that exp is convex.
    """
    rates = jnp.asarray(RATES, loss.dtype)
    part = jnp.clip(loss, 0.0, 1.0)
    return part * jnp.log(rates) + (1.0 - part) * jnp.log1p(-rates)


def size_losses(error: Array) -> Array:
    """The log densities of an error under the levels of its size (K,), up to a constant."""
    sizes = jnp.asarray(SIZES, error.dtype)
    ratio = jnp.clip(error, -FARTHEST, FARTHEST) / sizes
    return -0.5 * (FREEDOM + 1.0) * jnp.log1p(ratio**2 / FREEDOM) - jnp.log(sizes)


class Reported(NamedTuple):
    """What one row says: P(a change with it), and whether a change is reported now."""

    change: Array
    alarm: Array


@record
class LevelChanges:
    """The times of the latest change that are kept, each with the levels that losses may have now.

    It is the filter of `credo.RunLength` around a learner of the level, as one table of probabilities, which
    takes a third of the kernels.

    Attributes:
        probs: P(time of the latest change, level) (S, K), which sum to 1; one time is free and has none.
        starts: the times (S,), of which the first is 1, the first row.
        reported: the latest time that was reported.
        t: how many rows have begun.
    """

    probs: Array
    starts: Array
    reported: Array
    t: Array

    @staticmethod
    def first(kind: DTypeLike) -> LevelChanges:
        """No row so far: all levels are alike."""
        slots = jnp.arange(CAPACITY + 1) == 0
        probs = jnp.where(slots[:, None], jnp.full((1, LEVELS), 1.0 / LEVELS), 0.0).astype(kind)
        zero = jnp.zeros((), jnp.int32)
        return LevelChanges(probs, jnp.where(slots, 1, _LONG_AGO).astype(jnp.int32), zero, zero)

    @property
    def recent(self) -> Array:
        """P(a change within the latest 100 rows)."""
        young = (self.t - self.starts < LATEST) & (self.starts > 1)
        return jnp.minimum(jnp.sum(jnp.where(young[:, None], self.probs, 0.0)), 1.0)

    def later(self, hazard: ArrayLike, dt: ArrayLike | None) -> LevelChanges:
        """Before a row: levels move a little, and the free time begins with the row.

        After a row that was not learned no time is free, and the lightest gives way.
        """
        t = self.t + 1
        weights = jnp.sum(self.probs, axis=1)
        free = jnp.arange(CAPACITY + 1) == jnp.argmin(weights)
        old = jnp.where(free[:, None], 0.0, self.probs) / jnp.sum(jnp.where(free, 0.0, weights))
        chance = as_like(hazard, old)
        if dt is not None:
            chance = -jnp.expm1(as_like(dt, old) * jnp.log1p(-chance))
        chance = jnp.where(self.t > 0, chance, 0.0)  # nothing changes before the first row
        place = np.arange(LEVELS)
        stays = jnp.asarray(1.0 - DOWN * (place > 0) - UP * (place < LEVELS - 1), old.dtype)
        moved = stays[None, :] * old
        moved = moved + jnp.asarray(DOWN, old.dtype) * jnp.pad(old[:, 1:], ((0, 0), (0, 1)))
        moved = moved + jnp.asarray(UP, old.dtype) * jnp.pad(old[:, :-1], ((0, 0), (1, 0)))
        begun = chance * (jnp.sum(old, axis=0) @ jnp.asarray(_JUMPS, old.dtype))
        probs = jnp.where(free[:, None], begun[None, :], (1.0 - chance) * moved)
        return replace(self, probs=probs, starts=jnp.where(free, t, self.starts), t=t)

    def learned(
        self, logs: Array, threshold: ArrayLike, separation: ArrayLike
    ) -> tuple[LevelChanges, Reported]:
        """After a row with these log likelihoods of the levels (K,); the lightest time is dropped."""
        joint = self.probs * jnp.exp(logs - jnp.max(logs)).astype(self.probs.dtype)[None, :]
        weights = jnp.sum(joint, axis=1)
        ages = self.t - self.starts
        worst = jnp.arange(CAPACITY + 1) == jnp.argmin(jnp.where(ages < YOUNG, jnp.inf, weights))
        total = jnp.sum(weights)
        change = jnp.sum(jnp.where(ages == 0, weights, 0.0)) / total
        kept = jnp.where(worst, 0.0, weights)
        probs = jnp.where(worst[:, None], 0.0, joint) / jnp.sum(kept)
        unreported = jnp.where(self.starts > self.reported + jnp.asarray(separation, jnp.int32), kept, 0.0)
        unreported = unreported / jnp.sum(kept)
        first = self.reported == 0
        alarm = (jnp.sum(unreported) > as_like(threshold, unreported)) & ~first
        start = jnp.where(first, self.t, self.starts[jnp.argmax(unreported)])
        reported = jnp.where(alarm | first, start, self.reported)
        return replace(self, probs=probs, reported=reported), Reported(change, alarm)


def _jumps() -> np.ndarray:
    """P(level after a change | level before it) (K, K)."""
    before, after = np.arange(LEVELS)[:, None], np.arange(LEVELS)[None, :]
    open_to = (after >= np.minimum(before + JUMP, LEVELS - 1)).astype(float)
    moves: np.ndarray = open_to / open_to.sum(axis=1, keepdims=True)
    return moves


_JUMPS = _jumps()
