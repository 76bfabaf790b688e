"""K things of several kinds in one tree: those of one kind are stacked, and the stacks stand side by side.

What is alike can be computed at once by `jax.vmap`, and what is not is computed one kind after another, in
the same compiled program. The functions here take both: a stack (one tree whose arrays have a leading axis K)
and `Groups` of stacks.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Generic, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.errors import CredoError
from credo.core.records import record, static_field
from credo.core.types import Array, PyTree

__all__ = ["Groups", "choose", "each", "grouped", "in_order", "pick", "places_by_kind"]

T = TypeVar("T")


@record
class Groups(Generic[T]):
    """K things of several kinds, one stack a kind.

    `parts` are the stacks, trees whose arrays have a leading axis; `places` are those of their entries among
    all K, from 0, each of which occurs once.
    """

    parts: tuple[T, ...]
    places: tuple[tuple[int, ...], ...] = static_field()

    def __post_init__(self) -> None:
        flat = [place for group in self.places for place in group]
        if len(self.parts) != len(self.places) or sorted(flat) != list(range(len(flat))):
            raise CredoError(f"places must hold 0 to K - 1, each of them once; got {self.places}.")

    @property
    def size(self) -> int:
        """The number K of things."""
        return sum(len(group) for group in self.places)


def places_by_kind(kinds: Sequence[Hashable]) -> tuple[tuple[int, ...], ...]:
    """The places of equal kinds, in the order in which the kinds come first."""
    found: list[Hashable] = []
    places: list[list[int]] = []
    for index, kind in enumerate(kinds):
        if kind not in found:
            found.append(kind)
            places.append([])
        places[found.index(kind)].append(index)
    return tuple(tuple(group) for group in places)


def grouped(things: Sequence[T], places: tuple[tuple[int, ...], ...]) -> Groups[T]:
    """K things as `Groups`, where those of one group have equal structures and shapes."""
    parts = [_stacked([things[place] for place in group]) for group in places]
    return Groups(tuple(parts), places)


def _stacked(things: Sequence[T]) -> T:
    stacked: T = jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(leaf) for leaf in leaves]), *things)
    return stacked


def each(function: Callable[..., T], *stacks: Any) -> T | Groups[T]:
    """A function of every one of K things, as a stack or `Groups`: `jax.vmap` over the stack, or over each.

    Beside `Groups`, a tree with a leading axis K is in the order of all K things.
    """
    places = next((stack.places for stack in stacks if isinstance(stack, Groups)), None)
    if places is None:
        results: T = jax.vmap(function)(*stacks)
        return results
    parts = [
        jax.vmap(function)(*(_part(stack, index, group) for stack in stacks))
        for index, group in enumerate(places)
    ]
    return Groups(tuple(parts), places)


def _part(stack: Any, index: int, group: tuple[int, ...]) -> Any:
    if isinstance(stack, Groups):
        return stack.parts[index]
    return jax.tree.map(lambda leaf: leaf[np.asarray(group)], stack)


def in_order(stack: T | Groups[T]) -> T:
    """Results of equal structure and shape as one stack, in the order of all K things."""
    if not isinstance(stack, Groups):
        return stack
    shapes = [jax.tree.map(lambda leaf: leaf.shape[1:], part) for part in stack.parts]
    odd = next((index for index, shape in enumerate(shapes) if shape != shapes[0]), None)
    if odd is not None:
        first = stack.places[0][0]
        other = stack.places[odd][0]
        raise CredoError(
            f"the answers of all members must have one shape; number {first} answers {shapes[0]} and "
            f"number {other} answers {shapes[odd]}."
        )
    runs = _runs(stack.places)

    def join(*leaves: Array) -> Array:
        widest = max((leaf.dtype for leaf in leaves), key=lambda kind: (kind.kind == "f", kind.itemsize))
        return jnp.concatenate([leaves[part][start:stop].astype(widest) for part, start, stop in runs])

    joined: T = jax.tree.map(join, *stack.parts)
    return joined


def _runs(places: Sequence[Sequence[int]]) -> list[tuple[int, int, int]]:
    """The order of all things, as slices (part, start, stop) of the parts that they stand in."""
    runs: list[tuple[int, int, int]] = []
    origin = {place: (part, at) for part, group in enumerate(places) for at, place in enumerate(group)}
    for place in sorted(origin):
        part, at = origin[place]
        if runs and runs[-1][0] == part and runs[-1][2] == at:
            runs[-1] = (part, runs[-1][1], at + 1)
        else:
            runs.append((part, at, at + 1))
    return runs


def pick(stack: T | Groups[T], index: int | Array) -> T:
    """One of K things; of `Groups` by a place that is known, since unlike things have unlike types."""
    if isinstance(stack, Groups):
        where = next(i for i, group in enumerate(stack.places) if int(index) in group)
        inside: T = pick(stack.parts[where], stack.places[where].index(int(index)))
        return inside
    entry: T = jax.tree.map(lambda leaf: leaf[index], stack)
    return entry


def choose(stack: PyTree, index: Array, function: Callable[..., T], *values: Any) -> T:
    """A function of one of K things, whose place may be traced; unlike things must give like results."""
    if not isinstance(stack, Groups):
        value: T = function(pick(stack, index), *values)
        return value
    within = np.zeros(stack.size, np.int32)
    group_of = np.zeros(stack.size, np.int32)
    for number, group in enumerate(stack.places):
        within[list(group)] = np.arange(len(group))
        group_of[list(group)] = number

    def branch(part: Any) -> Callable[..., T]:
        return lambda at, *inner: function(pick(part, at), *inner)

    branches = [branch(part) for part in stack.parts]
    shapes = [jax.eval_shape(one, jnp.asarray(0), *values) for one in branches]
    kinds = [jax.tree.map(lambda leaf: (leaf.shape, str(leaf.dtype)), shape) for shape in shapes]
    if any(kind != kinds[0] for kind in kinds):
        raise CredoError(
            "draws from these learners have different structures or shapes: draw from one of them."
        )
    result: T = jax.lax.switch(jnp.asarray(group_of)[index], branches, jnp.asarray(within)[index], *values)
    return result
