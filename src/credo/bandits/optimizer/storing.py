"""What is saved of an optimiser beside its learner: settings and history, as plain JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from credo.bandits.agent import ScaleName
from credo.bandits.optimizer.search import GoalName, RuleName, Search
from credo.bandits.optimizer.space import AnyBounds, Point
from credo.core.errors import FormatError

__all__ = ["Notes", "read_notes", "write_notes"]

NAME = "optimizer"


@dataclass(frozen=True)
class Notes:
    """The settings and the history of an optimiser; the attributes are those of `Optimizer`."""

    bounds: AnyBounds
    goal: GoalName
    policy: RuleName
    width: float | None
    initial: int
    scale: ScaleName | None
    seed: int
    asked: int
    points: list[object]
    values: list[float]
    pending: list[object]


def write_notes(
    search: Search,
    seed: int,
    asked: int,
    points: Sequence[Point],
    values: Sequence[float],
    pending: Sequence[Point],
) -> dict[str, object]:
    """The notes as JSON data. Python writes every double so that it is read back unchanged."""
    return {
        NAME: {
            "bounds": search.space.to_json(),
            "goal": search.goal,
            "policy": search.policy,
            "width": None if search.policy == "thompson" else float(np.asarray(search.width)),
            "initial": search.initial,
            "scale": "online" if search.scaled else None,
            "seed": seed,
            "asked": asked,
            "points": list(map(_plain, points)),
            "values": list(values),
            "pending": list(map(_plain, pending)),
        }
    }


def _plain(point: Point) -> object:
    return point.tolist() if isinstance(point, np.ndarray) else point


def read_notes(meta: Mapping[str, Any], file: str) -> Notes:
    """The notes in a file; a `FormatError` says that there are none."""
    notes = meta.get(NAME)
    if not isinstance(notes, dict) or set(notes) != set(Notes.__dataclass_fields__):
        raise FormatError(f"{file} holds a learner, but no optimizer.")
    bounds = notes["bounds"]
    if isinstance(bounds, dict):
        bounds = {
            name: one["options"] if "options" in one else tuple(one["range"]) for name, one in bounds.items()
        }
    return Notes(**{**notes, "bounds": bounds})
