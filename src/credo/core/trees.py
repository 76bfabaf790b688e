"""Parameter trees as flat vectors and back, choosing between whole trees, and the names of leaves."""

from __future__ import annotations

import math
from fnmatch import fnmatchcase
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.errors import CredoError, require_representable
from credo.core.inputs import require_numbers
from credo.core.records import record, static_field
from credo.core.types import ArrayLike, DTypeLike, PyTree

__all__ = ["Unravel", "all_finite", "as_like", "blank_row", "fits", "leaf_names", "ravel", "select", "spread"]

T = TypeVar("T")

LANES = 256
"""The length of the rows that a long vector is read in."""


@record
class Unravel:
    """The map from a vector (P,) to the tree of parameters; equal ones let models share one trace."""

    treedef: Any = static_field()
    shapes: tuple[tuple[int, ...], ...] = static_field()
    dtypes: tuple[str, ...] = static_field()

    @property
    def size(self) -> int:
        """The number P of parameters."""
        return sum(math.prod(shape) for shape in self.shapes)

    def __call__(self, vector: jax.Array) -> PyTree:
        """Rebuild the tree from `vector` (..., P). Leading axes stay leading in every leaf."""
        leaves = []
        start = 0
        for shape, dtype in zip(self.shapes, self.dtypes, strict=True):
            size = math.prod(shape)
            part = jax.lax.slice_in_dim(vector, start, start + size, axis=vector.ndim - 1)
            leaves.append(part.reshape(vector.shape[:-1] + shape).astype(dtype))
            start += size
        return jax.tree.unflatten(self.treedef, leaves)


def ravel(params: PyTree) -> tuple[jax.Array, Unravel]:
    """A tree of real floating-point arrays as one vector (P,), and the `Unravel` that inverts the layout."""
    leaves, treedef = jax.tree.flatten(params)
    if not leaves:
        raise CredoError("params must hold at least one array; got an empty tree.")
    require_numbers("params", params)
    arrays = [jnp.asarray(leaf) for leaf in leaves]
    for path, leaf in zip(jax.tree_util.tree_leaves_with_path(params), arrays, strict=True):
        if not jnp.issubdtype(leaf.dtype, jnp.floating):
            name = jax.tree_util.keystr(path[0]) or "the array"
            raise CredoError(f"params must be floating-point arrays; {name} has dtype {leaf.dtype}.")
    dtype = (
        jnp.result_type(*[a.dtype for a in arrays])
        if len({a.dtype for a in arrays}) == 1
        else max((array.dtype for array in arrays), key=lambda dtype: dtype.itemsize)
    )
    vector = jnp.concatenate([a.astype(dtype).reshape(-1) for a in arrays])
    return vector, Unravel(treedef, tuple(a.shape for a in arrays), tuple(str(a.dtype) for a in arrays))


def spread(value: PyTree, unravel: Unravel, dtype: DTypeLike, *, field: str) -> jax.Array:
    """Every parameter's number (P,), from a scalar, a vector (P,) or a tree that broadcasts to theirs."""
    size = unravel.size
    for leaf in jax.tree.leaves(value):
        require_representable(field, leaf)
    if jax.tree.structure(value) == unravel.treedef and not jax.tree_util.treedef_is_leaf(unravel.treedef):
        leaves = zip(jax.tree.leaves(value), unravel.shapes, strict=True)
        try:
            parts = [jnp.broadcast_to(jnp.asarray(leaf, dtype), shape).reshape(-1) for leaf, shape in leaves]
        except ValueError as error:
            raise CredoError(
                f"{field} must have leaves that broadcast to those of params; {error}."
            ) from None
        return jnp.concatenate(parts)
    if not jax.tree_util.all_leaves([value]):
        raise CredoError(f"{field} must be a number, an array ({size},) or a tree of params' structure.")
    array = jnp.asarray(value, dtype)
    if array.ndim == 0 or array.shape == (size,):
        return jnp.broadcast_to(array, (size,))
    if len(unravel.shapes) == 1 and array.size == size:
        return array.reshape(-1)
    raise CredoError(
        f"{field} must be a number, an array ({size},) or a tree of params' structure; got shape "
        f"{array.shape}."
    )


def all_finite(tree: PyTree) -> jax.Array:
    """Whether every floating-point entry of every leaf is finite: a boolean scalar."""
    flags = [
        jnp.isfinite(_void(jax.lax.stop_gradient(jnp.asarray(a))))
        for a in jax.tree.leaves(tree)
        if jnp.issubdtype(jnp.asarray(a).dtype, jnp.floating)
    ]
    if flags:
        return jnp.all(jnp.stack(flags))
    return jnp.asarray(True)


def _void(array: jax.Array) -> jax.Array:
    """Zero where every entry is finite, and otherwise NaN."""
    # 0 times an infinity or a NaN is NaN: a sum of numbers is 3 times faster here than one of booleans. Long
    # vectors are added up as the rows of a matrix, which takes XLA's CPU code a third of the time.
    count = array.size // LANES
    if array.ndim != 1 or count < LANES:
        return jnp.sum(0 * array)
    rows = jnp.sum(0 * array[: count * LANES].reshape(count, LANES), axis=0)
    return jnp.sum(rows) + jnp.sum(0 * array[count * LANES :])


def select(accept: jax.Array, new: T, old: T) -> T:
    """The tree `new` where the boolean scalar `accept` is True, and otherwise the tree `old`, bit by bit."""
    chosen: T = jax.tree.map(lambda a, b: jnp.where(accept, a, b), new, old)
    return chosen


def blank_row(rows: PyTree, depth: int) -> PyTree:
    """Zeros with the shapes and dtypes of one entry of a stack, whose leaves have `depth` leading axes."""
    return jax.tree.map(lambda leaf: np.zeros(np.shape(leaf)[depth:], leaf.dtype), rows)


def as_like(value: ArrayLike, like: jax.Array) -> jax.Array:
    """Cast a hyper-parameter to the dtype of the array it meets, so that a belief keeps its dtype."""
    return jnp.asarray(value).astype(like.dtype)


def leaf_names(tree: PyTree) -> list[str]:
    """The path of each leaf: keys and positions joined by dots, such as "2.w"."""
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return [jax.tree_util.keystr(path, simple=True, separator=".") for path, _ in leaves]


def fits(path: str, name: str) -> bool:
    """Whether a name means the leaf at a path: its path, the path of a part that holds it, or a pattern."""
    return fnmatchcase(path, name) or fnmatchcase(path, f"{name}.*")
