"""The arms of one decision: those of the bandit, or others that a call brings with their features."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from credo.bandits.service.arms import Arms
from credo.bandits.service.inputs import Inputs
from credo.core.types import PyTree

__all__ = ["Asked", "Cast", "Caster", "Lesson", "Names", "as_names"]

Names: TypeAlias = Iterable[str] | Mapping[str, Any] | None
"""The names of arms, the features of arms by name, or None for all arms."""


class Asked(NamedTuple):
    """The arguments of a caller: the context, and the features of arms if the call brought some."""

    context: Any
    features: Mapping[str, Any] | None = None


class Lesson(NamedTuple):
    """A choice to learn from; with features of arms by name where these are not the bandit's own."""

    context: PyTree
    arm: str
    reward: float
    weight: float = 1.0
    features: Mapping[str, Any] | None = None


class Cast(NamedTuple):
    """Arms in slots, and their features by slot (K, e), if any."""

    arms: Arms
    rows: np.ndarray | None


class Caster:
    """Finds the arms of decisions. Calls in a row that bring the same arms share one cast, so that a window
    of decisions holds the features once.
    """

    def __init__(self) -> None:
        self._latest: tuple[Arms, Cast] | None = None

    def cast(
        self, inputs: Inputs, standing: Arms, names: Mapping[str, Any], table: np.ndarray | None, free: bool
    ) -> Cast:
        """The arms that a call brings beside those that stand. Features are taken in, unless they have become
        a `table` before. A CredoError says what cannot be, as if none is allowed that must be `free`.
        """
        found = self._latest
        same = found is not None and found[0] is standing and found[1].arms.names == tuple(names)
        arms = found[1].arms if found is not None and same else standing.brought(names)
        if free:
            arms.limits()  # which refuses them before anything is taken in
        rows = inputs.table(names, len(arms.slots)) if table is None else table
        if found is not None and same:
            if found[1].rows is not None and np.array_equal(rows, found[1].rows):
                return found[1]
            arms = standing.brought(names)  # others, so that arms say which features are theirs
        cast = Cast(arms, rows)
        self._latest = standing, cast
        return cast


def as_names(names: Names) -> Any:
    """The names, to be gone through more than once."""
    if names is None or isinstance(names, str | Mapping):
        return names
    return tuple(names)
