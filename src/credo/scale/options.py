"""The results of a run with one learner for each key, and how it was begun."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from credo.core import archive
from credo.core.places import Place
from credo.recipes.options import ColumnOptions, KeyedOptions, Options

__all__ = ["BEFORE", "FORMAT", "MARK", "STATE", "KeyedResult", "options_of", "state_of"]

FORMAT = 1
STATE = "run.credo"
BEFORE = "run-before.credo"
MARK = "credo-keyed-run"


@dataclass(frozen=True)
class KeyedResult:
    """The results of a run so far, over all its parts.

    Attributes:
        folder: the folder of the run, with `predictions`, `metrics.json` and the state of the shards.
        line: the line up to which the source was read.
        metrics: rows, keys, nlpd, rmse and coverage_90 or error, reported changes, rows that were late, and
            the worst, newest and most changing keys, as lists.
        bad_rows: how many rows could not be used.
        bad: sentences about a few of them.

    Example:
        >>> from pathlib import Path
        >>> KeyedResult(Path("runs"), 10, {"keys": 3}, 0, ()).metrics["keys"]
        3
    """

    folder: Place
    line: int
    metrics: dict[str, Any]
    bad_rows: int
    bad: tuple[str, ...]


def state_of(folder: Place, name: str = STATE) -> archive.Archive:
    """The file that says how far the run in a folder is; a DataError if there is none."""
    return archive.read(folder / name, MARK, FORMAT, "run of keyed learners")


def options_of(folder: Place) -> KeyedOptions:
    """The options of the run in a folder, of which `workers`, `ray`, `evict` and `checkpoint` may change.

    Raises:
        DataError: there is no run.
        FormatError: it is damaged, or has a newer format.
    """
    with archive.refusing(folder / STATE, "run of keyed learners"):
        words = dict(state_of(folder).header["options"])
        learner = Options(**words.pop("learner"))
        columns = ColumnOptions(words.pop("target"))
        return KeyedOptions(columns=columns, learner=learner, **words)
