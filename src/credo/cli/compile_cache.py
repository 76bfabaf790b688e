"""Compiled programs are kept between runs, so that the second run of a command starts at once.

JAX has such a cache, which is off by default; here it is switched on for the command line. Nothing is changed
where JAX is told what to do: by `JAX_COMPILATION_CACHE_DIR` (a folder, or empty for none), by
`JAX_ENABLE_COMPILATION_CACHE=false`, or by a program that has imported JAX before it runs a command.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import sys
import warnings
from pathlib import Path

__all__ = ["keep_compiled_programs", "prune"]

LARGEST = 256 * 2**20
"""The most bytes that are kept; the programs that were not used for longest go first."""

_SETTINGS = {
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
}
"""All programs are kept: the start of a run is many small ones."""


def keep_compiled_programs() -> Path | None:
    """Keep compiled programs in the user's folder for caches; None where that is off or set elsewhere."""
    if "jax" in sys.modules or "JAX_COMPILATION_CACHE_DIR" in os.environ:
        return None
    if os.environ.get("JAX_ENABLE_COMPILATION_CACHE", "").lower() in ("0", "f", "false", "no", "off"):
        return None
    from credo.datasets.finder import cache_dir

    try:
        root = cache_dir() / "compiled"
        folder = root / _machine()
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK | os.X_OK):
            return None
        prune(root, LARGEST)
    except (OSError, RuntimeError):  # no such folder can be made, or there is no home
        return None
    os.environ["JAX_COMPILATION_CACHE_DIR"] = str(folder)
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
    warnings.filterwarnings("ignore", "Error (reading|writing) persistent compilation cache entry")
    return folder


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


def _machine() -> str:
    """A name for this kind of processor: a program compiled for one may not run on another."""
    words = [platform.machine(), platform.processor()]
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        words += [line for line in lines if line.startswith(("flags", "Features", "model name"))][:2]
    return hashlib.sha256("\n".join(words).encode()).hexdigest()[:12]
