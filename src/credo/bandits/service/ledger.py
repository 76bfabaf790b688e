"""The log of a running bandit: one JSON line for every decision and every reward, written at once."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from credo.bandits.logs.json_lines import json_line
from credo.bandits.service.window import Entry
from credo.core.errors import DataError

__all__ = ["Ledger"]


class Ledger:
    """Appends JSON lines to a file, which is begun where it is missing, each in one write that is flushed; a
    DataError where it cannot be written.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = open(self.path, "ab", buffering=0)  # noqa: SIM115  # open as long as the bandit
            if self._file.tell() and not self._ends_with_a_line():
                self._file.write(b"\n")
        except OSError as error:
            raise self._refusal(error) from None

    def _ends_with_a_line(self) -> bool:
        """Whether the file was left at the end of a line, rather than by a crash within one."""
        with open(self.path, "rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) == b"\n"

    def _refusal(self, error: OSError) -> DataError:
        return DataError(f"cannot write the log {self.path}: {error.strerror or error}.", field="log")

    def _write(self, line: dict[str, Any]) -> None:
        try:
            self._file.write(json_line(line))
        except OSError as error:
            raise self._refusal(error) from None

    def decision(self, entry: Entry, context: Any) -> None:
        """Write a decision, with the context as the caller passed it."""
        pmf = entry.arms.by_name(entry.numbers[0])
        may = entry.arms.by_name(entry.numbers[3])
        allowed = {name: p for name, p in pmf.items() if may[name]}
        self._write(
            {
                "kind": "decision",
                "id": entry.id,
                "time": entry.time,
                "context": context,
                "arms": list(allowed),
                "arm": entry.arm,
                "propensity": pmf[entry.arm],
                "pmf": allowed,
                "version": entry.version,
            }
        )

    def reward(self, id: str, value: float, time: float, *, imputed: bool) -> None:
        """Write a reward, or the default reward of a decision that had none."""
        line = {"kind": "reward", "id": id, "value": value, "time": time}
        self._write(line | {"imputed": True} if imputed else line)

    def close(self) -> None:
        """Close the file."""
        self._file.close()
