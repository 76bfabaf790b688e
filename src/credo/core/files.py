"""Atomic writing of files, JSON in which every number is legal, and the versions that wrote a file."""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import platform
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path

import numpy as np

from credo.core.errors import DataError
from credo.core.places import Address, Place, create

__all__ = ["claim", "json_bytes", "move", "replacing", "versions", "write_atomically"]


def write_atomically(path: Place, data: bytes) -> None:
    """Write a file completely or not at all, as `replacing` does, or raise a `DataError`."""
    if isinstance(path, Path) and path.exists() and not path.is_file() and not path.is_dir():
        with _refusing(path):
            path.write_bytes(data)  # of a pipe or a device, such as /dev/stdout
        return
    with replacing(path) as file:
        file.write_bytes(data)


@contextlib.contextmanager
def replacing(path: Place) -> Iterator[Path]:
    """A new empty file beside a path, which takes its place at the end of the context, or is removed.

    For an address it is a file of this machine, which is put there at the end of the context.

    Folders are made if need be. The file has the rights that the umask leaves, and none that the file in its
    place had not. If the path is a symbolic link, its target is written. A `DataError` says why not.
    """
    with _refusing(path):
        if isinstance(path, Address):
            with tempfile.TemporaryDirectory(prefix="credo-") as folder:
                file = Path(folder) / path.name
                file.touch()
                yield file
                path.put(file)
            return
        target = Path(os.path.realpath(path))
        if target.is_symlink():
            raise DataError(f"cannot write {path}: its symbolic link leads nowhere.")
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".{target.name[:200]}.{secrets.token_hex(4)}")
        rights = 0o600 | target.stat().st_mode & 0o666 if target.exists() else 0o666
        os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, rights))
        try:
            yield temporary
            _put(temporary, target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def move(path: Path, place: Path) -> None:
    """Move a file to a place, whose folder is made if need be, with the care of `replacing`; an `OSError`."""
    target = Path(os.path.realpath(place))
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        _put(path, target)
    except OSError as error:
        if error.errno != errno.EXDEV:  # a link to another file system
            raise
        with replacing(target) as file:
            shutil.copyfile(path, file)
        path.unlink()


def _put(path: Path, target: Path) -> None:
    """Put a file, brought to the disk, in the place of another, with no right that the other had not."""
    if target.exists():
        path.chmod(path.stat().st_mode & target.stat().st_mode & 0o777)
    # the content is on the disk before the name points to it, and then the name: whatever crashes, the name
    # stands for the old content or for all of the new
    with path.open("rb") as written:
        os.fsync(written.fileno())
    os.replace(path, target)
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def claim(folder: Place, name: Callable[[int], str], number: int) -> int:
    """Create the first file, by its number from `number` on, that nobody else has created; its number.

    The folder is made if need be. A `DataError` says why it cannot be done.
    """
    with _refusing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        while True:
            try:
                create(folder / name(number))
            except FileExistsError:
                number += 1
            else:
                return number


@contextlib.contextmanager
def _refusing(path: Place) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror or error}.") from None


def json_bytes(value: object) -> bytes:
    """The value as JSON, in which numbers that it does not know (NaN, infinities) are null."""
    return (json.dumps(_plain(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic | np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def versions() -> dict[str, str]:
    """The versions of credo, JAX, NumPy and Python that are running."""
    import credo

    installed = {package: metadata.version(package) for package in ("jax", "jaxlib", "numpy")}
    return {"credo": credo.__version__, **installed, "python": platform.python_version()}
