"""The output folder of a run: chosen, locked, and filled when the run ends.

While a run goes on, its files gather in the folder `unfinished` inside its output folder, and the belief is
saved there every now and then. At the end they move up to their places. So an earlier run's files stay as
they are until the new one is complete, and what a killed run has learned lies in `unfinished`.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from credo.core import locking
from credo.core.errors import DataError
from credo.core.files import move

__all__ = ["BELIEF", "UNFINISHED", "Folder", "require_writable_file", "saved_in", "unreported", "writing"]

# The saved belief, and the folder of a run that is not complete.
BELIEF = "belief.credo"
UNFINISHED = "unfinished"

_RESULTS = (BELIEF, "metrics.json", "report.html", "report.json", "drift.csv", "forecast.csv")
_FLOW = ("operator.flow", "training.safetensors", "settings.json")
_OURS = (*_RESULTS, *_FLOW, UNFINISHED)
_LOCK = "lock"


class Folder:
    """The folder to which a run is written, as a context of `writing`.

    `files` is the folder in which files gather, with the `belief`, or whatever else is kept, until the run is
    `complete` and they move to their places. From the file named `kept` a run can go on.
    """

    def __init__(self, path: Path, sentence: str, kept: str = BELIEF) -> None:
        self.path = path
        self.sentence = sentence
        self.files = path / UNFINISHED
        self.belief = self.files / kept
        self.complete = False

    def commit(self) -> None:
        """Move the files to their places, the belief last, and remove those left of an earlier run."""
        files = [file for file in self.files.rglob("*") if file.is_file() and file.name != _LOCK]
        files.sort(key=lambda file: (file == self.belief, file))
        places = [self.path / file.relative_to(self.files) for file in files]
        try:
            for file, place in zip(files, places, strict=True):
                move(file, place)
            self.complete = True
            pictures = (self.path / "plots").glob("*.svg")
            for old in {self.path / name for name in (*_RESULTS, *_FLOW)} | set(pictures):
                if old not in places:
                    old.unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                (self.path / "plots").rmdir()
        except OSError as error:
            raise _refusal(self.path, error) from None


def saved_in(path: Path) -> Path:
    """The belief in the folder of a run, an unfinished one first; a file is returned as it is."""
    if not path.is_dir():
        return path
    for belief in (path / UNFINISHED / BELIEF, path / BELIEF):
        if belief.is_file():
            return belief
    raise DataError(f"{path} holds no saved belief; name a file, or the folder of an earlier run.")


def unreported(resumed: Path | None, saved: Path) -> bool:
    """Whether the run of a saved belief ended before its report, as it was killed or stopped."""
    stopped = resumed is not None and resumed.is_dir() and not (resumed / "report.html").is_file()
    return stopped or saved.parent.name == UNFINISHED


def _refusal(path: Path, error: OSError) -> DataError:
    return DataError(f"cannot write to {path}: {(error.strerror or str(error)).lower()}.")


@contextlib.contextmanager
def writing(
    folder: Path | None, name: str, resumed: Path | None, kept: str = BELIEF, option: str = "--out"
) -> Iterator[Folder]:
    """The locked folder of a run, by default a new one; without a belief in it, what was begun is removed.

    Refused is a folder with files that no run of credo wrote, with a run that is writing, or with one that
    was cut short and is not `resumed`. `option` is the flag that names the folder.
    """
    created: list[Path] = []
    try:
        path, sentence, lock = _claim(folder, name, created, kept, option)
    except OSError as error:
        _remove(created)
        raise _refusal(folder or Path("runs") / name, error) from None
    except DataError:
        _remove(created)
        raise
    place = Folder(path, sentence, kept)
    try:
        for rest in place.files.glob(".*"):  # what a killed run was writing
            rest.unlink()
        if place.belief.is_file() and (resumed is None or not resumed.samefile(place.belief)):
            raise DataError(
                f"{option} {path} holds a run that was cut short; continue it with --resume {path}, or name "
                "another folder."
            )
        if not place.belief.is_file():
            _clear(place.files)
        try:
            with tempfile.TemporaryFile(dir=path):
                pass
        except OSError as error:
            raise _refusal(path, error) from None
        yield place
    finally:
        if place.complete or not place.belief.is_file():
            shutil.rmtree(place.files, ignore_errors=True)
        locking.let_go(lock)
        if os.name == "nt" and not place.belief.is_file():
            shutil.rmtree(place.files, ignore_errors=True)  # where an open file cannot be removed
        _remove(created)


def _claim(
    folder: Path | None, name: str, created: list[Path], kept: str, option: str
) -> tuple[Path, str, int]:
    """An output folder that is locked, a sentence about it, and its lock."""
    if folder is not None:
        sentence = _about(folder, option)
        lock = _lock(folder, created)
        if lock is None:
            raise DataError(
                f"another run is writing into {folder} just now; name another folder with {option}."
            )
        return folder, sentence, lock
    number = 1
    first = Path("runs") / name
    path = first
    sentence = ""
    while True:
        entries = set(os.listdir(path)) if path.is_dir() else set()
        if not path.exists() or entries <= {UNFINISHED}:
            lock = _lock(path, created)
            if lock is not None and not (path / UNFINISHED / kept).exists():
                return path, sentence, lock
            state = "a run that is still writing" if lock is None else "a run that was cut short"
            if lock is not None:
                locking.let_go(lock)
                state += f" (continue it with --resume {path})"
        else:
            state = "an earlier run"
        number += 1
        path = Path("runs") / f"{name}-{number}"
        sentence = sentence or f"{first} holds {state}, so this one goes to "
        sentence = f"{sentence.partition(' goes to ')[0]} goes to {path}"


def _about(folder: Path, option: str) -> str:
    if folder.exists() and not folder.is_dir():
        raise DataError(f"{option} {folder} is a file; name a folder.")
    entries = sorted(os.listdir(folder)) if folder.exists() else []
    if not entries or entries == [UNFINISHED]:
        return ""
    if not any(entry in _OURS for entry in entries):
        raise DataError(
            f"{option} {folder} holds other files ({entries[0]}, ...) and no earlier run; "
            "name another folder."
        )
    return f"the earlier run in {folder} is replaced"


def _lock(path: Path, created: list[Path]) -> int | None:
    """Lock a folder, which is created if it is missing."""
    files = path / UNFINISHED
    created += [one for one in (path, *path.parents) if not one.exists()]
    while True:
        files.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):  # another run has just ended, and removed the folder
            return locking.hold(files / _LOCK)


def _clear(files: Path) -> None:
    for entry in files.iterdir():
        if entry.is_dir():
            shutil.rmtree(entry)
        elif entry.name != _LOCK:
            entry.unlink()


def _remove(created: list[Path]) -> None:
    """Remove folders that nothing was written to."""
    for path in created:
        with contextlib.suppress(OSError):
            path.rmdir()


def require_writable_file(path: Path, option: str) -> None:
    """Refuse a file that could not be written at the end, before anything is computed."""
    try:
        if path.is_dir():
            raise DataError(f"{option} {path} is a folder; name a file in it.")
        if not path.parent.is_dir():
            raise DataError(f"{option} {path} cannot be written: the folder {path.parent} does not exist.")
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise DataError(
            f"{option} {path} cannot be written: {(error.strerror or str(error)).lower()}."
        ) from None
