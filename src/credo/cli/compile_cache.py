"""Compiled programs are kept between runs, so that the second run of a command starts at once.

The large ones are kept by `credo.core.kept_programs`, for every door of the library. JAX has a cache of its
own, which is off by default; here it is switched on for the small programs of a command. Nothing is changed
where JAX is told what to do: by `JAX_COMPILATION_CACHE_DIR` (a folder, or empty for none), by
`JAX_ENABLE_COMPILATION_CACHE=false`, or by a program that has imported JAX before it runs a command.
"""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

from credo.core import caches

__all__ = ["keep_compiled_programs"]

_SETTINGS = {
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
}
"""All programs are kept: the start of a run is many small ones."""

_LEVEL = "TF_CPP_MIN_LOG_LEVEL"
"""The variable of the level from which on XLA's messages are shown."""

# The level that JAX sets when it is imported, which the processes that a Python program starts inherit, and
# ours: below it XLA says at every start, and of every kept program, how it spells the processor.
_BY_JAX = "1"
_FATAL = "3"


def keep_compiled_programs(place: Path | None = None) -> Path | None:
    """Keep compiled programs in a folder, by default the user's for caches; None if that is off or set
    elsewhere.
    """
    if "jax" in sys.modules:
        return None
    if os.environ.get(_LEVEL, _BY_JAX) == _BY_JAX:
        os.environ[_LEVEL] = _FATAL
    if caches.switched_off() or "JAX_COMPILATION_CACHE_DIR" in os.environ:
        return None
    try:
        folder = caches.compiled_dir() if place is None else place.absolute()
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not os.access(folder, os.W_OK | os.X_OK):
            return None
        caches.prune(folder.parent if place is None else folder, caches.LARGEST)
    except (OSError, RuntimeError):  # no such folder can be made, or there is no home
        return None
    os.environ["JAX_COMPILATION_CACHE_DIR"] = str(folder)
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
    warnings.filterwarnings("ignore", "Error (reading|writing) persistent compilation cache entry")
    return folder
