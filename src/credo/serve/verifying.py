"""The journal is replayed from its first line, and what comes of it compared with what was saved."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import NamedTuple

import msgspec

from credo.core.errors import DataError
from credo.serve.building import JOURNAL, SNAPSHOTS, set_up_jax
from credo.serve.contents import Content
from credo.serve.hosting import Hosted, Model, begin, restored
from credo.serve.journal_lines import ModelRow
from credo.serve.journal_store import Store
from credo.serve.table_model import Answer

__all__ = ["Verdict", "verify"]

GROUPS = (256, 100)
"""The numbers of lines that the newest snapshot and the replay take at once."""

_decode = msgspec.json.Decoder().decode


class Verdict(NamedTuple):
    """Whether the newest snapshot of a model and the lines after it give the same state, bit by bit, as all
    lines from the first on, in groups of another size; and whether the answers that were kept are the same.
    """

    name: str
    lines: int
    same_state: bool
    other_answers: int
    notes: list[str]


def verify(folder: Path) -> list[Verdict]:
    """Verify every model of a service that does not run; a `DataError` if there is no journal."""
    if not (folder / JOURNAL).is_file():
        raise DataError(f"{folder} holds no journal of a service.")
    set_up_jax()
    store = Store(folder / JOURNAL)
    try:
        verdicts = [one for row in store.models() if (one := _verdict(folder, store, row)) is not None]
    except (sqlite3.DatabaseError, msgspec.MsgspecError) as error:
        raise DataError(f"the journal {folder / JOURNAL} is damaged: {error}; restore a backup.") from None
    finally:
        store.close()
    return verdicts


def _verdict(folder: Path, store: Store, row: ModelRow) -> Verdict | None:
    """The verdict on a model; None if it waits for its first rows."""
    hosted = Hosted(row)
    snapshots = list(restored(hosted, store, folder / SNAPSHOTS))
    notes = list(hosted.notes)
    last = store.last()
    first: list[Content] = []
    try:
        first = store.first_rows(hosted.lines, hosted.needs)
        if len(first) < hosted.needs:
            return None
        start = begin(hosted.spec, first, folder / SNAPSHOTS), 0
        replay = _replay(store, hosted, start, last, GROUPS[1])
    except DataError as error:
        if len(snapshots) < 2:
            raise
        notes.append(f"{error} So only the lines after the older snapshot are replayed.")
        replay = _replay(store, hosted, snapshots[1], last, GROUPS[1])
    newest = snapshots[0] if snapshots else (begin(hosted.spec, first, folder / SNAPSHOTS), 0)
    tail = _replay(store, hosted, newest, last, GROUPS[0])
    scratch = folder / SNAPSHOTS / f"{row.number}-verify.credo"
    digests = [one.model.digest(scratch) for one in (tail, replay)]
    scratch.unlink(missing_ok=True)
    return Verdict(row.name, replay.lines, digests[0] == digests[1], replay.other, notes)


class _Replayed(NamedTuple):
    """A model after some lines, and how many answers are not those that were kept."""

    model: Model
    lines: int
    other: int


def _replay(store: Store, hosted: Hosted, start: tuple[Model, int], last: int, group: int) -> _Replayed:
    """Apply the lines after one of them to a model."""
    model, applied = start
    fresh: dict[int, Answer] = {}
    lines = other = 0

    def given(seq: int) -> Answer:
        body = store.answer(seq)
        if body is None:
            return fresh.get(seq, {})
        return _read(body) or {}

    for events in store.events(hosted.lines, applied, last, group):
        for event, answer in zip(events, model.apply(events, given), strict=True):
            fresh[event.seq] = answer
            own = event.seq > hosted.since and not hosted.silent
            kept = None
            if own:
                kept = store.answer(event.seq) if event.kept is None else event.kept
            other += kept is not None and _read(kept) != {"seq": event.seq, **_plain(answer)}
            lines += 1
    return _Replayed(model, lines, other)


def _read(kept: bytes) -> Answer | None:
    """An answer that was kept; None if it is damaged."""
    try:
        answer: Answer = _decode(kept)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return answer


def _plain(answer: Answer) -> Answer:
    """An answer as it comes back from JSON."""
    plain: Answer = _decode(msgspec.json.encode(answer))
    return plain
