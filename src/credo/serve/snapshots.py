"""The thread that writes snapshots: frozen models, brought to the disk, then noted in the journal."""

from __future__ import annotations

import contextlib
import hashlib
import queue
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from credo.core.errors import CredoError
from credo.serve.hosting import Hosted
from credo.serve.journal_lines import SnapshotRow
from credo.serve.journal_store import DAY, Store
from credo.serve.moving import move_old_lines
from credo.serve.threads import Worker
from credo.serve.writing import Writer

__all__ = ["KEPT", "Snapshots"]

KEPT = 2
"""How many snapshots of a model are kept."""


class _Frozen(NamedTuple):
    """A model, by its number and its specification, as it is after a line, and what writes it to a file."""

    number: int
    spec: bytes
    seq: int
    path: Path
    write: Callable[[], None]


class _Note:
    """A snapshot that is to be noted in the journal, after the answers of its lines."""

    size = 1

    def __init__(self, frozen: _Frozen, digest: str) -> None:
        self.frozen, self.digest, self.done = frozen, digest, threading.Event()
        self.old: list[str] = []

    def write(self, store: Store) -> None:
        number, spec, seq, path, _ = self.frozen
        if store.spec(number) != spec:  # it was removed, or another model has taken its place
            self.old = [path.name]
        else:
            self.old = store.add_snapshot(number, SnapshotRow(seq, path.name, self.digest), KEPT)

    def written(self) -> None:
        for file in self.old:
            self.frozen.path.with_name(file).unlink(missing_ok=True)
        self.done.set()

    def refused(self, problem: CredoError) -> None:
        self.frozen.path.unlink(missing_ok=True)
        self.done.set()


class Snapshots(Worker):
    """Writes models into files.

    Arguments:
        folder: the folder of the files.
        writer: what writes the journal.
        keep: how many days of lines stay in it; None for all.
    """

    def __init__(self, folder: Path, writer: Writer, keep: float | None = None) -> None:
        super().__init__("credo-snapshots")
        self.folder, self._writer, self._keep = folder, writer, keep
        self._queue: queue.SimpleQueue[_Frozen | None] = queue.SimpleQueue()
        self.failure = ""

    def take(self, hosted: Hosted) -> None:
        """Freeze a model, in the learner's thread, and let the file be written."""
        assert hosted.model is not None
        path = self.folder / f"{hosted.number}-{hosted.applied}.credo"
        hosted.saved_seq, hosted.unsaved = hosted.applied, 0
        try:
            write = hosted.model.freeze(path)
            self._queue.put(_Frozen(hosted.number, hosted.spec_line, hosted.applied, path, write))
        except CredoError as error:  # the disk is full: the journal has all, and the next one may fit
            self.failure = str(error)

    def end(self) -> None:
        """Write what waits, and end."""
        self._queue.put(None)

    def work(self) -> None:
        """Write until the end."""
        while (frozen := self._queue.get()) is not None:
            try:
                frozen.write()
                digest = hashlib.sha256(frozen.path.read_bytes()).hexdigest()
            except (CredoError, OSError) as error:
                self.failure = str(error)
                with contextlib.suppress(OSError):
                    frozen.path.unlink(missing_ok=True)
                continue
            self.failure = ""
            note = _Note(frozen, digest)
            self._writer.submit(note, always=True)
            note.done.wait()
            if self._keep is not None:
                self._move(frozen.number, self._keep)

    def _move(self, number: int, days: float) -> None:
        """Let old lines of a model leave the journal."""
        store = Store(self._writer.store.path)
        try:
            lines = next((row.parent or number for row in store.models() if row.number == number), number)
            move_old_lines(store, self._writer, lines, time.time() - DAY * days)
        except CredoError as error:
            self.failure = str(error)
        finally:
            store.close()
