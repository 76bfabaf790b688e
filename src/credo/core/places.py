"""Places of files: in a folder, or at an address of fsspec, with the same verbs.

A file in a folder is a `pathlib.Path`, and one at an address an `Address`, which has those verbs of `Path`
that saved state needs. What differs is here and in `credo.core.files`: an object of a store is there whole
or not at all once it has been put: it needs neither another name first nor a call that brings it to a disk.
"""

from __future__ import annotations

import contextlib
import fnmatch
import inspect
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from credo.core.errors import CredoError, DataError
from credo.core.extensions import extra

__all__ = ["Address", "Place", "Where", "create", "fetched", "place_of"]


@dataclass(frozen=True)
class Address:
    """A file or a folder at an address.

    That a file is there, or is not, is the same error as of a `Path`. All else that goes wrong is a
    `DataError`, so that a store that does not answer is not taken for one without files.

    Arguments:
        system: the file system of fsspec.
        path: the path there.
    """

    system: Any
    path: str

    def __truediv__(self, name: str) -> Address:
        return Address(self.system, f"{self.path.rstrip('/')}/{name}")

    def __str__(self) -> str:
        return str(self.system.unstrip_protocol(self.path))

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rstrip("/").rpartition("/")[2]

    @property
    def stem(self) -> str:
        """The name without its ending."""
        return Path(self.name).stem

    @property
    def parent(self) -> Address:
        """The folder in which it is."""
        return Address(self.system, self.path.rstrip("/").rpartition("/")[0])

    @property
    def private(self) -> bool:
        """Whether no other process sees what is here."""
        return "memory" in self._protocols

    @property
    def _protocols(self) -> tuple[str, ...]:
        protocol = self.system.protocol
        if isinstance(protocol, str):
            return (protocol,)
        return tuple(protocol)

    def exists(self) -> bool:
        """Whether there is a file or a folder."""
        return self._kind() is not None

    def is_file(self) -> bool:
        """Whether there is a file."""
        return self._kind() == "file"

    def is_dir(self) -> bool:
        """Whether there is a folder."""
        return self._kind() == "directory"

    def _kind(self) -> str | None:
        with self._fresh():
            try:
                return str(self.system.info(self.path)["type"])
            except FileNotFoundError:
                return None

    def sizes(self) -> dict[str, int]:
        """The names of the files directly in a folder, and their sizes; none where there is no folder."""
        with self._fresh():
            try:
                listed = self.system.ls(self.path, detail=True)
            except FileNotFoundError:
                return {}
        files = [one for one in listed if one["type"] == "file"]
        return {Address(self.system, str(one["name"])).name: int(one["size"]) for one in files}

    def glob(self, pattern: str) -> Iterator[Address]:
        """The files directly in a folder whose names fit a pattern."""
        for name in self.sizes():
            if fnmatch.fnmatchcase(name, pattern):
                yield self / name

    def mkdir(self, parents: bool = True, exist_ok: bool = True) -> None:
        """Make the folder, where the store has folders."""
        del parents
        with self._fresh():
            self.system.makedirs(self.path, exist_ok=exist_ok)

    def unlink(self, missing_ok: bool = False) -> None:
        """Take the file away."""
        with self._fresh():
            try:
                self.system.rm_file(self.path)
            except FileNotFoundError:
                if not missing_ok:
                    raise

    def put(self, file: Path) -> None:
        """Put a file here, in the place of one that there may be."""
        with self._fresh():
            self.system.put_file(str(file), self.path)

    def get(self, file: Path) -> None:
        """Write what is here into a file."""
        with self._fresh():
            self.system.get_file(self.path, str(file))

    def create(self) -> None:
        """Put a small file here if there is none, or raise a `FileExistsError`: of several only one does so.

        A store that does not know how to is refused: what fsspec does for it looks first and writes then.
        """
        own = next((one for one in type(self.system).__mro__ if _puts(one)), None)
        with self._fresh():
            if own is None:
                raise OSError(
                    "it cannot create a file only where there is none, so two runs could begin there"
                )
            self.system.pipe_file(self.path, _TOKEN, mode="create")
            try:
                self.system.pipe_file(self.path, _TOKEN, mode="create")
            except FileExistsError:
                return
            raise OSError("it creates a file where there is one")

    @contextlib.contextmanager
    def _fresh(self) -> Iterator[None]:
        """Look at the store, not at what was seen before, and say in a sentence what it refuses."""
        try:
            self.system.invalidate_cache()
            yield
        except (FileNotFoundError, FileExistsError):
            raise
        except Exception as error:
            reason = str(error).rstrip(".") or type(error).__name__
            raise DataError(f"cannot use {self}: {reason}.") from error


Place: TypeAlias = Path | Address
"""A file or a folder."""

Where: TypeAlias = str | os.PathLike[str] | Address
"""A place, as a caller gives it."""

_TOKEN = b"credo\n"


def _puts(kind: type) -> bool:
    """Whether a class of file systems says by itself how a file is created only where there is none."""
    if kind.__module__ in ("fsspec.spec", "fsspec.asyn"):
        return False
    methods = [kind.__dict__[name] for name in ("pipe_file", "_pipe_file") if name in kind.__dict__]
    return any("mode" in inspect.signature(method).parameters for method in methods)


def place_of(where: Where, field: str) -> Place:
    """The file or folder at a path or at an address of fsspec, which `field` names in a refusal.

    An address of a local file is a path.
    """
    if isinstance(where, Address):
        return where
    if not isinstance(where, str) or "://" not in where:
        return Path(where)
    try:
        import fsspec
    except ImportError:
        raise CredoError(f"{where} needs the package fsspec: {extra('remote')}.", field=field) from None
    try:
        system, path = fsspec.core.url_to_fs(where)
    except (ValueError, ImportError) as error:
        raise DataError(f"{where} cannot be opened: {str(error).rstrip('.')}.") from None
    found = Address(system, str(path))
    if "file" in found._protocols:
        return Path(found.path)
    return found


def create(place: Place) -> None:
    """Create a file, or raise a `FileExistsError` if there is one."""
    if isinstance(place, Address):
        place.create()
    else:
        place.touch(exist_ok=False)


@contextlib.contextmanager
def fetched(place: Place) -> Iterator[Path]:
    """A file as one of this machine, for as long as the context: itself, or a copy."""
    if isinstance(place, Path):
        yield place
        return
    with tempfile.TemporaryDirectory(prefix="credo-") as folder:
        file = Path(folder) / place.name
        place.get(file)
        yield file
