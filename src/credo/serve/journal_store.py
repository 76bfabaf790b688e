"""The journal of a service, in SQLite: every row, answer and snapshot, in the order in which they came.

One thread writes, in transactions that are on the disk once they are committed (write-ahead log,
`synchronous=FULL`); others read what was committed.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from credo.core.errors import DataError
from credo.serve.problems import Problem
from credo.serve.requests import KINDS, Content, Predict, Reward

__all__ = ["Event", "ModelRow", "SnapshotRow", "Store"]

FORMAT = 1

_TABLES = """
CREATE TABLE models (
    number INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, spec BLOB NOT NULL,
    time REAL NOT NULL, parent INTEGER, since INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE events (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, model INTEGER NOT NULL, id TEXT NOT NULL, kind TEXT NOT NULL,
    time REAL NOT NULL, content BLOB NOT NULL, answer BLOB, UNIQUE (model, id, kind)
) STRICT;
CREATE INDEX events_of_models ON events (model, seq);
CREATE TABLE snapshots (
    model INTEGER NOT NULL, seq INTEGER NOT NULL, file TEXT NOT NULL, digest TEXT NOT NULL,
    PRIMARY KEY (model, seq)
) STRICT;
"""

_PART = "part:"
"""What the kind of a line begins with that holds a part of a reward, before the part's name."""

_encode = msgspec.json.Encoder().encode  # names stay in their order, in which a bandit gives them places
_decoders = {name: msgspec.json.Decoder(kind).decode for name, kind in KINDS.items()}


class Event(NamedTuple):
    """A line of the journal. That of a label has the `row` that was forecast under its id, and as `given`
    the number of that line, whose answer is scored.
    """

    seq: int
    id: str
    kind: str
    time: float
    content: Content
    row: Predict | None = None
    given: int = 0


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


class Store:
    """A connection to the journal. The one that writes makes it, and gives time, which never goes back."""

    def __init__(self, path: Path, *, write: bool = False) -> None:
        self.path = path
        try:
            self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=30.0)
            if write:
                self._prepare()
            self._do = self._db.execute
        except sqlite3.DatabaseError as error:
            raise DataError(f"cannot open the journal {path}: {error}.") from None
        self._latest = 0.0
        if write:
            (latest,) = self._do(
                "SELECT max(time) FROM events WHERE seq > (SELECT max(seq) FROM events) - 1000"
            )
            self._latest = latest[0] or 0.0

    def _prepare(self) -> None:
        db = self._db
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=FULL")
        (version,) = db.execute("PRAGMA user_version").fetchone()
        if version == 0:
            db.executescript(f"BEGIN;{_TABLES}PRAGMA user_version={FORMAT};COMMIT;")
        elif version != FORMAT:
            raise DataError(
                f"the journal {self.path} is of another version of credo: its format is {version}."
            )

    def now(self) -> float:
        """The time of the journal, in seconds since 1970."""
        self._latest = max(self._latest, time.time())
        return self._latest

    def begin(self) -> None:
        """Begin a transaction."""
        self._do("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """Bring a transaction to the disk."""
        self._do("COMMIT")

    def rollback(self) -> None:
        """Take a transaction back."""
        if self._db.in_transaction:
            self._do("ROLLBACK")

    def point(self) -> None:
        """Mark a place in a transaction, to which `back` goes back."""
        self._do("SAVEPOINT point")

    def back(self) -> None:
        """Take back what was written since `point`."""
        self._do("ROLLBACK TO point")

    def close(self) -> None:
        """Close the connection."""
        self._db.close()

    def add_model(self, name: str, spec: bytes, parent: int | None = None) -> ModelRow:
        """Take in a model."""
        at = self.now()
        values = (name, spec, at, parent)
        cursor = self._do("INSERT INTO models (name, spec, time, parent) VALUES (?, ?, ?, ?)", values)
        assert cursor.lastrowid is not None
        return ModelRow(cursor.lastrowid, *values)

    def remove_model(self, number: int) -> list[str]:
        """Forget a model and its lines; the files of its snapshots, which nobody needs any more."""
        files = [row[0] for row in self._do("SELECT file FROM snapshots WHERE model = ?", (number,))]
        for table, column in (("events", "model"), ("snapshots", "model"), ("models", "number")):
            self._do(f"DELETE FROM {table} WHERE {column} = ?", (number,))
        return files

    def models(self) -> list[ModelRow]:
        """All models, in the order in which they came."""
        return [
            ModelRow(*row)
            for row in self._do("SELECT number, name, spec, time, parent, since FROM models ORDER BY number")
        ]

    def spec(self, number: int) -> bytes | None:
        """What a model is; None where it is gone."""
        found = self._do("SELECT spec FROM models WHERE number = ?", (number,)).fetchone()
        spec: bytes | None = None if found is None else found[0]
        return spec

    def promote(self, number: int, challenger: int) -> list[str]:
        """Let a challenger take the place of its parent; the files of the parent's snapshots."""
        files = [one.file for one in self.snapshots(number)]
        self._do("DELETE FROM snapshots WHERE model = ?", (number,))
        self._do("UPDATE snapshots SET model = ? WHERE model = ?", (number, challenger))
        spec, since = self.spec(challenger), self.last()
        self._do("DELETE FROM models WHERE number = ?", (challenger,))
        self._do("UPDATE models SET spec = ?, since = ? WHERE number = ?", (spec, since, number))
        return files

    def append(self, model: int, id: str, kind: str, content: Content) -> Event | int:
        """Write a line; where there is one with this id, of equal content, its number. A `Problem` where its
        content is another one, or where what it is about is not there.
        """
        row, given = None, 0
        line = f"{_PART}{content.part}" if isinstance(content, Reward) and content.part is not None else kind
        if kind in ("label", "reward"):
            about = ("predict",) if kind == "label" else ("decide", "observe")
            found = next(filter(None, (self._find(model, id, one) for one in about)), None)
            if found is None:
                what = "prediction" if kind == "label" else "decision"
                raise Problem(
                    404, f"id must be that of a {what}; there is none with the id {id!r}.", field="id"
                )
            if kind == "label":
                given, row = found[0], _decoders["predict"](found[1])
        at = self.now()
        cursor = self._do(
            "INSERT OR IGNORE INTO events (model, id, kind, time, content) VALUES (?, ?, ?, ?, ?)",
            (model, id, line, at, _encode(content)),
        )
        if cursor.rowcount:
            assert cursor.lastrowid is not None
            return Event(cursor.lastrowid, id, kind, at, content, row, given)  # type: ignore[arg-type]
        found = self._find(model, id, line)
        assert found is not None
        if _decoders[kind](found[1]) != content:
            which = {"label": "label", "reward": "reward"}.get(kind, "row")
            raise Problem(
                409, f"id must be a new one for another {which}; {id!r} has come with another.", field="id"
            )
        return found[0]

    def _find(self, model: int, id: str, kind: str) -> tuple[int, bytes] | None:
        found: tuple[int, bytes] | None = self._do(
            "SELECT seq, content FROM events WHERE model = ? AND id = ? AND kind = ?", (model, id, kind)
        ).fetchone()
        return found

    def keep_answers(self, answers: Iterable[tuple[bytes, int]]) -> None:
        """Write the answers of lines, by their numbers; an answer that was given stays as it is."""
        self._db.executemany("UPDATE events SET answer = ? WHERE seq = ? AND answer IS NULL", answers)

    def answer(self, seq: int) -> bytes | None:
        """The answer of a line; None where it is not written yet."""
        found = self._do("SELECT answer FROM events WHERE seq = ?", (seq,)).fetchone()
        answer: bytes | None = None if found is None else found[0]
        return answer

    def last(self) -> int:
        """The number of the last line."""
        (found,) = self._do("SELECT coalesce(max(seq), 0) FROM events").fetchone()
        return int(found)

    def count(self, model: int, kind: str) -> int:
        """How many lines of a kind a model has."""
        found = self._do("SELECT count(*) FROM events WHERE model = ? AND kind = ?", (model, kind)).fetchone()
        return int(found[0])

    def events(self, model: int, after: int, upto: int, group: int = 256) -> Iterator[list[Event]]:
        """The lines of a model with after < seq <= upto, in groups."""
        while True:
            rows = self._do(
                "SELECT e.seq, e.id, e.kind, e.time, e.content, p.seq, p.content "
                "FROM events e LEFT JOIN events p ON e.kind = 'label' AND p.model = e.model "
                "AND p.id = e.id AND p.kind = 'predict' "
                "WHERE e.model = ? AND e.seq > ? AND e.seq <= ? ORDER BY e.seq LIMIT ?",
                (model, after, upto, group),
            ).fetchall()
            if not rows:
                return
            after = rows[-1][0]
            yield [_event(*row) for row in rows]

    def first_rows(self, model: int, count: int) -> list[Content]:
        """The first rows that were to be learned."""
        rows = self._do(
            "SELECT content FROM events WHERE model = ? AND kind = 'learn' ORDER BY seq LIMIT ?",
            (model, count),
        )
        return [_decoders["learn"](row[0]) for row in rows]

    def add_snapshot(self, model: int, snapshot: SnapshotRow, keep: int) -> list[str]:
        """Take in a snapshot; the files of those that are too old to be kept."""
        self._do("INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?)", (model, *snapshot))
        old = self.snapshots(model)[keep:]
        for one in old:
            self._do("DELETE FROM snapshots WHERE model = ? AND seq = ?", (model, one.seq))
        return [one.file for one in old]

    def snapshots(self, model: int) -> list[SnapshotRow]:
        """The snapshots of a model, the newest first."""
        found = self._do(
            "SELECT seq, file, digest FROM snapshots WHERE model = ? ORDER BY seq DESC", (model,)
        )
        return [SnapshotRow(*row) for row in found]


def _event(
    seq: int, id: str, kind: str, at: float, content: bytes, given: int | None, row: bytes | None
) -> Event:
    about = None if row is None else _decoders["predict"](row)
    kind = "reward" if kind.startswith(_PART) else kind
    return Event(seq, id, kind, at, _decoders[kind](content), about, given or 0)  # type: ignore[arg-type]
