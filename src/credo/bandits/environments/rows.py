"""What environments on rows of data share: the order of the rows, and the step from one to the next."""

from __future__ import annotations

from abc import abstractmethod

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from credo.bandits.environments.base import ConstantArm, Context, Environment, arm_key, every_arm
from credo.bandits.environments.noise import add_noise
from credo.core.errors import CredoError, require_nonnegative
from credo.core.inputs import require_numbers, shapes_of
from credo.core.keys import as_key
from credo.core.records import record
from credo.core.trees import as_like
from credo.core.types import Array, ArrayLike, Key, PyTree

__all__ = ["KnownMeans", "RowEnvironment", "RowsState", "require_finite", "require_rows"]


@record
class RowsState:
    """Where a run stands in the rows.

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
        """The mean reward of the arm in the row, and Gaussian noise where there is some."""
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
