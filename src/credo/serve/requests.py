"""Requests of callers, read from JSON; an error names the field, the value and what is allowed."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec
import numpy as np

from credo.core.errors import CredoError, suggest
from credo.core.once import KeyTwice, once
from credo.serve.allowed import require_fields, require_known
from credo.serve.contents import (
    AHEAD,
    EARLIEST,
    KINDS,
    Cell,
    Content,
    Label,
    Learn,
    Observe,
    Predict,
    Reward,
)
from credo.serve.options import ServiceOptions
from credo.serve.problems import Problem, encode
from credo.tables.cells import label_text
from credo.tables.schema import Kind, Schema
from credo.tables.times import to_times

__all__ = ["BATCH", "Columns", "as_context", "read_lines", "read_object", "read_request"]

BATCH = 10_000
"""The most rows of a batch."""

NEW = 300
"""The most new columns of a row. Each makes a model grow, which takes time; a thousand misspelt ones are a
mistake, and not a thousand inputs.
"""

NESTED = 8
"""The greatest depth to which objects of a context may be nested."""

_FIELDS = {name: dict.fromkeys(("id", *kind.__struct_fields__)) for name, kind in KINDS.items()}
"""The fields of each kind of request, in their order."""


class Columns(NamedTuple):
    """Requirements on the cells of a table, so that a row can be refused before it is written down."""

    target: str
    kinds: Mapping[str, Kind] = {}
    classed: bool | None = None
    whole: bool = False
    classes: frozenset[str] | None = None
    counts: bool = False
    timed: bool = False
    first: frozenset[str] = frozenset()

    @staticmethod
    def of(schema: Schema, timed: bool) -> Columns:
        """The requirements of a schema; `first` are the columns that it began with."""
        goal = schema.target
        kinds: dict[str, Kind] = {column.name: column.kind for column in (*schema.columns, *schema.late)}
        fixed = frozenset(goal.classes) if goal.kind.classed and not goal.first else None
        first = frozenset(column.name for column in schema.columns)
        return Columns(goal.name, kinds, goal.kind.classed, goal.whole, fixed, goal.kind.whole, timed, first)

    def unlike(self, x: Mapping[str, Any]) -> tuple[list[str], list[str]]:
        """The names of a row that are no columns yet, and the first columns that it lacks."""
        if not self.kinds or x.keys() == self.kinds.keys():
            return [], []
        return sorted(x.keys() - self.kinds.keys()), sorted(self.first - x.keys())


_decode = msgspec.json.Decoder().decode


def read_object(body: bytes) -> dict[str, Any]:
    """A JSON object."""
    try:
        content = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        try:
            content = json.loads(body)  # which takes NaN and 1e400: they are refused with their field
            encode(content)  # and halves of characters, which no answer and no journal could hold
        except (ValueError, RecursionError):
            raise Problem(400, f"the body must be JSON: {str(error).rstrip('.')}.") from None
    if not isinstance(content, dict):
        raise Problem(400, f"the body must be a JSON object; got {content!r:.60}.")
    if body.count(b":") > _count_keys(content):  # as if a text has a colon, or a key comes twice
        try:
            json.loads(body, object_pairs_hook=once)
        except KeyTwice as error:
            raise Problem(400, f"the body must have each key once; it {error}.") from None
        except RecursionError:
            raise Problem(400, "the body must be JSON that is less deeply nested.") from None
    return content


def _count_keys(content: dict[str, Any]) -> int:
    """The number of keys of all objects in a content, which is that of colons outside of texts."""
    count = 0
    left: list[Any] = [content]
    for one in left:  # which grows meanwhile
        inner: Any = one
        if type(one) is dict:
            count += len(one)
            inner = one.values()
        for part in inner:
            if type(part) is dict or type(part) is list:
                left.append(part)
    return count


def read_lines(body: bytes) -> list[dict[str, Any]]:
    """Lines of JSON objects, at most `BATCH`."""
    lines = [line for line in body.split(b"\n") if line.strip()]
    if len(lines) > BATCH:
        raise Problem(413, f"a batch must have at most {BATCH:,} lines; got {len(lines):,}.")
    if not lines:
        raise Problem(400, "a batch must have at least one line; got none.")
    rows = []
    for number, line in enumerate(lines, 1):
        try:
            rows.append(read_object(line))
        except Problem as problem:
            raise Problem(problem.status, f"line {number}: {problem}") from None
    return rows


def read_request(
    kind: str,
    content: dict[str, Any],
    columns: Columns | None,
    *,
    strict: bool = False,
    most: int = ServiceOptions.max_columns,
) -> tuple[str | None, Content]:
    """The id, which only what is to be forecast may lack, and what is to be written down; `columns` are those
    of a table, which a row must have, and no others, if it is `strict`. A row has at most so many columns.
    """
    fields = _FIELDS[kind]
    if not content.keys() <= fields.keys():
        require_known("this", content, list(fields))
    id = content.get("id")
    if id is not None or kind != "predict":
        _require_name("id", id)
    if kind in ("decide", "reward", "observe"):
        return id, _chosen(content, KINDS[kind])
    assert columns is not None
    when = content.get("time")
    if kind == "predict":
        if when is not None or columns.timed:
            when = _time(when, columns, id is not None)
        return id, Predict(_row(content, columns, strict, most), when)
    x: dict[str, Cell] = {} if kind == "label" else _row(content, columns, strict, most)
    y = _target(content, columns)
    weight = content.get("weight")
    if weight is not None:
        require_fields({"weight": weight}, Label)
        weight = float(weight)
    if kind == "label":
        return id, Label(y, weight)
    if when is not None or columns.timed:
        when = _time(when, columns, True)
    return id, Learn(x, y, weight, when)


def _require_present(content: Mapping[str, Any], field: str) -> None:
    if field not in content:
        raise CredoError(f"{field} is missing.", field=field)


def _require_name(field: str, name: Any) -> None:
    if not isinstance(name, str) or not 0 < len(name) <= 200 or not name.isprintable():
        raise CredoError.must_be(field, "a text of 1 to 200 characters that can be printed", name)


def _time(given: Any, columns: Columns, needed: bool) -> float | None:
    """A time in seconds since 1970, of a row of a model whose rows have times."""
    if given is None:
        if columns.timed and needed:
            raise CredoError("time is missing: rows of this model have times (time_unit).", field="time")
        return None
    if not columns.timed:
        raise CredoError.must_be("time", "left out: this model has no time_unit", given)
    seconds = float(to_times([given])[0][0]) if isinstance(given, str) else _number("time", given)
    limit = time.time() + AHEAD
    if EARLIEST <= seconds <= limit:
        return seconds
    what = "a time of the years 1 to now" if seconds < EARLIEST else "seconds since 1970 or ISO 8601 text"
    if seconds > limit:
        what = f"at most a day ahead of now, {datetime.fromtimestamp(limit - AHEAD, UTC):%Y-%m-%dT%H:%M:%SZ}"
    raise CredoError.must_be("time", what, given)


def _number(field: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise CredoError.must_be(field, "a number", value)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise CredoError.must_be(field, "a finite number", value)
    return number


def _require_cell(field: str, value: Any, kind: Kind | None) -> None:
    """Refuse what a column of such a kind does not take; None for a column that is not known yet."""
    if isinstance(value, bool):
        if kind == "numeric":
            raise CredoError.must_be(field, "a number", value)
    elif isinstance(value, int | float):
        _number(field, value)
    elif isinstance(value, str):
        if kind in ("numeric", "boolean"):
            what = "a number" if kind == "numeric" else "true, false or null"
            raise CredoError.must_be(field, what, value)
    elif value is not None:
        raise CredoError.must_be(field, "a number, a text, a truth value or null", value)


def _row(content: Mapping[str, Any], columns: Columns, strict: bool, most: int) -> dict[str, Cell]:
    """The cells of a row, as they came: the object that was read is nobody else's."""
    x: Any = content.get("x")
    if not isinstance(x, dict):
        _require_present(content, "x")
        raise CredoError.must_be("x", "an object with a cell for each column", x)
    if columns.target in x:
        raise CredoError(f"x must not hold the target, {columns.target!r}.", field="x")
    kinds = columns.kinds
    if x.keys() != kinds.keys():
        _require_columns(x, columns, strict, most)
    for name, value in x.items():
        if type(value) is not float or not math.isfinite(value):  # as most cells are
            _require_cell(f"x.{name}", value, kinds.get(name))
    return x


