"""The output folder of a run: chosen, checked before anything is computed, and filled all at once."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from credo.core.errors import DataError

__all__ = ["Folder", "choose", "require_writable_file", "writing"]

OURS = ("metrics.json", "belief.credo", "report.html")


class Folder:
    """Where a run is written to: files gather in a hidden sibling folder and appear together at the end."""

    def __init__(self, path: Path, files: Path) -> None:
        self.path, self.files = path, files

    def commit(self) -> None:
        """Move the files to their place; an earlier run's files of the same names are replaced one by one.

        Raises:
            DataError: a file cannot be written.
        """
        try:
            if not self.path.exists():
                os.chmod(self.files, 0o755)
                os.rename(self.files, self.path)
                return
            for file in sorted(self.files.rglob("*")):
                if file.is_file():
                    target = self.path / file.relative_to(self.files)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    os.replace(file, target)
        except OSError as error:
            raise _refusal(self.path, error) from None


def _refusal(path: Path, error: OSError) -> DataError:
    return DataError(f"cannot write to {path}: {(error.strerror or str(error)).lower()}.")


def choose(folder: Path | None, name: str) -> tuple[Path, str]:
    """The folder of a run and a sentence on it where there is something to say.

    Arguments:
        folder: the one that the user named, or None.
        name: the name of the source.

    Raises:
        DataError: the named folder holds files that no run of credo wrote, or is no folder.
    """
    if folder is None:
        path, number = Path("runs") / name, 1
        while path.exists():
            number += 1
            path = Path("runs") / f"{name}-{number}"
        return path, f"runs/{name} holds an earlier run, so this one goes to {path}" if number > 1 else ""
    if folder.exists() and not folder.is_dir():
        raise DataError(f"--out {folder} is a file; name a folder.")
    try:
        entries = [entry.name for entry in folder.iterdir()] if folder.exists() else []
    except OSError as error:
        raise _refusal(folder, error) from None
    if not entries:
        return folder, ""
    if not any(file in entries for file in OURS):
        raise DataError(
            f"--out {folder} holds other files ({sorted(entries)[0]}, ...) and no earlier run; "
            "name another folder."
        )
    return folder, f"the earlier run in {folder} is replaced"


@contextlib.contextmanager
def writing(path: Path) -> Iterator[Folder]:
    """A folder to fill, which is removed where anything goes wrong. It must be writable from the start.

    Raises:
        DataError: the file cannot be written.
    """
    created = [parent for parent in (path.parent, *path.parent.parents) if not parent.exists()]
    files = None
    try:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            files = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
            if path.exists():
                with tempfile.TemporaryFile(dir=path):
                    pass
        except OSError as error:
            raise _refusal(path, error) from None
        yield Folder(path, files)
    finally:
        if files is not None:
            shutil.rmtree(files, ignore_errors=True)
        for parent in created:
            with contextlib.suppress(OSError):
                parent.rmdir()


def require_writable_file(path: Path, option: str) -> None:
    """Refuse a file that could not be written at the end, before anything is computed.

    Raises:
        DataError: the path is a folder, or a file there cannot be written.
    """
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
