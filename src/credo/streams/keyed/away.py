"""The keys that are away from memory: their words in a file of SQLite."""

from __future__ import annotations

import contextlib
import math
import sqlite3
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np

from credo.core.errors import DataError
from credo.core.places import Address, Place
from credo.streams.keyed.naming import KeyName, to_bytes

__all__ = ["Away", "Kept"]

_TABLE = """
create table if not exists beliefs (
    key blob, epoch integer, seen integer, time real, words blob, primary key (key, epoch)
) without rowid;
create index if not exists epochs on beliefs (epoch);
"""
_LATEST = "select seen, time, words from beliefs where key = ? order by epoch desc limit 1"
_OLDER = """
delete from beliefs where (key, epoch) in (
    select old.key, old.epoch from beliefs new join beliefs old on old.key = new.key and old.epoch < new.epoch
    where new.epoch = ?
)
"""


class Kept(NamedTuple):
    """A key that is away: the number of its latest row, its latest time, and its words."""

    seen: int
    time: float
    words: np.ndarray


Entry: TypeAlias = tuple[bytes, int, int | None, float | None, bytes | None]


class Away:
    """Beliefs in a file, each with the number of the checkpoint before which it was written (its epoch).

    Entries are never changed but added, so that an older checkpoint finds what it knew: those of later epochs
    are then taken out. An entry without words says that the key was dropped. Without a path, the file is a
    temporary one, and for an address too, to which it goes whole with each checkpoint.
    """

    def __init__(self, path: Place | None = None) -> None:
        self.path = path
        self._local = _Local(path if isinstance(path, Path) else None)
        if isinstance(path, Address) and path.exists():
            path.get(self._local.path)
        with _refusing(path):
            self._file = sqlite3.connect(self._local.path, check_same_thread=False, isolation_level=None)
            self._file.execute("pragma journal_mode = wal")
            self._file.execute("pragma synchronous = normal")
            self._file.executescript(_TABLE)

    def put(
        self, names: Sequence[KeyName], epoch: int, seen: np.ndarray, times: np.ndarray, words: np.ndarray
    ) -> None:
        """Keep the words (n, size) of some keys."""
        entries: list[Entry] = [
            (to_bytes(name), epoch, row, None if math.isnan(time) else time, own.tobytes())
            for name, row, time, own in zip(names, seen.tolist(), times.tolist(), words, strict=True)
        ]
        self._write(entries)

    def drop(self, names: Iterable[KeyName], epoch: int) -> None:
        """Know some keys no longer."""
        self._write([(to_bytes(name), epoch, None, None, None) for name in names])

    def get(self, names: Iterable[KeyName]) -> dict[KeyName, Kept]:
        """Those of the keys that are here."""
        found: dict[KeyName, Kept] = {}
        with _refusing(self.path):
            for name in names:
                entry = self._file.execute(_LATEST, (to_bytes(name),)).fetchone()
                if entry is not None and entry[2] is not None:
                    time = math.nan if entry[1] is None else entry[1]
                    found[name] = Kept(entry[0], time, np.frombuffer(entry[2], np.uint32))
        return found

    def rewind(self, epoch: int) -> None:
        """Forget what was written after a checkpoint."""
        with _refusing(self.path):
            self._file.execute("delete from beliefs where epoch > ?", (epoch,))

    def settle(self, path: Place) -> None:
        """Bring all to the disk, or to the address, into a file that is used from now on."""
        with _refusing(path):
            if path != self.path:
                path.unlink(missing_ok=True)
                other = Away(path)
                self._file.backup(other._file)
                self._file.close()
                self._file = other._file
                self.path = path
                self._local = other._local
            self._file.execute("pragma wal_checkpoint(truncate)")
        if isinstance(path, Address):
            path.put(self._local.path)

    def prune(self, epoch: int) -> None:
        """Take away what no checkpoint from `epoch` on needs."""
        with _refusing(self.path):
            self._file.execute(_OLDER, (epoch,))

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _write(self, entries: Sequence[Entry]) -> None:
        with _refusing(self.path):
            self._file.execute("begin")
            try:
                self._file.executemany("insert or replace into beliefs values (?, ?, ?, ?, ?)", entries)
            except BaseException:
                self._file.execute("rollback")
                raise
            self._file.execute("commit")


class _Local:
    """A file of this machine; without a path, one that goes with this record."""

    def __init__(self, path: Path | None) -> None:
        if path is None:
            folder = tempfile.TemporaryDirectory(prefix="credo-keyed-")
            weakref.finalize(self, folder.cleanup)
            path = Path(folder.name) / "away.sqlite"
        self.path = path


@contextlib.contextmanager
def _refusing(path: Place | None) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise DataError(f"cannot use {path or 'a temporary file'} for keys that are away: {error}.") from None