def _require_columns(x: Mapping[str, Any], columns: Columns, strict: bool, most: int) -> None:
    """Refuse a row of too many columns, or of too many new ones; a strict model takes no new one at all."""
    limit = max(most, len(columns.kinds))  # those of a wide model are its own
    if len(x) > limit:
        raise CredoError(f"x must have at most {limit:,} columns; got {len(x):,}.", field="x")
    new = len(x.keys() - columns.kinds.keys())
    if new > NEW and columns.kinds:  # before the names are sorted, which takes longer than to read them
        raise CredoError(f"x must bring at most {NEW} new columns; got {new:,}.", field="x")
    unknown, missing = columns.unlike(x)
    if strict and unknown:
        hint = suggest(unknown[0], list(columns.kinds))
        known = ", ".join(list(columns.kinds)[:20])
        raise CredoError(
            f"x.{unknown[0]:.60} is no column; they are {known}. {hint}".strip(), field=f"x.{unknown[0]}"
        )
    if strict and missing:
        raise CredoError(f"x.{missing[0]} is missing; null says that it is not known.", field="x")


def _target(content: Mapping[str, Any], columns: Columns) -> Cell:
    """The target of a row: a number as a float, and a label as it came."""
    y: Any = content.get("y")
    if y is None:
        _require_present(content, "y")
    if columns.classed is None:
        if y is None or y == "":
            raise CredoError.must_be("y", "a number, a text or a truth value", y)
        _require_cell("y", y, None)
    elif not columns.classed:
        number = y if type(y) is float and math.isfinite(y) else _number("y", y)
        if columns.counts and (number < 0 or number != math.floor(number)):
            raise CredoError.must_be("y", "a whole number from 0", y)
        return number
    else:
        if y is None or isinstance(y, list | dict) or y == "":
            raise CredoError.must_be("y", "a class", y)
        _require_cell("y", y, None)
        if columns.classes is not None and label_text(y, columns.whole) not in columns.classes:
            known = ", ".join(sorted(columns.classes)[:20])
            raise CredoError.must_be("y", f"one of the classes {known}", y)
    cell: Cell = y
    return cell


