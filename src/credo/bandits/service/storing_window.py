"""The window of a bandit in a file: its decisions, and the arms among which they were taken."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple, TypedDict

import numpy as np

from credo.bandits.service.arms import Arms
from credo.bandits.service.casting import Cast
from credo.bandits.service.decision import RewardStatus
from credo.bandits.service.window import Entry, Window
from credo.core.errors import FormatError

__all__ = [
    "SavedArms",
    "SavedCast",
    "SavedEntry",
    "arms_json",
    "arms_of",
    "casts_json",
    "casts_of",
    "entries_json",
    "entry_arrays",
    "refill_window",
    "whole",
]


class SavedArms(TypedDict):
    """The arms by slot, and those that stood there before."""

    slots: list[str | None]
    former: list[str | None]
    forbidden: list[str]
    shares: dict[str, list[float]]


class SavedCast(SavedArms):
    """Arms of decisions, and which of the tables has their features."""

    table: int | None


class SavedEntry(NamedTuple):
    """A decision of the window."""

    id: str
    number: int
    slot: int
    arms: int
    version: int
    time: float
    expires: float | None
    content: str
    status: str | None
    reward: float | None
    parts: dict[str, float]
    observed: bool


def whole(value: object) -> int:
    """A whole number of at least 0."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise FormatError(f"counts must be whole numbers of at least 0; got {value!r}.")
    return value


def arms_json(arms: Arms) -> dict[str, Any]:
    """Arms as JSON data."""
    shares = {name: list(share) for name, share in arms.shares.items()}
    names = {"slots": list(arms.slots), "former": list(arms.former), "forbidden": sorted(arms.forbidden)}
    return names | {"shares": shares}


def arms_of(saved: dict[str, Any], capacity: int) -> Arms:
    """The arms that `arms_json` described; a FormatError if they cannot be."""
    slots, former = tuple(saved["slots"]), tuple(saved["former"])
    names = [name for name in slots if name is not None]
    if len(slots) != capacity or len(former) != capacity or len(set(names)) != len(names):
        raise FormatError(f"arms must have different names in {capacity} slots; got {slots!r}.", field="arms")
    arms = Arms(slots, former, frozenset(saved["forbidden"]))
    return arms.with_shares(saved["shares"]) if saved["shares"] else arms


def casts_json(casts: list[Cast]) -> list[dict[str, Any]]:
    """The arms of decisions, and the place of their features among those of all."""
    place = itertools.count()
    tables = [None if cast.rows is None else next(place) for cast in casts]
    return [arms_json(cast.arms) | {"table": table} for cast, table in zip(casts, tables, strict=True)]


def casts_of(saved: list[dict[str, Any]], tables: np.ndarray | None, capacity: int) -> list[Cast]:
    """The arms of decisions with their features, (n, K, e) of all."""
    many = 0 if tables is None else len(tables)
    if tables is not None and (tables.ndim != 3 or tables.shape[1] != capacity):
        raise FormatError(
            f"tables must have the shape (n, {capacity}, e); got {tables.shape}.", field="tables"
        )
    casts = []
    for one in saved:
        place = one["table"]
        if place is not None and place >= many:
            raise FormatError(f"table must be one of the {many} tables; got {place}.", field="table")
        rows = None if place is None or tables is None else tables[place]
        casts.append(Cast(arms_of(one, capacity), rows))
    return casts


def entries_json(window: Window, casts: list[Cast]) -> list[list[Any]]:
    """The decisions of the window: id, number, slot, arms, version, time, end, content, status, reward, its
    parts and whether observed, of each.
    """
    rows: list[list[Any]] = []
    cast = 0
    for entry in window:
        cast += casts[cast].arms is not entry.arms
        status = None if entry.status is None else entry.status.value
        what = [entry.id, entry.number, entry.slot, cast, entry.version]
        told = [entry.content, status, entry.reward, dict(entry.parts), entry.observed]
        rows.append([*what, entry.time, entry.expires, *told])
    return rows


def entry_arrays(window: Window) -> dict[str, np.ndarray]:
    """The arrays of the decisions of a window."""
    entries = list(window)
    if not entries:
        return {}
    arrays = {"numbers": np.stack([entry.numbers for entry in entries])}
    if entries[0].x is not None:
        arrays["xs"] = np.stack([entry.x for entry in entries if entry.x is not None])
    return arrays


def refill_window(
    window: Window, rows: list[list[Any]], casts: list[Cast], arrays: dict[str, np.ndarray], arms: int
) -> None:
    """Put decisions back into a window."""
    if not rows:
        return
    numbers, xs = arrays["numbers"], arrays.get("xs")
    if numbers.shape != (len(rows), 4, arms) or (xs is not None and len(xs) != len(rows)):
        raise FormatError(f"numbers must have the shape {(len(rows), 4, arms)}; got {numbers.shape}.")
    for place, (id, number, slot, cast, version, *more) in enumerate(rows):
        time, expires, content, status, reward, parts, observed = more
        x = None if xs is None else xs[place]
        told = None if status is None else RewardStatus(status)
        own, table = casts[cast]
        what = str(id), whole(number), slot, own, x, numbers[place], version
        entry = Entry(*what, time, expires, str(content), told, reward, dict(parts), observed, table)
        if own.slots[slot] is None:
            raise FormatError(f"the decision {id!r} must have chosen an arm; slot {slot} has none.")
        window.add(entry)
