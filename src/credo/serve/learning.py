"""The thread that learns: lines that are on the disk, in their order, and forecasts in between."""

from __future__ import annotations

import asyncio
import functools
import sys
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

import msgspec

from credo.core.errors import CredoError
from credo.serve.contents import Predict
from credo.serve.hosting import Hosted, Model
from credo.serve.journal_lines import Event
from credo.serve.journal_store import Store
from credo.serve.problems import JSON, LINES, Problem, Reply, encode, problem_reply
from credo.serve.table_model import Answer, TableModel
from credo.serve.threads import Inbox, Worker

__all__ = ["Ask", "Built", "Call", "Growth", "Item", "Learner", "Lines", "Ticket", "answer_all"]

TURN = 0.02
"""The seconds for which a model learns before others have their turn, if one row does not take longer."""

_decode = msgspec.json.Decoder().decode


Ticket: TypeAlias = "asyncio.Future[Reply]"
"""A request that waits for its reply, which another thread may give."""


class Lines(NamedTuple):
    """Lines that are on the disk: new ones, or the numbers of earlier ones that have come again."""

    hosted: Hosted
    entries: Sequence[Event | int]
    ticket: Ticket
    many: bool = False


class Ask(NamedTuple):
    """Rows to forecast, of which nothing is kept."""

    hosted: Hosted
    rows: list[Predict]
    ticket: Ticket
    many: bool = False


class Built(NamedTuple):
    """A model that was built, why it cannot be, or None if it lacks rows."""

    hosted: Hosted
    model: Model | CredoError | None
    applied: int = 0


class Call(NamedTuple):
    """A function to be called in the learner's thread, after the lines of a model, also those set aside."""

    function: Callable[[], None]
    after: Hosted | None = None


class Growth(NamedTuple):
    """A model that grows by its lines up to `upto`, and what writes into a file how it is after `applied`."""

    hosted: Hosted
    write: Callable[[Path], object]
    applied: int
    upto: int


Item: TypeAlias = Lines | Ask | Built | Call
"""Something for the learner."""


