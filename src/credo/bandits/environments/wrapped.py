"""Environments around another: what they share, an intercept, and another unit of rewards.

In some of them the arms come and go, by chance or by a plan.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Generic, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from credo.bandits.environments.base import ConstantArm, Context, ContextDesign, Environment
from credo.core.errors import CredoError, require_integer, require_interval, require_positive
from credo.core.inputs import shapes_of
from credo.core.keys import as_key
from credo.core.records import record, static_field
from credo.core.types import Array, ArrayLike, Key

__all__ = ["ArmsByChance", "ArmsByPlan", "Intercept", "MaskedState", "RewardUnit", "Surrounding"]

S = TypeVar("S")
T = TypeVar("T")


class Surrounding(Environment[T], Generic[T, S]):
    """An environment with states T around another with states S; it has the same arms and units."""

    environment: Environment[S]

    @property
    def steps(self) -> int | None:
        """As inside."""
        return self.environment.steps

    @property
    def design(self) -> ContextDesign:
        """As inside."""
        return self.environment.design

    @property
    def unit(self) -> ArrayLike:
        """As inside."""
        return self.environment.unit

    def __post_init__(self) -> None:
        if not isinstance(self.environment, Environment):
            raise CredoError(
                "environment must be an Environment, such as load_environment('wheel'); got "
                f"{self.environment!r}.",
                field="environment",
            )
        object.__setattr__(self, "arms", self.environment.arms)


class _SameState(Surrounding[S, S], Generic[S]):
    """An environment around another, which has its state and passes on what the subclass does not write."""

    def start(self, key: Key) -> S:
        """As inside."""
        return self.environment.start(key)

    def context(self, state: S) -> Context:
        """As inside."""
        return self.environment.context(state)

    def means(self, state: S) -> Array:
        """As inside."""
        return self.environment.means(state)

    def reward(self, state: S, arm: ArrayLike, key: Key) -> Array:
        """As inside."""
        return self.environment.reward(state, arm, key)

    def advance(self, state: S, arm: ArrayLike, key: Key) -> S:
        """As inside."""
        return self.environment.advance(state, arm, key)

    def best_constant(self) -> ConstantArm | None:
        """As inside."""
        return self.environment.best_constant()


@record
class Intercept(_SameState[S], Generic[S]):
    """Another environment, with a 1 at the end of every context, for models without a bias.

    Arguments:
        environment: the other environment, whose contexts are vectors (d,) or rows for every arm (K, d).
        arms: the number of arms, which is that of the other environment.

    Raises:
        CredoError: the contexts are no vectors or rows.

    Example:
        >>> import credo
        >>> world = Intercept(credo.bandits.environments.Wheel())
        >>> world.context(jnp.array([0.5, 0.25])).x
        Array([0.5 , 0.25, 1.  ], dtype=float32)
    """

    environment: Environment[S]
    arms: int = static_field(default=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        inside = self.environment
        context = jax.eval_shape(lambda: inside.context(inside.start(0)))
        rank = 2 if inside.design == "actions" else 1
        leaves = jax.tree.leaves(context.x)
        if len(leaves) != 1 or leaves[0] is not context.x or leaves[0].ndim != rank:
            shown = "no context" if context.x is None else f"x of shape {shapes_of(context.x)}"
            raise CredoError(
                f"environment must have one {'row (d,) for each arm' if rank == 2 else 'vector (d,)'} as its "
                f"context to get an intercept; got {shown}.",
                field="environment",
            )

    def context(self, state: S) -> Context:
        """The context of the other environment, and a 1."""
        context = self.environment.context(state)
        one = jnp.ones((*context.x.shape[:-1], 1), context.x.dtype)
        return Context(jnp.concatenate([context.x, one], axis=-1), context.allowed)


@record
class RewardUnit(_SameState[S], Generic[S]):
    """Another environment, whose rewards are divided by a number before an agent sees them.

    Learners with a prior for rewards around 1 can then take on rewards of any size. `regret` stays in the
    units of the other environment, since `unit` says what a reward of 1 is worth.

    Arguments:
        environment: the other environment.
        divisor: the number by which rewards and means are divided, above 0.
        arms: the number of arms, which is that of the other environment.

    Raises:
        CredoError: `divisor` is not above 0.

    Example:
        >>> import credo
        >>> world = RewardUnit(credo.bandits.environments.Wheel(), 50.0)
        >>> state = jnp.array([0.7, 0.7])
        >>> print(world.means(state)[0], world.regret(state, 4))
        1.0 48.8
    """

    environment: Environment[S]
    divisor: ArrayLike
    arms: int = static_field(default=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive("divisor", self.divisor)

    @property
    def unit(self) -> ArrayLike:
        """The divisor, times the unit inside."""
        return jnp.asarray(self.divisor) * self.environment.unit

    def means(self, state: S) -> Array:
        """The means inside, divided."""
        means = self.environment.means(state)
        return means / jnp.asarray(self.divisor, means.dtype)

    def reward(self, state: S, arm: ArrayLike, key: Key) -> Array:
        """The reward inside, divided."""
        reward = self.environment.reward(state, arm, key)
        return reward / jnp.asarray(self.divisor, reward.dtype)

    def best_constant(self) -> ConstantArm | None:
        """The best constant arm inside, its reward divided."""
        best = self.environment.best_constant()
        if best is None:
            return None
        return ConstantArm(best.arm, best.reward / jnp.asarray(self.divisor, best.reward.dtype))


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
