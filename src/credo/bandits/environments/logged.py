"""A log as an environment: what an agent would have earned, from the rows where it agrees with the log."""

from __future__ import annotations

from typing import Protocol

import jax
import jax.numpy as jnp
import numpy as np

from credo.bandits.environments.base import ConstantArm, Context, ContextDesign, arm_key
from credo.bandits.environments.rows import RowEnvironment, RowsState, require_rows
from credo.core.errors import CredoError, require_integer, require_interval
from credo.core.inputs import require_numbers
from credo.core.records import record, static_field
from credo.core.types import Array, ArrayLike, Key, PyTree

__all__ = ["LogColumns", "LoggedReplay"]


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
