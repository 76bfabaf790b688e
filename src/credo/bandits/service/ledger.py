"""The log of a running bandit: a JSON line for everything that it answers for, written before it counts."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from credo.bandits.logs.json_lines import json_line
from credo.bandits.service.window import Entry
from credo.live.journal import Journal, Mark

__all__ = ["Ledger"]


class Ledger(Journal):
    """The lines of a bandit in a `Journal`, from which `replay` brings it back."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path, "log")

    def _write(self, lines: Iterable[Mapping[str, Any]]) -> None:
        self.append([json_line(line).rstrip(b"\n") for line in lines])

    def decision(self, entry: Entry, context: Any) -> None:
        """Write a decision, with the context as the caller passed it."""
        pmf, mean, sd, may = map(entry.arms.by_name, entry.numbers)
        allowed = {name: p for name, p in pmf.items() if may[name]}
        line = {
            "kind": "decision",
            "id": entry.id,
            "time": entry.time,
            "context": context,
            "arms": list(allowed),
            "arm": entry.arm,
            "propensity": pmf[entry.arm],
            "pmf": allowed,
            "version": entry.version,
            "number": entry.number,
            "mean": mean,
            "sd": sd,
        }
        self._write([line])

    def rewards(self, pairs: Sequence[tuple[Entry, float]], time: float, *, imputed: bool) -> None:
        """Write rewards, or the default rewards of decisions that had none."""
        more = {"imputed": True} if imputed else {}
        self._write(
            {"kind": "reward", "id": entry.id, "value": value, "time": time} | more for entry, value in pairs
        )

    def change(self, change: str, name: str, details: Mapping[str, Any]) -> None:
        """Write what became of an arm: "add", "remove", "forbid" or "allow"."""
        self._write([{"kind": "arm", "change": change, "arm": name, **details}])

    def taught(self, rows: Iterable[tuple[Any, str, float, float]]) -> None:
        """Write what was learned of another log: context, arm, reward and weight of each row."""
        self._write(
            {"kind": "taught", "context": context, "arm": arm, "value": reward, "weight": weight}
            for context, arm, reward, weight in rows
        )

    def events(self, mark: Mark | None) -> Iterator[dict[str, Any]]:
        """What was written after a place, without lines that a crash cut, or that are no JSON objects."""
        for line in self.since(mark):
            try:
                event = json.loads(line)
            except ValueError:
                continue
            if isinstance(event, dict):
                yield event
