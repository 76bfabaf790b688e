"""Scores of the forecasts by key: sums over all keys, and a few numbers for each."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from credo.core import archive
from credo.core.errors import FormatError
from credo.core.places import Place
from credo.scale.feed import Batch
from credo.streams.keyed import KeyedRows
from credo.streams.keyed.naming import from_text, to_text

__all__ = ["KeyTally"]

FORMAT = 1
KEPT = 2
LEAST = 20
"""The least rows of a key that is called one of the worst."""

_TOTALS = ("rows", "scored", "loss", "error", "inside", "alarms", "late")
_OF_KEY = ("count", "losses", "first", "changes", "came")


class KeyTally:
    """Sums of the scores of rows, over all keys and by key.

    Arguments:
        classes: whether classes are forecast, and otherwise numbers.
        warmup: how many first rows of each key are not scored, while its units are not known.

    Attributes:
        totals: rows, scored rows, the sums of their losses (negative log densities in the target's own
            units) and errors (squared errors, or wrong classes), how many targets lay within the central
            interval of 90%, how many changes were reported, and how many rows were late.
        count, losses, first, changes, came: of each key its scored rows, the sum of their losses, the line of
            its first row, its reported changes, and with a `warmup` its rows.
    """

    def __init__(self, classes: bool, warmup: int = 0) -> None:
        self.classes = classes
        self.warmup = warmup
        self.places: dict[str, int] = {}
        self._of_slot = np.full(0, -1)
        self.totals = np.zeros(len(_TOTALS))
        self.count = np.zeros(0)
        self.losses = np.zeros(0)
        self.first = np.zeros(0)
        self.changes = np.zeros(0)
        self.came = np.zeros(0)

    def add(self, rows: Batch, told: KeyedRows, *, stay: bool = False) -> None:
        """Take in the scores of rows; whether keys `stay` in their slots, so that these are known again."""
        fresh = len(self.places)
        at = self._places_of(rows.keys, told.slots if stay else None)
        self._grow()
        outcome = told.outcome
        known = rows.known & told.ok
        if self.warmup:
            known = known & (self.came[at] + _earlier(at) >= self.warmup)
        losses = np.log(rows.scale) - np.asarray(outcome.log_prob, float)
        inside = np.zeros(len(losses), bool)
        if outcome.probs is None:
            errors = (rows.scale * (np.asarray(outcome.mean, float) - rows.y)) ** 2
            if outcome.pit is not None:
                inside = np.abs(np.asarray(outcome.pit, float) - 0.5) <= 0.45
        else:
            errors = (outcome.probs.argmax(axis=1) != rows.y).astype(float)
        alarms = np.zeros(len(losses), bool) if told.alarm is None else told.alarm
        sums = (known, np.where(known, losses, 0.0), np.where(known, errors, 0.0), known & inside, alarms)
        late = 0 if told.late is None else int(told.late.sum())
        self.totals += [len(losses), *(float(one.sum()) for one in sums), late]
        np.add.at(self.count, at, known.astype(float))  # a cast within `at` takes 40 times as long
        np.add.at(self.losses, at, sums[1])
        if told.alarm is not None:
            np.add.at(self.changes, at, alarms.astype(float))
        if self.warmup:
            np.add.at(self.came, at, 1.0)
        new = at >= fresh
        self.first[at[new][::-1]] = rows.lines[new][::-1]

    def _places_of(self, keys: Sequence[str], slots: np.ndarray | None) -> np.ndarray:
        """The places of keys (n,), which new ones get; by their slots if these were seen before."""
        places = self.places
        if slots is None:
            at = np.fromiter(map(places.get, keys, itertools.repeat(-1)), np.int64, len(keys))
            for row in np.flatnonzero(at < 0).tolist():
                at[row] = places.setdefault(keys[row], len(places))
            return at
        if (more := int(slots.max()) + 1 - len(self._of_slot)) > 0:
            blank = np.full(max(more, len(self._of_slot)), -1)
            self._of_slot = np.concatenate([self._of_slot, blank])
        for row in np.flatnonzero(self._of_slot[slots] < 0).tolist():
            self._of_slot[slots[row]] = places.setdefault(keys[row], len(places))
        known: np.ndarray = self._of_slot[slots]
        return known

    def _grow(self) -> None:
        room = len(self.count)
        if len(self.places) > room:
            more = max(len(self.places), 2 * room) - room
            for name in _OF_KEY:
                setattr(self, name, np.concatenate([getattr(self, name), np.zeros(more)]))

    def summary(self, most: int = 10) -> dict[str, Any]:
        """The means over all keys, and the worst, newest and most changing keys."""
        rows, scored, loss, error, inside, alarms, late = self.totals.tolist()
        names = list(self.places)
        size = len(self.places)
        count = self.count[:size]
        losses = self.losses[:size]
        first = self.first[:size]
        changes = self.changes[:size]
        mean = losses / np.maximum(count, 1)
        enough = np.flatnonzero(count >= LEAST)
        worst = enough[np.argsort(-mean[enough], kind="stable")[:most]]
        newest = np.argsort(-first, kind="stable")[:most]
        moving = np.flatnonzero(changes)
        moving = moving[np.argsort(-changes[moving], kind="stable")[:most]]
        per = max(scored, 1.0)
        quality = (
            {"error": error / per}
            if self.classes
            else {"rmse": (error / per) ** 0.5, "coverage_90": inside / per}
        )
        return {
            "rows": int(rows),
            "scored": int(scored),
            "keys": size,
            "nlpd": loss / per,
            **quality,
            "changes": int(alarms),
            "late": int(late),
            "worst": [[names[at], int(count[at]), float(mean[at])] for at in worst],
            "newest": [[names[at], int(count[at]), int(first[at])] for at in newest],
            "drifting": [[names[at], int(count[at]), int(changes[at])] for at in moving],
        }

    def join(self, other: KeyTally) -> None:
        """Take in the tally of another shard, which has other keys."""
        self.totals = self.totals + other.totals
        sizes = len(self.places), len(other.places)
        for name in _OF_KEY:
            mine = getattr(self, name)[: sizes[0]]
            theirs = getattr(other, name)[: sizes[1]]
            setattr(self, name, np.concatenate([mine, theirs]))
        self.places = dict.fromkeys([*self.places, *other.places])  # type: ignore[assignment]
        self.places = {name: place for place, name in enumerate(self.places)}

    def save(self, folder: Place, line: int) -> None:
        """Write the tally beside a checkpoint that goes up to a line; those before the latest two go."""
        size = len(self.places)
        arrays = {name: getattr(self, name)[:size] for name in _OF_KEY}
        names = np.frombuffer(to_text(list(self.places)), np.uint8)
        header = {"format": FORMAT, "classes": self.classes, "warmup": self.warmup}
        archive.write(
            _path(folder, line), "credo-tally", header, {**arrays, "totals": self.totals, "names": names}
        )
        for name in sorted(path.name for path in folder.glob("tally-*.credo"))[: -KEPT - 1]:
            (folder / name).unlink(missing_ok=True)

    @staticmethod
    def load(folder: Place, line: int) -> KeyTally:
        """The tally beside a checkpoint."""
        path = _path(folder, line)
        header, arrays = archive.read(path, "credo-tally", FORMAT, "tally of keys")
        with archive.refusing(path, "tally"):
            tally = KeyTally(bool(header["classes"]), int(header["warmup"]))
            names = [str(name) for name in from_text(arrays["names"].tobytes())]
            if any(len(arrays[name]) != len(names) for name in _OF_KEY):
                raise FormatError("a tally must have as many numbers as keys.")
            tally.places = {name: place for place, name in enumerate(names)}
            tally.totals = np.array(arrays["totals"])
            for name in _OF_KEY:
                setattr(tally, name, np.array(arrays[name]))
        return tally


def _earlier(at: np.ndarray) -> np.ndarray:
    """The number of earlier entries that are the same as each (n,)."""
    order = np.argsort(at, kind="stable")
    ordered = at[order]
    earlier = np.empty(len(at), np.int64)
    earlier[order] = np.arange(len(at)) - np.searchsorted(ordered, ordered)
    return earlier


def _path(folder: Place, line: int) -> Place:
    return folder / f"tally-{line:012d}.credo"
