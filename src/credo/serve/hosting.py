"""A model that a service hosts, and where it is on its way from a specification to answers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec
import numpy as np

from credo.bandits import Agent, ArmDecision, Bandit
from credo.bandits.named_bandits import start_bandit
from credo.core.errors import CredoError
from credo.serve.contents import Content, Decide, Observe, Reward
from credo.serve.journal_lines import Event, ModelRow
from credo.serve.journal_store import Store
from credo.serve.problems import Problem
from credo.serve.requests import Columns, as_context
from credo.serve.specs import BanditSpec, ModelSpec, TableSpec
from credo.serve.table_model import Answer, Given, TableModel
from credo.streams import checkpoint

__all__ = ["BanditModel", "Hosted", "Model", "Stage", "begin", "fits", "restore", "restored"]


class BanditModel:
    """A `Bandit` that takes the lines of a journal, whose time is that of the latest line."""

    def __init__(self, bandit: Bandit, spec: BanditSpec, time: _JournalTime) -> None:
        self.bandit = bandit
        self.spec = spec
        self._time = time
        self.columns = None

    @property
    def latest(self) -> float:
        """The time of the latest line."""
        return self._time.latest

    @classmethod
    def start(cls, spec: BanditSpec) -> BanditModel:
        """A new bandit."""
        time = _JournalTime()
        named = spec.inputs is None
        bandit, _ = start_bandit(
            spec.arms,
            (spec.features or None) if named else spec.inputs,
            named=named,
            agent=spec.agent,
            policy=spec.policy,
            window=spec.window,
            timeout=spec.timeout,
            on_missing=spec.on_missing,
            seed=spec.seed,
            clock=time,
            brought=spec.brought,
            arm_features=spec.arm_features,
        )
        return cls(bandit, spec, time)

    @classmethod
    def load(cls, path: Path, spec: BanditSpec) -> BanditModel:
        """A bandit from a snapshot."""
        time = _JournalTime()
        return cls(Bandit.load(path, clock=time), spec, time)

    @property
    def rows(self) -> int:
        """The number of rewards learned."""
        return self.bandit.counts.learned

    def prepare(self) -> None:
        """Compile all that a decision and a reward need, with a copy that is thrown away."""
        copy = self.bandit.fork(self.spec.seed + 1)
        spec = self.spec
        named = {"a": 0.0} if spec.features else None
        context = named if spec.inputs is None else np.zeros(spec.inputs, np.float32)
        brought = None if spec.brought is None else {"a": {"a": 0.0}, "b": {"a": 1.0}}
        copy.reward(copy.decide(context, brought).id, 0.0)

    def apply(self, events: Sequence[Event], given: Given) -> list[Answer]:
        """Decide and learn in order; the answers."""
        return [self._one(event) for event in events]

    def _one(self, event: Event) -> Answer:
        self._time.latest = event.time
        content = event.content
        try:
            if isinstance(content, Decide):
                about = as_context(content.context), content.arms
                if content.size is msgspec.UNSET:
                    made = self.bandit.decide(*about, id=event.id)
                    return {**_place(made), "version": made.version}
                slate = self.bandit.decide_slate(*about, size=content.size, id=event.id)
                return {
                    "arms": slate.arms,
                    "propensity": slate.propensity,
                    "places": list(map(_place, slate.decisions)),
                    "version": slate.decisions[0].version,
                }
            if isinstance(content, Observe):
                seen = self.bandit.observe(
                    as_context(content.context),
                    content.arm,
                    content.reward,
                    propensity=content.propensity,
                    arms=content.arms,
                    id=event.id,
                )
                return {"status": None if seen.status is None else seen.status.value}
            assert isinstance(content, Reward)
            statuses = self._rewarded(event.id, content)
        except CredoError as error:
            return {"reason": str(error), "refused": 422}
        if statuses[0] == "expired":
            return {"reason": f"id must be in the window; that of {event.id!r} is over.", "refused": 410}
        if content.values is None:
            return {"status": statuses[0]}
        return {"statuses": statuses}

    def _rewarded(self, id: str, content: Reward) -> list[str | None]:
        """The status of the reward of a decision, or of those of the places of a slate."""
        if content.values is None:
            assert content.value is not None
            return [self.bandit.reward(id, content.value, part=content.part).value]
        statuses = self.bandit.reward_slate(id, content.values, seen=content.seen or "cascade")
        return [None if status is None else status.value for status in statuses]

    def freeze(self, path: Path) -> Callable[[], None]:
        """Write the bandit as it is now into a file, at once; the function that is returned does nothing."""
        self.bandit.save(path)
        return lambda: None

    def digest(self, path: Path) -> str:
        """The SHA-256 of the bandit, by way of a file, but for what differs in every process."""
        self.bandit.save(path)
        saved = checkpoint.read(path, kind=Agent)
        meta = {name: value for name, value in saved.meta.items() if name not in ("epoch", "log")}
        digest = hashlib.sha256(msgspec.json.encode(meta, order="deterministic"))
        for name, array in sorted(saved.arrays.items()):
            digest.update(name.encode() + np.ascontiguousarray(array).tobytes())
        for leaf in _leaves(saved.belief):
            digest.update(np.ascontiguousarray(leaf).tobytes())
        return digest.hexdigest()

    def view(self) -> Answer:
        """The facts about the bandit that are shown."""
        counts = self.bandit.counts
        return {
            "rows": counts.learned,
            "refused": counts.refused,
            "counts": counts._asdict(),
            "task": "bandit",
        }


class _JournalTime:
    """A clock that stands at the time of the latest line."""

    def __init__(self) -> None:
        self.latest = 0.0

    def __call__(self) -> float:
        return self.latest


def _leaves(belief: object) -> list[np.ndarray]:
    import jax

    return [np.asarray(leaf) for leaf in jax.tree.leaves(belief)]


def _place(made: ArmDecision) -> Answer:
    """A decision as it is answered, or a place of a slate."""
    pmf = {name: p for name, p in made.pmf.items() if p > 0}
    return {"arm": made.arm, "propensity": made.propensity, "pmf": pmf}


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
        silent, bandit: whether it challenges another model, so that it learns but answers nothing, and
            whether it is a bandit.
        challenger: the model that learns the same lines beside it.
        seen, applied: the numbers of the last line that came, and of the last one that the model took.
        rows: how many rows to learn have come while it waits.
        latest: the latest time of a row to learn in the journal, which the writer's thread keeps; None if
            there is none.
        saved_seq, saved_at, unsaved: the line and the time of the latest snapshot, and how many came since.
        pace: the seconds that a line took the latest time, 0 if none did.
        taken, forecasts, decided: how many lines it took since the start to learn (those of a bandit among
            them), to forecast, and as a bandit.
        notes: what a user should know.
    """

    def __init__(self, row: ModelRow) -> None:
        self.number = row.number
        self.name = row.name
        self.created = row.time
        self.lines = row.parent or row.number
        self.since = row.since
        self.spec_line = row.spec
        self.spec = read_line(row.spec)
        self.challenger: Hosted | None = None
        self.stage: Stage = "waiting"
        self.reason = ""
        self.model: Model | None = None
        self.silent = self.lines != self.number
        self.bandit = isinstance(self.spec, BanditSpec)
        self.columns = None if isinstance(self.spec, BanditSpec) else self._first_columns(self.spec)
        self.seen = self.applied = 0
        self.rows = 0
        self.latest: float | None = None
        self.saved_seq = 0
        self.saved_at = 0.0
        self.unsaved = 0
        self.pace = 0.0
        self.taken = self.forecasts = self.decided = 0
        self.notes: list[str] = []

    @staticmethod
    def _first_columns(spec: TableSpec) -> Columns:
        schema = spec.schema()
        timed = spec.seconds is not None
        if schema is None:
            return Columns(spec.target, timed=timed)
        return Columns.of(schema, timed)

    @property
    def needs(self) -> int:
        """From how many rows it is built."""
        spec = self.spec
        inferred = isinstance(spec, TableSpec) and spec.columns is None and spec.base is None
        return self.spec.first if inferred else 0  # type: ignore[union-attr]

    @property
    def learned(self) -> int:
        """The number of rows or rewards that its model has learned, also before the latest start."""
        if self.model is None:
            return 0
        return self.model.rows

    def become(self, other: Hosted) -> None:
        """Take the place of another model: learn and answer as its challenger does."""
        self.spec = other.spec
        self.spec_line = other.spec_line
        self.model = other.model
        self.applied = other.applied
        self.columns = other.columns
        self.unsaved = max(self.unsaved, 1)
        self.challenger = None
        other.stage = "removed"

    def require_forward(self, content: Content, latest: float | None) -> None:
        """Refuse a row that is older than the latest by more than its model allows."""
        spec = self.spec
        given = getattr(content, "time", None)
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


def begin(spec: ModelSpec, first: Sequence[Content], folder: Path) -> Model:
    """A new model, by its first rows where they say what columns mean; `folder` is that of the snapshots."""
    if isinstance(spec, BanditSpec):
        return BanditModel.start(spec)
    return TableModel.start(spec, first, folder)


def _load(path: Path, spec: ModelSpec) -> Model:
    if isinstance(spec, BanditSpec):
        return BanditModel.load(path, spec)
    return TableModel.load(path, spec)


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
