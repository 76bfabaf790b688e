"""Arms that come and go, by chance or by a plan, around any environment."""

from __future__ import annotations

from abc import abstractmethod
from typing import Generic, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from credo.bandits.environments.base import Context, Environment
from credo.bandits.environments.wrapped import Surrounding
from credo.core.errors import CredoError, require_integer, require_interval
from credo.core.keys import as_key
from credo.core.records import record, static_field
from credo.core.types import Array, ArrayLike, Key

__all__ = ["ArmsByChance", "ArmsByPlan", "MaskedState"]

S = TypeVar("S")


@record
class MaskedState(Generic[S]):
    """The state of an environment whose arms come and go.

    Attributes:
        inner: the state of the environment inside.
        present: which arms are there (K,).
        t: how many steps came before.
    """

    inner: S
    present: Array
    t: Array


class _Masked(Surrounding[MaskedState[S], S], Generic[S]):
    """An environment around another, of whose arms some are absent: they keep their slots, and are masked."""

    @abstractmethod
    def _present(self, present: Array, t: Array, key: Array) -> Array:
        """Which arms are there in step t (K,), after those of the step before."""

    def context(self, state: MaskedState[S]) -> Context:
        """The context inside, and the arms that are there; if none is that may be chosen, all that may."""
        context = self.environment.context(state.inner)
        both = context.allowed & state.present
        return Context(context.x, jnp.where(jnp.any(both), both, context.allowed))

    def means(self, state: MaskedState[S]) -> Array:
        """The means inside (K,), of absent arms too."""
        return self.environment.means(state.inner)

    def reward(self, state: MaskedState[S], arm: ArrayLike, key: Key) -> Array:
        """The reward inside; NaN if the arm may not be chosen."""
        reward = self.environment.reward(state.inner, arm, key)
        return jnp.where(self.context(state).allowed[arm], reward, jnp.asarray(jnp.nan, reward.dtype))

    def advance(self, state: MaskedState[S], arm: ArrayLike, key: Key) -> MaskedState[S]:
        """The next state inside, and the arms that are there then."""
        inside, mask = jax.random.split(as_key(key))
        t = state.t + 1
        return MaskedState(
            self.environment.advance(state.inner, arm, inside), self._present(state.present, t, mask), t
        )


@record
class ArmsByChance(_Masked[S], Generic[S]):
    """Another environment whose arms come and go at random; at least one is always there.

    In every step an absent arm comes with probability `arrival`, and a present one goes with probability
    `departure`. A step in which all would go leaves them all there. An arm that comes back is the same arm.
    The arms keep their numbers, and `Context.allowed` says which of them are there.

    Arguments:
        environment: the other environment, which has all arms that ever come.
        arrival: the probability that an absent arm comes.
        departure: the probability that a present arm goes.
        present: how many arms are there at the start, the first ones; None for all.
        arms: the number of arms, which is that of the other environment.

    Raises:
        CredoError: a probability lies outside [0, 1], or `present` is no number of arms.

    Example:
        >>> import credo
        >>> world = ArmsByChance(credo.bandits.environments.BernoulliArms(4), present=2)
        >>> world.context(world.start(0)).allowed
        Array([ True,  True, False, False], dtype=bool)
    """

    environment: Environment[S]
    arrival: ArrayLike = 0.01
    departure: ArrayLike = 0.01
    present: int | None = static_field(default=None)
    arms: int = static_field(default=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        require_interval("arrival", self.arrival, 0.0, 1.0)
        require_interval("departure", self.departure, 0.0, 1.0)
        if self.present is not None:
            require_integer("present", self.present, 1, self.environment.arms)

    def start(self, key: Key) -> MaskedState[S]:
        """The state inside, and the first arms."""
        first = jnp.arange(self.arms) < (self.arms if self.present is None else self.present)
        return MaskedState(self.environment.start(key), first, jnp.zeros((), jnp.int32))

    def _present(self, present: Array, t: Array, key: Array) -> Array:
        chance = jax.random.uniform(key, (self.arms,))
        departure, arrival = (jnp.asarray(rate, chance.dtype) for rate in (self.departure, self.arrival))
        after = jnp.where(present, chance >= departure, chance < arrival)
        return jnp.where(jnp.any(after), after, present)


@record
class ArmsByPlan(_Masked[S], Generic[S]):
    """Another environment whose arms come and go as planned, such as a new arm halfway through.

    Arguments:
        environment: the other environment, which has all arms that ever come.
        plan: which arms are there in each step (T, K), at least one in each; the last row goes on.
        arms: the number of arms, which is that of the other environment.

    Raises:
        CredoError: `plan` has another number of arms, or a step without any.

    Example:
        >>> from credo.bandits import environments
        >>> world = ArmsByPlan(environments.BernoulliArms(2), np.array([[True, False], [True, True]]))
        >>> state = world.start(0)
        >>> world.context(state).allowed, world.context(world.advance(state, 0, 0)).allowed
        (Array([ True, False], dtype=bool), Array([ True,  True], dtype=bool))
    """

    environment: Environment[S]
    plan: ArrayLike
    arms: int = static_field(default=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        arms = self.environment.arms
        plan = np.asarray(self.plan, bool)
        if plan.ndim != 2 or plan.shape[1] != arms or not len(plan):
            raise CredoError(
                f"plan must have the shape (T, {arms}), a row for each step; got {plan.shape}.", field="plan"
            )
        if not plan.any(axis=1).all():
            step = int(np.argmin(plan.any(axis=1)))
            raise CredoError(
                f"plan must have an arm in every step; step {step} (counted from 0) has none.", field="plan"
            )
        object.__setattr__(self, "plan", jnp.asarray(plan))

    def start(self, key: Key) -> MaskedState[S]:
        """The state inside, and the arms of the first step."""
        return MaskedState(self.environment.start(key), jnp.asarray(self.plan)[0], jnp.zeros((), jnp.int32))

    def _present(self, present: Array, t: Array, key: Array) -> Array:
        plan = jnp.asarray(self.plan)
        return plan[jnp.minimum(t, len(plan) - 1)]
