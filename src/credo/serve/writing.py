"""The threads that write: one the journal, another models into files, and old lines.

All that waits for the journal is one transaction, and then goes to the learner.
"""

from __future__ import annotations

import contextlib
import hashlib
import queue
import sqlite3
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol

from credo.core.errors import CredoError
from credo.serve.archive_files import ArchiveRow, archive_folder, write_lines
from credo.serve.hosting import Hosted
from credo.serve.journal_lines import SnapshotRow
from credo.serve.journal_store import DAY, Store
from credo.serve.learning import Item, Learner, Lines
from credo.serve.problems import FAILED, Problem
from credo.serve.threads import Inbox, Worker

__all__ = ["GROUP", "LEAST", "MOST", "Snapshots", "Task", "Writer", "move_old_lines"]

# The most lines of a transaction if they came one by one, and the most that may wait.
GROUP = 256
WAITING = 4096

IDLE = 0.5
"""After how many seconds, at the latest, the answers that wait are written down without requests."""

PAUSE = 0.02
"""For how many seconds at most a transaction waits for the learner to take what the last one wrote."""


KEPT = 2
"""The number of snapshots of a model that are kept."""

# The least and the most lines of a file of old ones.
LEAST = 1_000
MOST = 10_000


class Task(Protocol):
    """Something to write. `write` runs in a transaction, and changes nothing if it raises a `Problem`;
    then either `written` is called, once that is on the disk, which returns what the learner is to do, or
    `refused`.
    """

    size: int

    def write(self, store: Store) -> None: ...

    def written(self) -> Item | None: ...

    def refused(self, problem: CredoError) -> None: ...


