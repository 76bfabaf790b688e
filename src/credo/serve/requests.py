"""What callers send, read from JSON; a `Problem` names the field, the value and what is allowed."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec
import numpy as np

from credo.core.errors import suggest
from credo.core.once import KeyTwice, once
from credo.serve.contents import (
    AHEAD,
    EARLIEST,
    HEAVIEST,
    KINDS,
    PLACES,
    Cell,
    Content,
    Decide,
    Label,
    Learn,
    Observe,
    Predict,
    Reward,
)
from credo.serve.problems import Problem, encode
from credo.tables.cells import label_text
from credo.tables.schema import Kind, Schema
from credo.tables.times import to_times

__all__ = ["BATCH", "Columns", "as_context", "read_lines", "read_object", "read_request"]

BATCH = 10_000
"""The most rows of a batch."""

# How many new columns one row may bring, and how many columns a row may have at all. Each new column makes
# a model grow, which takes time; a thousand misspelt ones are a mistake, and not a thousand inputs.
NEW = 100
WIDE = 10_000

NESTED = 8
"""How deep objects of a context may be nested."""

_FIELDS = {name: [field.name for field in msgspec.structs.fields(kind)] for name, kind in KINDS.items()}


class Columns(NamedTuple):
    """What the cells of a table must hold, so that a row can be refused before it is written down."""

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
        """What a schema asks for; `first` are the columns that it began with."""
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
    while left:
        one: Any = left.pop()
        inner = one
        if type(one) is dict:
            count += len(one)
            inner = one.values()
        left += [part for part in inner if type(part) is dict or type(part) is list]
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
    need_id: bool = True,
    strict: bool = False,
) -> tuple[str | None, Content]:
    """The id and what is to be written down; `columns` are those of a table, which a row must have, and no
    others, if it is `strict`.
    """
    fields = _FIELDS[kind]
    for name in content:
        if name != "id" and name not in fields:
            allowed = ["id", *fields]
            hint = suggest(name, allowed)
            raise Problem(
                422,
                f"{name:.60} is no field of this; they are {', '.join(allowed)}. {hint}".strip(),
                field=name,
            )
    id = _id(content.get("id"), need_id)
    if kind == "reward":
        return id, _rewarded(content)
    if kind in ("decide", "observe"):
        about = _context(content.get("context")), _arms(content.get("arms"))
        return id, Decide(*about, *_size(content)) if kind == "decide" else _observed(content, *about)
    assert columns is not None
    if kind == "predict":
        when = _time(content.get("time"), columns, id is not None)
        return id, Predict(_row(_present(content, "x"), columns, strict), when)
    x = _row(_present(content, "x"), columns, strict) if kind == "learn" else {}
    y = _target(_present(content, "y"), columns)
    weight = _weight(content.get("weight"))
    if kind == "label":
        return id, Label(y, weight)
    return id, Learn(x, y, weight, _time(content.get("time"), columns, True))


def _present(content: Mapping[str, Any], field: str) -> Any:
    if field not in content:
        raise Problem(422, f"{field} is missing.", field=field)
    return content[field]


def _id(id: Any, needed: bool) -> str | None:
    if id is None and not needed:
        return None
    return _name("id", id)


def _name(field: str, name: Any) -> str:
    if not isinstance(name, str) or not 0 < len(name) <= 200 or not name.isprintable():
        got = "none" if name is None else f"{name!r:.60}"
        raise Problem(
            422, f"{field} must be a text of 1 to 200 characters that can be printed; got {got}.", field=field
        )
    return name


def _weight(weight: Any) -> float | None:
    if weight is None:
        return None
    number = _number("weight", weight)
    if not 0 < number <= HEAVIEST:
        raise Problem(
            422, f"weight must be above 0 and at most {HEAVIEST:g}; got {weight!r:.60}.", field="weight"
        )
    return number


def _time(given: Any, columns: Columns, needed: bool) -> float | None:
    """A time in seconds since 1970, of a row of a model whose rows have times."""
    if given is None:
        if columns.timed and needed:
            raise Problem(422, "time is missing: rows of this model have times (time_unit).", field="time")
        return None
    if not columns.timed:
        sentence = f"time must be left out: this model has no time_unit; got {given!r:.60}."
        raise Problem(422, sentence, field="time")
    seconds = float(to_times([given])[0][0]) if isinstance(given, str) else _number("time", given)
    limit = time.time() + AHEAD
    if EARLIEST <= seconds <= limit:
        return seconds
    what = "a time of the years 1 to now" if seconds < EARLIEST else "seconds since 1970 or ISO 8601 text"
    if seconds > limit:
        what = f"at most a day ahead of now, {datetime.fromtimestamp(limit - AHEAD, UTC):%Y-%m-%dT%H:%M:%SZ}"
    raise Problem(422, f"time must be {what}; got {given!r:.60}.", field="time")


def _number(field: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Problem(422, f"{field} must be a number; got {value!r:.60}.", field=field)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise Problem(422, f"{field} must be a finite number; got {value!r:.60}.", field=field)
    return number


def _cell(field: str, value: Any, kind: Kind | None) -> Cell:
    """A cell, as a column of such a kind takes it; None for a column that is not known yet."""
    if value is None:
        return None
    if isinstance(value, bool):
        if kind == "numeric":
            raise Problem(422, f"{field} must be a number; got {value!r}.", field=field)
        return value
    if isinstance(value, int | float):
        _number(field, value)
        return value
    if not isinstance(value, str):
        raise Problem(
            422, f"{field} must be a number, a text, a truth value or null; got {value!r:.60}.", field=field
        )
    if kind in ("numeric", "boolean"):
        what = "a number" if kind == "numeric" else "true, false or null"
        raise Problem(422, f"{field} must be {what}; got {value!r:.60}.", field=field)
    return value


def _row(x: Any, columns: Columns, strict: bool) -> dict[str, Cell]:
    if not isinstance(x, dict):
        raise Problem(422, f"x must be an object with a cell for each column; got {x!r:.60}.", field="x")
    if columns.target in x:
        raise Problem(422, f"x must not hold the target, {columns.target!r}.", field="x")
    kinds = columns.kinds
    if x.keys() != kinds.keys():
        _require_columns(x, columns, strict)
    return {
        name: value
        if type(value) is float and math.isfinite(value)  # as most cells are
        else _cell(f"x.{name}", value, kinds.get(name))
        for name, value in x.items()
    }


def _require_columns(x: Mapping[str, Any], columns: Columns, strict: bool) -> None:
    """Refuse a row of too many columns, or of too many new ones; a strict model takes no new one at all."""
    unknown, missing = columns.unlike(x)
    if len(x) > WIDE:
        raise Problem(422, f"x must have at most {WIDE:,} columns; got {len(x):,}.", field="x")
    if len(unknown) > NEW:
        raise Problem(422, f"x must bring at most {NEW} new columns; got {len(unknown):,}.", field="x")
    if strict and unknown:
        hint = suggest(unknown[0], list(columns.kinds))
        known = ", ".join(list(columns.kinds)[:20])
        raise Problem(
            422, f"x.{unknown[0]:.60} is no column; they are {known}. {hint}".strip(), field=f"x.{unknown[0]}"
        )
    if strict and missing:
        raise Problem(422, f"x.{missing[0]} is missing; null says that it is not known.", field="x")


def _target(y: Any, columns: Columns) -> Cell:
    if columns.classed is None:
        if y is None or y == "":
            raise Problem(422, f"y must be a number, a text or a truth value; got {y!r}.", field="y")
        return _cell("y", y, None)
    if not columns.classed:
        number = _number("y", y)
        if columns.counts and (number < 0 or number != math.floor(number)):
            raise Problem(422, f"y must be a whole number from 0; got {y!r:.60}.", field="y")
        return number
    if y is None or isinstance(y, list | dict) or y == "":
        raise Problem(422, f"y must be a class; got {y!r:.60}.", field="y")
    _cell("y", y, None)
    if columns.classes is not None and label_text(y, columns.whole) not in columns.classes:
        known = ", ".join(sorted(columns.classes)[:20])
        raise Problem(422, f"y must be one of the classes {known}; got {y!r:.60}.", field="y")
    return y  # type: ignore[no-any-return]


def _context(context: Any) -> dict[str, Any] | list[float] | None:
    if context is None:
        return None
    if isinstance(context, list):
        return [_number(f"context.{place}", value) for place, value in enumerate(context)]
    if isinstance(context, dict):
        return {name: _value(f"context.{name}", value, NESTED) for name, value in context.items()}
    raise Problem(
        422, f"context must be an object, a list of numbers or null; got {context!r:.60}.", field="context"
    )


def _value(field: str, value: Any, depth: int) -> Any:
    """A cell, a list of cells, or an object of all these, at most so deep."""
    if isinstance(value, list | dict) and not depth:
        raise Problem(422, f"{field} must be at most {NESTED} levels deep.", field=field)
    if isinstance(value, dict):
        return {name: _value(f"{field}.{name}", one, depth - 1) for name, one in value.items()}
    if isinstance(value, list):
        return [_cell(f"{field}.{place}", one, None) for place, one in enumerate(value)]
    return _cell(field, value, None)


def _arms(arms: Any) -> list[str] | dict[str, dict[str, Any]] | None:
    if arms is None:
        return None
    if isinstance(arms, list) and all(isinstance(arm, str) for arm in arms):
        return arms
    if isinstance(arms, dict) and all(isinstance(features, dict) for features in arms.values()):
        return {arm: _value(f"arms.{arm}", features, NESTED) for arm, features in arms.items()}
    raise Problem(
        422,
        f"arms must be a list of names, an object of features by name, or null; got {arms!r:.60}.",
        field="arms",
    )


def _size(content: Mapping[str, Any]) -> tuple[int, ...]:
    """The size of a slate, if one is asked for."""
    size = content.get("size")
    if size is None:
        return ()
    if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= PLACES:
        raise Problem(
            422, f"size must be a whole number from 1 to {PLACES:,}; got {size!r:.60}.", field="size"
        )
    return (size,)


def _rewarded(content: Mapping[str, Any]) -> Reward:
    values, seen, part = (content.get(name) for name in ("values", "seen", "part"))
    if values is None:
        if seen is not None:
            raise Problem(422, "seen must be left out without values, the rewards of a slate.", field="seen")
        number = _number("value", _present(content, "value"))
        return Reward(number, None if part is None else _name("part", part))
    for name in ("value", "part"):
        if content.get(name) is not None:
            raise Problem(422, f"{name} must be left out beside values, the rewards of a slate.", field=name)
    seen = seen if seen is None or seen in ("cascade", "all") else _list("seen", seen)
    return Reward(values=_list("values", values), seen=seen)


def _list(field: str, values: Any) -> list[float]:
    """Numbers, one for each place of a slate."""
    if not isinstance(values, list) or not 1 <= len(values) <= PLACES:
        also = "'cascade', 'all' or " if field == "seen" else ""
        raise Problem(
            422, f"{field} must be {also}a list of 1 to {PLACES:,} numbers; got {values!r:.60}.", field=field
        )
    return [_number(f"{field}.{place}", value) for place, value in enumerate(values)]


def _observed(content: Mapping[str, Any], context: Any, arms: Any) -> Observe:
    reward = content.get("reward")
    odds = content.get("propensity")
    if isinstance(odds, dict):
        odds = {arm: _number(f"propensity.{arm}", p) for arm, p in odds.items()}
    elif odds is not None:
        odds = _number("propensity", odds)
    value = None if reward is None else _number("reward", reward)
    return Observe(_name("arm", _present(content, "arm")), context, value, odds, arms)


def as_context(context: dict[str, Any] | list[float] | None) -> Any:
    """A context as a bandit takes it."""
    with np.errstate(over="ignore"):  # the bandit refuses what is too large
        if isinstance(context, list):
            return np.asarray(context, np.float32)
        return context
