"""Deciding and learning with ids, in threads: what stands behind a `Bandit`.

Readers decide by a `State`, which is never changed and is replaced as a whole by one assignment. Two locks
keep the rest together: `writing` is held while the state is replaced, and `books` for the short moments in
which the window, the counts and the encoder change. `writing` is taken before `books`, never after.
"""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from credo.bandits.agent import Agent, AgentBelief
from credo.bandits.service.arms import Arms
from credo.bandits.service.decision import Decision, RewardStatus
from credo.bandits.service.inputs import Inputs
from credo.bandits.service.ledger import Ledger
from credo.bandits.service.programs import Answer, Programs
from credo.bandits.service.window import Entry, Window
from credo.core.errors import CredoError
from credo.streams.words import Parts

__all__ = ["Clock", "Engine", "OnMissing", "Service", "State"]


Clock: TypeAlias = Callable[[], float]
"""A function that tells the time in seconds."""

OnMissing: TypeAlias = Literal["drop"] | float
"""What becomes of a decision whose window ends without a reward: nothing, or this reward is learned."""


class State(NamedTuple):
    """What a decision depends on, replaced as a whole; `rows` are the features of arms by slot (K, e)."""

    words: Parts
    version: int
    arms: Arms
    rows: np.ndarray | None


@dataclass(eq=False)
class Engine:
    """Decides, learns and expires; a decision without a reward gets `on_missing`, `seed` begins the ids."""

    agent: Agent
    programs: Programs
    state: State
    inputs: Inputs
    window: Window
    on_missing: OnMissing
    seed: int
    clock: Clock
    ledger: Ledger | None
    count: int = 0
    first_id: int = 0
    latest: float = -math.inf
    tally: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.writing, self.books = threading.RLock(), threading.RLock()

    def copy(self, seed: int) -> Engine:
        """An engine in the same state, with another seed and no log."""
        with self.writing, self.books:
            belief = self.programs.unpack(self.state.words)
            programs = Programs(self.agent, belief, seed)
            inputs = Inputs.restore(self.agent.design, self.inputs.to_dict())
            apart = replace(self, window=self.window.copy(), tally=self.tally.copy(), ledger=None)
            return replace(apart, programs=programs, inputs=inputs, seed=seed)

    def now(self, now: float | None = None) -> float:
        """The time, which never goes back."""
        with self.books:
            self.latest = max(self.latest, float(self.clock() if now is None else now))
            return self.latest

    def decide(self, context: Any, names: Iterable[str] | None, id: str | None) -> Decision:
        """One decision, or the one that was made under this id."""
        now = self.now()
        self.expire(now)
        with self.books:
            known = self._known(id)
            if known is not None:
                return known.decision
            names = names if names is None or isinstance(names, str) else tuple(names)
            arms = self.state.arms
            mask = arms.mask(names)
            vector = self.admit(context)
            number = self.count
            self.count += 1
        self.expire(now, room=1)
        while True:
            state = self.state
            if state.arms is not arms:
                arms, mask = state.arms, state.arms.mask(names)
            x = self.inputs.of(vector, arms, state.rows)
            answer = self.programs.decide(state.words, x, mask, number)
            with self.books:
                if self.state.arms is not arms:
                    continue  # the arms changed meanwhile, so that the slot may be another arm's
                known = None if id is None else self.window.get(id)
                return (known or self._record(state, answer, x, number, id, now, context)).decision

    def decide_many(
        self, contexts: Sequence[Any], names: Iterable[str] | None, ids: Sequence[str | None]
    ) -> list[Decision]:
        """Several decisions, all by one belief."""
        now = self.now()
        self.expire(now)
        names = names if names is None or isinstance(names, str) else tuple(names)
        with self.writing, self.books:  # neither arms nor belief change meanwhile
            fresh: dict[int, Any] = {}
            first = {id: place for place, id in reversed(list(enumerate(ids))) if id is not None}
            places = [first.get(id, place) if id is not None else place for place, id in enumerate(ids)]
            if len(contexts) > self.window.size:
                raise CredoError(
                    f"contexts must be at most {self.window.size}, which is `window`; got {len(contexts)}.",
                    field="contexts",
                )
            known = [self._known(id) for id in ids]
            mask = self.state.arms.mask(names)
            before, shape = self.inputs.contexts.copy(), self.inputs.shape
            try:
                for place, context in enumerate(contexts):
                    if known[place] is None and places[place] == place:
                        fresh[place] = self.admit(context)
            except CredoError:
                self.inputs.contexts, self.inputs.shape = before, shape
                raise
            self.expire(now, room=len(fresh))
            state, number = self.state, self.count
            xs = [self.inputs.of(vector, state.arms, state.rows) for vector in fresh.values()]
            self.count += len(fresh)
            answers = self.programs.decide_many(state.words, xs, mask, number) if xs else []
            for step, (place, answer) in enumerate(zip(fresh, answers, strict=True)):
                known[place] = self._record(
                    state, answer, xs[step], number + step, ids[place], now, contexts[place]
                )
            entries = [known[place] or known[first] for place, first in enumerate(places)]
            return [entry.decision for entry in entries if entry is not None]

    def _known(self, id: str | None) -> Entry | None:
        """The decision of an id, if there is one; a CredoError where it has left the window."""
        if id is None:
            return None
        if not isinstance(id, str) or not id:
            raise CredoError(f"id must be a text; got {id!r}.", field="id")
        if self.window.has_left(id):
            raise CredoError(f"id must be a new one; the window of the decision {id!r} is over.", field="id")
        return self.window.get(id)

    def admit(self, context: Any) -> np.ndarray | None:
        """The context as an array, taken into the encoder."""
        if self.inputs.shape is None:
            vector = self.inputs.context(context, learn=False)
            self.programs.require_fit(self.inputs.of(vector, self.state.arms, self.state.rows))
            vector = self.inputs.context(context)
            self.inputs.pin(vector)
            return vector
        if self.inputs.design == "actions" and self.inputs.actions is None:
            self.inputs.of(self.inputs.context(context), self.state.arms, self.state.rows)
        return self.inputs.context(context)

    def _record(
        self,
        state: State,
        answer: Answer,
        x: np.ndarray | None,
        number: int,
        id: str | None,
        now: float,
        context: Any,
    ) -> Entry:
        """Put a decision into the log and into the window."""
        name = id or self._own_id(number)
        # what the agent says of a slot without an arm is of no use, and the log has no name for it
        named = [slot is not None for slot in state.arms.slots]
        numbers = answer.numbers if all(named) else np.where(named, answer.numbers, 0.0)
        entry = self.entry(name, number, answer.slot, x, numbers, state, now)
        if self.ledger is not None:
            self.ledger.decision(entry, context)
        self.remember(entry)
        return entry

    def entry(
        self,
        id: str,
        number: int,
        slot: int,
        x: np.ndarray | None,
        numbers: np.ndarray,
        state: State,
        now: float,
    ) -> Entry:
        """A decision that was taken in a state, and is not remembered yet."""
        timeout = self.window.timeout
        expires = None if timeout is None else now + timeout
        return Entry(id, number, slot, state.arms, x, numbers, state.version, now, expires)

    def remember(self, entry: Entry) -> None:
        """Remember a decision."""
        self.window.add(entry)
        self.tally["decisions"] += 1

    def _own_id(self, number: int) -> str:
        """An id that no remembered decision has."""
        name = f"{self.seed}-{self.first_id + number}"
        while self.window.get(name) is not None or self.window.has_left(name):
            name += "+"
        return name

    def reward(self, ids: Sequence[str], values: Sequence[float]) -> list[RewardStatus]:
        """Learn rewards, one after the other."""
        for value in values:
            _require_reward(value)
        now = self.now()
        with self.writing:
            self.expire(now)
            answers: list[RewardStatus | None] = []
            learn: dict[str, tuple[Entry, float]] = {}
            for id, value in zip(ids, values, strict=True):
                entry = self.window.get(id)
                answer: RewardStatus | None = None
                if entry is None:
                    left = self.window.has_left(id)
                    answer = RewardStatus.EXPIRED if left else RewardStatus.UNKNOWN
                elif entry.status is not None or entry.id in learn:
                    answer = RewardStatus.DUPLICATE
                else:
                    learn[id] = entry, float(value)
                answers.append(answer)
            self.learn(list(learn.values()), now, imputed=False)
            with self.books:
                self.tally.update(answer.value for answer in answers if answer is not None)
                return [
                    (learn[id][0].status or RewardStatus.REFUSED) if answer is None else answer
                    for id, answer in zip(ids, answers, strict=True)
                ]

    def expire(self, now: float, room: int = 0) -> int:
        """Let decisions whose window is over leave, and learn the default reward of those without one."""
        with self.books:
            if not self.window.over(now, room):
                return 0
        with self.writing:
            with self.books:
                lost = self.window.leave(now, room)
                if self.on_missing == "drop":
                    self.tally["dropped"] += len(lost)
            if self.on_missing != "drop":
                self.learn([(entry, float(self.on_missing)) for entry in lost], now, imputed=True)
        return len(lost)

    def learn(self, pairs: Sequence[tuple[Entry, float]], now: float, *, imputed: bool) -> None:
        """Learn rewards, the log first. The lock `writing` is held."""
        if not pairs:
            return
        state = self.state
        rows = [
            (entry.x, entry.slot, value, 1.0, state.version + step)
            for step, (entry, value) in enumerate(pairs)
        ]
        learned = self.programs.learn(state.words, rows)
        if self.ledger is not None:
            self.ledger.rewards(pairs, now, imputed=imputed)
        with self.books:
            self.state = state._replace(words=learned.belief, version=state.version + len(pairs))
            for (entry, _), ok in zip(pairs, learned.ok, strict=True):
                status = RewardStatus.LEARNED if ok else RewardStatus.REFUSED
                self.tally["imputed" if imputed and ok else status.value] += 1
                if not imputed:
                    self.window.settle(entry, status)


class Service(NamedTuple):
    """What a bandit is made of: what decides and learns, and the belief before any reward, if known."""

    engine: Engine
    prior: AgentBelief[Any] | None


def _require_reward(value: object) -> None:
    """Refuse a reward that is no finite number."""
    number = isinstance(value, int | float | np.number | np.bool_) or getattr(value, "shape", None) == ()
    try:
        finite = number and math.isfinite(float(value))  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        finite = False
    if not finite:
        raise CredoError(f"reward must be a finite number; got {value!r}.", field="reward")
