"""What callers send, read from JSON; a `Problem` names the field, the value and what is allowed."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import msgspec
import numpy as np

from credo.core.errors import suggest
from credo.serve.problems import Problem
from credo.tables.cells import label_text
from credo.tables.schema import Kind, Schema

__all__ = [
    "BATCH",
    "KINDS",
    "Columns",
    "Content",
    "Decide",
    "Label",
    "Learn",
    "Predict",
    "Reward",
    "read_lines",
    "read_object",
    "read_request",
]

BATCH = 10_000
"""The most rows of a batch."""

Cell: TypeAlias = float | int | str | bool | None


class Learn(msgspec.Struct, frozen=True):
    """A row and what was observed.

    Arguments:
        x: the cells by column; null, or a column left out, is a missing value.
        y: the target.
    """

    x: dict[str, Cell]
    y: Cell


class Predict(msgspec.Struct, frozen=True):
    """A row to forecast, which waits for its label.

    Arguments:
        x: the cells by column.
    """

    x: dict[str, Cell]


class Label(msgspec.Struct, frozen=True):
    """What was observed of a row that was forecast before.

    Arguments:
        y: the target.
    """

    y: Cell


class Decide(msgspec.Struct, frozen=True):
    """A context in which an arm is to be chosen.

    Arguments:
        context: numbers, truth values and texts by name, a list of numbers, or null.
        arms: the arms among which to choose; null for all.
    """

    context: dict[str, Cell] | list[float] | None = None
    arms: list[str] | None = None


class Reward(msgspec.Struct, frozen=True):
    """The reward of a decision.

    Arguments:
        value: a finite number.
    """

    value: float


Content: TypeAlias = Learn | Predict | Label | Decide | Reward

KINDS: dict[str, type[Content]] = {
    "learn": Learn,
    "predict": Predict,
    "label": Label,
    "decide": Decide,
    "reward": Reward,
}
"""The kinds of what a journal holds."""

_FIELDS = {name: [field.name for field in msgspec.structs.fields(kind)] for name, kind in KINDS.items()}


class Columns(NamedTuple):
    """What the cells of a table must hold, so that a row can be refused before it is written down."""

    target: str
    kinds: Mapping[str, Kind] = {}
    classed: bool | None = None
    whole: bool = False
    classes: frozenset[str] | None = None
    counts: bool = False

    @staticmethod
    def of(schema: Schema) -> Columns:
        """What a schema asks for."""
        goal = schema.target
        kinds: dict[str, Kind] = {column.name: column.kind for column in (*schema.columns, *schema.late)}
        fixed = frozenset(goal.classes) if goal.kind.classed and not goal.first else None
        return Columns(goal.name, kinds, goal.kind.classed, goal.whole, fixed, goal.kind.whole)


_decode = msgspec.json.Decoder().decode


def read_object(body: bytes) -> dict[str, Any]:
    """A JSON object."""
    try:
        content = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        try:
            content = json.loads(body)  # which takes NaN and 1e400: they are refused with their field
        except (ValueError, RecursionError):
            raise Problem(400, f"the body must be JSON: {str(error).rstrip('.')}.") from None
    if not isinstance(content, dict):
        raise Problem(400, f"the body must be a JSON object; got {content!r:.60}.")
    return content


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
    kind: str, content: dict[str, Any], columns: Columns | None, *, need_id: bool = True
) -> tuple[str | None, Content]:
    """The id and what is to be written down; `columns` are those of a table."""
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
        return id, Reward(_number("value", _present(content, "value")))
    if kind == "decide":
        return id, Decide(_context(content.get("context")), _arms(content.get("arms")))
    assert columns is not None
    if kind == "label":
        return id, Label(_target(_present(content, "y"), columns))
    x = _row(_present(content, "x"), columns)
    return id, Predict(x) if kind == "predict" else Learn(x, _target(_present(content, "y"), columns))


def _present(content: Mapping[str, Any], field: str) -> Any:
    if field not in content:
        raise Problem(422, f"{field} is missing.", field=field)
    return content[field]


def _id(id: Any, needed: bool) -> str | None:
    if id is None and not needed:
        return None
    if not isinstance(id, str) or not 0 < len(id) <= 200 or not id.isprintable():
        got = "none" if id is None else f"{id!r:.60}"
        raise Problem(
            422, f"id must be a text of 1 to 200 characters that can be printed; got {got}.", field="id"
        )
    return id


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


def _row(x: Any, columns: Columns) -> dict[str, Cell]:
    if not isinstance(x, dict):
        raise Problem(422, f"x must be an object with a cell for each column; got {x!r:.60}.", field="x")
    if columns.target in x:
        raise Problem(422, f"x must not hold the target, {columns.target!r}.", field="x")
    return {name: _cell(f"x.{name}", value, columns.kinds.get(name)) for name, value in x.items()}


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


def _context(context: Any) -> dict[str, Cell] | list[float] | None:
    if context is None:
        return None
    if isinstance(context, list):
        return [_number(f"context.{place}", value) for place, value in enumerate(context)]
    if isinstance(context, dict):
        return {name: _cell(f"context.{name}", value, None) for name, value in context.items()}
    raise Problem(
        422, f"context must be an object, a list of numbers or null; got {context!r:.60}.", field="context"
    )


def _arms(arms: Any) -> list[str] | None:
    if arms is None:
        return None
    if (
        not isinstance(arms, Sequence)
        or isinstance(arms, str)
        or not all(isinstance(arm, str) for arm in arms)
    ):
        raise Problem(422, f"arms must be a list of names, or null; got {arms!r:.60}.", field="arms")
    return list(arms)


def as_context(context: dict[str, Cell] | list[float] | None) -> Any:
    """A context as a bandit takes it."""
    return np.asarray(context, np.float32) if isinstance(context, list) else context
