"""Deciding and learning with ids, in threads: what stands behind a `Bandit`.

Readers decide by a `State`, which is never changed and is replaced as a whole by one assignment. Two locks
keep the rest together: `writing` is held while the state is replaced, and `books` for the short moments in
which the window, the counts and the encoder change. `writing` is taken before `books`, never after.
"""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from credo.bandits.agent import Agent, AgentBelief
from credo.bandits.service.arms import Arms
from credo.bandits.service.asked_arms import Asked, Cast, Caster, Names, as_names
from credo.bandits.service.belief_words import Held
from credo.bandits.service.content import RewardRange, content_of, require_same
from credo.bandits.service.decision import ArmDecision, RewardStatus
from credo.bandits.service.inputs import Inputs
from credo.bandits.service.ledger import Ledger
from credo.bandits.service.programs import Answer, Programs
from credo.bandits.service.window import Entry, Time, Window
from credo.core.errors import CredoError

__all__ = ["Engine", "OnMissing", "Service", "State"]


class Flights:
    """The threads that are between a context and its line; who must not find one there waits until all have
    landed, and lets none start. A thread never waits for itself, as in a handler of a signal.
    """

    def __init__(self, lock: threading.RLock) -> None:
        self._changed = threading.Condition(lock)
        self._flying: set[int] = set()
        self._holders: list[int] = []

    def start(self) -> None:
        """Begin a flight of this thread."""
        own = threading.get_ident()
        with self._changed:
            if self._holders:
                self._changed.wait_for(lambda: set(self._holders) <= {own})
            self._flying.add(own)

    def land(self) -> None:
        """End it."""
        with self._changed:
            self._flying.discard(threading.get_ident())
            if self._holders:  # who waits for the flights
                self._changed.notify_all()

    @contextlib.contextmanager
    def none(self) -> Iterator[None]:
        """A time in which no other thread flies."""
        own = threading.get_ident()
        with self._changed:
            self._holders.append(own)
            self._changed.wait_for(lambda: self._flying <= {own})
        try:
            yield
        finally:
            with self._changed:
                self._holders.remove(own)
                self._changed.notify_all()


OnMissing: TypeAlias = Literal["drop"] | float
"""The treatment of a decision whose window ends without a reward: nothing, or this reward is learned."""


class State(NamedTuple):
    """The state behind a decision, replaced as a whole; `rows` are the features of arms by slot (K, e)."""

    words: Held
    version: int
    arms: Arms
    rows: np.ndarray | None