class Writer(Worker):
    """Writes tasks in the order in which they came, those that wait together in one transaction.

    Arguments:
        store: the journal.
        learner: what learns from lines that are written, and whose answers are written down, too. A
            transaction waits for it a while: the next one may as well gather lines while those of the last
            one wait.
    """

    def __init__(self, store: Store, learner: Learner) -> None:
        super().__init__("credo-writer")
        self.store = store
        self.learner = learner
        self._inbox: Inbox[Task] = Inbox(lambda task: task.size)
        self.end = self._inbox.end
        self.waiting = 0
        self.transactions = self.lines = 0
        self.failure = ""

    def submit(self, task: Task, *, always: bool = False) -> None:
        """Queue a task for the next transaction; a `Problem` if too many wait."""
        with self._inbox.turn:
            # a batch may be longer than what may wait: its sender could never send it otherwise
            if not always and self.waiting >= WAITING:
                raise Problem(429, f"{self.waiting:,} lines wait, of at most {WAITING:,}; try again later.")
            if self._inbox.ending and not always:
                raise Problem(503, "the service is stopping; try again later.")
            self.waiting += task.size
            self._inbox.put([task])

    def at_once(self, task: Task) -> bool:
        """Write in the thread of the caller where this one waits, and learn there where the learner waits,
        which saves waking them; whether it did. A failure there is one of this thread.
        """
        if self.waiting or not self._inbox.borrow():
            return False
        try:
            for item in self._transact([task]):
                if not (isinstance(item, Lines) and self.learner.at_once(item)):
                    self.learner.submit([item])
        except Exception as error:
            self.failed(self.name, error)
            raise
        self._inbox.busy.release()
        return True

    def work(self) -> None:
        """Write until the end; answers without room on the disk are given again after the next start."""
        self._inbox.run(self._work, IDLE, GROUP)
        if self.learner.answers:
            self._transact([])

    def _work(self, tasks: list[Task]) -> None:
        if tasks or self.learner.answers:
            items = self._transact(tasks)
            if items:
                self.learner.submit(items)
            with self._inbox.turn:
                for task in tasks:
                    self.waiting -= task.size
            self.learner.wait_until_taken(PAUSE)

    def _transact(self, tasks: list[Task]) -> list[Item]:
        """Write tasks in one transaction; what the learner is to do then. A task that fails in a way that
        nobody thought of is refused alone.
        """
        answers = self.learner.answers.copy()
        refused: dict[int, CredoError] = {}
        try:
            self.store.begin(answers)
            for place, task in enumerate(tasks):
                try:
                    task.write(self.store)
                except CredoError as refusal:
                    refused[place] = refusal
                except sqlite3.Error:
                    raise
                except Exception:  # one client's request, which must not end the writing for all
                    traceback.print_exc()
                    self.store.rollback()
                    task.refused(Problem(500, FAILED))
                    return self._transact([other for other in tasks if other is not task])
            self.store.commit()
        except sqlite3.Error as error:
            self.store.rollback()
            self._refuse(tasks, error)
            return []
        self.failure = ""
        self.transactions += 1
        for seq in answers:
            del self.learner.answers[seq]
        items: list[Item] = []
        for place, task in enumerate(tasks):
            if place in refused:
                task.refused(refused[place])
                continue
            self.lines += task.size
            item = task.written()
            if item is not None:
                items.append(item)
        return items

    def _refuse(self, tasks: list[Task], error: sqlite3.Error) -> None:
        """Refuse tasks that could not be written."""
        self.failure = str(error)
        full = "full" in str(error) or "I/O" in str(error)
        problem = Problem(507 if full else 503, f"the journal cannot be written: {error}; nothing was taken.")
        for task in tasks:
            task.refused(problem)
        if not tasks and not self._inbox.ending:
            time.sleep(IDLE)  # only answers waited: try again later


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
        self.frozen = frozen
        self.digest = digest
        # the thread of the snapshots waits for it: the note is written by the writer, after its lines
        self.done = threading.Event()
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
        self.folder = folder
        self._writer = writer
        self._keep = keep
        # the learner freezes, which is quick, and this thread writes; nothing else passes between them
        self._queue: queue.SimpleQueue[_Frozen | None] = queue.SimpleQueue()
        self.failure = ""

    def take(self, hosted: Hosted) -> None:
        """Freeze a model, in the learner's thread, and let the file be written."""
        assert hosted.model is not None
        path = self.folder / f"{hosted.number}-{hosted.applied}.credo"
        hosted.saved_seq = hosted.applied
        hosted.unsaved = 0
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
                # the file is whole before the journal knows it: a crash between leaves one that nobody reads
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
        """Move old lines of a model out of the journal."""
        store = Store(self._writer.store.path)
        try:
            lines = next((row.parent or number for row in store.models() if row.number == number), number)
            move_old_lines(store, self._writer, lines, time.time() - DAY * days)
        except CredoError as error:
            self.failure = str(error)
        finally:
            store.close()


class _Move:
    """Lines that are in a file now, and no longer in the journal."""

    size = 1

    def __init__(self, model: int, row: ArchiveRow, folder: Path) -> None:
        self.model = model
        self.row = row
        self.path = folder / row.file
        # set by the writer once the lines are gone from the journal, or must stay
        self.done = threading.Event()
        self.moved = False

    def write(self, store: Store) -> None:
        self.moved = store.archive(self.model, self.row)

    def written(self) -> None:
        if not self.moved:
            self.path.unlink(missing_ok=True)
        self.done.set()

    def refused(self, problem: CredoError) -> None:
        self.moved = False
        self.path.unlink(missing_ok=True)
        self.done.set()


def move_old_lines(store: Store, writer: Writer, model: int, before: float) -> int:
    """Move the lines of a model from before a time, as far as all its snapshots have them; how many."""
    moved = 0
    folder = archive_folder(store.path)
    while len(lines := store.movable(model, before, MOST)) >= LEAST:
        # the file first, then the journal: a crash between leaves the lines in both, and never in neither
        move = _Move(model, write_lines(folder, model, lines), folder)
        writer.submit(move, always=True)
        move.done.wait()
        if not move.moved:
            break
        moved += len(lines)
    return moved
