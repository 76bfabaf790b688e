"""Models are built beside the service: a child process compiles, and a thread finds what it compiled.

To trace and compile a bank takes seconds in which the interpreter answers nobody. So a process of its own
does it first, and leaves the programs where `credo.core.kept_programs` finds them without a trace. Where no
programs are kept (`CREDO_PROGRAMS=0`), the thread compiles by itself.
"""

from __future__ import annotations

import os
import queue
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import jax
import msgspec

from credo.core import program_folder
from credo.core.errors import CredoError, DataError
from credo.serve.contents import Content
from credo.serve.hosting import Hosted, Model, begin, restore
from credo.serve.journal_store import Store
from credo.serve.learning import Built
from credo.serve.threads import Worker

__all__ = ["JOURNAL", "SNAPSHOTS", "Builder", "set_up_jax"]

# The journal in the folder of a service, and the folder of its snapshots.
JOURNAL = "journal.db"
SNAPSHOTS = "snapshots"


class Builder(Worker):
    """Builds models one after the other.

    Arguments:
        folder: the folder of the service.
        done: called with what was built.
    """

    def __init__(self, folder: Path, done: Callable[[Built], None]) -> None:
        super().__init__("credo-builder")
        self.folder = folder
        self._done = done
        # a build takes seconds: requests only put a model here, and `done` hands it to the learner
        self._queue: queue.SimpleQueue[tuple[Hosted, bool] | None] = queue.SimpleQueue()
        self._known: set[bytes] = set()

    def build(self, hosted: Hosted, *, again: bool = False) -> None:
        """Ask for a model to be built; `again` if it may have snapshots."""
        self._queue.put((hosted, again))

    def end(self) -> None:
        """End after the model at hand."""
        self._queue.put(None)

    def work(self) -> None:
        """Build until the end."""
        store = Store(self.folder / JOURNAL)
        while (item := self._queue.get()) is not None:
            hosted, again = item
            try:
                built = self._one(hosted, store, again)
            except CredoError as error:
                built = Built(hosted, error)
            except Exception as error:  # a model that cannot be built must not end the service
                built = Built(hosted, DataError(f"it cannot be built: {type(error).__name__}: {error}."))
            self._done(built)
        store.close()

    def _one(self, hosted: Hosted, store: Store, again: bool) -> Built:
        model, applied = (restore(hosted, store, self.folder / SNAPSHOTS) if again else None) or (None, 0)
        if model is None:
            first = store.first_rows(hosted.lines, hosted.needs)
            if len(first) < hosted.needs:
                return Built(hosted, None)
            self._compile(hosted, first)
            model = begin(hosted.spec, first, self.folder / SNAPSHOTS)
        model.prepare()
        return Built(hosted, model, applied)

    def _compile(self, hosted: Hosted, first: Sequence[Content]) -> None:
        """Compile in a child process, unless one has compiled a model of this structure before."""
        if program_folder.folder() is None:
            return
        names = sorted({name for row in first for name in getattr(row, "x", ())})
        structure = msgspec.json.encode([hosted.spec, len(names)])
        if structure in self._known:
            return
        self._known.add(structure)
        command = [sys.executable, "-m", "credo.serve.building", str(self.folder), str(hosted.number)]
        # where the child fails, the thread meets the same failure, and says it
        subprocess.run(command, check=False, stdin=subprocess.DEVNULL, capture_output=True)


def set_up_jax() -> None:
    """Have small programs run in the thread that calls them, since another one would have to be waited for.

    Kept programs depend on this option, so that the service and its child processes must have the same.
    """
    jax.config.update("jax_cpu_enable_async_dispatch", False)


def compiled(folder: Path, number: int) -> Model:
    """Begin and prepare a model in the child process; its programs stay."""
    set_up_jax()
    store = Store(folder / JOURNAL)
    (row,) = [row for row in store.models() if row.number == number]
    hosted = Hosted(row)
    first = store.first_rows(hosted.lines, hosted.needs)
    model = begin(hosted.spec, first, folder / SNAPSHOTS)
    model.prepare()
    store.close()
    return model


if __name__ == "__main__":
    os.nice(5)
    compiled(Path(sys.argv[1]), int(sys.argv[2]))
