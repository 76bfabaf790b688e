"""Finished pieces of a long experiment, kept in a folder so that an interrupted run can continue.

A piece ("cell") is a handful of arrays that some settings determine. It is written completely or not at all,
together with its settings. It is read back only for exactly the same settings, by the same releases of credo
and JAX. Otherwise, and where the file is damaged, it is computed again.

Cells may be computed side by side, by a crew of worker processes; it is this process that keeps them. One
that fails does not keep the others from being computed.
"""

from __future__ import annotations

import functools
import hashlib
import io
import json
import re
import struct
import threading
import time
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from credo.core.errors import CredoError
from credo.core.files import write_atomically
from credo.core.parallel import Crew, TaskFailed, sentence_of
from credo_papers.engine.plain_data import Arrays

__all__ = ["Cells", "CellsFailed"]

I = TypeVar("I")
T = TypeVar("T")

# What NumPy, zip and zlib raise for files that are missing, cut or garbled.
_DAMAGE: tuple[type[Exception], ...] = (
    *(OSError, EOFError, LookupError, ValueError, RuntimeError, MemoryError, SyntaxError, TypeError),
    *(zipfile.BadZipFile, zlib.error, struct.error),
)
_SETTINGS = "settings of the cell"
_SECONDS = "seconds of the cell"


class CellsFailed(CredoError):
    """Some cells could not be computed.

    Arguments:
        failed: a sentence without a full stop about each, which begins with its name.
    """

    def __init__(self, failed: tuple[str, ...]) -> None:
        super().__init__(f"{'; '.join(failed)}.")
        self.failed = failed


@dataclass
class Cells:
    """A folder of finished cells.

    Arguments:
        folder: the folder of the cells, which is created when the first one is written. None keeps nothing.
        crew: the processes that compute cells side by side; None computes them in this one, one by one.

    Attributes:
        computed: how many cells were computed so far.
        reused: how many were read from the folder.
        reused_seconds: how long it once took to compute those that were read.

    Example:
        >>> cells = Cells()
        >>> cells.get("square", {"of": 3}, lambda: {"value": np.array(9)})["value"].item()
        9
    """

    folder: Path | None = None
    crew: Crew | None = None
    computed: int = field(default=0, init=False)
    reused: int = field(default=0, init=False)
    reused_seconds: float = field(default=0.0, init=False)
    _counting: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False, compare=False)

    def each(self, function: Callable[[I], T], items: Iterable[I]) -> list[T]:
        """Return what a function, which may ask for cells, gives for each item, side by side with a crew.

        Arguments:
            function: of an item. With a crew it is called in threads, as many at once as there are workers,
                and may itself call `each`.
            items: as many as there are.

        Returns:
            What it gives, in the order of the items.

        Raises:
            CellsFailed: cells failed; raised after all items have had their turn.

        Example:
            >>> Cells().each(lambda number: number + 1, [1, 2])
            [2, 3]
        """
        failed: list[str] = []

        def one(item: I) -> list[T]:
            try:
                return [function(item)]
            except CellsFailed as error:
                failed.extend(error.failed)
                return []

        todo = list(items)
        parts = list(map(one, todo)) if self.crew is None else self.crew.each(one, todo)
        if failed:
            raise CellsFailed(tuple(failed))
        return [value for part in parts for value in part]

    def get(
        self,
        name: str,
        settings: Mapping[str, object],
        compute: Callable[[], Mapping[str, ArrayLike]],
        *,
        here: bool = False,
    ) -> Arrays:
        """Return the arrays of a cell: from the folder, or computed and then kept.

        Arguments:
            name: a readable name, with which the name of the file begins.
            settings: everything that the arrays depend on, in plain JSON values. Put a number in it that
                changes with the code wherever an older result must not be taken for a newer one.
            compute: returns the arrays by name. With a crew it is sent to a worker, with all that it uses.
            here: whether it must be computed in this process, because it measures how long something takes.

        Returns:
            The arrays; they have the same bits whether they were computed or read.

        Raises:
            CredoError: the settings are not JSON values, or the name of an array is reserved.
            CellsFailed: `compute` raised an exception; what it says begins with the name of the cell.
            DataError: the folder cannot be written to.

        Example:
            >>> Cells().get("square", {"of": 3}, lambda: {"value": 9})["value"].item()
            9
        """
        text = _text(name, settings)
        path = None
        if self.folder is not None:
            digest = hashlib.sha256(text.encode()).hexdigest()[:16]
            path = self.folder / f"{re.sub(r'[^A-Za-z0-9.]+', '-', name)[:80]}-{digest}.npz"
            stored = _read(path, text)
            if stored is not None:
                with self._counting:
                    self.reused += 1
                    self.reused_seconds += float(stored.pop(_SECONDS))
                return stored
        try:
            work = functools.partial(_timed, compute)
            arrays, seconds = work() if self.crew is None or here else self.crew.call(work)
        except TaskFailed as error:
            raise CellsFailed((f"{name}: {error}",)) from error
        except Exception as error:  # of the experiment, whatever it is
            raise CellsFailed((f"{name}: {sentence_of(error)}",)) from error
        if reserved := {_SETTINGS, _SECONDS} & arrays.keys():
            raise CredoError(f"an array of a cell may not be named {reserved.pop()!r}.")
        with self._counting:
            self.computed += 1
        if path is not None:
            buffer = io.BytesIO()
            extra = {_SETTINGS: np.array(text), _SECONDS: np.array(seconds)}
            np.savez_compressed(buffer, allow_pickle=False, **{**extra, **arrays})
            write_atomically(path, buffer.getvalue())
        return arrays

    @property
    def message(self) -> str | None:
        """A sentence for the reader where pieces of an earlier run were used, or else None."""
        if not self.reused:
            return None
        return (
            f"{self.reused} of {self.reused + self.computed} parts were finished by an earlier run and read "
            f"from {self.folder}; delete that folder to compute them anew."
        )


def _timed(compute: Callable[[], Mapping[str, ArrayLike]]) -> tuple[Arrays, float]:
    """The arrays of a cell, and the seconds that they took."""
    start = time.perf_counter()
    arrays = {key: np.asarray(value) for key, value in compute().items()}
    return arrays, time.perf_counter() - start


def _text(name: str, settings: Mapping[str, object]) -> str:
    import jax

    import credo

    versions = {"credo": credo.__version__, "jax": metadata.version("jax"), "on": jax.default_backend()}
    everything = {"name": name, "settings": settings, "versions": versions}
    try:
        return json.dumps(everything, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise CredoError(f"the settings of cell {name!r} must be plain JSON values ({error}).") from None


def _read(path: Path, text: str) -> Arrays | None:
    """The arrays of a file made from exactly these settings, or None; a damaged file counts as none."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            arrays = {key: stored[key] for key in stored.files}
    except _DAMAGE:
        return None
    described = arrays.pop(_SETTINGS, None)
    sound = described is not None and str(described) == text and _SECONDS in arrays
    if sound:
        return arrays
    return None
