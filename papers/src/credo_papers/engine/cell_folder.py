"""Finished pieces of a long experiment, kept in a folder so that an interrupted run can continue.

A piece ("cell") is a handful of arrays that some settings determine. It is written completely or not at all,
together with its settings. It is read back only for exactly the same settings, by the same releases of credo
and JAX. Otherwise, and where the file is damaged, it is computed again.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import struct
import time
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from credo.core.errors import CredoError
from credo.core.files import write_atomically
from credo_papers.engine.plain_data import Arrays

__all__ = ["Cells"]

# What NumPy, zip and zlib raise for files that are missing, cut or garbled.
_DAMAGE: tuple[type[Exception], ...] = (
    *(OSError, EOFError, LookupError, ValueError, RuntimeError, MemoryError, SyntaxError, TypeError),
    *(zipfile.BadZipFile, zlib.error, struct.error),
)
_SETTINGS, _SECONDS = "settings of the cell", "seconds of the cell"


@dataclass
class Cells:
    """A folder of finished cells.

    Arguments:
        folder: the folder of the cells, which is created when the first one is written. None keeps nothing.

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
    computed: int = field(default=0, init=False)
    reused: int = field(default=0, init=False)
    reused_seconds: float = field(default=0.0, init=False)

    def get(
        self,
        name: str,
        settings: Mapping[str, object],
        compute: Callable[[], Mapping[str, ArrayLike]],
    ) -> Arrays:
        """Return the arrays of a cell: from the folder, or computed and then kept.

        Arguments:
            name: a readable name, with which the name of the file begins.
            settings: everything that the arrays depend on, in plain JSON values. Put a number in it that
                changes with the code wherever an older result must not be taken for a newer one.
            compute: returns the arrays by name.

        Returns:
            The arrays; they have the same bits whether they were computed or read.

        Raises:
            CredoError: the settings are not JSON values, or the name of an array is reserved.
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
                self.reused += 1
                self.reused_seconds += float(stored.pop(_SECONDS))
                return stored
        start = time.perf_counter()
        arrays = {key: np.asarray(value) for key, value in compute().items()}
        if reserved := {_SETTINGS, _SECONDS} & arrays.keys():
            raise CredoError(f"an array of a cell may not be named {reserved.pop()!r}.")
        seconds = time.perf_counter() - start
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
    return arrays if sound else None
