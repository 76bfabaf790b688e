"""Rows of data with the reward of every arm."""

from __future__ import annotations

import jax.numpy as jnp

from credo.bandits.environments.rows import KnownMeans, require_finite, require_rows
from credo.core.errors import CredoError
from credo.core.records import record, static_field
from credo.core.types import Array, ArrayLike, PyTree

__all__ = ["KnownRewards"]


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
