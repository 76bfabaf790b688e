"""A classification as a bandit: the arms are the classes, and the right one earns 1."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from credo.bandits.environments.rows import KnownMeans, require_rows
from credo.core.errors import CredoError, require_integer
from credo.core.records import record, static_field
from credo.core.types import Array, ArrayLike, PyTree

__all__ = ["Classification"]


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
