"""The tasks, and what their targets are; `credo.recipes.tasks` says how they are learned."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from credo.core.names import Task
from credo.tables.cells import is_count

__all__ = ["TARGET_KINDS", "TargetKind"]


@dataclass(frozen=True)
class TargetKind:
    """The kind of the targets of a task: as what they are learned (numbers of classes, in units of the spread
    of those before, or as they come), which numbers may be targets (None: all), what such a number is called
    and is, and whether each has a probability, as whole ones do.
    """

    unit: Literal["class", "spread", "own"]
    allowed: Callable[[np.ndarray], np.ndarray] | None = None
    name: str = "number"
    meaning: str = ""
    whole: bool = False

    @property
    def classed(self) -> bool:
        """Whether targets are classes."""
        return self.unit == "class"

    @property
    def standardised(self) -> bool:
        """Whether targets are standardised."""
        return self.unit == "spread"

    def refused(self, values: np.ndarray) -> list[int]:
        """The places of the numbers that may not be targets; NaN stands for no number."""
        if self.allowed is None:
            return []
        refused: list[int] = np.flatnonzero(~np.isnan(values) & ~self.allowed(values)).tolist()
        return refused


TARGET_KINDS: Mapping[Task, TargetKind] = {
    "classification": TargetKind("class"),
    "regression": TargetKind("spread"),
    "count": TargetKind("own", is_count, "count", "whole numbers from 0", whole=True),
}
"""The kind of the targets of each task."""
