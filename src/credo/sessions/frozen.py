"""A session at one moment, which a thread may write while another one learns on."""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from credo.live.recovery import Recovery
from credo.programs.packed import PackedBelief
from credo.sessions import storage
from credo.sessions.fitting import State

__all__ = ["FrozenSession"]


class FrozenSession:
    """What `Session.freeze` gives: a session at one moment.

    Arguments:
        parts: what a `State` holds beside the belief.
        packed: the learner and its belief.
    """

    def __init__(self, parts: Mapping[str, Any], packed: PackedBelief) -> None:
        changing = ("tally", "changes", "progress", "places", "missing", "unseen")
        kept = {name: copy.deepcopy(parts[name]) for name in changing}
        kept |= {"encoding": copy.copy(parts["encoding"]), "early": parts["early"].copy()}
        kept["recovery"] = Recovery.from_dict(copy.deepcopy(parts["recovery"].to_dict()))
        self._parts, self._packed = {**parts, **kept}, packed

    @property
    def rows_used(self) -> int:
        """How many rows were learned from."""
        rows: int = self._parts["rows_used"]
        return rows

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write it to a file, as `Session.save` does; equal rows give equal files.

        Arguments:
            path: the file.

        Raises:
            DataError: the file cannot be written.
        """
        return storage.write(path, State(**self._parts, belief=self._packed.tree))
