"""A session in a file: the learner, the settings and counts as JSON, and the state as arrays."""

from __future__ import annotations

import dataclasses
import os
from collections import Counter
from pathlib import Path

import numpy as np

from credo.core.archive import join, refusing, split
from credo.core.errors import FormatError
from credo.live.encoding import members_at
from credo.live.recovery import Recovery
from credo.live.restoring import restore
from credo.live.runner import Early
from credo.recipes.settings import Settings
from credo.sessions.change_tally import ChangeTally
from credo.sessions.fitting import State, require_fitting
from credo.sessions.places import Progress
from credo.sessions.tally import Tally
from credo.streams import checkpoint
from credo.tables import Moments

__all__ = ["read", "write"]

FORMAT = 1
"""The number of the format; it grows when older readers could misread a file."""


def write(path: str | os.PathLike[str], state: State) -> Path:
    """Write a session to a file, completely or not at all; a DataError if it cannot be written."""
    meta = {
        "session": FORMAT,
        "settings": state.settings.to_dict(),
        "encoding": state.encoding.to_dict(),
        "counters": {"read": state.rows_read, "used": state.rows_used, "refused": state.rows_refused},
        "missing": dict(sorted(state.missing.items())),
        "unseen": dict(sorted(state.unseen.items())),
        "progress": dataclasses.asdict(state.progress),
        "recovery": state.recovery.to_dict(),
        "places": [dataclasses.asdict(place) for place in state.places],
    }
    if state.clock is not None:
        meta["clock"] = state.clock
    arrays = {
        "encoding": state.encoding.arrays(),
        "scaler": state.scaler.arrays(),
        "tally": state.tally.arrays(),
        "changes": {} if state.changes is None else state.changes.arrays(),
        "early": state.early.arrays(),
    }
    return checkpoint.save(path, state.learner, state.belief, meta=meta, arrays=join(arrays))


def read(path: str | os.PathLike[str]) -> State:
    """Read a session back; refusals are those of `Session.load`."""
    with refusing(path, "session"):
        saved = checkpoint.read(path)
        state = _restored(saved, path)
        require_fitting(state)
    return state


def _restored(saved: checkpoint.Saved, path: str | os.PathLike[str]) -> State:
    meta = saved.meta
    if meta.get("session") != FORMAT:
        author = "by another version of credo" if "session" in meta else "by a program that kept no session"
        raise FormatError(f"{path} was saved {author}; only a session of this version can be continued.")
    arrays = split(saved.arrays, ("encoding", "scaler", "tally", "changes", "early"))
    settings = Settings.from_dict(meta["settings"])
    counts = meta["counters"]
    encoding = restore(meta["encoding"], arrays["encoding"])
    bank = members_at(settings, encoding)
    had = np.size(arrays["changes"].get("failures", ())) if bank else 0
    if had and had != len(bank):
        raise FormatError(
            f"{path} has a bank of {had} members, and the bank of this version of credo has {len(bank)}: "
            "learn its rows again, or continue with the version that saved it."
        )
    return State(
        settings,
        encoding,
        saved.learner,
        saved.belief,
        Moments.from_arrays(arrays["scaler"], "scaler"),
        Tally.from_arrays(settings.task, arrays["tally"]),
        ChangeTally.from_arrays(settings.drift, arrays["changes"], [str(member) for member in bank]),
        Progress(**meta["progress"]),
        [Progress(**place) for place in meta["places"]],
        rows_read=counts["read"],
        rows_used=counts["used"],
        rows_refused=counts["refused"],
        missing=Counter(meta["missing"]),
        unseen=Counter(meta["unseen"]),
        recovery=Recovery.from_dict(meta["recovery"]),
        early=Early.from_arrays(arrays["early"]),
        clock=meta.get("clock"),
    )
