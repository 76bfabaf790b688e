"""The gradients of a log-likelihood, row by row of a batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, TypeVar

import jax
import jax.numpy as jnp

from credo.core.errors import CredoError
from credo.core.types import Array, PyTree
from credo.ekf.transform import LogLikelihood, is_number

__all__ = ["fold", "row_gradient", "row_total", "tidy", "whole_aux"]

T = TypeVar("T")

C = TypeVar("C")
"""The values that are carried from chunk to chunk."""

Row: TypeAlias = Callable[[PyTree, PyTree], tuple[tuple[Array, PyTree], PyTree]]
"""(params, one row) -> ((value, aux), gradient)."""


def row_total(batch: PyTree) -> int:
    """The number B of rows, the common length of the leading axis of the batch's arrays."""
    sizes: dict[str, int] = {}
    for path, leaf in jax.tree_util.tree_leaves_with_path(batch):
        name = "batch" + jax.tree_util.keystr(path)
        if jnp.ndim(leaf) == 0:
            raise CredoError(f"{name} must have a leading axis, one entry a row; got a scalar.")
        sizes[name] = jnp.shape(leaf)[0]
    if not sizes:
        raise CredoError(f"batch must hold at least one array with a leading axis of rows; got {batch!r}.")
    if len(set(sizes.values())) > 1:
        lengths = ", ".join(f"{name}: {size}" for name, size in sizes.items())
        raise CredoError(f"all arrays of batch must have the same number of rows; got {lengths}.")
    count = next(iter(sizes.values()))
    if count == 0:
        raise CredoError("batch must hold at least one row; got 0.")
    return count


def row_gradient(log_likelihood: LogLikelihood, per_sample: bool) -> Row:
    """The value, aux and gradient of one row as a batch of one, where sum and average agree."""

    def value(params: PyTree, row: PyTree) -> tuple[Array, PyTree]:
        number, aux = _pair(log_likelihood(params, jax.tree.map(lambda leaf: leaf[None], row)))
        shape = (1,) if per_sample else ()
        if number.shape != shape:
            what = "one number a row, shape (1,) for one row" if per_sample else "one number for its batch"
            other = "" if number.shape not in ((), (1,)) else f"; or build with per_sample={not per_sample}"
            raise CredoError(
                f"log_likelihood must return {what}, when per_sample={per_sample}; got shape {number.shape}"
                f"{other}."
            )
        return number.reshape(()), aux

    gradient: Row = jax.value_and_grad(value, has_aux=True)
    return gradient


def _pair(result: object) -> tuple[Array, PyTree]:
    """The value and the aux that a log-likelihood returned."""
    if not isinstance(result, tuple) or len(result) != 2:
        got = f"a tuple of {len(result)}" if isinstance(result, tuple) else type(result).__name__
        raise CredoError(
            f"log_likelihood must return two things, (value, aux), with None for aux where there is nothing "
            f"to hand on; got {got}."
        )
    value, aux = result
    if not is_number(value):
        raise CredoError(f"log_likelihood must return a number as its value; got {type(value).__name__}.")
    value = jnp.asarray(value)
    if not jnp.issubdtype(value.dtype, jnp.floating):
        raise CredoError(f"log_likelihood must return a real number; got dtype {value.dtype}.")
    for path, leaf in jax.tree_util.tree_leaves_with_path(aux):
        if not is_number(leaf):
            name = "aux" + jax.tree_util.keystr(path)
            raise CredoError(f"{name} must be an array, as compiled code hands aux on; got {leaf!r}.")
    return value, jax.tree.map(jnp.asarray, aux)


def whole_aux(log_likelihood: LogLikelihood, params: PyTree, batch: PyTree, count: int) -> PyTree:
    """The aux of a function that takes the whole batch and returns one value a row."""
    value, aux = _pair(log_likelihood(params, batch))
    if value.shape != (count,):
        raise CredoError(
            f"log_likelihood must return one number a row, shape ({count},) for this batch, when "
            f"per_sample=True; got shape {value.shape}."
        )
    return aux


def tidy(aux: PyTree) -> PyTree:
    """The aux, or None if it has no elements, so that the state has one structure from the start."""
    if any(leaf.size for leaf in jax.tree.leaves(aux)):
        return aux
    return None


def fold(
    step: Callable[[C, PyTree], tuple[C, PyTree]], carry: C, batch: PyTree, count: int, size: int
) -> tuple[C, PyTree]:
    """Scan `step(carry, chunk) -> (carry, out)` over chunks of `size` rows; the last may be shorter."""
    whole = count // size if size < count else 0
    outs = []
    if whole:
        cut = whole * size
        chunks = jax.tree.map(lambda leaf: leaf[:cut].reshape(whole, size, *leaf.shape[1:]), batch)
        carry, out = jax.lax.scan(step, carry, chunks, unroll=2 if size == 1 else 1)
        outs.append(jax.tree.map(lambda leaf: leaf.reshape(cut, *leaf.shape[2:]), out))
        batch = jax.tree.map(lambda leaf: leaf[cut:], batch)
    if whole * size < count:
        carry, out = step(carry, batch)
        outs.append(out)
    return carry, jax.tree.map(lambda *leaves: jnp.concatenate(leaves) if whole else leaves[0], *outs)


def each(function: Callable[[PyTree], T], chunk: PyTree) -> T:
    """`function` of every row of a chunk, stacked; without `vmap` if there is one row."""
    if jax.tree.leaves(chunk)[0].shape[0] == 1:
        one = function(jax.tree.map(lambda leaf: leaf[0], chunk))
        stack: T = jax.tree.map(lambda leaf: leaf[None], one)
    else:
        stack = jax.vmap(function)(chunk)
    return stack
