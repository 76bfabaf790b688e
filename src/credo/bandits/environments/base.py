"""Environments: the worlds of bandits, as pure functions of a state and a key; and their noise."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, Literal, TypeAlias, TypeVar

import jax
import jax.numpy as jnp

from credo.core.keys import as_key
from credo.core.records import record
from credo.core.trees import as_like
from credo.core.types import Array, ArrayLike, Key, PyTree
from credo.linalg.matrices import rounded

__all__ = ["ConstantArm", "Context", "ContextDesign", "Environment", "add_noise", "arm_key", "every_arm"]

S = TypeVar("S")
"""The kind of state that an environment keeps."""

ContextDesign: TypeAlias = Literal["outputs", "actions"]
"""Whether a context describes the situation, or has a row for every action."""


@record
class Context:
    """The information that an agent has before it chooses.

    Attributes:
        x: the context, any pytree: an array (d,), features of every arm (K, d), or None.
        allowed: which arms may be chosen (K,), booleans of which at least one is True.

    Example:
        >>> Context(jnp.ones(2), every_arm(3)).allowed
        Array([ True,  True,  True], dtype=bool)
    """

    x: PyTree
    allowed: Array


@record
class ConstantArm:
    """The arm that is best where the same one is always chosen.

    Attributes:
        arm: its number, from 0.
        reward: its mean reward a step, in the units of `Environment.reward`.

    Example:
        >>> import credo
        >>> always = credo.bandits.environments.Wheel(delta=0.95).best_constant()
        >>> int(always.arm), round(float(always.reward), 4)
        (0, 2.1944)
    """

    arm: Array
    reward: Array


class Environment(ABC, Generic[S]):
    """The base of every environment: an agent sees its contexts, and the rewards of what it chose.

    An environment is a record without a state of its own. `start` draws all that differs between runs: the
    arms' means, the weights, or the order of the rows of data. A step reads the `context`, chooses an arm,
    takes the `reward` of this arm alone, and goes on with `advance`. All functions are pure and traceable, so
    that a run is one `lax.scan`, and `jax.vmap` over keys runs many seeds and data orders at once. Arrays of
    data are leaves of the record and a state holds only positions in them, so that the seeds share the data.

    A subclass is a `credo.record`. It has a static field `arms`, the number K of arms, and writes `start`,
    `context`, `means`, `reward` and `advance`. It may write `steps`, `design`, `unit` and `best_constant`.

    Raises:
        TypeError: one of the five functions is missing.

    Example:
        Two arms that take turns:

        >>> import credo
        >>> @credo.record
        ... class Turns(Environment[Array]):
        ...     arms: int = credo.static_field(default=2)
        ...
        ...     def start(self, key):
        ...         return jnp.zeros((), jnp.int32)
        ...
        ...     def context(self, state):
        ...         return Context(None, every_arm(2))
        ...
        ...     def means(self, state):
        ...         return (jnp.arange(2) == state % 2) * 1.0
        ...
        ...     def reward(self, state, arm, key):
        ...         return self.means(state)[arm]
        ...
        ...     def advance(self, state, arm, key):
        ...         return state + 1
        >>> world = Turns()
        >>> state = world.advance(world.start(0), 0, 0)
        >>> float(world.reward(state, 1, 0)), float(world.regret(state, 0))
        (1.0, 1.0)
    """

    arms: int
    """The number K of arms."""

    @property
    def steps(self) -> int | None:
        """The number of steps, such as the number of rows; None if there is no end."""
        return None

    @property
    def design(self) -> ContextDesign:
        """Whether x describes the situation ("outputs"), or has a row for every action ("actions")."""
        return "outputs"

    @property
    def unit(self) -> ArrayLike:
        """The worth of a reward of 1, in the units in which results are reported."""
        return 1.0

    @abstractmethod
    def start(self, key: Key) -> S:
        """The state before the first step.

        Arguments:
            key: a key or a seed, from which everything is drawn that differs between runs.

        Returns:
            The state, a pytree of arrays.
        """

    @abstractmethod
    def context(self, state: S) -> Context:
        """The information that an agent may use for its choice.

        Arguments:
            state: the state.

        Returns:
            The context, and which arms may be chosen.
        """

    @abstractmethod
    def means(self, state: S) -> Array:
        """The expected reward of every arm now, which agents never see.

        Arguments:
            state: the state.

        Returns:
            The means (K,), of forbidden arms too; NaN if nobody knows them, as in a log.
        """

    @abstractmethod
    def reward(self, state: S, arm: ArrayLike, key: Key) -> Array:
        """The reward of the chosen arm.

        Arguments:
            state: the state.
            arm: the number of the arm, from 0.
            key: the key of this step; `arm_key` makes a key of the arm from it.

        Returns:
            A number; NaN if the reward is not known.
        """

    @abstractmethod
    def advance(self, state: S, arm: ArrayLike, key: Key) -> S:
        """The state of the next step.

        Arguments:
            state: the state.
            arm: the arm that was chosen.
            key: the key of this step.

        Returns:
            The next state, with the shapes and dtypes of the old one.
        """

    def pull_all(self, state: S, key: Key) -> Array:
        """The rewards that every arm would give in this step, for measures of regret.

        Arguments:
            state: the state.
            key: the key of this step.

        Returns:
            The rewards (K,), up to rounding those that `reward` returns for each arm with the same key.
        """
        drawn: Array = jax.vmap(lambda arm: self.reward(state, arm, key))(jnp.arange(self.arms))
        return drawn

    def regret(self, state: S, arm: ArrayLike) -> Array:
        """The expected reward of the best allowed arm minus that of the chosen one: the pseudo-regret.

        Arguments:
            state: the state.
            arm: the chosen arm.

        Returns:
            A number, in the units of the report: times `unit`.
        """
        means = self.means(state)
        best = jnp.max(jnp.where(self.context(state).allowed, means, -jnp.inf))
        # maximum() would hide that the means of a log are not known
        gap = jnp.where(jnp.isnan(means[arm]), means[arm], best - means[arm])
        return gap * jnp.asarray(self.unit, gap.dtype)

    def best_constant(self) -> ConstantArm | None:
        """The best arm for an agent that always chooses the same one.

        Returns:
            The arm and its mean reward a step, or None if these differ from run to run.
        """
        return None


def every_arm(arms: int) -> Array:
    """The mask of `Context.allowed` where every arm is allowed: (K,) of True.

    Example:
        >>> every_arm(2)
        Array([ True,  True], dtype=bool)
    """
    return jnp.ones(arms, bool)


def arm_key(key: Key, arm: ArrayLike) -> Array:
    """The key of an arm's reward, so that arms have rewards of their own in the same step.

    Arguments:
        key: the key of the step.
        arm: the number of the arm.

    Returns:
        A key.

    Example:
        >>> bool(jax.random.uniform(arm_key(0, 1)) == jax.random.uniform(arm_key(0, 2)))
        False
    """
    return jax.random.fold_in(as_key(key), arm)


BEYOND = 100.0
"""No normal draw is larger, which a compiler does not know."""


def add_noise(key: Array, values: Array, sd: ArrayLike) -> Array:
    """A draw from N(values, sd^2), of the shape of `values`.

    The product of `sd` and the draw is rounded before it is added, see `credo.linalg.matrices.rounded`.
    """
    normal = jax.random.normal(key, values.shape, values.dtype)
    never = (normal > jnp.asarray(BEYOND, normal.dtype)).astype(jnp.int32)
    return values + rounded(as_like(sd, values) * normal, -never)
