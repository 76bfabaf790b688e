"""The content of the lines of a journal: rows, labels, contexts, rewards and choices."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from credo.serve.allowed import says, whole

__all__ = [
    "AHEAD",
    "EARLIEST",
    "HEAVIEST",
    "KINDS",
    "PLACES",
    "Cell",
    "Content",
    "Decide",
    "Label",
    "Learn",
    "Observe",
    "Predict",
    "Reward",
]

HEAVIEST = 1e6
"""The largest weight of a row."""

AHEAD = 86_400.0
"""By how many seconds the time of a row may be ahead of the service's clock."""

EARLIEST = -62_135_596_800.0
"""The earliest time of a row: the beginning of the year 1."""

PLACES = 1_000
"""The most places of a slate."""

Cell: TypeAlias = float | int | str | bool | None

_Name: TypeAlias = Annotated[
    str, says("a text of 1 to 200 characters that can be printed", min_length=1, max_length=200)
]
_Number: TypeAlias = Annotated[float, says("a finite number")]
_Numbers: TypeAlias = Annotated[
    list[_Number], says(f"a list of 1 to {PLACES:,} numbers", min_length=1, max_length=PLACES)
]
_Seen: TypeAlias = Annotated[
    Literal["cascade", "all"] | _Numbers,
    says(f"'cascade', 'all' or a list of 1 to {PLACES:,} numbers"),
]
_Weight: TypeAlias = Annotated[float, says(f"above 0 and at most {HEAVIEST:g}", gt=0, le=HEAVIEST)]
_Time: TypeAlias = Annotated[
    float,
    msgspec.Meta(
        extra_json_schema={
            "type": ["number", "string"],
            "description": "Seconds since 1970, or an ISO 8601 text such as 2024-05-01T12:30:00+02:00.",
        }
    ),
]
_Context: TypeAlias = Annotated[
    dict[str, Any] | list[_Number] | None, says("an object, a list of numbers or null")
]
_Arms: TypeAlias = Annotated[
    list[str] | dict[str, dict[str, Any]] | None,
    says("a list of names, an object of features by name, or null"),
]


class Learn(msgspec.Struct, frozen=True, omit_defaults=True):
    """A row and what was observed.

    Arguments:
        x: the cells by column; null, or a column left out, is a missing value.
        y: the target.
        weight: how many equal rows it counts as, above 0; null for 1.
        time: when it was observed, where the model has a `time_unit`: seconds since 1970, or ISO 8601 text.
    """

    x: dict[str, Cell]
    y: Cell
    weight: _Weight | None = None
    time: _Time | None = None


class Predict(msgspec.Struct, frozen=True, omit_defaults=True):
    """A row to forecast, which waits for its label.

    Arguments:
        x: the cells by column.
        time: when it is observed, as of `Learn`; its label is learned as of then.
    """

    x: dict[str, Cell]
    time: _Time | None = None


class Label(msgspec.Struct, frozen=True, omit_defaults=True):
    """The observed target of a row that was forecast before.

    Arguments:
        y: the target.
        weight: how many equal rows it counts as, above 0; null for 1.
    """

    y: Cell
    weight: _Weight | None = None


class Decide(msgspec.Struct, frozen=True):
    """A context in which an arm is to be chosen.

    Arguments:
        context: numbers, truth values, texts, lists of them and objects of all these by name; or a list of
            numbers; or null.
        arms: the names of the arms among which to choose; null for all. Where a bandit takes arms with a
            call, an object: their features by name.
        size: how many arms to choose, in an order (a slate); left out for a single one.
    """

    context: _Context = None
    arms: _Arms = None
    size: Annotated[int, whole(1, PLACES)] | msgspec.UnsetType = msgspec.UNSET


class Reward(msgspec.Struct, frozen=True, omit_defaults=True):
    """The reward of a decision, or those of the places of a slate.

    Arguments:
        value: a finite number; null for a slate.
        part: the name of the part of the reward that it is; null for the last part, or all of it.
        values: the reward of each place of a slate, from the top; null for a single decision.
        seen: what the reader saw of the slate: "cascade", down to the first reward that is not 0, which is
            what null means; "all"; or the probability that each place is seen.
    """

    value: _Number | None = None
    part: _Name | None = None
    values: _Numbers | None = None
    seen: _Seen | None = None


class Observe(msgspec.Struct, frozen=True, omit_defaults=True):
    """A choice that was made elsewhere.

    Arguments:
        arm: the name of the chosen arm.
        context: as of `Decide`.
        reward: its reward; null if it comes later.
        propensity: the probability with which it was chosen, or those of all arms by name; null where nobody
            knows.
        arms: as of `Decide`.
    """

    arm: _Name
    context: _Context = None
    reward: _Number | None = None
    propensity: Annotated[_Number | dict[str, _Number], says("a finite number")] | None = None
    arms: _Arms = None


Content: TypeAlias = Learn | Predict | Label | Decide | Reward | Observe

KINDS: dict[str, type[Content]] = {
    "learn": Learn,
    "predict": Predict,
    "label": Label,
    "decide": Decide,
    "reward": Reward,
    "observe": Observe,
}
"""The kinds of what a journal holds."""
