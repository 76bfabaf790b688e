"""Atomic writing of files, JSON in which every number is legal, and the versions that wrote a file."""

from __future__ import annotations

import json
import math
import os
import platform
import tempfile
from importlib import metadata
from pathlib import Path

import numpy as np

from credo.core.errors import DataError

__all__ = ["json_bytes", "versions", "write_atomically"]


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file atomically, in a folder made if need be: one beside it is flushed, then renamed."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            os.chmod(temporary, 0o644)
            os.replace(temporary, path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
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
    return None if isinstance(value, float) and not math.isfinite(value) else value


def versions() -> dict[str, str]:
    """The versions of credo, JAX, NumPy and Python that are running."""
    import credo

    installed = {package: metadata.version(package) for package in ("jax", "jaxlib", "numpy")}
    return {"credo": credo.__version__, **installed, "python": platform.python_version()}
