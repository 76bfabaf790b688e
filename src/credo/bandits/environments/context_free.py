"""Arms without contexts: rewards of 0 or 1, and Gaussian rewards."""

from __future__ import annotations

from abc import abstractmethod

import jax
import jax.numpy as jnp
import numpy as np

from credo.bandits.environments.base import Context, Environment, add_noise, arm_key, every_arm
from credo.bandits.environments.motion import Motion, Still, require_motion
from credo.core.errors import (
    CredoError,
    require_integer,
    require_interval,
    require_nonnegative,
    require_positive,
)
from credo.core.keys import as_key
from credo.core.records import record, static_field
from credo.core.trees import as_like
from credo.core.types import Array, ArrayLike, Key

__all__ = ["BernoulliArms", "GaussianArms"]


class _MovingMeans(Environment[Array]):
    """Arms without contexts, whose state is the vector (K,) of their means."""

    motion: Motion

    def context(self, state: Array) -> Context:
        """No context, and all arms."""
        return Context(None, every_arm(self.arms))

    def means(self, state: Array) -> Array:
        """The means (K,) now."""
        return state

    def advance(self, state: Array, arm: ArrayLike, key: Key) -> Array:
        """The means after the `motion`."""
        return self.motion.move(state, self._draw, as_key(key))

    @abstractmethod
    def _draw(self, key: Array) -> Array:
        """Means (K,) from their prior."""


@record
class BernoulliArms(_MovingMeans):
    """Arms whose rewards are 0 or 1, with a chance that differs between them: p(r = 1 | a) = chance_a.

    The chances are given, or drawn from U(0, 1) at the start. They may move; a random walk is cut off at 0
    and 1. With `Drift(0.003)` and ten arms this is a restless bandit.

    Arguments:
        arms: the number of arms; not needed where `chances` are given.
        chances: the chances (K,) at the start, or None to draw them.
        motion: how the chances move.

    Raises:
        CredoError: there is no arm, or a chance lies outside [0, 1].

    Example:
        >>> world = BernoulliArms(chances=[0.2, 0.9])
        >>> state = world.start(0)
        >>> float(world.reward(state, 1, key=0)), round(float(world.regret(state, 0)), 3)
        (1.0, 0.7)
    """

    arms: int = static_field(default=0)
    chances: ArrayLike | None = None
    motion: Motion = Still()

    def __post_init__(self) -> None:
        if self.chances is not None:
            require_interval("chances", self.chances, 0.0, 1.0)
        _settle(self, "chances", self.chances)

    def start(self, key: Key) -> Array:
        """The chances (K,), drawn if they are not given."""
        if self.chances is None:
            return self._draw(as_key(key))
        return jnp.asarray(self.chances)

    def reward(self, state: Array, arm: ArrayLike, key: Key) -> Array:
        """1 with the chance of the arm, else 0."""
        return jax.random.bernoulli(arm_key(key, arm), state[arm]).astype(state.dtype)

    def advance(self, state: Array, arm: ArrayLike, key: Key) -> Array:
        """The chances after the `motion`, cut off at 0 and 1."""
        return jnp.clip(super().advance(state, arm, key), 0.0, 1.0)

    def _draw(self, key: Array) -> Array:
        return jax.random.uniform(key, (self.arms,))


@record
class GaussianArms(_MovingMeans):
    """Arms whose rewards are N(mean_a, var).

    The means are given, or drawn from N(prior_mean, prior_var) at the start. They may move.

    Arguments:
        arms: the number of arms; not needed where `initial` is given.
        initial: the means (K,) at the start, or None to draw them.
        var: the variance of the rewards, above 0: a number, or (K,) for each arm.
        prior_mean, prior_var: the prior of the means, if they are drawn.
        motion: how the means move.

    Raises:
        CredoError: there is no arm, or a variance is out of range.

    Example:
        >>> world = GaussianArms(initial=[0.0, 1.0], var=1e-6)
        >>> state = world.start(0)
        >>> round(float(world.reward(state, 1, key=0)), 2), float(world.regret(state, 0))
        (1.0, 1.0)
    """

    arms: int = static_field(default=0)
    initial: ArrayLike | None = None
    var: ArrayLike = 1.0
    prior_mean: ArrayLike = 0.0
    prior_var: ArrayLike = 1.0
    motion: Motion = Still()

    def __post_init__(self) -> None:
        require_positive("var", self.var)
        require_nonnegative("prior_var", self.prior_var)
        _settle(self, "initial", self.initial)
        if np.shape(self.var) not in [(), (self.arms,)]:
            raise CredoError(
                f"var must be a number or ({self.arms},), one for each arm; got shape {np.shape(self.var)}.",
                field="var",
            )

    def start(self, key: Key) -> Array:
        """The means (K,), drawn if they are not given."""
        if self.initial is None:
            return self._draw(as_key(key))
        return jnp.asarray(self.initial)

    def reward(self, state: Array, arm: ArrayLike, key: Key) -> Array:
        """A draw from N(mean, var) of the arm."""
        sd = jnp.broadcast_to(jnp.sqrt(as_like(self.var, state)), state.shape)
        return add_noise(arm_key(key, arm), state[arm], sd[arm])

    def _draw(self, key: Array) -> Array:
        noise = jax.random.normal(key, (self.arms,))
        return as_like(self.prior_mean, noise) + jnp.sqrt(as_like(self.prior_var, noise)) * noise


def _settle(world: BernoulliArms | GaussianArms, field: str, values: ArrayLike | None) -> None:
    """Check the number of arms, and make an array of what was given for each of them."""
    if values is not None:
        try:
            array = jnp.asarray(values, jnp.result_type(float))
        except (TypeError, ValueError):
            raise CredoError(
                f"{field} must be numbers, one for each arm; got {values!r}.", field=field
            ) from None
        if array.ndim != 1 or world.arms not in (0, len(array)):
            count = world.arms or "K"
            raise CredoError(
                f"{field} must have the shape ({count},), one number for each arm; got {array.shape}.",
                field=field,
            )
        object.__setattr__(world, field, array)
        object.__setattr__(world, "arms", len(array))
    require_integer("arms", world.arms, 1)
    require_motion(world.motion)
