"""A model that a service hosts, and where it is on its way from a specification to answers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from credo.core.errors import CredoError
from credo.serve.bandit_model import BanditModel
from credo.serve.contents import Content
from credo.serve.journal_lines import ModelRow
from credo.serve.journal_store import Store
from credo.serve.problems import Problem
from credo.serve.requests import Columns
from credo.serve.specs import BanditSpec, ModelSpec, TableSpec
from credo.serve.table_model import TableModel

__all__ = ["Hosted", "Model", "Stage", "begin", "fits", "restore", "restored"]

Model: TypeAlias = TableModel | BanditModel

Stage: TypeAlias = Literal["waiting", "building", "ready", "failed", "removed"]
"""Whether a model waits for first rows, is built, answers, cannot be built, or is gone."""

_decode = msgspec.json.Decoder(ModelSpec).decode


def read_line(line: bytes) -> ModelSpec:
    """A specification as the journal has it."""
    spec: ModelSpec = _decode(line)
    return spec


class Hosted:
    """A model of the service. The learner's thread alone changes it; others read single attributes.

    Arguments:
        row: the model as the journal has it.

    Attributes:
        stage, reason: where it is, and why it failed.
        model: what learns and answers, once there is one.
        columns: what rows must hold.
        lines: the number of the model whose lines it takes: its own, or that of the model it challenges.
        challenger: the model that learns the same lines beside it.
        seen, applied: the numbers of the last line that came, and of the last one that the model took.
        rows: how many rows to learn have come while it waits.
        latest: the latest time of a row to learn in the journal, which the writer's thread keeps; None if
            there is none.
        saved_seq, saved_at, unsaved: the line and the time of the latest snapshot, and how many came since.
        taken, forecasts, decided: how many lines it took since the start to learn (those of a bandit among
            them), to forecast, and as a bandit.
        notes: what a user should know.
    """

    def __init__(self, row: ModelRow) -> None:
        self.number, self.name, self.created = row.number, row.name, row.time
        self.lines, self.since = row.parent or row.number, row.since
        self.spec_line, self.spec = row.spec, read_line(row.spec)
        self.challenger: Hosted | None = None
        self.stage: Stage = "waiting"
        self.reason = ""
        self.model: Model | None = None
        self.columns = None if isinstance(self.spec, BanditSpec) else self._first_columns(self.spec)
        self.seen = self.applied = 0
        self.rows = 0
        self.latest: float | None = None
        self.saved_seq, self.saved_at, self.unsaved = 0, 0.0, 0
        self.taken = self.forecasts = self.decided = 0
        self.notes: list[str] = []

    @staticmethod
    def _first_columns(spec: TableSpec) -> Columns:
        schema = spec.schema()
        timed = spec.seconds is not None
        return Columns(spec.target, timed=timed) if schema is None else Columns.of(schema, timed)

    @property
    def needs(self) -> int:
        """From how many rows it is built."""
        spec = self.spec
        inferred = isinstance(spec, TableSpec) and spec.columns is None and spec.base is None
        return self.spec.first if inferred else 0  # type: ignore[union-attr]

    @property
    def learned(self) -> int:
        """How many rows or rewards its model has learned, also before the latest start."""
        return 0 if self.model is None else self.model.rows

    @property
    def silent(self) -> bool:
        """Whether it challenges another model, so that it learns but answers nothing."""
        return self.lines != self.number

    def become(self, other: Hosted) -> None:
        """Take the place of another model: learn and answer as its challenger does."""
        self.spec, self.spec_line = other.spec, other.spec_line
        self.model, self.applied, self.columns = other.model, other.applied, other.columns
        self.unsaved, self.challenger, other.stage = max(self.unsaved, 1), None, "removed"

    def require_forward(self, content: Content, latest: float | None) -> None:
        """Refuse a row that is older than the latest by more than its model allows."""
        spec, given = self.spec, getattr(content, "time", None)
        if given is None or latest is None or not isinstance(spec, TableSpec) or spec.seconds is None:
            return
        if given < (limit := latest - spec.lateness * spec.seconds):
            late = f"{spec.lateness:g} {spec.time_unit}s"
            raise Problem(
                422,
                f"time must be at least {limit:.16g}, the latest row's less a lateness of {late}; "
                f"got {given:.16g}.",
                field="time",
            )

    @property
    def bandit(self) -> bool:
        """Whether it is a bandit."""
        return isinstance(self.spec, BanditSpec)


def begin(spec: ModelSpec, first: Sequence[Content], folder: Path) -> Model:
    """A new model, by its first rows where they say what columns mean; `folder` is that of the snapshots."""
    return BanditModel.start(spec) if isinstance(spec, BanditSpec) else TableModel.start(spec, first, folder)


def _load(path: Path, spec: ModelSpec) -> Model:
    return BanditModel.load(path, spec) if isinstance(spec, BanditSpec) else TableModel.load(path, spec)


def restore(hosted: Hosted, store: Store, folder: Path) -> tuple[Model, int] | None:
    """The model of the newest snapshot that is whole, and its line; others are passed over, and noted."""
    return next(restored(hosted, store, folder), None)


def restored(hosted: Hosted, store: Store, folder: Path) -> Iterator[tuple[Model, int]]:
    """The models of all snapshots that are whole, the newest first, with their lines."""
    for snapshot in store.snapshots(hosted.number):
        path = folder / snapshot.file
        try:
            if not fits(path, snapshot.digest):
                raise CredoError("its checksum is another one")
            yield _load(path, hosted.spec), snapshot.seq
        except (CredoError, OSError) as error:
            hosted.notes.append(f"snapshot {snapshot.file} was passed over: {error}")


def fits(path: Path, digest: str) -> bool:
    """Whether a file has this SHA-256."""
    return hashlib.sha256(path.read_bytes()).hexdigest() == digest
