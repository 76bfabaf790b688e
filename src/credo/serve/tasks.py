"""What the writer's thread does for requests: models come and go, and lines are appended."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec

from credo.core.errors import CredoError
from credo.serve.hosting import Hosted
from credo.serve.journal_store import Event, ModelRow, Store
from credo.serve.learning import Call, Lines
from credo.serve.problems import JSON, Problem, Reply, Ticket, answer_all, encode, problem_reply
from credo.serve.requests import Content
from credo.serve.specs import ModelSpec

__all__ = ["AddModel", "Append", "House", "RemoveModel", "stage_of"]

_canonical = msgspec.json.Encoder(order="deterministic").encode


class House(Protocol):
    """What tasks need of the service: its models by name, the folder of their snapshots, what hands items on
    to the learner, and what considers whether a model can be built, in the learner's thread.
    """

    hosts: dict[str, Hosted]
    snapshot_folder: Path

    def hand_on(self, item: Lines | Call) -> None: ...

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
    def __init__(self, service: House, name: str, spec: ModelSpec, ticket: Ticket) -> None:
        super().__init__(service, ticket)
        self.name, self.spec = name, spec
        self.row: ModelRow | None = None

    def write(self, store: Store) -> None:
        spec = _canonical(self.spec)
        before = [row for row in store.models() if row.name == self.name]
        if not before:
            self.row = store.add_model(self.name, spec)
        elif before[0].spec != spec:
            raise Problem(
                409, f"name must be a new one for another model; {self.name!r} has another one.", field="name"
            )

    def written(self) -> None:
        if self.row is None:
            hosted = self.service.hosts[self.name]
            return self.reply(Reply(200 if hosted.stage == "ready" else 202, stage_of(hosted)))
        hosted = self.service.hosts[self.name] = Hosted(self.row)
        self.service.hand_on(Call(lambda: self.service.consider(hosted)))
        return self.reply(Reply(202, stage_of(hosted)))


class RemoveModel(Reporting):
    def __init__(self, service: House, hosted: Hosted, ticket: Ticket) -> None:
        super().__init__(service, ticket)
        self.hosted = hosted
        self.files: list[str] = []

    def write(self, store: Store) -> None:
        self.files = store.remove_model(self.hosted.number)

    def written(self) -> None:
        hosted = self.hosted
        hosted.stage = "removed"
        self.service.hosts.pop(hosted.name, None)
        for file in self.files:
            (self.service.snapshot_folder / file).unlink(missing_ok=True)
        self.reply(Reply(204, b"", JSON))


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

    def write(self, store: Store) -> None:
        if self.hosted.stage == "removed":
            raise Problem(404, f"model {self.hosted.name!r} has been removed.", field="name")
        if self.many:
            store.point()
        try:
            for id, content in self.rows:
                self.entries.append(store.append(self.hosted.number, id, self.kind, content))
        except Problem:
            if self.many:
                store.back()
            raise

    def written(self) -> None:
        self.service.hand_on(Lines(self.hosted, self.entries, self.ticket, self.many))


def stage_of(hosted: Hosted) -> bytes:
    content: dict[str, Any] = {"name": hosted.name, "stage": hosted.stage}
    if hosted.needs:
        content |= {"rows": hosted.rows, "needs": hosted.needs}
    return encode(content)
