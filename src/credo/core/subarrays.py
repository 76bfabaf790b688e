"""Arrays inside larger ones: where the parameters of a model stand among those of a wider model.

A leaf of the parameters of a model is a *corner* of the leaf of a wider one: rows and columns of new
features, outputs or units are appended at the end of an axis. The functions here work on concrete arrays,
outside compiled programs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.errors import CredoError
from credo.core.trees import Unravel, leaf_names
from credo.core.types import Array, PyTree

__all__ = ["at_corner", "beside", "corners", "put", "put_corners", "require_alike"]


def corners(before: Unravel, after: Unravel) -> np.ndarray:
    """The places (P,) of the parameters of a model in the flat vector of those of a wider one."""
    names = _names(before)
    others = _names(after)
    if before.treedef != after.treedef:
        raise CredoError(
            f"params must have the leaves of the belief, which are {_listed(names)}; got {_listed(others)}.",
            field="params",
        )
    places = []
    start = 0
    for index, (old, new) in enumerate(zip(before.shapes, after.shapes, strict=True)):
        name = f"{names[index]} " if names[index] else ""
        if not _holds(old, new):
            raise CredoError(
                f"params must hold every leaf of the belief as a corner; {name}has shape {old} in the belief "
                f"and {new} in params.",
                field="params",
            )
        if before.dtypes[index] != after.dtypes[index]:
            raise CredoError(
                f"params must have the dtypes of the belief; {name}is {before.dtypes[index]} in the belief "
                f"and {after.dtypes[index]} in params.",
                field="params",
            )
        size = math.prod(new)
        inside = tuple(slice(0, length) for length in old)
        places.append((start + np.arange(size)).reshape(new)[inside].reshape(-1))
        start += size
    return np.concatenate(places)


def _names(layout: Unravel) -> list[str]:
    return leaf_names(jax.tree.unflatten(layout.treedef, range(len(layout.shapes))))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(name or "one array" for name in names)


def _holds(old: Sequence[int], new: Sequence[int]) -> bool:
    return len(old) == len(new) and all(a <= b for a, b in zip(old, new, strict=True))


def beside(places: np.ndarray, size: int) -> np.ndarray:
    """The other places of a vector of the given size, in order."""
    free = np.ones(size, bool)
    free[places] = False
    return np.flatnonzero(free)


def require_alike(before: tuple[int, ...], after: tuple[int, ...]) -> None:
    """Refuse a wider belief with other axes before the parameters': of members, slots or particles."""
    if before != after:
        raise CredoError(
            "a belief can be widened in its parameters only; the axes before them have lengths "
            f"{before} in the belief and {after} in the wider one."
        )


def put(old: Array, new: Array, places: np.ndarray) -> Array:
    """The array `new` (..., P') with `old` (..., P) at P places of its last axis."""
    require_alike(jnp.shape(old)[:-1], jnp.shape(new)[:-1])
    whole = np.array(new)
    whole[..., places] = np.asarray(old)
    return jnp.asarray(whole)


def at_corner(name: str, old: Array, new: Array) -> Array:
    """The array `new` with `old`, of the same dtype, at the beginning of every axis."""
    before = jnp.shape(old)
    after = jnp.shape(new)
    if before == after:
        return old
    if not _holds(before, after):
        raise CredoError(
            f"a belief can only grow; {name} has shape {before} in the belief and {after} in the wider one."
        )
    whole = np.array(new)
    whole[tuple(slice(0, length) for length in before)] = np.asarray(old)
    return jnp.asarray(whole)


def put_corners(name: str, old: PyTree, new: PyTree) -> PyTree:
    """`at_corner` for every leaf of two trees."""
    kinds: list[object] = [jax.tree.structure(old), jax.tree.structure(new)]
    if kinds[0] != kinds[1]:
        raise CredoError(
            f"a belief can be widened only for a learner of its kind; {name} has another structure in the "
            "wider belief."
        )
    names = [f"{name}.{leaf}".rstrip(".") for leaf in leaf_names(new)]
    pairs = zip(names, jax.tree.leaves(old), jax.tree.leaves(new), strict=True)
    return jax.tree.unflatten(jax.tree.structure(new), [at_corner(*triple) for triple in pairs])
