"""What the rows of a scan report, as few arrays."""

from __future__ import annotations

from typing import Generic, TypeVar

import jax
import jax.numpy as jnp

from credo.core.types import Array

__all__ = ["Columns"]

T = TypeVar("T")


class Columns(Generic[T]):
    """How the report of a row is laid out while a scan collects it: the numbers of a dtype as one vector.
    Each array of a trace costs a kernel, and with more than eight of them XLA wakes another thread, which
    costs more than a step of a small learner.
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
