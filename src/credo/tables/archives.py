"""Zip archives that hold one table."""

from __future__ import annotations

import os
import zipfile
from typing import IO

from credo.core.errors import DataError

__all__ = ["is_archive", "member_name", "open_member"]


def is_archive(path: str) -> bool:
    """Whether a path is that of an existing file named .zip."""
    return path.lower().endswith(".zip") and os.path.isfile(path)


def member_name(path: str) -> str:
    """The name of the only file in a zip archive."""
    stream, name = open_member(path)
    stream.close()
    return name


def open_member(path: str) -> tuple[IO[bytes], str]:
    """Open the only file in a zip archive, beside folders and what macOS adds: its bytes and its name."""
    try:
        archive = zipfile.ZipFile(path)
    except zipfile.BadZipFile:
        raise DataError(f"{path} is no zip archive, or is cut short; copy or download it again.") from None
    except OSError as error:
        raise DataError(f"{path} cannot be opened: {error.strerror or error}.") from None
    names = [
        info.filename
        for info in archive.infolist()
        if not info.is_dir()
        and not info.filename.startswith("__MACOSX/")
        and not os.path.basename(info.filename).startswith(".")
    ]
    if len(names) != 1:
        archive.close()
        shown = ", ".join(names[:4]) + (", ..." if len(names) > 4 else "")
        what = f"{len(names)} files ({shown}); unpack it, and name one of them" if names else "no file"
        raise DataError(f"{path} holds {what}.")
    try:
        return archive.open(names[0]), names[0]
    except (RuntimeError, NotImplementedError, zipfile.BadZipFile) as error:
        archive.close()
        why = str(error).split(",")[0].rstrip(".")
        raise DataError(f"{path} cannot be unpacked ({why}); name the file inside it.") from None
