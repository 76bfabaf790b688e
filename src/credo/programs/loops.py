"""The loop over the rows of a chunk, in which a row costs a row, and the layout of what they report."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import jax
import jax.numpy as jnp
from jax.extend.core import jaxpr_as_fun

from credo.core.types import Array, ArrayLike
from credo.programs.repeats import once

__all__ = ["Columns", "each_row", "first_rows"]

C = TypeVar("C")
T = TypeVar("T")


def first_rows(
    step: Callable[[C, Array], tuple[C, T]], carry: C, length: int, count: ArrayLike
) -> tuple[C, T]:
    """Go through the numbers of the first `count` of `length` rows, in a compiled program: what `step`
    carried on in the end, and its reports with a leading axis of all rows, 0 behind the first ones.
    """
    # the shapes of a report come from the one trace of the step: tracing a bank takes seconds
    traced, shapes = jax.make_jaxpr(step, return_shape=True)(carry, jnp.zeros((), jnp.int32))
    sparing = once(traced)
    structure = jax.tree.structure(shapes)
    blank: T = jax.tree.map(lambda one: jnp.zeros((length, *one.shape), one.dtype), shapes[1])

    def write(row: Array, state: tuple[C, T]) -> tuple[C, T]:
        leaves = jaxpr_as_fun(sparing)(*jax.tree.leaves((state[0], row)))
        carry, report = jax.tree.unflatten(structure, leaves)
        return carry, jax.tree.map(lambda whole, one: whole.at[row].set(one), state[1], report)

    end: tuple[C, T] = jax.lax.fori_loop(0, jnp.asarray(count, jnp.int32), write, (carry, blank))
    return end


def each_row(answer: Callable[[Array], T], length: int, count: ArrayLike) -> T:
    """The answers to the numbers of the first `count` of `length` rows; see `first_rows`."""
    return first_rows(lambda nothing, row: (nothing, answer(row)), (), length, count)[1]


class Columns(Generic[T]):
    """The layout of the report of a row while a scan collects it: the numbers of a dtype as one vector. Each
    array of a trace costs a kernel, and with more than eight of them XLA wakes another thread, which costs
    more than a step of a small learner.
    """

    def __init__(self, report: T) -> None:
        leaves, self._structure = jax.tree.flatten(report)
        groups: dict[object, list[int]] = {}
        for place, leaf in enumerate(leaves):
            groups.setdefault(place if leaf.ndim else leaf.dtype, []).append(place)
        self._groups = list(groups.values())

    def gather(self, report: T) -> list[Array]:
        """The arrays of a row."""
        leaves = jax.tree.leaves(report)
        return [
            leaves[group[0]] if len(group) == 1 else jnp.stack([leaves[place] for place in group])
            for group in self._groups
        ]

    def part(self, arrays: list[Array]) -> T:
        """The reports of all rows, from their arrays with a leading axis of time."""
        leaves: dict[int, Array] = {}
        for group, array in zip(self._groups, arrays, strict=True):
            parts = [array] if len(group) == 1 else [array[:, index] for index in range(len(group))]
            leaves.update(zip(group, parts, strict=True))
        reports: T = jax.tree.unflatten(self._structure, [leaves[place] for place in sorted(leaves)])
        return reports
