"""A bandit after a crash: what its log holds beyond what it knows is done again, bit by bit."""

from __future__ import annotations

import math
import os
import secrets
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from credo.bandits.service import arm_changes, rewarding, warm
from credo.bandits.service.asked_arms import Lesson
from credo.bandits.service.engine import Service
from credo.bandits.service.ledger import Ledger
from credo.bandits.service.programs import Answer
from credo.bandits.service.window import Entry
from credo.core.errors import CredoError, DataError
from credo.live.journal import Mark

__all__ = ["Start", "attach"]

Event = Mapping[str, Any]

EPOCH = 6
"""The number of random bytes that tell the ids of two processes apart."""


class Start(NamedTuple):
    """The start of a bandit: a file, by its digest in `of` and the place of the log there, or nothing. `new`
    says that there was nothing before it.
    """

    new: bool
    of: str | None = None
    mark: Mark | None = None


def attach(service: Service, log: str | os.PathLike[str] | None, start: Start, *, replay: bool) -> None:
    """Connect a bandit with a log, if any, and with `replay` do again what the log holds of it: decisions are
    remembered as they were answered, and a DataError says which line cannot be one of this bandit.

    If no log says what was decided since the start, the ids get an epoch of their own, so that no decision
    of which nothing is known here has the id of a later one. The log notes it, for the next replay.
    """
    if log is None and replay:
        raise CredoError("replay needs the log that is to be done again; log is missing.", field="replay")
    ledger = None if log is None else Ledger(log)
    try:
        _go_on(service, ledger, start, replay=replay)
    except BaseException:
        if ledger is not None:
            ledger.close()
        raise


def _go_on(service: Service, ledger: Ledger | None, start: Start, *, replay: bool) -> None:
    engine = service.engine
    overdue: list[tuple[Entry, float]] = []
    known = False
    if ledger is not None and replay:
        mark = start.mark if start.mark is not None and ledger.holds(start.mark) else None
        begun = ledger.begun(start.of) if mark is None else None
        if begun is not None:
            mark, engine.epoch = begun
        known = start.of is None or mark is not None
        if known:
            overdue = _Replay(service, ledger.events(mark)).run()
    elif start.new:
        known = ledger is None or ledger.empty
    if not known:
        engine.epoch = secrets.token_hex(EPOCH)
        if ledger is not None:
            if start.mark is not None:
                warnings.warn(
                    f"{ledger.path} is not the log that the bandit wrote when it was saved; what that one "
                    "has since then is not known here.",
                    stacklevel=5,
                )
            ledger.begin(start.of, engine.epoch)
    engine.ledger = ledger
    with engine.writing:
        engine.learn(overdue, engine.time.latest, imputed=True)
    engine.sync()


