"""Old lines leave the journal for files, once two snapshots have them."""

from __future__ import annotations

import threading
from pathlib import Path

from credo.core.errors import CredoError
from credo.serve.archive_files import ArchiveRow, archive_folder, write_lines
from credo.serve.journal_store import Store
from credo.serve.writing import Writer

__all__ = ["LEAST", "MOST", "move_old_lines"]

# The least and the most lines of a file.
LEAST = 1_000
MOST = 10_000


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
