"""The thread that writes the journal: all that waits is one transaction, and then goes to the learner."""

from __future__ import annotations

import sqlite3
import time
import traceback
from collections import deque
from collections.abc import Callable
from typing import Protocol

from credo.core.errors import CredoError
from credo.serve.inbox import Inbox
from credo.serve.journal_store import Store
from credo.serve.problems import FAILED, Problem
from credo.serve.threads import Worker

__all__ = ["GROUP", "Task", "Writer"]

# The most lines of a transaction if they came one by one, and the most that may wait.
GROUP = 256
WAITING = 4096

IDLE = 0.5
"""After how many seconds, at the latest, the answers that wait are written down without requests."""


PAUSE = 0.02
"""For how many seconds at most a transaction waits for the learner to take what the last one wrote."""


class Task(Protocol):
    """Something to write. `write` runs in a transaction, and changes nothing if it raises a `Problem`;
    then either `written` is called, once that is on the disk, or `refused`.
    """

    size: int

    def write(self, store: Store) -> None: ...

    def written(self) -> None: ...

    def refused(self, problem: CredoError) -> None: ...


class Writer(Worker):
    """Writes tasks in the order in which they came, those that wait together in one transaction.

    Arguments:
        store: the journal.
        forget: called with the numbers of lines whose answers are on the disk.
        flush: called after each transaction whose tasks went on.
        pause: called before a transaction with the most seconds to wait: the next one may as well gather
            lines while those of the last one wait for the learner.
    """

    def __init__(
        self,
        store: Store,
        forget: Callable[[list[int]], None],
        flush: Callable[[], None],
        pause: Callable[[float], None],
    ) -> None:
        super().__init__("credo-writer")
        self.store = store
        self._forget = forget
        self._flush = flush
        self._pause = pause
        self._inbox: Inbox[Task] = Inbox(lambda task: task.size)
        self.end = self._inbox.end
        self._answers: deque[tuple[bytes, int]] = deque()
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
        """Write in the thread of the caller where this one waits, which saves waking it; whether it did."""
        if self.waiting or not self._inbox.borrow():
            return False
        try:
            self._transact([task])
        finally:
            self._inbox.give_back()
        return True

    def keep(self, answers: list[tuple[bytes, int]]) -> None:
        """Write answers, by the numbers of their lines, with the next transaction."""
        self._answers.extend(answers)

    def work(self) -> None:
        """Write until the end; answers without room on the disk are given again after the next start."""
        while (tasks := self._inbox.take(IDLE, GROUP)) is not None:
            if tasks or self._answers:
                self._transact(tasks)
                with self._inbox.turn:
                    self.waiting -= sum(task.size for task in tasks)
                self._pause(PAUSE)
        if self._answers:
            self._transact([])

    def _transact(self, tasks: list[Task]) -> None:
        """Write tasks in one transaction. One that fails in a way that nobody thought of is refused alone."""
        while (broken := self._attempt(tasks)) is not None:
            tasks = [task for task in tasks if task is not broken]

    def _attempt(self, tasks: list[Task]) -> Task | None:
        """Write tasks; the one that failed, after which nothing was written, or None."""
        answers = [self._answers.popleft() for _ in range(len(self._answers))]
        refused: dict[int, CredoError] = {}
        try:
            self.store.begin()
            if answers:
                self.store.keep_answers(answers)
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
                    self._answers.extendleft(reversed(answers))
                    task.refused(Problem(500, FAILED))
                    return task
            self.store.commit()
        except sqlite3.Error as error:
            self.store.rollback()
            self._answers.extendleft(reversed(answers))
            self.failure = str(error)
            full = "full" in str(error) or "I/O" in str(error)
            problem = Problem(
                507 if full else 503, f"the journal cannot be written: {error}; nothing was taken."
            )
            for task in tasks:
                task.refused(problem)
            if not tasks and not self._inbox.ending:
                time.sleep(IDLE)  # only answers waited: try again later
            return None
        self.failure = ""
        self.transactions += 1
        self._forget([seq for _, seq in answers])
        for place, task in enumerate(tasks):
            if place in refused:
                task.refused(refused[place])
            else:
                self.lines += task.size
                task.written()
        self._flush()
        return None
