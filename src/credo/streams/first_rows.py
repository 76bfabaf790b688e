"""The loop over the rows of a chunk: as many as there are, so that a row costs a row."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import jax
import jax.numpy as jnp

from credo.core.types import Array, ArrayLike

__all__ = ["each_row", "first_rows"]

C = TypeVar("C")
T = TypeVar("T")


def first_rows(
    step: Callable[[C, Array], tuple[C, T]], carry: C, length: int, count: ArrayLike
) -> tuple[C, T]:
    """Go through the numbers of the first `count` of `length` rows, in a compiled program: what `step`
    carried on in the end, and its reports with a leading axis of all rows, 0 behind the first ones.
    """
    shapes = jax.eval_shape(step, carry, jnp.zeros((), jnp.int32))[1]
    blank: T = jax.tree.map(lambda one: jnp.zeros((length, *one.shape), one.dtype), shapes)

    def write(row: Array, state: tuple[C, T]) -> tuple[C, T]:
        carry, report = step(state[0], row)
        return carry, jax.tree.map(lambda whole, one: whole.at[row].set(one), state[1], report)

    end: tuple[C, T] = jax.lax.fori_loop(0, jnp.asarray(count, jnp.int32), write, (carry, blank))
    return end


def each_row(answer: Callable[[Array], T], length: int, count: ArrayLike) -> T:
    """The answers to the numbers of the first `count` of `length` rows; see `first_rows`."""
    return first_rows(lambda nothing, row: (nothing, answer(row)), (), length, count)[1]
