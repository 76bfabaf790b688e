"""Room for classes that the first rows did not show.

A new class gets an output of the network. Outputs are added several at a time, so that a program is compiled
anew for few of the classes; those that no class has taken yet have no probability (`OpenCategorical`). All
that was learned stays, and the parameters of the new outputs begin at the prior. So a stream without new
classes has the network, the belief and the results that it would have without any of this.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from credo.adapt import Bank
from credo.core.groups import Groups
from credo.core.records import replace
from credo.core.types import Array, PyTree

__all__ = ["embed", "embed_bank", "positions", "slots"]

B = TypeVar("B")

_AT_LEAST = 4
"""The least number of outputs that are added at a time."""


def slots(first: int, classes: int) -> int:
    """How many classes a network has room for.

    Arguments:
        first: how many classes the first rows showed; 0 where the classes are fixed.
        classes: how many there are now.

    Example:
        >>> [slots(3, classes) for classes in (3, 4, 7, 8, 12)], slots(0, 5)
        ([3, 7, 7, 11, 16], 5)
    """
    room = first or classes
    while room < classes:
        room += max(_AT_LEAST, room // 2)
    return room


def positions(before: PyTree, after: PyTree) -> np.ndarray:
    """Where the P parameters of a network stand in those of a wider one, as places in a flat vector (P,).

    Arguments:
        before, after: the parameters or their shapes, each leaf of which is a corner of the wider one.

    Example:
        >>> positions({"w": np.zeros((2, 1))}, {"w": np.zeros((2, 3))}).tolist()
        [0, 3]
    """
    places, start = [], 0
    for old, new in zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True):
        size = int(np.prod(new.shape))
        corner = tuple(slice(0, length) for length in old.shape)
        places.append((start + np.arange(size)).reshape(new.shape)[corner].reshape(-1))
        start += size
    return np.concatenate(places)


def embed(belief: B, fresh: B, places: np.ndarray) -> B:
    """What was learned, inside the prior belief of a wider network.

    A mean gets the entries of the new parameters from the prior, and so do variances; a covariance or its
    factor gets their rows and columns, by which they are independent of all others.

    Arguments:
        belief: the belief so far.
        fresh: the prior belief of the wider network.
        places: from `positions`.
    """
    size = len(places)
    leaves, structure = jax.tree.flatten(fresh)

    def inside(old: Array, new: Array) -> Array:
        if jnp.shape(old) == jnp.shape(new):
            return old
        whole = np.array(new)
        # an axis of parameters is spread out; that of a network's own arrays grows at its end
        axes = [
            places if before == size and before != after else np.arange(before)
            for before, after in zip(jnp.shape(old), whole.shape, strict=True)
        ]
        whole[np.ix_(*axes)] = np.asarray(old)
        return jnp.asarray(whole)

    wider: B = jax.tree.unflatten(
        structure, [inside(old, new) for old, new in zip(jax.tree.leaves(belief), leaves, strict=True)]
    )
    return wider


def embed_bank(bank: Bank[Any], fresh: Bank[Any], places: Sequence[np.ndarray]) -> Bank[Any]:
    """What the members of a bank learned, inside the prior beliefs of wider networks; their weights stay.

    Arguments:
        bank: the beliefs so far.
        fresh: the prior beliefs of the wider networks.
        places: from `positions`, for each member.
    """

    def inside(old: Any, new: Any) -> Any:
        if not isinstance(new, Groups):
            return embed(old, new, places[0])
        parts = [
            embed(before, after, places[group[0]])
            for before, after, group in zip(old.parts, new.parts, new.places, strict=True)
        ]
        return Groups(tuple(parts), new.places)

    return replace(bank, beliefs=inside(bank.beliefs, fresh.beliefs), priors=fresh.priors)
