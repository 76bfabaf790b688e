"""What is saved of an optimiser beside its learner: settings and history, as plain JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypedDict

import numpy as np

from credo.bandits.agent import ScaleName
from credo.bandits.optimize.conditions import given
from credo.bandits.optimize.search import AcquisitionName, GoalName, Search
from credo.bandits.optimize.space import AnyBounds, Candidate
from credo.bandits.optimize.variables import Option
from credo.core.archive import refusing
from credo.core.errors import FormatError
from credo.core.forms import Seed, Size, require_form

__all__ = ["Notes", "read_notes", "write_notes"]

NAME = "optimizer"

LARGEST_ASKED = 2**31 - 1
"""How many questions a file may count."""


@dataclass(frozen=True)
class Notes:
    """The settings and the history of an optimiser; the attributes are those of `Optimizer`."""

    bounds: AnyBounds
    goal: GoalName
    acquisition: AcquisitionName
    width: float | None
    initial: int
    scale: ScaleName | None
    seed: int
    asked: int
    points: list[object]
    values: list[float | None]
    pending: list[object]
    fitted: bool
    deterministic: bool
    given: dict[str, dict[str, list[Option]]]

    @property
    def options(self) -> dict[str, Any]:
        """The settings by which `Optimizer` is called again, beside the learner, its prior and the bounds."""
        names = ("goal", "acquisition", "width", "initial", "scale", "deterministic", "seed")
        return {name: getattr(self, name) for name in names}


class _SavedRange(TypedDict):
    """A range: low, high and words such as "log"."""

    range: list[float | str]


class _SavedChoices(TypedDict):
    """The options of a choice."""

    options: list[str | float | bool]


class _SavedNotes(TypedDict):
    """What `write_notes` gives, by whose form it is checked."""

    bounds: dict[str, _SavedRange | _SavedChoices] | list[tuple[float, float]]
    goal: GoalName
    acquisition: AcquisitionName
    width: float | None
    initial: Size
    scale: Literal["online"] | None
    seed: Seed
    asked: Annotated[int, LARGEST_ASKED]
    points: list[dict[str, str | float | bool] | list[float]]
    values: list[float | None]
    pending: list[dict[str, str | float | bool] | list[float]]
    fitted: bool
    deterministic: bool
    given: dict[str, dict[str, list[str | float | bool]]]


def write_notes(
    search: Search,
    seed: int,
    asked: int,
    points: Sequence[Candidate],
    values: Sequence[float | None],
    pending: Sequence[Candidate],
) -> dict[str, object]:
    """The notes as JSON data. Python writes every double so that it is read back unchanged."""
    return {
        NAME: {
            "bounds": search.space.to_json(),
            "goal": search.goal,
            "acquisition": search.acquisition,
            "width": None if search.acquisition != "ucb" else float(np.asarray(search.width)),
            "initial": search.initial,
            "scale": "online" if search.scaled else None,
            "seed": seed,
            "asked": asked,
            "points": list(map(_plain, points)),
            "values": list(values),
            "pending": list(map(_plain, pending)),
            "fitted": search.fitted,
            "deterministic": search.deterministic,
            "given": search.space.to_given(),
        }
    }


def _plain(point: Candidate) -> object:
    return point.tolist() if isinstance(point, np.ndarray) else point


def read_notes(meta: Mapping[str, Any], file: str) -> Notes:
    """The notes in a file; a `FormatError` says that there are none."""
    notes = meta.get(NAME)
    if isinstance(notes, dict):
        notes = {"fitted": False, "deterministic": False, "given": {}, **notes}
    if not isinstance(notes, dict) or set(notes) != set(Notes.__dataclass_fields__):
        raise FormatError(f"{file} holds a learner, but no optimizer.")
    with refusing(file, "optimizer"):
        require_form(notes, _SavedNotes, "optimizer")
        if len(notes["points"]) != len(notes["values"]):
            raise FormatError("optimizer.values must be one for each point.", field="values")
    bounds = notes["bounds"]
    if isinstance(bounds, dict):
        bounds = {
            name: one["options"] if "options" in one else tuple(one["range"]) for name, one in bounds.items()
        }
        for name, choice in notes["given"].items():
            with refusing(file, "optimizer"):
                bounds[name] = given(bounds[name], **choice)
    return Notes(**{**notes, "bounds": bounds})
