"""A session in a file: the learner, the settings and counts as JSON, and the state as arrays."""

from __future__ import annotations

import dataclasses
import os
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np

from credo.core.errors import FormatError
from credo.live.early import Early
from credo.live.encoding import Encoding, members_at, restore
from credo.live.recovery import Recovery
from credo.recipes.assembly import Belief, SessionLearner
from credo.recipes.settings import Settings
from credo.sessions.change_tally import ChangeTally
from credo.sessions.places import Progress
from credo.sessions.tally import Tally
from credo.sessions.wholeness import whole
from credo.streams import checkpoint
from credo.tables import Moments

__all__ = ["NAMES", "Counters", "State", "read", "write"]

FORMAT = 1
"""The number of the format; it grows when older readers could misread a file."""


class Counters(NamedTuple):
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
    progress: Progress
    places: list[Progress]
    counters: Counters
    recovery: Recovery
    early: Early


NAMES = tuple(field.name for field in dataclasses.fields(State) if field.name != "counters")
"""What a state and a session have in common, by the same names."""


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
        "places": [dataclasses.asdict(place) for place in state.places],
    }
    parts = {
        "encoding": state.encoding.arrays(),
        "scaler": state.scaler.arrays(),
        "tally": state.tally.arrays(),
        "changes": {} if state.changes is None else state.changes.arrays(),
        "early": state.early.arrays(),
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
    arrays: dict[str, dict[str, np.ndarray]] = {
        part: {} for part in ("encoding", "scaler", "tally", "changes", "early")
    }
    for name, array in saved.arrays.items():
        part, _, rest = name.partition("/")
        arrays[part][rest] = array
    settings = Settings.from_dict(meta["settings"])
    counts = meta["counters"]
    encoding = restore(meta["encoding"], arrays["encoding"])
    bank = members_at(settings, encoding)
    return State(
        settings,
        encoding,
        saved.learner,
        saved.belief,
        Moments.from_arrays(arrays["scaler"]),
        Tally.from_arrays(settings.task, arrays["tally"]),
        ChangeTally.from_arrays(settings.drift, arrays["changes"], [str(member) for member in bank]),
        Progress(**meta["progress"]),
        [Progress(**place) for place in meta.get("places", [])],
        Counters(
            counts["read"],
            counts["used"],
            counts["refused"],
            Counter(meta["missing"]),
            Counter(meta["unseen"]),
        ),
        recovery=Recovery.from_dict(meta.get("recovery"), counts["used"]),
        early=Early.from_arrays(arrays["early"]),
    )
