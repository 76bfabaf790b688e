"""The service without HTTP: models, the journal, and the threads that write, learn, build and save."""

from __future__ import annotations

import asyncio
import functools
import hashlib
import time
import traceback
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import msgspec

from credo.core.errors import CredoError, DataError
from credo.core.files import write_atomically
from credo.serve.building import JOURNAL, SNAPSHOTS, Builder, set_up_jax
from credo.serve.contents import Content, Learn, Predict
from credo.serve.growing import Grower, able
from credo.serve.hosting import Hosted
from credo.serve.journal_lines import Event, ModelRow, time_of
from credo.serve.journal_store import Store
from credo.serve.learning import Ask, Built, Call, Learner, Lines, Ticket, answer_all
from credo.serve.options import ServiceOptions
from credo.serve.problems import JSON, LINES, Problem, Reply, encode, problem_reply
from credo.serve.requests import Columns, read_request
from credo.serve.specs import ModelSpec, TableSpec, read_spec, require_name
from credo.serve.table_model import base_path, target_of
from credo.serve.writing import Snapshots, Writer

__all__ = ["Service"]


_canonical = msgspec.json.Encoder(order="deterministic").encode


LONELY = 0.1
"""After how many seconds without a request of another caller one is alone."""


class Callers:
    """The callers of a service: one caller, whose requests cannot be grouped, or several."""

    def __init__(self) -> None:
        self._latest: object = None
        self._changed = time.monotonic()

    def alone(self, caller: object) -> bool:
        """Take in the address from which a request came; whether all latest ones, for a while, came over this
        connection.
        """
        now = time.monotonic()
        if caller != self._latest:
            self._latest = caller
            self._changed = now
        return now - self._changed > LONELY


class Reporting:
    """A task whose ticket gets a reply in the end."""

    ticket: Ticket
    size = 1

    def refused(self, problem: CredoError) -> None:
        answer_all([(self.ticket, problem_reply(problem))])

    def reply(self, reply: Reply) -> None:
        answer_all([(self.ticket, reply)])


class AddModel(Reporting):
    """A model is to come, or with a `parent` its challenger, which learns the lines of the parent."""

    def __init__(
        self, service: Service, name: str, spec: ModelSpec, ticket: Ticket, parent: Hosted | None = None
    ) -> None:
        self.service = service
        self.ticket = ticket
        self.name = name
        self.spec = spec
        self.parent = parent
        self.row: ModelRow | None = None
        self.rows = self.seen = 0

    def write(self, store: Store) -> None:
        spec = _canonical(self.spec)
        before = [row for row in store.models() if row.name == self.name]
        if not before:
            parent = None if self.parent is None else self.parent.number
            if parent is not None and store.spec(parent) is None:
                raise Problem(404, f"model {self.name!r} has been removed.", field="name")
            self.row = store.add_model(self.name, spec, parent)
            if parent is not None:
                self.rows = store.count(parent)
                self.seen = store.last()
        elif before[0].spec != spec:
            raise Problem(
                409, f"name must be a new one for another model; {self.name!r} has another one.", field="name"
            )

    def written(self) -> Call | None:
        before = self.service.hosts.get(self.name) if self.parent is None else self.parent.challenger
        if self.row is None:
            assert before is not None
            self.reply(Reply(200 if before.stage == "ready" else 202, stage_of(before)))
            return None
        hosted = Hosted(self.row)
        hosted.rows = self.rows
        hosted.seen = self.seen
        if self.parent is None:
            self.service.hosts[self.name] = hosted
        else:
            self.parent.challenger = hosted
        self.reply(Reply(202, stage_of(hosted)))
        return Call(functools.partial(self.service.learner.consider, hosted))


class RemoveModel(Reporting):
    def __init__(self, service: Service, hosted: Hosted, ticket: Ticket) -> None:
        self.service = service
        self.ticket = ticket
        self.hosted = hosted
        self.files: list[str] = []

    def write(self, store: Store) -> None:
        self.files = store.remove_model(self.hosted.number)
        if self.hosted.challenger is not None:
            self.files += store.remove_model(self.hosted.challenger.number)

    def written(self) -> None:
        for hosted in (self.hosted, self.hosted.challenger):
            if hosted is not None:
                hosted.stage = "removed"
        self.service.hosts.pop(self.hosted.name, None)
        for parent in self.service.hosts.values():
            if parent.challenger is self.hosted:
                parent.challenger = None
        base = getattr(self.hosted.spec, "base", None)
        if base is not None and all(getattr(one.spec, "base", None) != base for one in self.service.every()):
            base_path(self.service.snapshot_folder, base).unlink(missing_ok=True)
        for file in self.files:
            (self.service.snapshot_folder / file).unlink(missing_ok=True)
        self.reply(Reply(204, b"", JSON))