def _chosen(content: Mapping[str, Any], record: type[Content]) -> Content:
    """A decision, a reward or a choice that was made elsewhere; null stands for what is not said."""
    said = {name: one for name, one in content.items() if one is not None and name != "id"}
    if record is Observe:
        _require_present(said, "arm")
        _require_name("arm", said["arm"])
    if "part" in said:
        _require_name("part", said["part"])
    require_fields(said, record)
    for name in ("context", "arms"):
        if isinstance(said.get(name), dict):
            _require_cells(name, said[name], NESTED + 1)
    if record is Reward:
        _require_reward(said)
    made: Content = msgspec.convert(said, record)
    return made


def _require_reward(said: Mapping[str, Any]) -> None:
    """Refuse a reward that is both of a decision and of a slate, or of neither."""
    if "values" not in said:
        if "seen" in said:
            raise CredoError("seen must be left out without values, the rewards of a slate.", field="seen")
        _require_present(said, "value")
        return
    for name in ("value", "part"):
        if name in said:
            raise CredoError(f"{name} must be left out beside values, the rewards of a slate.", field=name)


def _require_cells(field: str, value: Any, depth: int) -> None:
    """Refuse what is no cell, list of cells, or object of all these, at most so deep."""
    if isinstance(value, list | dict) and not depth:
        raise CredoError(f"{field} must be at most {NESTED} levels deep.", field=field)
    if isinstance(value, dict):
        for name, one in value.items():
            _require_cells(f"{field}.{name}", one, depth - 1)
    elif isinstance(value, list):
        for place, one in enumerate(value):
            _require_cell(f"{field}.{place}", one, None)
    else:
        _require_cell(field, value, None)


def as_context(context: dict[str, Any] | list[float] | None) -> Any:
    """A context as a bandit takes it."""
    with np.errstate(over="ignore"):  # the bandit refuses what is too large
        if isinstance(context, list):
            return np.asarray(context, np.float32)
        return context
