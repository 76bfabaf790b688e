"""The log of a running bandit: a JSON line for everything that it answers for, written before it counts."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from credo.bandits.logs.json_lines import json_line
from credo.bandits.service.asked_arms import Asked, Lesson
from credo.bandits.service.window import Entry
from credo.core.errors import DataError
from credo.live.journal import Journal, Mark

__all__ = ["Ledger"]


class Ledger(Journal):
    """The lines of a bandit in a `Journal`, from which `replay` brings it back."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path, "log")

    def _write(self, lines: Iterable[Mapping[str, Any]]) -> None:
        self.append([json_line(line).rstrip(b"\n") for line in lines])

    def decisions(self, decisions: Iterable[tuple[Entry, Asked]]) -> None:
        """Write decisions, with what was asked as the caller passed it."""
        self._write(_decision(entry, asked) for entry, asked in decisions)

    def seen(self, taken: Iterable[tuple[int, Asked]]) -> None:
        """Write what was taken in by its number, and for which nothing was decided."""
        self._write({"kind": "seen", "number": number, **_said(asked)} for number, asked in taken)

    def rewards(
        self,
        pairs: Sequence[tuple[Entry, float]],
        ok: Sequence[bool],
        time: float,
        *,
        imputed: bool,
        new: Sequence[tuple[Entry, Asked]] = (),
    ) -> None:
        """Write rewards, or the default rewards of decisions that had none, and which were refused; before
        them choices that are new, with what was said of them.
        """
        more = {"imputed": True} if imputed else {}
        rewards = (
            {"kind": "reward", "id": entry.id, "value": value, "time": time}
            | (more if learned else more | {"refused": True})
            for (entry, value), learned in zip(pairs, ok, strict=True)
        )
        self._write([*(_decision(entry, asked) for entry, asked in new), *rewards])

    def part(self, entry: Entry, part: str, value: float, time: float) -> None:
        """Write a part of a reward."""
        self._write([{"kind": "reward", "id": entry.id, "value": value, "time": time, "part": part}])

    def change(self, change: str, name: str, details: Mapping[str, Any]) -> None:
        """Write what became of an arm: "add", "remove", "forbid", "allow" or "share"."""
        self._write([{"kind": "arm", "change": change, "arm": name, **details}])

    def taught(self, lessons: Iterable[Lesson]) -> None:
        """Write what was learned of another log."""
        self._write(
            {
                "kind": "taught",
                **_said(Asked(context, features)),
                "arm": arm,
                "value": reward,
                "weight": weight,
            }
            for context, arm, reward, weight, features in lessons
        )

    def begin(self, of: str | None, epoch: str) -> None:
        """Write that a bandit begins here: a saved one with a digest, or a new one."""
        self._write([{"kind": "begin", "of": of, "epoch": epoch}])
        self.sync()

    def begun(self, of: str | None) -> tuple[Mark, str] | None:
        """The place where such a bandit began last, and the epoch of its ids; None if none has."""
        found = None
        for at, event in self._objects(None):
            if event.get("kind") == "begin" and event.get("of") == of:
                found = at, str(event.get("epoch"))
        if found is None:
            return None
        return (self._mark_at(found[0]), found[1])

    def events(self, mark: Mark | None) -> list[dict[str, Any]]:
        """The events that were written after a place; a DataError if another bandit goes on there."""
        events = [event for _, event in self._objects(mark)]
        if any(event.get("kind") == "begin" for event in events):
            raise DataError(
                f"another bandit went on with the log {self.path}; give this one a log of its own.",
                field="log",
            )
        return events

    def _objects(self, mark: Mark | None) -> Iterator[tuple[int, dict[str, Any]]]:
        """The objects after a place and where each ends, without lines that a crash cut."""
        for at, line in self.since(mark):
            try:
                event = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(event, dict):
                yield at, event


def _said(asked: Asked) -> dict[str, Any]:
    features = {} if asked.features is None else {"features": asked.features}
    return {"context": asked.context, **features}


def _decision(entry: Entry, asked: Asked) -> dict[str, Any]:
    pmf, mean, sd, may = map(entry.arms.by_name, entry.numbers)
    allowed = {name: p for name, p in pmf.items() if may[name]}
    whole = not any(p != p for p in allowed.values())
    return {
        "kind": "observed" if entry.observed else "decision",
        "id": entry.id,
        "time": entry.time,
        **_said(asked),
        "arms": list(allowed),
        "arm": entry.arm,
        "propensity": pmf[entry.arm],
        "pmf": allowed if whole else None,
        "version": entry.version,
        "number": entry.number,
        "content": entry.content,
        "mean": mean,
        "sd": sd,
    }