class Promote(Reporting):
    """A challenger takes the place of the model beside which it learned."""

    def __init__(self, service: Service, hosted: Hosted, challenger: Hosted, ticket: Ticket) -> None:
        self.service = service
        self.ticket = ticket
        self.hosted = hosted
        self.challenger = challenger
        self.files: list[str] = []

    def write(self, store: Store) -> None:
        if store.spec(self.hosted.number) is None or store.spec(self.challenger.number) is None:
            raise Problem(
                404, f"model {self.hosted.name!r} or its challenger has been removed.", field="name"
            )
        self.files = store.promote(self.hosted.number, self.challenger.number)

    def written(self) -> Call:
        for file in self.files:
            (self.service.snapshot_folder / file).unlink(missing_ok=True)
        return Call(self._become, self.hosted)

    def _become(self) -> None:
        """In the learner's thread, after the lines before and before the lines after."""
        self.hosted.become(self.challenger)
        self.reply(Reply(200, stage_of(self.hosted)))


class Append(Reporting):
    """Lines are to come, and to be learned from."""

    def __init__(
        self, hosted: Hosted, kind: str, rows: Sequence[tuple[str, Content]], ticket: Ticket, many: bool
    ) -> None:
        self.hosted = hosted
        self.kind = kind
        self.rows = rows
        self.ticket = ticket
        self.many = many
        self.size = len(rows)
        self.timed = hosted.columns is not None and hosted.columns.timed
        self.entries: list[Event | int] = []
        self.latest: float | None = None

    def write(self, store: Store) -> None:
        self.entries = []
        self.latest = self.hosted.latest
        if self.hosted.stage == "removed":
            raise Problem(404, f"model {self.hosted.name!r} has been removed.", field="name")
        if self.many:
            store.point()
        try:
            for id, content in self.rows:
                if self.timed:
                    self._require_time(store, id, content)
                entry = store.append(self.hosted.number, id, self.kind, content)
                self.entries.append(entry)
                if self.timed and isinstance(entry, Event):
                    self.latest = _later(self.latest, time_of(entry))
        except Problem:
            if self.many:
                store.back()
            raise

    def _require_time(self, store: Store, id: str, content: Content) -> None:
        """Refuse a row that is too old, unless it came before and is sent again."""
        try:
            self.hosted.require_forward(content, self.latest)
        except Problem:
            if not store.has(self.hosted.number, id, self.kind):
                raise

    def written(self) -> Lines:
        if self.timed:
            self.hosted.latest = _later(self.hosted.latest, self.latest)
        return Lines(self.hosted, self.entries, self.ticket, self.many)


def _later(one: float | None, other: float | None) -> float | None:
    return max((time for time in (one, other) if time is not None), default=None)


def stage_of(hosted: Hosted) -> bytes:
    content: dict[str, Any] = {"name": hosted.name, "stage": hosted.stage}
    if hosted.needs:
        content |= {"rows": hosted.rows, "needs": hosted.needs}
    return encode(content)


_BANDIT_KINDS = ("decide", "reward", "observe")

NAMED = 20
"""The largest number of unknown or missing columns that an answer names."""

LOOK = 0.5
"""After how many seconds all models are looked at, and those with old lines saved, whoever's lines come."""