class _Replay:
    """The events of a log on their way into an engine, which writes no log meanwhile."""

    def __init__(self, service: Service, events: Sequence[Event]) -> None:
        self.engine, self.prior = service
        self.events = events
        decisions = [event for event in events if event.get("kind") in ("decision", "observed", "seen")]
        if any(not isinstance(event.get("number"), int) for event in decisions):
            raise DataError("the log lacks the numbers of its decisions.", field="log")
        # threads write their decisions in another order than that in which contexts were taken in
        self._ahead = sorted(decisions, key=lambda event: int(event["number"]), reverse=True)
        self._taken: dict[int, tuple[np.ndarray | None, np.ndarray | None]] = {}
        self._lost: dict[str, Entry] = {}
        self._rewards: list[tuple[Entry, float]] = []
        self._taught: list[Event] = []

    def run(self) -> list[tuple[Entry, float]]:
        """Do all events; the default rewards of decisions that left before theirs could be written."""
        kinds: dict[str, Callable[[Event], object]] = {
            "decision": self._decision,
            "observed": self._decision,
            "seen": self._take_in,
            "reward": self._reward,
            "arm": self._arm,
            "taught": self._taught.append,
        }
        for number, event in enumerate(self.events, 1):
            kind = str(event.get("kind"))
            try:
                if kind != "taught":
                    self._teach()
                if kind != "reward" or event.get("imputed"):
                    self._learn(False)
                if kind in kinds:
                    kinds[kind](event)
            except (CredoError, KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
                raise DataError(
                    f"line {number} of what is new in the log cannot be one of this bandit: {error}.",
                    field="log",
                ) from error
        self._teach()
        self._learn(False)
        return self.engine.defaults(list(self._lost.values()))

    def _take_in(self, event: Event) -> tuple[np.ndarray | None, np.ndarray | None]:
        """The context of an event and the features of its arms, which the encoders take in after all before
        it.
        """
        number = int(event["number"])
        while self._ahead and int(self._ahead[-1]["number"]) <= number:
            first = self._ahead.pop()
            told = first.get("features")
            slots = len(self.engine.state.arms.slots)
            table = None if told is None else self.engine.inputs.table(told, slots)
            self._taken[int(first["number"])] = self.engine.admit(first["context"]), table
        self.engine.count = max(self.engine.count, number + 1)
        return self._taken.pop(number)

    def _decision(self, event: Event) -> None:
        engine = self.engine
        (vector, table) = self._take_in(event)
        now = self._time(event)
        self._leave(now, room=1)
        cast = engine.cast(event.get("features"), table)
        arms = cast.arms
        x = engine.inputs.of(vector, arms, cast.rows)
        observed = event["kind"] == "observed"
        pmf = event["pmf"]
        if pmf is None:
            pmf = dict.fromkeys(event["arms"]) | {event["arm"]: event["propensity"]}
        columns = [pmf, event["mean"], event["sd"], dict.fromkeys(event["arms"], 1.0)]
        kind = np.dtype(np.float64) if observed else engine.programs.answer_dtype(x, arms.bounds is not None)
        numbers = np.zeros((len(columns), len(arms.slots)), kind)
        for row, column in zip(numbers, columns, strict=True):
            for name, value in column.items():
                row[arms.slot(name)] = math.nan if value is None else value
        answer = Answer(arms.slot(event["arm"]), numbers)
        kept = x if cast.rows is None else vector
        about = answer, kept, cast, int(event["version"]), now, str(event["content"])
        entry = engine.entry(str(event["id"]), int(event["number"]), *about)
        entry.observed = observed
        engine.remember(entry)

    def _reward(self, event: Event) -> None:
        id = str(event["id"])
        imputed = bool(event.get("imputed"))
        now = self._time(event)
        if not imputed:
            self._leave(now)
        entry = self.engine.window.get(id) or self._lost.pop(id, None)
        if any(entry is one for one, _ in self._rewards):
            self._learn(False)  # so that this one is judged by what became of the first
        if entry is None or not entry.waits:
            return
        if event.get("part") is not None:
            rewarding.add_part(self.engine, entry, str(event["part"]), float(event["value"]), now)
            return
        self._rewards.append((entry, float(event["value"])))
        if imputed:
            self._learn(True)
            self.engine.window.drop(entry)

    def _arm(self, event: Event) -> None:
        details = event.get("features"), event.get("inherit"), event.get("share")
        arm_changes.apply(self.engine, self.prior, event["change"], str(event["arm"]), *details)

    def _time(self, event: Event) -> float:
        return self.engine.now(float(event["time"]))

    def _leave(self, now: float, room: int = 0) -> None:
        engine = self.engine
        if not engine.window.over(now, room):
            return
        self._learn(False)
        self._lost |= {entry.id: entry for entry in engine.give_up(engine.window.leave(now, room))}

    def _learn(self, imputed: bool) -> None:
        pairs = self._rewards
        self._rewards = []
        self.engine.learn(pairs, self.engine.time.latest, imputed=imputed)

    def _teach(self) -> None:
        if self._taught:
            rows = self._taught
            self._taught = []
            warm.teach(self.engine, list(map(_lesson, rows)))


def _lesson(event: Event) -> Lesson:
    told = event["context"], str(event["arm"]), float(event["value"]), float(event["weight"])
    return Lesson(*told, event.get("features"))