@dataclass(eq=False)
class Engine:
    """Decides, learns and expires. A decision without a reward gets `on_missing`, and ids begin with `seed`
    and `epoch`, which is another one wherever decisions may have been taken that are not known here. Expected
    rewards are answered within `reward_range`.
    """

    agent: Agent
    programs: Programs
    state: State
    inputs: Inputs
    window: Window
    on_missing: OnMissing
    seed: int
    time: Time
    reward_range: RewardRange | None = None
    ledger: Ledger | None = None
    epoch: str = ""
    count: int = 0
    tally: Counter[str] = field(default_factory=Counter)
    unsaid: list[tuple[int, Asked]] = field(default_factory=list)
    caster: Caster = field(default_factory=Caster)

    def __post_init__(self) -> None:
        # `writing` is held while a belief changes or is saved, `books` while the window, the encoders and the
        # log change; who needs both takes `writing` first. Decisions need the books alone, so that they do
        # not wait for an update. Both may be taken again by the same thread, as in a handler of a signal.
        self.writing = threading.RLock()
        self.books = threading.RLock()
        self.flights = Flights(self.books)

    def copy(self, seed: int) -> Engine:
        """An engine in the same state, with another seed and no log."""
        with self.writing, self.books:
            belief = self.programs.unpack(self.state.words)
            programs = Programs(self.agent, belief, seed)
            inputs = Inputs.restore(self.agent.design, self.inputs.to_dict())
            apart = replace(self, window=self.window.copy(), tally=self.tally.copy(), ledger=None, unsaid=[])
            apart.caster = Caster()
            return replace(apart, programs=programs, inputs=inputs, seed=seed, time=self.time.copy())

    def now(self, now: float | None = None) -> float:
        """The time, which never goes back."""
        with self.books:
            return self.time.now(now)

    def arrive(self) -> float:
        """The time of a call, before which decisions whose window is over have left."""
        with self.books:
            now = self.time.now()
            over = self.window.over(now)
        if over:
            self.expire(now)
        return now

    def sync(self) -> None:
        """Return once all that was written is on the disk: nothing is answered before."""
        if self.ledger is not None:
            self.ledger.sync()

    def decide(self, context: Any, names: Names, id: str | None) -> ArmDecision:
        """One decision, or the one that was made under this id."""
        now = self.arrive()
        if names is not None:
            names = as_names(names)
        content = content_of(context, names)
        self.flights.start()
        try:
            decision = self._fly(context, names, id, now, content)
        finally:
            self.flights.land()
        if self.ledger is not None:
            self.ledger.sync()
        return decision if self.reward_range is None else self._bounded(decision)

    def answer(self, entry: Entry) -> ArmDecision:
        """A decision as it is answered."""
        return self._bounded(entry.decision)

    def _bounded(self, decision: ArmDecision) -> ArmDecision:
        return decision._replace(mean=self.within(decision.mean))

    def within(self, means: dict[str, float]) -> dict[str, float]:
        """Expected rewards within the range of rewards."""
        if self.reward_range is None:
            return means
        low, high = self.reward_range
        return {arm: min(max(mean, low), high) for arm, mean in means.items()}

    def _fly(self, context: Any, names: Any, id: str | None, now: float, content: str) -> ArmDecision:
        """The decision, from the context that is taken in to its line in the log."""
        brought = isinstance(names, Mapping)
        with self.books:
            known = None if id is None else self.known(id, content)
            if known is not None:
                return known.decision
            if self.unsaid:
                self.say()
            standing = self.state.arms
            limits = None
            if names is None:
                limits = standing.usual  # which may refuse them, before the context is taken in
            elif not brought:
                limits = standing.limits(names)
            cast, vector, asked = self.take_in(context, names)
            limits = limits or cast.arms.usual
            number = self.count
            written = False
            self.count += 1
            over = self.window.over(now, room=1)
        try:
            if over:
                self.expire(now, room=1)
            while True:
                state = self.state
                if state.arms is not standing:
                    standing = state.arms
                    cast = self.cast(names, cast.rows)
                    limits = cast.arms.limits(None if brought else names)
                x = self.inputs.of(vector, cast.arms, cast.rows)
                answer = self.programs.decide(state.words, x, limits, number)
                with self.books:
                    if self.state.arms is not standing:
                        continue  # the arms changed meanwhile, so that the slot may be another arm's
                    known = None if id is None else self.known(id, content)
                    if known is None:
                        kept = x if cast.rows is None else vector
                        known = self.entry(id, number, answer, kept, cast, state.version, now, content)
                        self.record([(known, asked)])
                        written = True
                return known.decision
        finally:
            if not written and self.ledger is not None:
                with self.books:
                    self.unsaid.append((number, asked))

    def cast(self, names: Names, table: np.ndarray | None = None, *, free: bool = False) -> Cast:
        """The arms of a decision; those that a call brings have features, or a table of them."""
        state = self.state
        if isinstance(names, Mapping):
            return self.caster.cast(self.inputs, state.arms, names, table, free)
        return Cast(state.arms, state.rows)

    def take_in(
        self, context: Any, names: Names, rows: int | None = None, *, free: bool = True
    ) -> tuple[Cast, np.ndarray | None, Asked]:
        """The arms, and the context as an array, which are taken into their encoders, and what was asked; a
        CredoError, and no change, where one cannot be, or none of those that the call brings is allowed and
        one must be `free`. `rows` says for how many decisions at once.
        """
        brought = isinstance(names, Mapping)
        first = self.inputs.shape is None
        before = self.inputs.mark(features=brought) if first else None
        if brought and not first:
            self.inputs.context(context, learn=False)  # which may refuse, before features are taken in
        state = self.state
        try:
            cast = self.cast(names, free=free) if brought else Cast(state.arms, state.rows)
            vector = self.admit(context, rows) if first else self.inputs.context(context, arms=state.arms)
        except CredoError:
            if before is not None:
                self.inputs.back(before)
            raise
        return cast, vector, Asked(context, names if isinstance(names, Mapping) else None)

    def say(self) -> None:
        """Write the contexts that were taken in for decisions which were not taken, as where the disk was
        full: the encoder has learned from them, and a log without them would not bring it back.
        """
        if self.unsaid and self.ledger is not None:
            self.ledger.seen(self.unsaid)
        self.unsaid.clear()

    @contextlib.contextmanager
    def still(self) -> Iterator[None]:
        """A time in which nothing changes, and the log has all that was taken in."""
        with self.flights.none(), self.writing, self.books:
            self.say()
            yield

    def known(self, id: str | None, content: str) -> Entry | None:
        """The decision of an id, if there is one; a CredoError if it has left the window, or was asked
        otherwise.
        """
        if id is None:
            return None
        if not isinstance(id, str) or not id:
            raise CredoError(f"id must be a text; got {id!r}.", field="id")
        if self.window.has_left(id):
            raise CredoError(f"id must be a new one; the window of the decision {id!r} is over.", field="id")
        entry = self.window.get(id)
        if entry is not None:
            require_same(id, content, entry.content)
        return entry

    def admit(self, context: Any, rows: int | None = None) -> np.ndarray | None:
        """The context as an array, taken into the encoder; `rows` says for how many decisions at once."""
        if self.inputs.shape is None:
            vector = self.inputs.context(context, learn=False)
            arms = self.state.arms
            x = self.inputs.of(vector, arms, self.state.rows)
            self.programs.require_fit(x, arms.bounds is not None, rows)
            vector = self.inputs.context(context)
            self.inputs.pin(vector)
            return vector
        return self.inputs.context(context, arms=self.state.arms)

    def x_of(self, entry: Entry) -> np.ndarray | None:
        """The inputs of the agent at a decision."""
        if entry.rows is None:
            return entry.x
        return self.inputs.of(entry.x, entry.arms, entry.rows)

    def record(self, decisions: Sequence[tuple[Entry, Asked]]) -> None:
        """Put decisions and what was asked into the log, all of them or none, and into the window."""
        if self.ledger is not None:
            self.ledger.decisions(decisions)
        for entry, _ in decisions:
            self.remember(entry)

    def entry(
        self,
        id: str | None,
        number: int,
        answer: Answer,
        x: np.ndarray | None,
        cast: Cast,
        version: int,
        now: float,
        content: str,
    ) -> Entry:
        """A decision among some arms that is not remembered yet; `x` is what is kept of the inputs."""
        timeout = self.window.timeout
        expires = None if timeout is None else now + timeout
        # what the agent says of a slot without an arm is of no use, and the log has no name for it
        named = cast.arms.named
        numbers = answer.numbers if named is None else np.where(named, answer.numbers, 0.0)
        about = cast.arms, x, numbers, version, now, expires, content
        begun = f"{self.seed}.{self.epoch}" if self.epoch else str(self.seed)
        name = id or self.window.unused(f"{begun}-{number}")
        return Entry(name, number, answer.slot, *about, rows=cast.rows)

    def remember(self, entry: Entry) -> None:
        """Remember a decision."""
        self.window.add(entry)
        self.tally["observed" if entry.observed else "decisions"] += 1

    def expire(self, now: float, room: int = 0) -> int:
        """Remove decisions whose window is over, and learn the default reward of those without one."""
        with self.books:
            if not self.window.over(now, room):
                return 0
        with self.writing:
            with self.books:
                lost = self.window.leave(now, room)
                silent = self.give_up(lost)
            self.learn(self.defaults(silent), now, imputed=True)
        return len(lost)

    def give_up(self, lost: Sequence[Entry]) -> list[Entry]:
        """Count decisions that left and learned no reward; those of which something is to be learned: the sum
        of the parts that came, or the default reward. One whose reward was refused was not silent, and learns
        none.
        """
        drop = self.on_missing == "drop"
        silent = [entry for entry in lost if entry.status is None and (entry.parts or not drop)]
        self.tally["dropped"] += len(lost) - len(silent)
        return silent

    def defaults(self, silent: Sequence[Entry]) -> list[tuple[Entry, float]]:
        """The addition to the reward of each decision whose window is over: nothing if parts of it came."""
        return [(entry, 0.0 if entry.parts else float(self.on_missing)) for entry in silent]

    def learn(
        self,
        pairs: Sequence[tuple[Entry, float]],
        now: float,
        *,
        imputed: bool,
        new: Sequence[tuple[Entry, Asked]] = (),
    ) -> None:
        """Learn rewards, the log first; `new` are choices of theirs that are not remembered yet, with what
        was said. The lock `writing` is held.
        """
        if not pairs:
            return
        state = self.state
        rows = [
            (self.x_of(entry), entry.slot, entry.whole(value), 1.0, state.version + step)
            for step, (entry, value) in enumerate(pairs)
        ]
        learned = self.programs.learn(state.words, rows)
        if self.ledger is not None:
            self.ledger.rewards(pairs, learned.ok, now, imputed=imputed, new=new)
        with self.books:
            for entry, _ in new:
                self.remember(entry)
            self.state = state._replace(words=learned.belief, version=state.version + len(pairs))
            for (entry, value), ok in zip(pairs, learned.ok, strict=True):
                status = RewardStatus.LEARNED if ok else RewardStatus.REFUSED
                default = "summed" if entry.parts else "imputed"
                self.tally[default if imputed and ok else status.value] += 1
                if not imputed:
                    self.window.settle(entry, value, status)


class Service(NamedTuple):
    """The parts of a bandit: what decides and learns, and the belief before any reward, if known."""

    engine: Engine
    prior: AgentBelief[Any] | None
