"""What a session carries from one row to the next, and how it is saved."""

from __future__ import annotations

import copy
import functools
import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from credo.core.errors import CredoError
from credo.core.names import ForecastName
from credo.core.turns import Turns, in_turn
from credo.live import passes
from credo.live.clock import require_times
from credo.live.encoding import Block, Encoding, TableEncoding, members_at
from credo.live.intake import Rows
from credo.live.recovery import Recovery
from credo.live.runner import Runner
from credo.programs.packed import PackedBelief
from credo.recipes.capacity import fits, inputs_fit
from credo.recipes.defaults import TABLE_CHUNK
from credo.recipes.resolution import input_clip
from credo.recipes.settings import Settings
from credo.sessions import storage
from credo.sessions.change_tally import ChangeTally
from credo.sessions.counting import Counting
from credo.sessions.fitting import NAMES, State
from credo.sessions.places import Progress
from credo.sessions.tally import Tally
from credo.sessions.viewing import View

__all__ = ["FrozenSession", "SessionState"]


class FrozenSession:
    """What `SessionState.freeze` gives: a session at one moment.

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


class SessionState(Runner):
    """The state of a `Session`, whose docstring names its arguments and attributes."""

    def __init__(self, settings: Settings, encoding: Encoding, chunk: int = TABLE_CHUNK) -> None:
        shape, classes, first = encoding.shape, len(encoding.classes), encoding.first
        super().__init__(settings, shape, classes, first, encoding.origin, chunk=chunk)
        self.settings: Settings = settings
        self._turns, self.encoding = Turns(), encoding
        if isinstance(encoding, TableEncoding):
            encoding.limit(input_clip(settings))
            if encoding.first:
                encoding.admit = lambda classes: fits(
                    settings, encoding.shape, classes, encoding.first, encoding.origin
                )
            self._late = len(encoding.schema.late)
            encoding.admit_width = self._admits
        self.members = members_at(settings, encoding)
        changes = ChangeTally.of(settings.drift, [str(member) for member in self.members])
        self._counting = Counting(Tally(settings.task, len(encoding.classes)), changes)
        self.rows_read: int = 0
        self.rows_used: int = 0
        self.clock: float | None = None
        self.missing: Counter[str] = Counter()
        self.unseen: Counter[str] = Counter()
        self.progress = Progress()
        self.places: list[Progress] = []
        self._latest: View | None = None

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_latest": None}

    def _keep_up(self) -> None:
        """Make room for the columns that the encoding has taken in."""
        if isinstance(self.encoding, TableEncoding):
            self._follow(self.encoding.schema)

    def _make_room(self, classes: int) -> None:
        if self.classes and classes > self.classes:
            self.tally.widen(classes)
        super()._make_room(classes)

    def _look(self) -> View:
        """The state as it is now, in turn."""
        self._keep_up()
        self._make_room(len(self.encoding.classes))
        classes = () if self.regression else self.encoding.classes
        moments = None if self.own_units else self.scaler
        encoding = copy.copy(self.encoding)
        self._latest = View(self.packed, encoding, classes, moments, self.clock, self.timed)
        return self._latest

    def _view(self) -> View:
        """The state now or, while another thread changes it, before that change."""
        latest = self._latest
        if not self._turns.lock.acquire(blocking=latest is None):
            assert latest is not None
            return self._latest or latest
        try:
            return self._look()
        finally:
            self._turns.lock.release()

    @property
    def tally(self) -> Tally:
        """The scores so far."""
        return self._settled().tally

    @tally.setter
    def tally(self, tally: Tally) -> None:
        self._counting = Counting(tally, self._settled().changes)

    @property
    def changes(self) -> ChangeTally | None:
        """The changes reported so far, where the drift is a wrapper."""
        return self._settled().changes

    @in_turn
    def _settled(self) -> Counting:
        return self._counting.settle()

    @property
    def timed(self) -> bool | None:
        """Whether rows have times; None before the first row."""
        return True if self.clock is not None else (False if self.rows_used else None)

    @property
    def _reports(self) -> bool:
        """Whether the learner reports changes."""
        return self._counting.changes is not None

    def _times(self, rows: Rows, times: ArrayLike | None) -> np.ndarray | None:
        """The times of rows that can be learned; others are refused, before anything is."""
        given = rows.times if isinstance(rows, Block) else times
        if given is None and self.timed:
            raise CredoError(
                "times must be given for all rows or for none; the earlier rows had them.", field="times"
            )
        return require_times(given, self.clock, self.timed)

    def _admits(self, width: int) -> bool:
        """Whether there may be so many features."""
        classes = len(self.encoding.classes)
        return inputs_fit(self.settings, (width,), classes, self.encoding.first, self.encoding.origin)

    @property
    def uncertain(self) -> bool:
        """Whether the learner is a single one that keeps a posterior."""
        return self.settings.uncertain

    @functools.cached_property
    def regression(self) -> bool:
        """Whether numbers are predicted."""
        return not self.settings.target.classed

    @property
    def size(self) -> int:
        """The number P of parameters."""
        return passes.parameter_count(self.belief)

    @property
    def largest(self) -> int:
        """The number of parameters of the largest member of a bank, or of the learner."""
        return passes.largest_member(self.belief)

    @functools.cached_property
    def compare(self) -> tuple[ForecastName, ...]:
        """Further methods of forecasting that are scored beside the learner's own.

        The linearised forecast of a bank is that of its members as they compute it, before it is scaled.
        """
        if self.members:
            return ("linearized",)
        return ("plugin",) if self.uncertain else ()

    @in_turn
    def metrics(self) -> dict[str, float]:
        """The scores so far, by name. `session.tally.baseline()` gives those of the baseline."""
        return self.tally.metrics(self.uncertain)

    @in_turn
    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the session to a file, completely or not at all.

        Arguments:
            path: the file; by custom it ends in `.credo`.

        Returns:
            The path.

        Raises:
            DataError: the file cannot be written.
        """
        return self.freeze().save(path)

    @in_turn
    def freeze(self) -> FrozenSession:
        """The session as it is now, which another thread may write while this one learns on.

        Example:
            >>> from credo.sessions import Session
            >>> rows = [{"a": float(i % 7), "y": 2.0 * (i % 7)} for i in range(60)]
            >>> session = Session.from_rows(rows, "y", model="linear")
            >>> frozen, _ = session.freeze(), session.learn(rows)
            >>> frozen.rows_used, session.rows_used
            (0, 60)
        """
        return FrozenSession({name: getattr(self, name) for name in NAMES if name != "belief"}, self.packed)

    @classmethod
    def load(cls, path: str | os.PathLike[str], chunk: int = TABLE_CHUNK) -> Self:
        """Read a session back. It continues bit by bit as if it had never stopped.

        Arguments:
            path: a file that `save` or `credo learn` wrote.
            chunk: rows in a compiled call.

        Raises:
            DataError: there is no such file.
            FormatError: it is damaged, of another version, or does not hold a session.
        """
        state = storage.read(path)
        session = cls(state.settings, state.encoding, chunk)
        for name in NAMES:
            if name not in ("tally", "changes"):
                setattr(session, name, getattr(state, name))
        session._counting = Counting(state.tally, state.changes)
        session.classes = 0 if session.regression else len(session.tally.counts)
        return session
