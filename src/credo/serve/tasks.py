"""What the writer's thread does for requests: models come and go, and lines are appended."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec

from credo.core.errors import CredoError
from credo.serve.contents import Content
from credo.serve.hosting import Hosted
from credo.serve.journal_lines import Event, ModelRow, time_of
from credo.serve.journal_store import Store
from credo.serve.learning import Call, Lines
from credo.serve.problems import JSON, Problem, Reply, Ticket, answer_all, encode, problem_reply
from credo.serve.specs import ModelSpec
from credo.serve.table_model import base_path

__all__ = ["AddModel", "Append", "House", "Promote", "RemoveModel", "stage_of"]

_canonical = msgspec.json.Encoder(order="deterministic").encode


class House(Protocol):
    """What tasks need of the service: its models by name, the folder of their snapshots, what hands items on
    to the learner, and what considers whether a model can be built, in the learner's thread.
    """

    hosts: dict[str, Hosted]
    snapshot_folder: Path

    def hand_on(self, item: Lines | Call) -> None: ...

    def every(self) -> list[Hosted]: ...

    def consider(self, hosted: Hosted) -> None: ...


class Reporting:
    """A task whose ticket gets a reply in the end."""

    size = 1

    def __init__(self, service: House, ticket: Ticket) -> None:
        self.service, self.ticket = service, ticket

    def refused(self, problem: CredoError) -> None:
        answer_all([(self.ticket, problem_reply(problem))])

    def reply(self, reply: Reply) -> None:
        answer_all([(self.ticket, reply)])


class AddModel(Reporting):
    """A model is to come, or with a `parent` its challenger, which learns the lines of the parent."""

    def __init__(
        self, service: House, name: str, spec: ModelSpec, ticket: Ticket, parent: Hosted | None = None
    ) -> None:
        super().__init__(service, ticket)
        self.name, self.spec, self.parent = name, spec, parent
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
                self.rows, self.seen = store.count(parent), store.last()
        elif before[0].spec != spec:
            raise Problem(
                409, f"name must be a new one for another model; {self.name!r} has another one.", field="name"
            )

    def written(self) -> None:
        before = self.service.hosts.get(self.name) if self.parent is None else self.parent.challenger
        if self.row is None:
            assert before is not None
            return self.reply(Reply(200 if before.stage == "ready" else 202, stage_of(before)))
        hosted = Hosted(self.row)
        hosted.rows, hosted.seen = self.rows, self.seen
        if self.parent is None:
            self.service.hosts[self.name] = hosted
        else:
            self.parent.challenger = hosted
        self.service.hand_on(Call(lambda: self.service.consider(hosted)))
        return self.reply(Reply(202, stage_of(hosted)))


class RemoveModel(Reporting):
    def __init__(self, service: House, hosted: Hosted, ticket: Ticket) -> None:
        super().__init__(service, ticket)
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

    def __init__(self, service: House, hosted: Hosted, challenger: Hosted, ticket: Ticket) -> None:
        super().__init__(service, ticket)
        self.hosted, self.challenger = hosted, challenger
        self.files: list[str] = []

    def write(self, store: Store) -> None:
        if store.spec(self.hosted.number) is None or store.spec(self.challenger.number) is None:
            raise Problem(
                404, f"model {self.hosted.name!r} or its challenger has been removed.", field="name"
            )
        self.files = store.promote(self.hosted.number, self.challenger.number)

    def written(self) -> None:
        for file in self.files:
            (self.service.snapshot_folder / file).unlink(missing_ok=True)
        self.service.hand_on(Call(self._become))

    def _become(self) -> None:
        """In the learner's thread, after the lines before and before the lines after."""
        self.hosted.become(self.challenger)
        self.reply(Reply(200, stage_of(self.hosted)))


class Append(Reporting):
    def __init__(
        self,
        service: House,
        hosted: Hosted,
        kind: str,
        rows: Sequence[tuple[str, Content]],
        ticket: Ticket,
        many: bool,
    ) -> None:
        super().__init__(service, ticket)
        self.hosted, self.kind, self.rows, self.many = hosted, kind, rows, many
        self.size = len(rows)
        self.entries: list[Event | int] = []
        self.latest: float | None = None

    def write(self, store: Store) -> None:
        self.entries, self.latest = [], self.hosted.latest
        if self.hosted.stage == "removed":
            raise Problem(404, f"model {self.hosted.name!r} has been removed.", field="name")
        if self.many:
            store.point()
        try:
            for id, content in self.rows:
                self._require_time(store, id, content)
                entry = store.append(self.hosted.number, id, self.kind, content)
                self.entries.append(entry)
                self.latest = _later(self.latest, time_of(entry) if isinstance(entry, Event) else None)
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

    def written(self) -> None:
        self.hosted.latest = _later(self.hosted.latest, self.latest)
        self.service.hand_on(Lines(self.hosted, self.entries, self.ticket, self.many))


def _later(one: float | None, other: float | None) -> float | None:
    return one if other is None else other if one is None else max(one, other)


def stage_of(hosted: Hosted) -> bytes:
    content: dict[str, Any] = {"name": hosted.name, "stage": hosted.stage}
    if hosted.needs:
        content |= {"rows": hosted.rows, "needs": hosted.needs}
    return encode(content)
