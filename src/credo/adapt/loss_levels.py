"""How large the losses of a learner are: a level on a grid, which moves slowly within a segment."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from credo.adapt.moments import matched
from credo.core.errors import CredoError
from credo.core.keys import as_key
from credo.core.names import ForecastName
from credo.core.records import record, replace, static_field
from credo.core.types import Array, ArrayLike, Key, PyTree
from credo.learners import Info, Learner
from credo.likelihoods import Predictive

__all__ = ["LEVELS", "RATES", "SIZES", "LevelTracker", "Levels", "Worse", "share_losses", "size_losses"]

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


@record
class Levels:
    """The belief about the level of losses: its probabilities (K,), and the clock."""

    probs: Array
    t: Array


@record
class LevelTracker(Learner[Levels]):
    """A learner of the level of losses, whose row `x` is the log likelihood of each (K,); y is not read.

    A level goes to the next lower one with probability `down`, and to the next higher one with `up`.
    """

    down: ArrayLike = 0.01
    up: ArrayLike = 0.001

    def init(self, params: PyTree = None, *, var: PyTree = None) -> Levels:
        """Equal probabilities, in the dtype of `params` where there are any."""
        kind = jnp.zeros(()).dtype if params is None else jnp.asarray(params).dtype
        return Levels(jnp.full(LEVELS, 1.0 / LEVELS, kind), jnp.zeros((), jnp.int32))

    def time_update(self, belief: Levels, dt: ArrayLike | None) -> Levels:
        probs = belief.probs
        down, up = (jnp.asarray(rate, probs.dtype) for rate in (self.down, self.up))
        place = jnp.arange(LEVELS)
        lower = jnp.where(place > 0, down, 0.0) * probs
        higher = jnp.where(place < LEVELS - 1, up, 0.0) * probs
        moved = probs - lower - higher + jnp.append(lower[1:], 0.0) + jnp.append(0.0, higher[:-1])
        return Levels(moved.astype(probs.dtype), belief.t + 1)

    def predictive(
        self, belief: Levels, x: PyTree, method: ForecastName | None, samples: int | None, key: Key | None
    ) -> Predictive:
        raise CredoError("a LevelTracker forecasts nothing: it reads the likelihoods of levels.")

    def measurement_update(
        self, belief: Levels, x: PyTree, y: PyTree, weight: ArrayLike, key: Key | None
    ) -> tuple[Levels, Info]:
        logs = jnp.asarray(x, belief.probs.dtype)
        top = jnp.max(logs)
        joint = belief.probs * jnp.exp(logs - top)
        total = jnp.sum(joint)
        ok = jnp.isfinite(total) & (total > 0)
        probs = jnp.where(ok, joint / jnp.where(ok, total, 1.0), belief.probs)
        log_evidence = jnp.where(ok, jnp.log(jnp.where(ok, total, 1.0)) + top, 0.0)
        return replace(belief, probs=probs), Info(log_evidence, ok)

    def draws(self, belief: Levels, key: Key, shape: tuple[int, ...]) -> Array:
        return jax.random.categorical(as_key(key), jnp.log(belief.probs), shape=shape)


@record
class Worse:
    """The conditional prior of a change for the worse: from level i to any of at least i + jump, alike."""

    jump: int = static_field(default=3)

    def begin(self, parent: Levels, prior: Levels, dt: ArrayLike | None) -> Levels:
        """The level after the change, for the level before it."""
        moves = jnp.asarray(_jumps(self.jump), parent.probs.dtype)
        return replace(parent, probs=parent.probs @ moves)


def _jumps(jump: int) -> np.ndarray:
    """P(level after a change | level before it) (K, K)."""
    before, after = np.arange(LEVELS)[:, None], np.arange(LEVELS)[None, :]
    open_to = (after >= np.minimum(before + jump, LEVELS - 1)).astype(float)
    moves: np.ndarray = open_to / open_to.sum(axis=1, keepdims=True)
    return moves


@matched.register
def _(beliefs: Levels, weights: Array) -> Levels:
    return Levels(weights @ beliefs.probs, beliefs.t[0])
