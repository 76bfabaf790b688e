"""A session in a file: the learner, the settings and counts as JSON, and the state as arrays."""

from __future__ import annotations

import dataclasses
import os
from collections import Counter
from pathlib import Path

import numpy as np

from credo.core.errors import FormatError
from credo.sessions.assembly import Belief, SessionLearner
from credo.sessions.change_tally import ChangeTally
from credo.sessions.encoding import Encoding, restore
from credo.sessions.recovery import Recovery
from credo.sessions.settings import Settings
from credo.sessions.tally import Tally
from credo.sessions.wholeness import whole
from credo.streams import checkpoint
from credo.tables import Moments

__all__ = ["Counters", "Progress", "State", "read", "write"]

FORMAT = 1
"""The number of the format; it grows when older readers could misread a file."""


@dataclasses.dataclass
class Progress:
    """The position of a run over a source.

    Attributes:
        source: the source that it reads.
        line: the latest line that was learned from.
        interrupted: whether the run was stopped there.

    Example:
        >>> Progress("prices.csv", line=100, interrupted=True).line
        100
    """

    source: str = ""
    line: int = 0
    interrupted: bool = False


@dataclasses.dataclass(frozen=True)
class Counters:
    """How many rows were read, used and refused, and how many cells were missing or unknown."""

    read: int
    used: int
    refused: int
    missing: Counter[str]
    unseen: Counter[str]


@dataclasses.dataclass(frozen=True)
class State:
    """All that a session carries from one row to the next."""

    settings: Settings
    encoding: Encoding
    learner: SessionLearner
    belief: Belief
    scaler: Moments
    tally: Tally
    changes: ChangeTally | None
    counters: Counters
    progress: Progress
    recovery: Recovery


def write(path: str | os.PathLike[str], state: State) -> Path:
    """Write a session to a file, completely or not at all.

    Raises:
        DataError: the file cannot be written.
    """
    counters = state.counters
    meta = {
        "session": FORMAT,
        "settings": state.settings.to_dict(),
        "encoding": state.encoding.to_dict(),
        "counters": {"read": counters.read, "used": counters.used, "refused": counters.refused},
        "missing": dict(counters.missing),
        "unseen": dict(counters.unseen),
        "progress": dataclasses.asdict(state.progress),
        "recovery": state.recovery.to_dict(),
    }
    parts = {
        "encoding": state.encoding.arrays(),
        "scaler": state.scaler.arrays(),
        "tally": state.tally.arrays(),
        "changes": {} if state.changes is None else state.changes.arrays(),
    }
    arrays = {f"{part}/{name}": array for part, named in parts.items() for name, array in named.items()}
    return checkpoint.save(path, state.learner, state.belief, meta=meta, arrays=arrays)


@whole
def read(path: str | os.PathLike[str]) -> State:
    """Read a session back.

    Raises:
        DataError: there is no such file.
        FormatError: it is damaged, of another version, or does not hold a session.
    """
    saved = checkpoint.read(path)
    meta = saved.meta
    if meta.get("session") != FORMAT:
        author = "by another version of credo" if "session" in meta else "by a program that kept no session"
        raise FormatError(f"{path} was saved {author}; only a session of this version can be continued.")
    arrays: dict[str, dict[str, np.ndarray]] = {"encoding": {}, "scaler": {}, "tally": {}, "changes": {}}
    for name, array in saved.arrays.items():
        part, _, rest = name.partition("/")
        arrays[part][rest] = array
    settings = Settings.from_dict(meta["settings"])
    counts = meta["counters"]
    return State(
        settings,
        restore(meta["encoding"], arrays["encoding"]),
        saved.learner,
        saved.belief,
        Moments.from_arrays(arrays["scaler"]),
        Tally.from_arrays(settings.task, arrays["tally"]),
        ChangeTally.from_arrays(settings.drift, arrays["changes"]),
        Counters(
            counts["read"],
            counts["used"],
            counts["refused"],
            Counter(meta["missing"]),
            Counter(meta["unseen"]),
        ),
        Progress(**meta["progress"]),
        Recovery.from_dict(meta.get("recovery"), counts["used"]),
    )
