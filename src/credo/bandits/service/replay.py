"""A bandit after a crash: what its log holds beyond what it knows is done again, bit by bit."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from credo.bandits.service import named_arms, warm
from credo.bandits.service.engine import Service
from credo.bandits.service.ledger import Ledger
from credo.bandits.service.window import Entry
from credo.core.errors import CredoError, DataError
from credo.live.journal import Mark

__all__ = ["attach"]

Event = Mapping[str, Any]


def attach(service: Service, log: str | os.PathLike[str] | None, mark: Mark | None, *, replay: bool) -> None:
    """Let a bandit go on with a log, if any, and with `replay` do again what it holds after a place:
    decisions are remembered as they were answered, and a DataError says which line cannot be one of this
    bandit. Where the log is another one, or nothing is to be done again, ids begin behind those that it has.
    """
    if log is None:
        if replay:
            raise CredoError("replay needs the log that is to be done again; log is missing.", field="replay")
        return
    engine, ledger = service.engine, Ledger(log)
    overdue: list[tuple[Entry, float]] = []
    if replay and (mark is None or ledger.holds(mark)):
        overdue = _Replay(service, list(ledger.events(mark))).run()
    else:
        head = f"{engine.seed}-"
        ids = [str(event.get("id")) for event in ledger.events(None) if event.get("kind") == "decision"]
        numbers = [id.removeprefix(head) for id in ids if id.startswith(head)]
        last = max([int(number) for number in numbers if number.isdecimal()], default=-1)
        engine.first_id = max(engine.first_id, last + 1 - engine.count)
    engine.ledger = ledger
    with engine.writing:
        engine.learn(overdue, engine.latest, imputed=True)


class _Replay:
    """The events of a log on their way into an engine, which writes no log meanwhile."""

    def __init__(self, service: Service, events: list[Event]) -> None:
        self.engine, self.prior = service
        self.events = events
        decisions = [event for event in events if event.get("kind") == "decision"]
        if any(not isinstance(event.get("number"), int) for event in decisions):
            raise DataError(
                "the log was written by a version before 0.2, and lacks the numbers of decisions.",
                field="log",
            )
        # threads write their decisions in another order than that in which contexts were taken in
        self._ahead = sorted(decisions, key=lambda event: int(event["number"]), reverse=True)
        self._vectors: dict[int, np.ndarray | None] = {}
        self._lost: dict[str, Entry] = {}
        self._rewards: list[tuple[Entry, float]] = []
        self._taught: list[Event] = []

    def run(self) -> list[tuple[Entry, float]]:
        """Do all events; the default rewards of decisions that left before theirs could be written."""
        kinds: dict[str, Callable[[Event], None]] = {
            "decision": self._decision,
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
        return [(entry, float(self.engine.on_missing)) for entry in self._lost.values()]

    def _decision(self, event: Event) -> None:
        engine, number = self.engine, int(event["number"])
        while self._ahead and int(self._ahead[-1]["number"]) <= number:
            first = self._ahead.pop()
            self._vectors[int(first["number"])] = engine.admit(first["context"])
        arms, now = engine.state.arms, self._time(event)
        self._leave(now, room=1)
        x = engine.inputs.of(self._vectors.pop(number), arms, engine.state.rows)
        columns = [event["pmf"], event["mean"], event["sd"], dict.fromkeys(event["arms"], 1.0)]
        numbers = np.zeros((len(columns), len(arms.slots)), engine.programs.answer_dtype(x))
        for row, column in zip(numbers, columns, strict=True):
            for name, value in column.items():
                row[arms.slot(name)] = math.nan if value is None else value
        slot = arms.slot(event["arm"])
        state = engine.state._replace(version=int(event["version"]))
        engine.remember(engine.entry(str(event["id"]), number, slot, x, numbers, state, now))
        engine.count = max(engine.count, number + 1)

    def _reward(self, event: Event) -> None:
        id, imputed, now = str(event["id"]), bool(event.get("imputed")), self._time(event)
        if not imputed:
            self._leave(now)
        entry = self.engine.window.get(id) or self._lost.pop(id, None)
        if entry is None or entry.status is not None or any(entry is one for one, _ in self._rewards):
            return
        self._rewards.append((entry, float(event["value"])))
        if imputed:
            self._learn(True)
            self.engine.window.drop(entry)

    def _arm(self, event: Event) -> None:
        details = event.get("features"), event.get("inherit")
        named_arms.apply(self.engine, self.prior, event["change"], str(event["arm"]), *details)

    def _time(self, event: Event) -> float:
        return self.engine.now(float(event["time"]))

    def _leave(self, now: float, room: int = 0) -> None:
        engine = self.engine
        if not engine.window.over(now, room):
            return
        self._learn(False)
        lost = engine.window.leave(now, room)
        if engine.on_missing == "drop":
            engine.tally["dropped"] += len(lost)
        else:
            self._lost |= {entry.id: entry for entry in lost}

    def _learn(self, imputed: bool) -> None:
        pairs, self._rewards = self._rewards, []
        self.engine.learn(pairs, self.engine.latest, imputed=imputed)

    def _teach(self) -> None:
        if self._taught:
            rows, self._taught = self._taught, []
            warm.teach(self.engine, list(map(_lesson, rows)))


def _lesson(event: Event) -> tuple[Any, str, float, float]:
    return event["context"], str(event["arm"]), float(event["value"]), float(event["weight"])
