"""Models grow beside the service: a child process compiles the programs of a wider one, while its lines wait.

To trace and compile them takes seconds, in which the thread that learns would answer nobody, whatever model
they ask. So a child process takes the state before, learns the lines that wait, and leaves the programs where
`credo.core.kept_programs` finds them; then the learner takes the lines. Forecasts are answered meanwhile, by
the state before. Where no programs are kept (`CREDO_PROGRAMS=0`), the learner compiles by itself.
"""

from __future__ import annotations

import contextlib
import queue
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from credo.core import program_folder
from credo.core.errors import CredoError
from credo.serve.building import JOURNAL, set_up_jax
from credo.serve.hosting import Hosted
from credo.serve.journal_store import Store
from credo.serve.learning import Growth
from credo.serve.table_model import TableModel
from credo.serve.threads import Worker

__all__ = ["Grower", "able"]


def able() -> bool:
    """Whether programs that another process compiles are found here."""
    return program_folder.folder() is not None


class Grower(Worker):
    """Has programs compiled, for one model after the other.

    Arguments:
        folder: the folder of the service.
        done: called with the last line of a growth and its models, also where it could not be compiled: the
            learner then compiles, and meets the same failure.
    """

    def __init__(self, folder: Path, done: Callable[[Hosted, int], None]) -> None:
        super().__init__("credo-grower")
        self.folder = folder
        self._done = done
        # the learner only puts what grows here, and `done` gives its lines back to the learner
        self._queue: queue.SimpleQueue[tuple[Hosted, list[Growth]] | None] = queue.SimpleQueue()
        self._ending = False
        self._child: subprocess.Popen[bytes] | None = None

    def grow(self, hosted: Hosted, growths: list[Growth]) -> None:
        """Ask for the programs of a model and of its challenger, of those that grow."""
        self._queue.put((hosted, growths))

    def end(self) -> None:
        """End at once: whoever asked must no longer wait."""
        self._ending = True
        self._queue.put(None)
        child = self._child
        if child is not None:
            child.kill()

    def work(self) -> None:
        """Compile until the end."""
        while (item := self._queue.get()) is not None:
            hosted, growths = item
            for growth in growths:
                with contextlib.suppress(CredoError, OSError):  # the disk is full, or no process may start
                    self._compile(growth)
            self._done(hosted, max(growth.upto for growth in growths))

    def _compile(self, growth: Growth) -> None:
        with tempfile.TemporaryDirectory(prefix="credo-grower-") as place:
            path = Path(place) / "model.credo"
            growth.write(path)
            words = [str(self.folder), str(growth.hosted.number), str(path)]
            command = [sys.executable, "-m", __name__, *words, str(growth.applied), str(growth.upto)]
            self._child = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            if self._ending:  # between the start of the child and its name
                self._child.kill()
            self._child.wait()
            self._child = None


def grown(folder: Path, number: int, path: Path, applied: int, upto: int) -> TableModel:
    """Learn lines of the journal after those that a file has, in the child process; the programs stay."""
    set_up_jax()
    store = Store(folder / JOURNAL)
    (row,) = [row for row in store.models() if row.number == number]
    hosted = Hosted(row)
    model = TableModel.load(path, hosted.spec)  # type: ignore[arg-type]
    for events in store.events(hosted.lines, applied, upto):
        model.apply(events, lambda seq: {})
    model.prepare()
    store.close()
    return model


if __name__ == "__main__":
    grown(Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]))
