"""The meaning of each column of a table to a learner, fixed before the first row is learned from.

`TARGET_KINDS` says what the targets of each task are; `credo.recipes.tasks` says how they are learned.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import accumulate
from typing import Any, Literal, NamedTuple, NotRequired, TypeAlias, TypedDict

import numpy as np

from credo.core.errors import FormatError, Sentence, marked
from credo.core.forms import LARGEST_SIZE, Size, require_form
from credo.core.names import Task
from credo.tables.cells import Mark, is_count
from credo.tables.styles import Style

__all__ = ["TARGET_KINDS", "ColumnSpec", "Dropped", "Schema", "TargetKind", "TargetSpec"]


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


Kind: TypeAlias = Literal["numeric", "boolean", "categorical", "datetime", "text"]
"""The kind of the cells of a column."""

HOLDS: Mapping[Kind, str] = {
    "numeric": "numbers",
    "boolean": "truth values",
    "datetime": "times",
    "text": "texts",
    "categorical": "categories",
}
"""The content of a column of each kind, in words."""

Cycle: TypeAlias = Literal["hour", "weekday", "yearday"]
"""A cycle of the clock or the calendar: a day, a week or a year."""

_VERSION = 1

SHARED = "(a value is missing)"
"""The feature of all columns that have no feature of their own for a missing cell."""

_MORE = 8
"""The least number of features that there is room for beside those of a column that comes late."""


@dataclass(frozen=True)
class ColumnSpec:
    """A column that is learned from.

    Arguments:
        name: the name of the column.
        kind: "numeric", "boolean", "categorical", "datetime" or "text".
        categories: a categorical column's categories, most frequent first.
        has_missing: whether the column has a feature of its own that says that its cell is missing.
        origin: a datetime column's zero, in seconds since 1970.
        slots: how many features hashed cells share: those of a categorical column that are none of its
            categories (with 0, one feature says that a cell is none of them), or the words of a text.
        cycles: the cycles of a datetime column that are features, each with a sine and a cosine.
        decimal: the decimal mark of the numbers in texts, "." or ",".
        style: how its cells are written; None for plain numbers, and for times of ISO 8601.

    Example:
        >>> ColumnSpec("city", "categorical", ("Oslo",), has_missing=True).features
        ('city=Oslo', 'city=(other)', 'city=(missing)')
    """

    name: str
    kind: Kind
    categories: tuple[str, ...] = ()
    has_missing: bool = False
    origin: float = 0.0
    slots: Size = 0
    cycles: tuple[Cycle, ...] = ("hour", "weekday")
    decimal: Mark = "."
    style: Style | None = None

    @functools.cached_property
    def index(self) -> dict[str, int]:
        """The numbers of a categorical column's categories."""
        return {category: number for number, category in enumerate(self.categories)}

    @property
    def scaled(self) -> bool:
        """Whether its first feature is a number that is standardised."""
        return self.kind in ("numeric", "datetime")

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the features that this column becomes."""
        hashed = [f"(hash {slot})" for slot in range(1, self.slots + 1)]
        if self.kind == "categorical":
            names = [f"{self.name}={category}" for category in (*self.categories, *(hashed or ["(other)"]))]
        elif self.kind == "text":
            names = [f"{self.name}={slot}" for slot in hashed]
        elif self.kind == "datetime":
            names = [
                self.name,
                *(f"{wave}({self.name} {one})" for one in self.cycles for wave in ("sin", "cos")),
            ]
        else:
            names = [self.name]
        if self.has_missing:
            return (*names, f"{self.name}=(missing)")
        return tuple(names)


class Extent(NamedTuple):
    """The number of features of the columns of a schema, and for how many there is room."""

    needed: int
    room: int

    def with_column(self, column: ColumnSpec) -> Extent:
        """The extent with one more late column: where there is no room, it is made for some more besides."""
        needed = self.needed + len(column.features)
        if needed <= self.room:
            return Extent(needed, self.room)
        return Extent(needed, needed + max(_MORE, needed // 4))


@dataclass(frozen=True)
class Dropped:
    """A column that is left out, and why.

    Arguments:
        name: the name of the column.
        why: the reason, without a full stop.
        only: the value so far, "" for none, where another one lets the column be learned; None to stay out.

    Example:
        >>> str(Dropped("id", "its values are all different"))
        "column 'id' is left out: its values are all different"
    """

    name: str
    why: str
    only: str | None = None

    def __str__(self) -> str:
        return Sentence(f"column {self.name!r} is left out: {marked(self.why)}")


@dataclass(frozen=True)
class TargetSpec:
    """The column that is predicted.

    Arguments:
        name: the name of the column.
        task: what is predicted, one of `credo.tables.schema.TARGET_KINDS`.
        classes: the class labels, in the order of their numbers; empty for numbers.
        whole: whether the labels are whole numbers, so that "1", "1.0" and 1 are one label.
        why: a sentence that says what was inferred, and from what.
        first: how many classes the first rows showed, where more may come; 0 if fixed.
        decimal: the decimal mark of the numbers in texts, "." or ",".

    Example:
        >>> TargetSpec("colour", "classification", ("blue", "red")).whole
        False
    """

    name: str
    task: Task
    classes: tuple[str, ...] = ()
    whole: bool = False
    why: str = ""
    first: int = 0
    decimal: Mark = "."

    @property
    def kind(self) -> TargetKind:
        """The kind of its values."""
        return TARGET_KINDS[self.task]

    def admits(self, label: str) -> bool:
        """Whether a label may become a class: where all classes so far are numbers, it must be one.

        >>> TargetSpec("y", "classification", ("1", "2"), whole=True, first=2).admits("x")
        False
        """
        if not self.first:
            return False
        if self.whole:
            return label.lstrip("-").isdecimal()
        return is_number(label) or not all(map(is_number, self.classes))


@dataclass(frozen=True)
class Schema:
    """The meaning of a table's columns.

    Arguments:
        target: the column that is predicted.
        columns: the columns that are learned from, in the order of their features.
        dropped: the columns that are left out.
        notes: sentences that a reader may want to know, such as that a column is constant so far.
        late: the columns whose first value came later, in their order; each has its own missing feature.
        room: the number of features that there is room for, where late columns came; 0 if none did. It
            grows by several at a time, since each size of a row is compiled again.

    Example:
        >>> schema = Schema(TargetSpec("y", "regression"), (ColumnSpec("a", "numeric"),))
        >>> schema.features
        ('a', '(a value is missing)')
        >>> Schema.from_dict(schema.to_dict()) == schema
        True
    """

    target: TargetSpec
    columns: tuple[ColumnSpec, ...]
    dropped: tuple[Dropped, ...] = ()
    notes: tuple[str, ...] = ()
    late: tuple[ColumnSpec, ...] = ()
    room: Size = 0

    @functools.cached_property
    def features(self) -> tuple[str, ...]:
        """The D feature names: each column's, one that columns without a missing feature share, those of late
        columns, and places that are free."""
        late = [feature for column in self.late for feature in column.features]
        free = self.room - self.first_width - len(late)
        return (*self.first_features, *late, *(f"(free {place})" for place in range(1, free + 1)))

    @functools.cached_property
    def first_features(self) -> tuple[str, ...]:
        """The names of the features that the first rows showed."""
        own = tuple(feature for column in self.columns for feature in column.features)
        if all(column.has_missing for column in self.columns):
            return own
        return (*own, SHARED)

    @functools.cached_property
    def first_width(self) -> int:
        """The number of features that the first rows showed."""
        return len(self.first_features)

    def late_gaps(self, start: int) -> list[int]:
        """The places of the features that say that a late column has no value, from column `start` on."""
        ends = accumulate(len(column.features) for column in self.late)
        return [self.first_width + end - 1 for end in ends][start:]

    def including(self, columns: Sequence[ColumnSpec]) -> Schema:
        """The schema with some more late columns, the same whether they come together or one by one.

        Arguments:
            columns: the columns.

        Example:
            >>> schema = Schema(TargetSpec("y", "regression"), (ColumnSpec("a", "numeric"),))
            >>> wider = schema.including([ColumnSpec("b", "numeric", has_missing=True)])
            >>> wider.features[:4], wider.width
            (('a', '(a value is missing)', 'b', 'b=(missing)'), 12)
        """
        extent = self.extent
        for column in columns:
            extent = extent.with_column(column)
        names = {column.name for column in columns}
        dropped = tuple(column for column in self.dropped if column.name not in names)
        return replace(self, late=(*self.late, *columns), room=extent.room, dropped=dropped)

    @property
    def extent(self) -> Extent:
        """The number of features of all columns, and for how many there is room."""
        late = sum(len(column.features) for column in self.late)
        return Extent(self.first_width + late, self.room or self.first_width)

    @functools.cached_property
    def width(self) -> int:
        """D, the number of features."""
        return len(self.features)

    @property
    def sentences(self) -> tuple[str, ...]:
        """Everything that was inferred, as one sentence each, without full stops."""
        return (self.target.why, *map(str, self.dropped), *self.notes)

    def to_dict(self) -> dict[str, object]:
        """The schema as plain lists, dicts, text and numbers, as JSON needs them."""
        return {"version": _VERSION, **_listed(asdict(self))}

    @staticmethod
    def from_dict(saved: Mapping[str, Any]) -> Schema:
        """The inverse of `to_dict`.

        Arguments:
            saved: the dict, for instance read from JSON.

        Raises:
            FormatError: the dict is of another version, or something in it is missing or of another form.
        """
        if saved.get("version") != _VERSION:
            raise FormatError(f"a saved schema must have version {_VERSION}; got {saved.get('version')!r}.")
        require_form(saved, _SavedSchema, "schema")
        target = TargetSpec(**{**saved["target"], "classes": tuple(saved["target"]["classes"])})
        columns = tuple(map(_column, saved["columns"]))
        dropped = tuple(Dropped(**one) for one in saved["dropped"])
        late = tuple(map(_column, saved.get("late", ())))
        if target.task not in TARGET_KINDS:
            raise FormatError(
                f"schema.target.task must be one of {', '.join(TARGET_KINDS)}; got {target.task!r}."
            )
        if sum(column.slots for column in (*columns, *late)) > LARGEST_SIZE:
            raise FormatError(f"a saved schema must have at most {LARGEST_SIZE:,} slots.", field="slots")
        return Schema(target, columns, dropped, tuple(saved["notes"]), late, saved.get("room", 0))


class _SavedTarget(TypedDict):
    """A `TargetSpec`, whose task is one of `TARGET_KINDS`."""

    name: str
    task: str
    classes: list[str]
    whole: bool
    why: str
    first: NotRequired[int]
    decimal: NotRequired[Mark]


class _SavedSchema(TypedDict):
    """The result of `Schema.to_dict`."""

    target: _SavedTarget
    columns: list[ColumnSpec]
    dropped: list[Dropped]
    notes: list[str]
    late: NotRequired[list[ColumnSpec]]
    room: NotRequired[Size]


def is_number(label: str) -> bool:
    """Whether a text is a number as Python writes it."""
    try:
        float(label)
    except ValueError:
        return False
    return True


def _column(fields: Mapping[str, Any]) -> ColumnSpec:
    """A column as it was saved."""
    whole: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()
    }
    return replace(ColumnSpec(**whole), style=Style.from_saved(fields.get("style")))


def _listed(value: object) -> Any:
    if isinstance(value, dict):
        return {key: _listed(item) for key, item in value.items() if key != "style" or item is not None}
    if isinstance(value, (list, tuple)):
        return [_listed(item) for item in value]
    return value
