"""A store whose objects are files of this machine, so that several processes see it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from fsspec.implementations.local import LocalFileSystem

__all__ = ["Shelf"]


class Shelf(LocalFileSystem):  # type: ignore[misc]  # fsspec has no types
    """Objects that are there whole or not at all, and of which one can be created if there is none."""

    protocol = "shelf"

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **kwargs: Any) -> None:
        """Put bytes."""
        with open(path, "xb" if mode == "create" else "wb") as file:
            file.write(value)

    def put_file(self, lpath: str, rpath: str, *args: Any, **kwargs: Any) -> None:
        """Put a file."""
        target = Path(rpath)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(lpath, half := target.with_name(f".{target.name}.{os.getpid()}"))
        half.replace(target)