class Learner(Worker):
    """Applies lines to models, answers, and asks for snapshots.

    Arguments:
        store: a connection to the journal, to read what was answered.
        build: called with a model that has all rows that it needs.
        after: called after each group with the models that took lines, which may be none.
        grow: called with models that grow, whose lines are set aside until `resume`; None to compile here.

    Attributes:
        submit, end, wait_until_taken: see `Inbox`.
        answers: the answers of lines that are not on the disk yet, by their numbers. They are given by this
            thread, and taken away by the one that has written them.
    """

    def __init__(
        self,
        store: Store,
        build: Callable[[Hosted], None],
        after: Callable[[Collection[Hosted]], None],
        grow: Callable[[Hosted, list[Growth]], None] | None = None,
    ) -> None:
        super().__init__("credo-learner")
        self.store = store
        self.answers: dict[int, bytes] = {}
        self._build = build
        self._after = after
        self._grow = grow
        self._through = grow is None
        self._aside: dict[Hosted, list[Lines]] = {}
        self._cut: set[Hosted] = set()
        self._inbox: Inbox[Item] = Inbox()
        self.submit = self._inbox.put
        self.end = self._inbox.end
        self.wait_until_taken = self._inbox.wait_until_empty

    @property
    def waiting(self) -> int:
        """The number of items that wait."""
        return len(self._inbox) + sum(map(len, list(self._aside.values())))

    def at_once(self, item: Lines | Ask) -> bool:
        """Work in the thread of the caller where this one waits, which saves waking it, and where nothing is
        to be compiled, for which the caller should not wait; whether it did. A failure there is one of this
        thread.
        """
        if not _brief(item) or not self._inbox.borrow():
            return False
        try:
            self._after(self._rows([item]))
        except Exception as error:
            self.failed(self.name, error)
            raise
        self._inbox.busy.release()
        return True

    def work(self) -> None:
        """Work until the end."""
        self._inbox.run(self._work, 1.0)

    def _work(self, items: Sequence[Item]) -> None:
        changed: set[Hosted] = set()
        rows: list[Lines | Ask] = []
        for item in items:
            if isinstance(item, Lines | Ask):
                rows.append(item)
                continue
            changed.update(self._rows(rows))
            rows = []
            if isinstance(item, Built):
                self._built(item)
            else:
                if item.after is not None:
                    self._resume(item.after)
                item.function()
        changed.update(self._rows(rows))
        self._after(changed)

    def _rows(self, items: Sequence[Lines | Ask]) -> Collection[Hosted]:
        """Learn from lines, and answer; forecasts that are not kept come last. The models that took lines.

        Each model answers when it is done, and those that will be done soon come first.
        """
        asked: dict[Hosted, list[Ask]] = {}
        lines: dict[Hosted, list[Lines]] = {}
        bringing: dict[Hosted, list[Event]] = {}
        growing: list[Hosted] = []
        for item in items:
            if isinstance(item, Ask):
                asked.setdefault(item.hosted, []).append(item)
                continue
            events = _events_of([item])
            waiting = item.hosted in self._aside
            if self._set_aside(item, events, bringing):
                if not waiting:
                    growing.append(item.hosted)
                continue
            lines.setdefault(item.hosted, []).append(item)
        for hosted in sorted(lines, key=lambda one: one.pace * len(lines[one])):
            self._learn(hosted, lines[hosted])
        for hosted, asks in asked.items():
            answer_all(self._forecast(hosted, asks))
        for hosted in growing:
            if hosted not in self._cut:  # once it has taken the lines before
                self._start_growing(hosted)
        return [hosted for hosted, some in lines.items() if _events_of(some)]

    def _learn(self, hosted: Hosted, lines: Sequence[Lines]) -> None:
        """Learn from lines of a model, and answer them. What would keep others waiting has its turn later."""
        events = [event for event in _events_of(lines) if event.seq > hosted.seen]
        room = self._room(hosted)
        if events:
            begin = time.perf_counter()
            self._take(hosted, events[:room])
            hosted.pace = (time.perf_counter() - begin) / len(events[:room])
        done = len(lines)
        if room < len(events):
            done = next(place for place, one in enumerate(lines) if _last(one) > hosted.seen)
            # in front of those that wait for programs, and before any that come from now on
            self._aside[hosted] = [*lines[done:], *self._aside.get(hosted, [])]
            self._wait_for_a_turn(hosted)
        answer_all([(one.ticket, self._reply(one)) for one in lines[:done]])

    def _room(self, hosted: Hosted) -> int:
        """The number of lines of a model that are taken before others have their turn."""
        if self._through or hosted.stage != "ready" or not hosted.pace:
            return sys.maxsize
        return max(1, int(TURN / hosted.pace))

    def _go_on(self, hosted: Hosted) -> None:
        """Take some of the lines of a model that had to wait for others, unless this was done meanwhile."""
        if hosted not in self._cut:
            return
        self._cut.discard(hosted)
        waiting = self._aside.pop(hosted)
        some = self._in_time(hosted, waiting)
        if not self._through and _bringing(hosted, _events_of(some)):
            some = waiting[:1]  # what the next ones need depends on what it brings
            if _growing(hosted, _bringing(hosted, _events_of(some))):
                self._aside[hosted] = waiting
                self._start_growing(hosted)
                return
        rest = waiting[len(some) :]
        if rest:
            self._aside[hosted] = rest
        self._learn(hosted, some)
        if rest and hosted not in self._cut:
            self._wait_for_a_turn(hosted)
        self._after([hosted])

    def _in_time(self, hosted: Hosted, waiting: Sequence[Lines]) -> Sequence[Lines]:
        """The first of the lines that wait, as many as have time."""
        room = self._room(hosted)
        count = 1
        rows = len(waiting[0].entries)
        for lines in waiting[1:]:
            rows += len(lines.entries)
            if rows > room:
                break
            count += 1
        return waiting[:count]

    def _wait_for_a_turn(self, hosted: Hosted) -> None:
        """Have others first, and then the lines of a model that were set aside."""
        self._cut.add(hosted)
        self.submit([Call(functools.partial(self._go_on, hosted))])

    def _set_aside(self, lines: Lines, events: list[Event], bringing: dict[Hosted, list[Event]]) -> bool:
        """Whether lines wait until their model has programs for them, as all that come after them do.

        Arguments:
            lines: the lines.
            events: the new ones among them.
            bringing: by models, the lines of this group before these that bring columns or classes, and may
                need the room that there is; these join them if they are taken.
        """
        if self._through:
            return False
        hosted = lines.hosted
        if hosted not in self._aside:
            new = _bringing(hosted, events)
            if not new:
                return False
            before = bringing.setdefault(hosted, [])
            if not _growing(hosted, [*before, *new]):
                before += new
                return False
            self._aside[hosted] = []
        self._aside[hosted].append(lines)
        return True

    def _start_growing(self, hosted: Hosted) -> None:
        """Have the programs compiled that the lines which were set aside need."""
        events = _events_of(self._aside[hosted])
        growths = [
            Growth(one, one.model.session.freeze().save, one.applied, events[-1].seq)
            for one in _growing(hosted, events)
            if isinstance(one.model, TableModel)
        ]
        if self._grow is None or not growths:
            return self._resume(hosted)
        return self._grow(hosted, growths)

    def resume(self, hosted: Hosted, upto: int) -> None:
        """Take the lines up to a number that were set aside, in the learner's thread, others between them;
        the later ones may wait for other programs.
        """
        waiting = self._aside.get(hosted, [])
        if waiting and _last(waiting[0]) <= upto:
            self._take_through([waiting.pop(0)])
            self.submit([Call(functools.partial(self.resume, hosted, upto))])
        elif waiting:
            self._wait_for_a_turn(hosted)
        else:
            self._aside.pop(hosted, None)

    def compile_here(self) -> None:
        """Set nothing aside any more, and take what was, in the learner's thread: the service stops."""
        self._through = True
        for hosted in list(self._aside):
            self._resume(hosted)

    def _resume(self, hosted: Hosted) -> None:
        self._cut.discard(hosted)
        self._take_through(self._aside.pop(hosted, []))

    def _take_through(self, lines: list[Lines]) -> None:
        """Take lines whatever is to be compiled."""
        before = self._through
        self._through = True
        try:
            self._rows(lines)
        finally:
            self._through = before

    def _take(self, hosted: Hosted, events: list[Event]) -> None:
        if events[-1].seq <= hosted.seen:
            return
        if events[0].seq <= hosted.seen:
            # a challenger that came while lines were set aside has them from the journal
            events = [event for event in events if event.seq > hosted.seen]
        hosted.seen = events[-1].seq
        if hosted.stage == "ready":
            self.apply(hosted, events)
        elif hosted.stage == "waiting":
            hosted.rows += sum(event.kind == "learn" for event in events)
            self.consider(hosted)
        if hosted.challenger is not None:
            self._take(hosted.challenger, events)

    def consider(self, hosted: Hosted) -> None:
        """Start to build a model, if it has all rows that it needs."""
        if hosted.stage == "waiting" and hosted.rows >= hosted.needs:
            hosted.stage = "building"
            self._build(hosted)

    def apply(self, hosted: Hosted, events: Sequence[Event]) -> None:
        """Apply lines to a model that is there; where it fails, it takes no more."""
        model = hosted.model
        assert model is not None
        try:
            answers = model.apply(events, self._given)
        except Exception as error:  # a failure of one model must not end the others
            hosted.stage = "failed"
            hosted.reason = f"{type(error).__name__}: {error}"
            return
        hosted.applied = events[-1].seq
        hosted.columns = model.columns
        hosted.unsaved += len(events)
        for event, answer in zip(events, answers, strict=True):
            forecast = event.kind == "predict"
            hosted.taken += not forecast
            if not hosted.silent:
                self.answers[event.seq] = encode({"seq": event.seq, **answer})
                hosted.forecasts += forecast
                hosted.decided += hosted.bandit

    def catch_up(self, hosted: Hosted, upto: int) -> None:
        """Apply the lines of the journal that a model has not taken."""
        try:
            for events in self.store.events(hosted.lines, hosted.applied, upto):
                if hosted.stage == "failed":
                    return
                self.apply(hosted, events)
        except CredoError as error:  # old lines are gone, and no snapshot has what came of them
            hosted.stage = "failed"
            hosted.reason = str(error)

    def _built(self, built: Built) -> None:
        hosted = built.hosted
        if hosted.stage == "removed":
            return
        if isinstance(built.model, CredoError):
            hosted.stage = "failed"
            hosted.reason = str(built.model)
            return
        if built.model is None:
            hosted.stage = "waiting"
            self.consider(hosted)  # rows may have come meanwhile
            return
        hosted.model = built.model
        hosted.applied = built.applied
        hosted.columns = built.model.columns
        self.catch_up(hosted, hosted.seen)
        if hosted.stage != "failed":
            hosted.stage = "ready"

    def _given(self, seq: int) -> Answer:
        body = self._answer(seq)
        answer: Answer = {} if body is None else _decode(body)
        return answer

    def _answer(self, seq: int) -> bytes | None:
        found = self.answers.get(seq)
        if found is None:
            return self.store.answer(seq)
        return found

    def _reply(self, lines: Lines) -> Reply:
        if not lines.many:
            return self._one(lines.hosted, lines.entries[0])
        bodies = [self._one(lines.hosted, entry).body for entry in lines.entries]
        return Reply(200, b"\n".join(bodies) + b"\n", LINES)

    def _one(self, hosted: Hosted, entry: Event | int) -> Reply:
        again = isinstance(entry, int)
        seq = entry if isinstance(entry, int) else entry.seq
        body = self._answer(seq)
        if body is None:
            if hosted.stage == "failed":
                return Reply(202, encode({"seq": seq, "stage": "failed", "reason": hosted.reason}))
            content: Answer = {"seq": seq, "stage": hosted.stage}
            return Reply(202, encode({**content, "duplicate": True} if again else content))
        refusal = b'"refused":' in body and _decode(body).get("refused")
        if refusal:
            return problem_reply(Problem(refusal, _decode(body)["reason"]))
        return Reply(200, body[:-1] + b',"duplicate":true}' if again else body)

    def _forecast(self, hosted: Hosted, asks: Sequence[Ask]) -> list[tuple[Ticket, Reply]]:
        try:
            model = hosted.model
            if hosted.stage != "ready" or not isinstance(model, TableModel):
                raise Problem(503, f"model {hosted.name!r} is not ready: it is {hosted.stage}.")
            answers = iter(model.forecast([row for ask in asks for row in ask.rows]))
        except Exception as error:
            problem = (
                error if isinstance(error, CredoError) else Problem(500, f"the forecast failed: {error}.")
            )
            return [(ask.ticket, problem_reply(problem)) for ask in asks]
        replies: list[tuple[Ticket, Reply]] = []
        for ask in asks:
            bodies = [encode(next(answers)) for _ in ask.rows]
            hosted.forecasts += len(bodies)
            body = b"\n".join(bodies) + b"\n" if ask.many else bodies[0]
            replies.append((ask.ticket, Reply(200, body, LINES if ask.many else JSON)))
        return replies


