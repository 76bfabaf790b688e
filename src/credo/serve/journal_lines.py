"""The lines of a journal, and how they are written."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from credo.core.errors import DataError
from credo.serve.archive_files import Line
from credo.serve.contents import KINDS, Content, Predict, Reward

__all__ = ["Event", "ModelRow", "SnapshotRow", "decode_line", "encode_line", "event_of", "kind_of", "time_of"]

_PART = "part:"
"""The start of the kind of a line that holds a part of a reward, before the part's name."""

encode_line = msgspec.json.Encoder().encode  # names stay in their order, in which a bandit gives them places
_decoders = {name: msgspec.json.Decoder(kind).decode for name, kind in KINDS.items()}


class Event(NamedTuple):
    """A line of the journal. That of a label has the `row` that was forecast under its id, and as `given`
    the number of that line, whose answer is scored. `kept` is the answer of a line that left the journal.
    """

    seq: int
    id: str
    kind: str
    time: float
    content: Content
    row: Predict | None = None
    given: int = 0
    kept: bytes | None = None


class ModelRow(NamedTuple):
    """A model as the journal has it. A challenger learns the lines of its `parent`, and answers nothing; the
    answers of lines up to `since` were those of a model that was there before.
    """

    number: int
    name: str
    spec: bytes
    time: float
    parent: int | None = None
    since: int = 0


class SnapshotRow(NamedTuple):
    """A snapshot: all lines up to `seq` are in the file, whose SHA-256 is known."""

    seq: int
    file: str
    digest: str


def decode_line(kind: str, content: bytes) -> Any:
    """Decode the content of a line of a kind."""
    return _decoders[kind](content)


def time_of(event: Event) -> float | None:
    """The time of the row that is learned by a line, in seconds; None if none is, or it has none."""
    row = event.content if event.kind == "learn" else event.row
    return getattr(row, "time", None)


def kind_of(reward: Reward) -> str:
    """The kind under which the line of a reward is kept: each part of one has its own."""
    return "reward" if reward.part is None else f"{_PART}{reward.part}"


def event_of(line: Line, *, old: bool = False) -> Event:
    """A line as models take it; an `old` one has left the journal, with its answer.

    Raises:
        DataError: the line is damaged.
    """
    kind = "reward" if line.kind.startswith(_PART) else line.kind
    try:
        row: Predict | None = None if line.row is None else decode_line("predict", line.row)
        content: Content = decode_line(kind, line.content)
    except (msgspec.MsgspecError, UnicodeDecodeError, KeyError) as error:
        raise DataError(
            f"line {line.seq} of the journal is damaged ({error}); what it said may be in a backup."
        ) from None
    kept = line.answer if old else None
    return Event(line.seq, line.id, kind, line.time, content, row, line.given or 0, kept)
