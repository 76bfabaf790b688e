"""The journal of a service, in SQLite: every row, answer and snapshot, in the order in which they came.

One thread writes, in transactions that are on the disk once they are committed (write-ahead log,
`synchronous=FULL`); others read what was committed.
"""

from __future__ import annotations

import itertools
import sqlite3
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from credo.core.errors import DataError
from credo.serve.archive_files import ARCHIVE, ArchiveRow, Line, archive_folder, read_lines_of
from credo.serve.contents import Content, Reward
from credo.serve.journal_lines import (
    Event,
    ModelRow,
    SnapshotRow,
    decode_line,
    encode_line,
    event_of,
    kind_of,
)
from credo.serve.problems import Problem

__all__ = ["DAY", "FORMAT", "Store"]

# The version of the tables, and the seconds of a day.
FORMAT = 2
DAY = 86_400.0

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
CREATE TABLE archives (
    model INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, lines INTEGER NOT NULL,
    learned INTEGER NOT NULL, file TEXT NOT NULL, digest TEXT NOT NULL, PRIMARY KEY (model, first)
) STRICT;
"""

_LINES = (
    "SELECT e.seq, e.id, e.kind, e.time, e.content, e.answer, p.seq, p.content "
    "FROM events e LEFT JOIN events p ON e.kind = 'label' AND p.model = e.model AND p.id = e.id "
    "AND p.kind = 'predict' WHERE e.model = ?"
)
"""The lines of a model, those of labels with the line of their row."""


class Store:
    """A connection to the journal. The one that writes makes it, and gives time, which never goes back; ids
    are refused once they are older than the days for which they are remembered.
    """

    def __init__(self, path: Path, *, write: bool = False, remember: float | None = None) -> None:
        self.path = path
        self.remember = remember
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

    def begin(self, answers: Mapping[int, bytes]) -> None:
        """Begin a transaction, and write the answers of lines, by their numbers; one that was given stays as
        it is.
        """
        self._do("BEGIN IMMEDIATE")
        if answers:
            query = "UPDATE events SET answer = ? WHERE seq = ? AND answer IS NULL"
            self._db.executemany(query, zip(answers.values(), answers, strict=True))

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
        """Forget a model and its lines; the files that nobody needs any more, by their places from the folder
        of snapshots.
        """
        files = [row[0] for row in self._do("SELECT file FROM snapshots WHERE model = ?", (number,))]
        files += [f"../{ARCHIVE}/{row.file}" for row in self.archives(number)]
        columns = {"events": "model", "snapshots": "model", "archives": "model", "models": "number"}
        for table, column in columns.items():
            self._do(f"DELETE FROM {table} WHERE {column} = ?", (number,))
        return files

    def models(self) -> list[ModelRow]:
        """All models, in the order in which they came."""
        return [
            ModelRow(*row)
            for row in self._do("SELECT number, name, spec, time, parent, since FROM models ORDER BY number")
        ]

    def spec(self, number: int) -> bytes | None:
        """The specification of a model; None if it is gone."""
        found = self._do("SELECT spec FROM models WHERE number = ?", (number,)).fetchone()
        spec: bytes | None = None if found is None else found[0]
        return spec

    def promote(self, number: int, challenger: int) -> list[str]:
        """Put a challenger in the place of its parent, and return the files of the parent's snapshots."""
        files = [one.file for one in self.snapshots(number)]
        self._do("DELETE FROM snapshots WHERE model = ?", (number,))
        self._do("UPDATE snapshots SET model = ? WHERE model = ?", (number, challenger))
        spec = self.spec(challenger)
        since = self.last()
        self._do("DELETE FROM models WHERE number = ?", (challenger,))
        self._do("UPDATE models SET spec = ?, since = ? WHERE number = ?", (spec, since, number))
        return files

    def append(self, model: int, id: str, kind: str, content: Content) -> Event | int:
        """Write a line; if there is one with this id, of equal content, its number. A `Problem` where its
        content is another one, or where what it is about is not there.
        """
        row = None
        given = 0
        line = kind_of(content) if isinstance(content, Reward) else kind
        if kind in ("label", "reward"):
            about = ("predict",) if kind == "label" else ("decide", "observe")
            found = next(filter(None, (self._find(model, id, one) for one in about)), None)
            if found is None:
                what = "prediction" if kind == "label" else "decision"
                raise Problem(
                    404, f"id must be that of a {what}; there is none with the id {id!r}.", field="id"
                )
            if kind == "label":
                given = found[0]
                row = decode_line("predict", found[1])
            self._require_young(id, found[2])
        at = self.now()
        cursor = self._do(
            "INSERT OR IGNORE INTO events (model, id, kind, time, content) VALUES (?, ?, ?, ?, ?)",
            (model, id, line, at, encode_line(content)),
        )
        if cursor.rowcount:
            assert cursor.lastrowid is not None
            return Event(cursor.lastrowid, id, kind, at, content, row, given)
        found = self._find(model, id, line)
        assert found is not None
        self._require_young(id, found[2])
        if decode_line(kind, found[1]) != content:
            which = {"label": "label", "reward": "reward"}.get(kind, "row")
            raise Problem(
                409, f"id must be a new one for another {which}; {id!r} has come with another.", field="id"
            )
        return found[0]

    def has(self, model: int, id: str, kind: str) -> bool:
        """Whether there is a line of a kind with an id."""
        return self._find(model, id, kind) is not None

    def latest(self, model: int) -> float | None:
        """The latest time of the rows to learn in the journal."""
        query = (
            "SELECT max(json_extract(CAST(p.content AS TEXT), '$.time')) FROM events e "
            "JOIN events p ON p.model = e.model AND p.id = e.id "
            "AND p.kind = CASE e.kind WHEN 'label' THEN 'predict' ELSE 'learn' END "
            "WHERE e.model = ? AND e.kind IN ('learn', 'label')"
        )
        found: float | None = self._do(query, (model,)).fetchone()[0]
        return found

    def _require_young(self, id: str, came: float) -> None:
        age = self.now() - came
        if self.remember is not None and age > DAY * self.remember:
            raise Problem(
                410,
                f"id must be at most {self.remember:g} days old; {id!r} came {age / DAY:.3g} days ago.",
                field="id",
            )

    def _find(self, model: int, id: str, kind: str) -> tuple[int, bytes, float] | None:
        found: tuple[int, bytes, float] | None = self._do(
            "SELECT seq, content, time FROM events WHERE model = ? AND id = ? AND kind = ?", (model, id, kind)
        ).fetchone()
        return found

    def answer(self, seq: int) -> bytes | None:
        """The answer of a line; None if it is not written yet."""
        found = self._do("SELECT answer FROM events WHERE seq = ?", (seq,)).fetchone()
        answer: bytes | None = None if found is None else found[0]
        return answer

    def last(self) -> int:
        """The number of the last line."""
        (found,) = self._do("SELECT coalesce(max(seq), 0) FROM events").fetchone()
        return int(found)

    def count(self, model: int) -> int:
        """The number of rows that a model has to learn."""
        query = "SELECT count(*) FROM events WHERE model = ? AND kind = 'learn'"
        return int(self._do(query, (model,)).fetchone()[0]) + sum(one.learned for one in self.archives(model))

    def events(self, model: int, after: int, upto: int, group: int = 256) -> Iterator[list[Event]]:
        """The lines of a model with after < seq <= upto, in groups; a `DataError` where old ones are gone."""
        moved = max((row.last for row in self.archives(model)), default=0)
        for lines in self.lines(model, after, upto, group):
            yield [event_of(one, old=one.seq <= moved) for one in lines]

    def lines(self, model: int, after: int, upto: int, group: int = 256) -> Iterator[list[Line]]:
        """The same as the journal has them, with their answers."""
        for row in self.archives(model):
            if row.last > after and row.first <= upto:
                lines = [one for one in read_lines_of(self._folder, row) if after < one.seq <= upto]
                for start in range(0, len(lines), group):
                    yield lines[start : start + group]
                after = row.last
        while True:
            query = f"{_LINES} AND e.seq > ? AND e.seq <= ? ORDER BY e.seq LIMIT ?"
            lines = list(map(Line._make, self._do(query, (model, after, upto, group))))
            if not lines:
                return
            after = lines[-1].seq
            yield lines

    def first_rows(self, model: int, count: int) -> list[Content]:
        """The first rows that were to be learned."""
        rows = (event for events in self.events(model, 0, self.last()) for event in events)
        learned = (event.content for event in rows if event.kind == "learn")
        return list(itertools.islice(learned, count))

    def archives(self, model: int) -> list[ArchiveRow]:
        """The files of the lines of a model that left the journal, in order."""
        names = ", ".join(ArchiveRow._fields)
        found = self._do(f"SELECT {names} FROM archives WHERE model = ? ORDER BY first", (model,))
        return [ArchiveRow(*row) for row in found]

    def movable(self, model: int, before: float, most: int) -> list[Line]:
        """The first lines of a model, from before a time, that no restart needs: its snapshots, and those of
        its challenger, have them. A row whose label is later stays, and all after it.
        """
        numbers = [row.number for row in self.models() if model in (row.number, row.parent)]
        oldest = [self.snapshots(number)[-1:] for number in numbers]
        if not numbers or not all(oldest):  # a model without a snapshot, or one that is gone
            return []
        upto = min(one.seq for (one,) in oldest)
        (held,) = self._do(
            "SELECT min(e.seq) FROM events e LEFT JOIN events l ON e.kind = 'predict' AND l.model = e.model "
            "AND l.id = e.id AND l.kind = 'label' WHERE e.model = ? AND (e.answer IS NULL OR l.seq > ?)",
            (model, upto),
        ).fetchone()
        end = upto + 1 if held is None else min(held, upto + 1)
        query = f"{_LINES} AND e.seq < ? AND e.time < ? ORDER BY e.seq LIMIT ?"
        return list(map(Line._make, self._do(query, (model, end, before, most))))

    def archive(self, model: int, row: ArchiveRow) -> bool:
        """Remove the lines that are in a file from the journal, and return whether they were still there."""
        lines = "FROM events WHERE model = ? AND seq BETWEEN ? AND ?"
        between = (model, row.first, row.last)
        if self._do(f"SELECT count(*) {lines}", between).fetchone() != (row.lines,):
            return False
        self._do("INSERT INTO archives VALUES (?, ?, ?, ?, ?, ?, ?)", (model, *row))
        self._do(f"DELETE {lines}", between)
        return True

    @property
    def _folder(self) -> Path:
        return archive_folder(self.path)

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
