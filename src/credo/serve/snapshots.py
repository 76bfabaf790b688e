"""The thread that writes snapshots: frozen models, brought to the disk, then noted in the journal."""

from __future__ import annotations

import contextlib
import hashlib
import queue
import threading
from collections.abc import Callable
from pathlib import Path

from credo.core.errors import CredoError
from credo.serve.hosting import Hosted
from credo.serve.journal_store import SnapshotRow, Store
from credo.serve.writing import Writer

__all__ = ["KEPT", "Snapshots"]

KEPT = 2
"""How many snapshots of a model are kept."""


class _Note:
    """A snapshot that is to be noted in the journal, after the answers of its lines."""

    size = 1

    def __init__(self, hosted: Hosted, row: SnapshotRow, folder: Path, done: Callable[[], None]) -> None:
        self.hosted, self.row, self.folder, self.done = hosted, row, folder, done
        self.old: list[str] = []

    def write(self, store: Store) -> None:
        if self.hosted.stage == "removed":
            self.old = [self.row.file]
        else:
            self.old = store.add_snapshot(self.hosted.number, self.row, KEPT)

    def written(self) -> None:
        for file in self.old:
            (self.folder / file).unlink(missing_ok=True)
        self.done()

    def refused(self, problem: CredoError) -> None:
        (self.folder / self.row.file).unlink(missing_ok=True)
        self.done()


class Snapshots(threading.Thread):
    """Writes models into files.

    Arguments:
        folder: the folder of the files.
        writer: what writes the journal.
    """

    def __init__(self, folder: Path, writer: Writer) -> None:
        super().__init__(name="credo-snapshots", daemon=True)
        self.folder, self._writer = folder, writer
        self._queue: queue.SimpleQueue[tuple[Hosted, int, Path, Callable[[], None]] | None] = (
            queue.SimpleQueue()
        )
        self.failure = ""

    def take(self, hosted: Hosted) -> None:
        """Freeze a model, in the learner's thread, and let the file be written."""
        assert hosted.model is not None
        path = self.folder / f"{hosted.number}-{hosted.applied}.credo"
        hosted.saved_seq, hosted.unsaved = hosted.applied, 0
        try:
            self._queue.put((hosted, hosted.applied, path, hosted.model.freeze(path)))
        except CredoError as error:  # the disk is full: the journal has all, and the next one may fit
            self.failure = str(error)

    def end(self) -> None:
        """Write what waits, and end."""
        self._queue.put(None)

    def run(self) -> None:
        """Write until the end."""
        while (item := self._queue.get()) is not None:
            hosted, seq, path, write = item
            try:
                write()
                digest = hashlib.sha256(path.read_bytes()).hexdigest()
            except (CredoError, OSError) as error:
                self.failure = str(error)
                with contextlib.suppress(OSError):
                    path.unlink(missing_ok=True)
                continue
            self.failure = ""
            done = threading.Event()
            self._writer.submit(
                _Note(hosted, SnapshotRow(seq, path.name, digest), self.folder, done.set), always=True
            )
            done.wait()
