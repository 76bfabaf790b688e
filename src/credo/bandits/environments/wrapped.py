"""Environments around another: what they share, an intercept, and another unit of rewards."""

from __future__ import annotations

from typing import Generic, TypeVar

import jax
import jax.numpy as jnp

from credo.bandits.environments.base import ConstantArm, Context, ContextDesign, Environment
from credo.core.errors import CredoError, require_positive
from credo.core.inputs import shapes_of
from credo.core.records import record, static_field
from credo.core.types import Array, ArrayLike, Key

__all__ = ["Intercept", "RewardUnit", "Surrounding"]

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