def _events_of(items: Sequence[Lines]) -> list[Event]:
    """The new lines among some."""
    return [entry for lines in items for entry in lines.entries if isinstance(entry, Event)]


def _last(lines: Lines) -> int:
    """The number of the last new line; 0 where all came again."""
    return max((event.seq for event in _events_of([lines])), default=0)


def _bringing(hosted: Hosted, events: Sequence[Event]) -> list[Event]:
    """The lines that bring a column or a class which the model or its challenger does not know."""
    models = [hosted.model]
    if hosted.challenger is not None:
        models.append(hosted.challenger.model)
    bringing: list[Event] = []
    for event in events:
        for model in models:
            if isinstance(model, TableModel) and not model.knows(event):
                bringing.append(event)
                break
    return bringing


def _growing(hosted: Hosted, events: Sequence[Event]) -> list[Hosted]:
    """The models, of one and its challenger, that have no room yet for what lines bring."""
    every = [one for one in (hosted, hosted.challenger) if one is not None and one.stage == "ready"]
    return [one for one in every if isinstance(one.model, TableModel) and one.model.grows(events)]


def _brief(item: Lines | Ask) -> bool:
    """Whether programs are there for the first row of an item: a forecast, or one without a new column or
    class.
    """
    if isinstance(item, Ask):
        return True
    entry = item.entries[0]
    for hosted in (item.hosted, item.hosted.challenger):
        if hosted is None:
            continue
        if not isinstance(hosted.model, TableModel):
            return False
        if isinstance(entry, Event) and not hosted.model.knows(entry):
            return False
    return True


def answer_all(answers: Sequence[tuple[Ticket, Reply]]) -> None:
    """Give replies, from another thread by waking the event loop once for all of them."""
    if not answers:
        return
    loop = answers[0][0].get_loop()
    try:
        here = asyncio.get_running_loop() is loop
    except RuntimeError:  # a thread without a loop
        here = False
    if here:
        for ticket, reply in answers:
            if not ticket.done():  # its request may have been given up
                ticket.set_result(reply)
    elif not loop.is_closed():
        loop.call_soon_threadsafe(answer_all, answers)
