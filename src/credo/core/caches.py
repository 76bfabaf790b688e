"""Places of caches, and the means to keep them small."""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import sys
from pathlib import Path

__all__ = ["LARGEST", "cache_dir", "compiled_dir", "machine", "prune", "switched_off"]

LARGEST = 256 * 2**20
"""The most bytes of compiled programs that are kept; those that were not used for longest go first."""


def cache_dir() -> Path:
    """The folder for downloads, which need not exist: `CREDO_CACHE_DIR`, or `credo` in the user's caches."""
    if chosen := os.environ.get("CREDO_CACHE_DIR"):
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "credo" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "credo"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "credo"


def compiled_dir() -> Path:
    """The folder for programs that were compiled for this kind of processor, which need not exist."""
    return cache_dir() / "compiled" / machine()


def switched_off() -> bool:
    """Whether the environment says that no compiled programs are to be kept."""
    values = (os.environ.get(name, "") for name in ("CREDO_PROGRAMS", "JAX_ENABLE_COMPILATION_CACHE"))
    return any(value.lower() in ("0", "f", "false", "no", "off") for value in values)


def machine() -> str:
    """A name for this kind of processor: a program compiled for one may not run on another."""
    words = [platform.machine(), platform.processor()]
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        words += [line for line in lines if line.startswith(("flags", "Features", "model name"))][:2]
    return hashlib.sha256("\n".join(words).encode()).hexdigest()[:12]


def prune(root: Path, most: int) -> None:
    """Remove the files that were not used for longest, until the others have at most `most` bytes."""
    files = []
    for path in root.rglob("*"):
        with contextlib.suppress(OSError):  # another run may have removed it
            stat = path.stat()
            if path.is_file():
                files.append((max(stat.st_atime, stat.st_mtime), stat.st_size, path))
    total = sum(size for _, size, _ in files)
    for _, size, path in sorted(files):
        if total <= most:
            return
        with contextlib.suppress(OSError):
            path.unlink()
            total -= size
