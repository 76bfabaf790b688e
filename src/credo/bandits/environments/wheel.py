"""The wheel: a problem in which nearly all contexts are dull, and a few are worth a search."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from credo.bandits.environments.base import ConstantArm, Context, Environment, add_noise, arm_key, every_arm
from credo.core.errors import require_interval, require_nonnegative
from credo.core.keys import as_key
from credo.core.records import record
from credo.core.trees import as_like
from credo.core.types import Array, ArrayLike, Key

__all__ = ["Wheel"]

INNER = 1.0
SAFE = 1.2
LARGE = 50.0


@record
class Wheel(Environment[Array]):
    """The wheel bandit (Riquelme, Tucker and Snoek, 2018): five arms, and contexts uniform on the unit disk.

    Arm 4 is safe: its rewards have mean 1.2 everywhere. Arms 0 to 3 have mean 1.0, but where |x| > delta the
    arm of the quadrant has mean 50: arm 0 for (+, +), 1 for (+, -), 2 for (-, +) and 3 for (-, -). Such
    contexts come with probability 1 - delta^2. An agent that knew the means would earn
    50 (1 - delta^2) + 1.2 delta^2 a step. Delta is usually 0.5, 0.7, 0.9, 0.95 or 0.99.

    Arguments:
        delta: the radius of the dull part, from 0 to 1.
        sd: the standard deviation of all rewards.

    Raises:
        CredoError: `delta` lies outside [0, 1], or `sd` is below 0.

    Example:
        >>> world = Wheel(delta=0.95)
        >>> world.means(jnp.array([0.7, -0.7]))
        Array([ 1. , 50. ,  1. ,  1. ,  1.2], dtype=float32)
    """

    delta: ArrayLike = 0.95
    sd: ArrayLike = 0.01
    arms = 5

    def __post_init__(self) -> None:
        require_interval("delta", self.delta, 0.0, 1.0)
        require_nonnegative("sd", self.sd)

    def start(self, key: Key) -> Array:
        """The first context."""
        return _on_disk(as_key(key))

    def context(self, state: Array) -> Context:
        """The point x (2,) on the disk, and all arms."""
        return Context(state, every_arm(self.arms))

    def means(self, state: Array) -> Array:
        """The means (5,) at the point."""
        return _means(state, as_like(self.delta, state))

    def reward(self, state: Array, arm: ArrayLike, key: Key) -> Array:
        """A draw from N(mean, sd^2) of the arm."""
        return add_noise(arm_key(key, arm), self.means(state)[arm], self.sd)

    def advance(self, state: Array, arm: ArrayLike, key: Key) -> Array:
        """Another point on the disk."""
        return _on_disk(as_key(key))

    def best_constant(self) -> ConstantArm:
        """Arm 4, or an arm of a quadrant where its few large rewards are worth more."""
        rim = (1 - jnp.asarray(self.delta, jnp.result_type(float)) ** 2) / 4
        quadrant = INNER + (LARGE - INNER) * rim
        return ConstantArm(jnp.where(quadrant > SAFE, 0, 4), jnp.maximum(quadrant, SAFE))


def _on_disk(key: Array) -> Array:
    radius, turn = jax.random.uniform(key, (2,))
    angle = 2 * jnp.pi * turn
    return jnp.sqrt(radius) * jnp.stack([jnp.cos(angle), jnp.sin(angle)])


def _means(x: Array, delta: Array) -> Array:
    quadrant = 2 * (x[0] <= 0).astype(jnp.int32) + (x[1] <= 0).astype(jnp.int32)
    rim = jnp.sum(x**2) > delta**2
    dull = jnp.array([INNER, INNER, INNER, INNER, SAFE], x.dtype)
    return jnp.where(rim & (jnp.arange(5, dtype=jnp.int32) == quadrant), jnp.asarray(LARGE, x.dtype), dull)