class Service:
    """Models in a folder, which learn and answer.

    Its methods but `start` and `stop` belong to the event loop of the HTTP server. One process at a time may
    have the folder.

    Arguments:
        folder: the folder, made if need be.
        options: how models are saved.

    Attributes:
        failure: why it answers no more, if a thread ended.
        on_failure: what is called then, in any thread.
        callers: who asks. Where one caller is alone, so that there is nothing to group, the event loop itself
            writes, learns and answers, since to wake other threads costs more than a small model.

    Raises:
        DataError: the folder or its journal cannot be used.
    """

    def __init__(self, folder: Path, options: ServiceOptions | None = None) -> None:
        self.folder = folder
        self.options = options or ServiceOptions()
        try:
            (folder / SNAPSHOTS).mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise DataError(f"cannot make the folder {folder}: {error.strerror or error}.") from None
        self.snapshot_folder = folder / SNAPSHOTS
        remember = self.options.keep if self.options.remember is None else self.options.remember
        self.store = Store(folder / JOURNAL, write=True, remember=remember)
        self.hosts: dict[str, Hosted] = {}
        self.builder = Builder(folder, self._built)
        self.grower = Grower(folder, self._grown)
        grow = self.grower.grow if able() else None
        self.learner = Learner(Store(folder / JOURNAL), self.builder.build, self._after, grow)
        self.writer = Writer(self.store, self.learner)
        self.snapshots = Snapshots(folder / SNAPSHOTS, self.writer, self.options.keep)
        self.refused = 0
        self.callers = Callers()
        self._threads = (self.writer, self.learner, self.snapshots, self.builder, self.grower)
        for thread in self._threads:
            thread.failed = self.fail
        self._looked = 0.0
        self.failure = ""
        self.on_failure: Callable[[], None] = lambda: None

    def start(self) -> None:
        """Start the threads, and bring back the models of the journal."""
        set_up_jax()
        last = self.store.last()
        numbered: dict[int, Hosted] = {}
        for row in self.store.models():
            hosted = numbered[row.number] = Hosted(row)
            hosted.stage = "building"
            hosted.seen = last
            hosted.rows = self.store.count(hosted.lines)
            if hosted.columns is not None and hosted.columns.timed:
                hosted.latest = self.store.latest(hosted.lines)
            if row.parent is None:
                self.hosts[row.name] = hosted
            else:
                numbered[row.parent].challenger = hosted
            self.builder.build(hosted, again=True)
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Learn what came, save all models, and end; no more requests may come.

        After a failure nothing is saved: threads that wait for one that has ended would wait for ever.
        """
        if self.failure:
            return
        self.builder.end()
        self.builder.join()
        self._call(self.learner.compile_here)
        self._call(self._save_all)
        self.learner.end()
        self.learner.join()
        self.grower.end()
        self.grower.join()
        self.snapshots.end()
        self.snapshots.join()
        self.writer.end()
        self.writer.join()
        self.learner.store.close()
        self.store.close()

    def fail(self, name: str, error: BaseException) -> None:
        """Answer nothing from now on: a thread has ended, so that nobody knows what the models hold.

        What was acknowledged is in the journal, and comes back when the service starts again.
        """
        traceback.print_exception(error)
        self.failure = self.failure or f"{name} ended ({type(error).__name__}: {error})"
        self.on_failure()

    def _require_sound(self) -> None:
        if self.failure:
            raise Problem(503, "the service has failed, and ends; ask again with the same id.")

    def _save_all(self) -> None:
        for hosted in self.every():
            if hosted.stage == "ready" and hosted.unsaved:
                self.snapshots.take(hosted)

    def every(self) -> list[Hosted]:
        """All models, and their challengers."""
        hosts = list(self.hosts.values())
        return hosts + [one.challenger for one in hosts if one.challenger is not None]

    def _built(self, built: Built) -> None:
        self.learner.submit([built])

    def _grown(self, hosted: Hosted, upto: int) -> None:
        self._call(lambda: self.learner.resume(hosted, upto))

    def _call(self, function: Any) -> None:
        self.learner.submit([Call(function)])

    def _after(self, changed: Collection[Hosted]) -> None:
        """Save models if it is time to, in the learner's thread: those that took lines, and all of them now
        and then.
        """
        now = time.monotonic()
        if now - self._looked > LOOK:
            self._looked = now
            changed = list(self.hosts.values())
        for hosted in changed:
            self._save_in_time(hosted, now)
            if hosted.challenger is not None:
                self._save_in_time(hosted.challenger, now)

    def _save_in_time(self, hosted: Hosted, now: float) -> None:
        """Save a model with as many new lines as may be lost, or whose lines are as old."""
        if hosted.stage != "ready" or not hosted.unsaved:
            hosted.saved_at = now if not hosted.unsaved else hosted.saved_at
            return
        late = now - hosted.saved_at >= self.options.snapshot_seconds
        if late or hosted.unsaved >= self.options.snapshot_rows:
            hosted.saved_at = now
            self.snapshots.take(hosted)

    def host(self, name: str) -> Hosted:
        """A model by its name."""
        if self.failure:
            self._require_sound()
        hosted = self.hosts.get(name)
        if hosted is None:
            require_name(name)
            raise Problem(404, f"name must be that of a model; there is none called {name!r}.", field="name")
        return hosted

    @property
    def ready(self) -> bool:
        """Whether every model that has its rows answers, or has failed for good."""
        if self.failure:
            return False
        waits = (one for one in self.every() if one.stage not in ("ready", "failed"))
        return all(one.stage == "waiting" and one.rows < one.needs for one in waits)

    async def put(self, name: str, content: dict[str, Any]) -> Reply:
        """Take in a model: 202 for a new one, 200 for the same again, 409 for another under the name."""
        self._require_sound()
        spec = read_spec(content)
        ticket = _ticket()
        self.writer.submit(AddModel(self, require_name(name), spec, ticket))
        return await ticket

    async def put_saved(self, name: str, body: bytes) -> Reply:
        """Take in a model that goes on from a saved session."""
        require_name(name)
        digest = hashlib.sha256(body).hexdigest()
        path = base_path(self.snapshot_folder, digest)

        def keep() -> str:
            try:
                write_atomically(path, body)
                return target_of(path)
            except CredoError as error:
                path.unlink(missing_ok=True)
                sentence = str(error).replace(str(path), "the body")
                raise Problem(422, sentence, field=error.field) from None

        known = path.exists()
        target = await asyncio.to_thread(target_of, path) if known else await asyncio.to_thread(keep)
        return await self.put(name, {"target": target, "base": digest})

    async def remove(self, name: str) -> Reply:
        """Forget a model."""
        ticket = _ticket()
        self.writer.submit(RemoveModel(self, self.host(name), ticket))
        return await ticket

    async def challenge(self, name: str, content: dict[str, Any]) -> Reply:
        """Start a challenger: another model that learns every row of a model beside it."""
        hosted = self.host(name)
        spec = read_spec(content)
        if not isinstance(hosted.spec, TableSpec) or not isinstance(spec, TableSpec):
            raise Problem(422, "kind must be table: a challenger is for tables.", field="kind")
        if spec.time_unit is not None and hosted.spec.time_unit is None:
            sentence = f"time_unit must be left out, as {name!r} has none; got {spec.time_unit!r}."
            raise Problem(422, sentence, field="time_unit")
        if spec.target != hosted.spec.target:
            raise Problem(422, f"target must be {hosted.spec.target!r}; got {spec.target!r}.", field="target")
        ticket = _ticket()
        self.writer.submit(AddModel(self, f"{name}/challenger", spec, ticket, hosted))
        return await ticket

    def challenger(self, name: str) -> Hosted:
        """The challenger of a model."""
        challenger = self.host(name).challenger
        if challenger is None:
            raise Problem(404, f"model {name!r} has no challenger.", field="name")
        return challenger

    async def withdraw(self, name: str) -> Reply:
        """Forget a challenger."""
        ticket = _ticket()
        self.writer.submit(RemoveModel(self, self.challenger(name), ticket))
        return await ticket

    async def promote(self, name: str) -> Reply:
        """Replace a model by its challenger, which answers from then on."""
        challenger = self.challenger(name)
        if challenger.stage != "ready":
            raise Problem(503, f"the challenger of {name!r} is not ready: it is {challenger.stage}.")
        ticket = _ticket()
        self.writer.submit(Promote(self, self.host(name), challenger, ticket))
        return await ticket

    def listing(self) -> Reply:
        """All models."""
        return Reply(200, encode({"models": [self._short(hosted) for hosted in list(self.hosts.values())]}))

    def _short(self, hosted: Hosted) -> dict[str, Any]:
        short: dict[str, Any] = {"name": hosted.name, "stage": hosted.stage, "learned": hosted.learned}
        if hosted.stage == "waiting":
            short |= {"rows": hosted.rows, "needs": hosted.needs}
        if hosted.reason:
            short["reason"] = hosted.reason
        return short

    async def view(self, name: str) -> Reply:
        """A model with its specification, its scores and its notes."""
        hosted = self.host(name)
        ticket = _ticket()

        def look() -> None:
            content = self._short(hosted) | {
                "spec": hosted.spec,
                "created": hosted.created,
                "seq": hosted.applied,
                "snapshot": hosted.saved_seq,
                "forecasts": hosted.forecasts,
                "taken": hosted.taken + hosted.forecasts,
                "notes": hosted.notes,
            }
            if hosted.model is not None and hosted.stage == "ready":
                content["state"] = hosted.model.view()
            other = hosted.challenger
            if other is not None:
                content["challenger"] = self._short(other) | {"spec": other.spec, "notes": other.notes}
                if other.model is not None and other.stage == "ready":
                    content["challenger"]["state"] = other.model.view()
            answer_all([(ticket, Reply(200, encode(content)))])

        self._call(look)
        return await ticket

    async def submit(
        self,
        name: str,
        kind: str,
        contents: Sequence[dict[str, Any]],
        *,
        many: bool = False,
        caller: object = None,
    ) -> Reply:
        """Write lines, and answer once they are learned from, or forecast.

        Arguments:
            name: the model.
            kind: what to do.
            contents: the rows as they came.
            many: whether they are a batch, which is answered by lines.
            caller: the address from which they came, if they are no batch.
        """
        hosted = self.host(name)
        columns = hosted.columns
        if hosted.bandit != (kind in _BANDIT_KINDS):
            what = "a bandit" if hosted.bandit else "a table"
            raise Problem(404, f"model {name!r} is {what}, which has no {kind}.", field="name")
        named: list[tuple[str, Content]] = []
        asked: list[Predict] = []
        notes: list[dict[str, list[str]]] = []
        for number, content in enumerate(contents, 1):
            try:
                id, row = read_request(
                    kind, content, columns, strict=self.options.strict, most=self.options.max_columns
                )
            except CredoError as error:
                if many:
                    raise CredoError(f"line {number}: {error}", field=error.field) from None
                raise
            if id is not None:
                named.append((id, row))
            elif isinstance(row, Predict):
                asked.append(row)
            notes.append(_note(row, columns))
        if kind in ("predict", *_BANDIT_KINDS) and hosted.stage != "ready":
            raise Problem(503, f"model {name!r} is not ready: it is {hosted.stage}.")
        if named and asked:
            raise Problem(422, "id must be in all lines of a batch, or in none.", field="id")
        ticket = _ticket()
        # batches are long: the threads work on them while others are answered
        alone = not many and self.callers.alone(caller)
        if named:
            task = Append(hosted, kind, named, ticket, many)
            if not (alone and self.writer.at_once(task)):
                self.writer.submit(task)
        else:
            self._ask(Ask(hosted, asked, ticket, many), alone)
        reply = await ticket
        if any(notes):
            return _with_notes(reply, notes)
        return reply

    def _ask(self, ask: Ask, alone: bool) -> None:
        """Have rows forecast, of which nothing is kept."""
        for row in ask.rows:
            ask.hosted.require_forward(row, ask.hosted.latest)
        if not (alone and self.learner.at_once(ask)):
            self.learner.submit([ask])


def _ticket() -> Ticket:
    """The ticket of a request of this event loop."""
    return asyncio.get_running_loop().create_future()


def _note(row: Content, columns: Columns | None) -> dict[str, list[str]]:
    """The names in a row that are no columns, and the columns that it lacks: a misspelt name is both."""
    if columns is None or not isinstance(row, Learn | Predict) or row.x.keys() == columns.kinds.keys():
        return {}
    unknown, missing = columns.unlike(row.x)
    found = {"unknown": unknown[:NAMED], "missing": missing[:NAMED]}
    return {name: names for name, names in found.items() if names}


def _with_notes(reply: Reply, notes: Sequence[dict[str, list[str]]]) -> Reply:
    """The answers of rows, each with its note."""
    if reply.status != 200:
        return reply
    end = b"\n" if reply.kind == LINES else b""
    answers = reply.body.splitlines() if end else [reply.body]
    noted = [
        answer[:-1] + b"," + encode(note)[1:] if note else answer
        for answer, note in zip(answers, notes, strict=True)
    ]
    return reply._replace(body=b"\n".join(noted) + end)
