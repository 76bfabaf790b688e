"""Environments whose steps are rows of data: what they share, rewards that are known, and classifications.

In a classification the arms are the classes, and the right one earns 1.

A log is an environment, too: an agent earns what it says in the rows where it agrees with the log.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from credo.bandits.environments.base import (
    ConstantArm,
    Context,
    ContextDesign,
    Environment,
    add_noise,
    arm_key,
    every_arm,
)
from credo.core.errors import CredoError, require_integer, require_interval, require_nonnegative
from credo.core.inputs import require_numbers, shapes_of
from credo.core.keys import as_key
from credo.core.records import record, static_field
from credo.core.trees import as_like
from credo.core.types import Array, ArrayLike, Key, PyTree

__all__ = [
    "Classification",
    "KnownRewards",
    "LogColumns",
    "LoggedReplay",
    "RowEnvironment",
    "RowsState",
    "require_rows",
]


@record
class RowsState:
    """The place of a run in the rows.

    Attributes:
        order: the numbers of the rows in the order of this run (N,).
        position: how many rows came before.
    """

    order: Array
    position: Array

    @property
    def row(self) -> Array:
        """The number of the present row; after the last one comes the first."""
        row: Array = self.order[self.position % self.order.shape[0]]
        return row


class RowEnvironment(Environment[RowsState]):
    """An environment whose steps are rows of data, in an order drawn from the key where `shuffle` is set."""

    x: PyTree
    shuffle: bool

    @property
    @abstractmethod
    def size(self) -> int:
        """The number N of rows."""

    @property
    def steps(self) -> int | None:
        """The number N of rows; a run that goes on has them again, in the same order."""
        return self.size

    def start(self, key: Key) -> RowsState:
        """The order of the rows, which is that of the data without `shuffle`."""
        order = jnp.arange(self.size, dtype=jnp.int32)
        if self.shuffle:
            order = jax.random.permutation(as_key(key), order)
        return RowsState(order, jnp.zeros((), jnp.int32))

    def context(self, state: RowsState) -> Context:
        """The context of the row, and all arms."""
        row = state.row
        return Context(jax.tree.map(lambda leaf: leaf[row], self.x), every_arm(self.arms))

    def advance(self, state: RowsState, arm: ArrayLike, key: Key) -> RowsState:
        """The next row."""
        return RowsState(state.order, state.position + 1)


class KnownMeans(RowEnvironment):
    """Rows of data for which the mean reward of every arm is known."""

    noise_var: ArrayLike | None

    @abstractmethod
    def payoffs(self, row: Array) -> Array:
        """The mean rewards (K,) in a row."""

    @abstractmethod
    def constant_means(self) -> Array:
        """The mean reward a step (K,) of an agent that always chooses the same arm."""

    def means(self, state: RowsState) -> Array:
        """The mean rewards (K,) in the row."""
        return self.payoffs(state.row)

    def reward(self, state: RowsState, arm: ArrayLike, key: Key) -> Array:
        """The mean reward of the arm in the row, and Gaussian noise if there is some."""
        mean: Array = self.means(state)[arm]
        if self.noise_var is None:
            return mean
        return add_noise(arm_key(key, arm), mean, jnp.sqrt(as_like(self.noise_var, mean)))

    def best_constant(self) -> ConstantArm:
        """The arm with the highest mean reward over the rows."""
        means = self.constant_means()
        return ConstantArm(jnp.argmax(means), jnp.max(means))

    def _check_noise(self) -> None:
        if self.noise_var is not None:
            require_nonnegative("noise_var", self.noise_var)


def require_rows(x: PyTree, count: int, of: str) -> PyTree:
    """Contexts (a tree of arrays (N, ...), or None) as JAX arrays, if they have `count` rows.

    A `CredoError` refuses another number of rows than `of` has, no rows, and what is not finite or numeric.
    """
    if count < 1:
        raise CredoError(f"{of} must have at least one row; got none.", field=of)
    x = np.asarray(x) if isinstance(x, list) else x
    require_numbers("x", x)
    if any(np.shape(leaf)[:1] != (count,) for leaf in jax.tree.leaves(x)):
        raise CredoError(
            f"x must have one row for each of the {count} rows of {of}; got shape {shapes_of(x)}.", field="x"
        )
    for leaf in jax.tree.leaves(x):
        require_finite("x", leaf)
    return jax.tree.map(jnp.asarray, x)


def require_finite(field: str, values: ArrayLike) -> None:
    """Refuse an array with a NaN or an infinity; the message names the first row that has one."""
    if isinstance(values, Tracer):
        return
    bad = ~np.isfinite(np.asarray(values))
    if bad.any():
        raise CredoError(
            f"{field} must be finite; row {int(np.argwhere(bad)[0][0])} (counted from 0) is not.", field=field
        )


@record
class KnownRewards(KnownMeans):
    """Rows of data with the reward of every arm, of which an agent sees the chosen one.

    Arguments:
        x: the contexts, a pytree of arrays (N, ...) without gaps, or None for none.
        rewards: the rewards of all arms (N, K), finite.
        arms: the number K of arms; by default the number of columns of `rewards`.
        noise_var: the variance of Gaussian noise on the rewards, or None for none.
        shuffle: whether every run has the rows in an order of its own, drawn from its key.

    Raises:
        CredoError: `rewards` has no arms or is not finite, or x does not have one finite row for each of it.

    Cost: a step reads one row. The data are held once, whatever the number of runs.

    Example:
        >>> world = KnownRewards(None, jnp.array([[0.0, 2.0], [1.0, 2.0]]), shuffle=False)
        >>> always = world.best_constant()
        >>> int(always.arm), float(always.reward), float(world.regret(world.start(0), 0))
        (1, 2.0, 2.0)
    """

    x: PyTree
    rewards: ArrayLike
    arms: int = static_field(default=0)
    noise_var: ArrayLike | None = None
    shuffle: bool = static_field(default=True)

    def __post_init__(self) -> None:
        self._check_noise()
        try:
            rewards = jnp.asarray(self.rewards)
        except (TypeError, ValueError):
            raise CredoError("rewards must be an array (N, K) of numbers.", field="rewards") from None
        if rewards.ndim != 2 or rewards.shape[1] not in ([self.arms] if self.arms else range(1, 2**31)):
            raise CredoError(
                f"rewards must have the shape (N, {self.arms or 'K'}), a column for each arm; got "
                f"{rewards.shape}.",
                field="rewards",
            )
        if not jnp.issubdtype(rewards.dtype, jnp.floating):
            rewards = rewards.astype(jnp.result_type(float))
        require_finite("rewards", rewards)
        object.__setattr__(self, "x", require_rows(self.x, len(rewards), "rewards"))
        object.__setattr__(self, "rewards", rewards)
        object.__setattr__(self, "arms", rewards.shape[1])

    @property
    def size(self) -> int:
        """The number N of rows."""
        return jnp.shape(self.rewards)[0]

    def payoffs(self, row: Array) -> Array:
        """The rewards of the row (K,)."""
        return jnp.asarray(self.rewards)[row]

    def constant_means(self) -> Array:
        """The mean of every column (K,)."""
        return jnp.mean(jnp.asarray(self.rewards), axis=0)


@record
class Classification(KnownMeans):
    """Rows of a classification: the arm that is the row's class earns 1, every other arm 0.

    Only the reward of the chosen arm is seen, so a mistake does not tell which class was right.

    Arguments:
        x: the inputs, a pytree of arrays (N, ...) without gaps.
        labels: the classes (N,), whole numbers from 0.
        arms: the number K of classes; by default one more than the highest label.
        noise_var: the variance of Gaussian noise on the rewards, or None for none.
        shuffle: whether every run has the rows in an order of its own, drawn from its key.

    Raises:
        CredoError: a label is no class, or x does not have one finite row for each label.

    Cost: a step reads one row. The data are held once, whatever the number of runs.

    Example:
        >>> world = Classification(np.eye(3), [0, 1, 2])
        >>> state = world.start(0)
        >>> label = int(jnp.argmax(world.context(state).x))
        >>> float(world.reward(state, label, 0)), float(world.regret(state, (label + 1) % 3))
        (1.0, 1.0)
    """

    x: PyTree
    labels: ArrayLike
    arms: int = static_field(default=0)
    noise_var: ArrayLike | None = None
    shuffle: bool = static_field(default=True)

    def __post_init__(self) -> None:
        self._check_noise()
        labels = np.asarray(self.labels)
        if labels.ndim != 1 or labels.dtype.kind not in "iu":
            raise CredoError(
                f"labels must be whole numbers of shape (N,); got shape {labels.shape} and dtype "
                f"{labels.dtype}.",
                field="labels",
            )
        x = require_rows(self.x, len(labels), "labels")
        arms = self.arms or int(labels.max()) + 1
        require_integer("arms", arms, 1)
        if labels.min() < 0 or labels.max() >= arms:
            raise CredoError(
                f"labels must be in 0..{arms - 1}; got {labels.min()} to {labels.max()}.", field="labels"
            )
        object.__setattr__(self, "x", x)
        object.__setattr__(self, "labels", jnp.asarray(labels, jnp.int32))
        object.__setattr__(self, "arms", arms)

    @property
    def size(self) -> int:
        """The number N of rows."""
        return jnp.shape(self.labels)[0]

    def payoffs(self, row: Array) -> Array:
        """1 for the class of the row and 0 for the others, (K,)."""
        return self._one_hot(jnp.asarray(self.labels)[row])

    def constant_means(self) -> Array:
        """The share of every class in the rows (K,)."""
        counts = jnp.bincount(jnp.asarray(self.labels), length=self.arms)
        return counts.astype(self._dtype) / jnp.asarray(self.size, self._dtype)

    def _one_hot(self, label: Array) -> Array:
        hot: Array = jax.nn.one_hot(label, self.arms, dtype=self._dtype)
        return hot

    @property
    def _dtype(self) -> jnp.dtype:
        """The dtype of rewards: that of the first floating-point inputs."""
        kinds = [leaf.dtype for leaf in jax.tree.leaves(self.x) if jnp.issubdtype(leaf.dtype, jnp.floating)]
        return kinds[0] if kinds else jnp.result_type(float)


class LogColumns(Protocol):
    """The columns of a log that a replay reads, under the names that `LoggedReplay.from_log` expects."""

    @property
    def arms(self) -> tuple[str, ...]:
        """The names of the arms."""
        ...

    @property
    def contexts(self) -> PyTree:
        """The contexts, arrays (N, ...), or None."""
        ...

    @property
    def chosen(self) -> ArrayLike:
        """The arms that were chosen (N,)."""
        ...

    @property
    def rewards(self) -> ArrayLike:
        """Their rewards (N,), NaN if they are missing."""
        ...

    @property
    def propensities(self) -> ArrayLike:
        """The probabilities with which they were chosen (N,)."""
        ...

    @property
    def allowed(self) -> ArrayLike:
        """Which arms could be chosen (N, K)."""
        ...


@record
class LoggedReplay(RowEnvironment):
    """A log, replayed: the reward of a row is known where the agent chooses the arm of the log, else NaN.

    Agents learn nothing from NaN. Where arms were logged at random with equal probability and contexts are
    independent, the rows that remain are distributed as if the agent had acted by itself (Li, Chu, Langford
    and Wang, 2011). With `propensities` p, a row that agrees is kept with probability min(p) / p, which makes
    the same true for other logs; small propensities then cost many rows. The result is exact in distribution,
    for as many steps as rows were kept.

    Arguments:
        x: the contexts, a pytree of arrays (N, ...), or None for none.
        chosen: the arms of the log (N,), from 0.
        rewards: their rewards (N,), NaN if one is missing.
        propensities: the probabilities with which the log chose them (N,), or None if all were equal.
        allowed: which arms could be chosen (N, K), or None for all.
        arms: the number K of arms; by default one more than the highest of `chosen`.
        per_action: whether x has a row for every arm, (N, K, d).
        shuffle: whether every run has the rows in an order of its own; by default they keep that of the log.

    Raises:
        CredoError: a column has the wrong shape or values that it cannot have; the message names it.

    Example:
        >>> world = LoggedReplay(None, chosen=np.array([0, 1]), rewards=np.array([5.0, 7.0]))
        >>> state = world.start(0)
        >>> float(world.reward(state, 0, 0)), float(world.reward(state, 1, 0))
        (5.0, nan)
    """

    x: PyTree
    chosen: ArrayLike
    rewards: ArrayLike
    propensities: ArrayLike | None = None
    allowed: ArrayLike | None = None
    arms: int = static_field(default=0)
    per_action: bool = static_field(default=False)
    shuffle: bool = static_field(default=False)

    def __post_init__(self) -> None:
        chosen = np.asarray(self.chosen)
        rewards = np.asarray(self.rewards)
        if chosen.ndim != 1 or chosen.dtype.kind not in "iu":
            raise CredoError(
                f"chosen must be whole numbers of shape (N,); got shape {chosen.shape} and dtype "
                f"{chosen.dtype}.",
                field="chosen",
            )
        require_numbers("rewards", rewards)
        x = require_rows(self.x, len(chosen), "chosen")
        arms = self.arms or int(chosen.max()) + 1
        require_integer("arms", arms, 1)
        require_interval("chosen", chosen, 0, arms - 1)
        _require_shape("rewards", rewards, chosen.shape)
        if np.isinf(rewards).any():
            raise CredoError("rewards must be finite, or NaN where one is missing; got inf.", field="rewards")
        columns: dict[str, object] = {"x": x, "chosen": jnp.asarray(chosen, jnp.int32), "arms": arms}
        columns["rewards"] = jnp.asarray(rewards, jnp.result_type(float))
        if self.propensities is not None:
            propensities = np.asarray(self.propensities)
            _require_shape("propensities", propensities, chosen.shape)
            if not ((propensities > 0) & (propensities <= 1)).all():
                raise CredoError("propensities must be above 0 and at most 1.", field="propensities")
            columns["propensities"] = jnp.asarray(propensities, jnp.result_type(float))
        if self.allowed is not None:
            allowed = np.asarray(self.allowed, bool)
            _require_shape("allowed", allowed, (len(chosen), arms))
            if not allowed[np.arange(len(chosen)), chosen].all():
                raise CredoError(
                    "allowed must be true for the arm that was chosen, in every row.", field="allowed"
                )
            columns["allowed"] = jnp.asarray(allowed)
        for name, value in columns.items():
            object.__setattr__(self, name, value)

    @classmethod
    def from_log(cls, log: LogColumns, *, per_action: bool = False, shuffle: bool = False) -> LoggedReplay:
        """The replay of a log.

        Arguments:
            log: anything with the columns of `LogColumns`.
            per_action: whether its contexts have a row for every arm.
            shuffle: whether every run has the rows in an order of its own.

        Returns:
            The environment, which keeps rows by their propensities.

        Raises:
            CredoError: as for the class.
        """
        return cls(
            log.contexts,
            log.chosen,
            log.rewards,
            propensities=log.propensities,
            allowed=log.allowed,
            arms=len(log.arms),
            per_action=per_action,
            shuffle=shuffle,
        )

    @property
    def size(self) -> int:
        """The number N of rows."""
        return jnp.shape(self.chosen)[0]

    @property
    def design(self) -> ContextDesign:
        """ "actions" where x has a row for every arm, else "outputs"."""
        if self.per_action:
            return "actions"
        return "outputs"

    def context(self, state: RowsState) -> Context:
        """The context of the row, and the arms that could be chosen."""
        context = super().context(state)
        if self.allowed is None:
            return context
        return Context(context.x, jnp.asarray(self.allowed)[state.row])

    def means(self, state: RowsState) -> Array:
        """NaN for every arm (K,): a log does not know them."""
        return jnp.full(self.arms, jnp.nan)

    def reward(self, state: RowsState, arm: ArrayLike, key: Key) -> Array:
        """The logged reward where the arm is that of the log and the row is kept, else NaN."""
        row = state.row
        keep = jnp.asarray(self.chosen)[row] == jnp.asarray(arm, jnp.int32)
        if self.propensities is not None:
            propensities = jnp.asarray(self.propensities)
            # the compiler takes the minimum out of the loop over steps
            share = jnp.min(propensities) / propensities[row]
            keep &= jax.random.uniform(arm_key(key, arm), (), share.dtype) < share
        reward = jnp.asarray(self.rewards)[row]
        return jnp.where(keep, reward, jnp.asarray(jnp.nan, reward.dtype))

    def best_constant(self) -> ConstantArm:
        """The arm with the highest mean logged reward, weighted by the inverse of the propensities."""
        chosen = jnp.asarray(self.chosen)
        rewards = jnp.asarray(self.rewards)
        known = ~jnp.isnan(rewards)
        inverse = jnp.ones_like(rewards) if self.propensities is None else 1 / jnp.asarray(self.propensities)
        weights = jnp.where(known, inverse, 0)
        totals = jax.ops.segment_sum(weights * jnp.where(known, rewards, 0), chosen, self.arms)
        counts = jax.ops.segment_sum(weights, chosen, self.arms)
        means = jnp.where(counts > 0, totals / jnp.where(counts > 0, counts, 1), -jnp.inf)
        return ConstantArm(jnp.argmax(means), jnp.max(means))


def _require_shape(field: str, array: np.ndarray, shape: tuple[int, ...]) -> None:
    if array.shape != shape:
        raise CredoError(f"{field} must have the shape {shape}; got {array.shape}.", field=field)
