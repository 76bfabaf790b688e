"""The folder of the compiled programs that are kept between processes (`credo.core.kept_programs`).

They lie in the folder `compiled` of `cache_dir()`, at most 256 MiB together with JAX's own.
`CREDO_PROGRAMS=0` turns this off, as do JAX's switches `JAX_ENABLE_COMPILATION_CACHE=0` and an empty
`JAX_COMPILATION_CACHE_DIR`; a folder there is used instead. A file is machine code, so a folder that others
may write to is not used.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from credo.core import caches

__all__ = ["SUFFIX", "Choice", "KeptProgram", "clear", "folder", "keep_small", "listing", "use"]

SUFFIX = ".program"


class Choice:
    """The folder of the programs: found at the first use, or chosen by `use`."""

    folder: Path | None = None
    known = False


def use(path: Path | None) -> None:
    """Keep programs in a folder from now on, or none if it is None. Those of this process stay."""
    Choice.folder = path
    Choice.known = True


def folder() -> Path | None:
    """The folder of the programs, None if none are kept."""
    if not Choice.known:
        use(_usual())
    return Choice.folder


def _usual() -> Path | None:
    chosen = os.environ.get("JAX_COMPILATION_CACHE_DIR")
    if caches.switched_off() or chosen == "":
        return None
    try:
        programs = (caches.compiled_dir() if chosen is None else Path(chosen)) / "programs"
        programs.mkdir(parents=True, exist_ok=True, mode=0o700)
        if _own(programs):
            return programs
        return None
    except (OSError, RuntimeError):  # no such folder can be made, or there is no home
        return None


def _own(path: Path) -> bool:
    """Whether nobody else may write to a folder, and we may."""
    if not os.access(path, os.W_OK | os.X_OK):
        return False
    status = path.stat()
    return not hasattr(os, "getuid") or (status.st_uid == os.getuid() and not status.st_mode & 0o022)


class KeptProgram(NamedTuple):
    """A file of a program: what it does, its bytes, and when it was last used, in seconds since 1970."""

    name: str
    size: int
    used: float


def listing() -> list[KeptProgram]:
    """The programs that are kept, by name."""
    found = folder()
    files = [] if found is None else sorted(found.glob(f"*{SUFFIX}"))
    return [
        KeptProgram(path.name.split("-")[0], s.st_size, s.st_mtime) for path in files for s in [path.stat()]
    ]


def keep_small(found: Path) -> None:
    """Remove the programs that were not used for longest, if there are too many."""
    own = found.parent == caches.compiled_dir()
    caches.prune(found.parent.parent if own else found, caches.LARGEST)


def clear() -> int:
    """Remove the programs, and in credo's own folder those that JAX keeps beside them; their number."""
    found = folder()
    if found is None:
        return 0
    place = found.parent if found.parent == caches.compiled_dir() else found
    paths = [path for path in place.rglob("*") if path.is_file()]
    for path in paths:
        path.unlink(missing_ok=True)
    return len(paths)
