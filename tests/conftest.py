"""What every test shares: strict JAX, programs compiled in haste, and a small Hypothesis profile.

The environment is set before JAX is imported, so that the worker processes of pytest-xdist agree with it.

Most of the time of the tests goes into compiling. So programs are compiled in haste (half the time), but for
the tests marked `optimised`, which need them as users get them: those that compare bits, and those that run
long. `tests/tiers.py` says which tests run when.
"""

from __future__ import annotations

import ctypes
import gc
import os
from collections.abc import Iterator
from pathlib import Path

from tests import tiers
from tests.haste import ASKED

# isort: split
import hypothesis
import jax
import pytest

from credo.core import program_folder

ROOT = Path(__file__).resolve().parent.parent

# Closed forms are compared to 1e-10, so tests run in double precision; a test of single precision says so
# through its dtypes. Silent broadcasting of ranks and silent promotion of dtypes are errors.
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")

# Every program is kept between runs, and for the other process that runs tests.
jax.config.update("jax_compilation_cache_dir", str(ROOT / ".pytest_cache" / "jax"))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)

# A test may change a constant, which no digest of a program notices: in this process, programs are compiled.
program_folder.use(None)

hypothesis.settings.register_profile("ci", deadline=None, max_examples=20, derandomize=True, print_blob=True)
hypothesis.settings.register_profile("thorough", deadline=None, max_examples=500)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

# Tracing makes many small objects, few of which are rubbish: looking for it less often saves 7% of the time.
gc.set_threshold(100_000, 20, 20)

EASY = {
    "jax_enable_x64": False,
    "jax_numpy_rank_promotion": "allow",
    "jax_numpy_dtype_promotion": "standard",
}
"""The options that are strict in tests, as they are elsewhere."""

KEPT = ROOT / ".pytest_cache" / "jax" / "programs"
"""Where the command line that a test starts as a process of its own keeps its programs, too."""

LARGE = (1100 if ASKED == "quick" else 1800) * 2**20
"""Bytes of memory from which on a process that runs tests forgets its programs.

Some 800 MiB are modules, and a program takes almost one, so that without this the processes grew to 5 GB;
with less, programs would be read from their files again and again. (Only Linux tells how large a process is.
There a process may have 65,530 memory maps, some for each program, and this keeps far away from that.)
"""

STATUS = Path("/proc/self/statm")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests of other tiers."""
    tiers.select(config, items)


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Import no file without tests of the tier: that took a third of the time of small tiers."""
    return True if tiers.is_foreign(collection_path) else None


def pytest_collection_finish() -> None:
    """Look no longer for rubbish among the modules and tests, which stay."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def as_users() -> Iterator[None]:
    """JAX as users have it, with programs that are kept between processes; for tests that patch nothing."""
    strict = {name: jax.config.values[name] for name in EASY}
    program_folder.use(KEPT)
    for name, value in EASY.items():
        jax.config.update(name, value)
    yield
    for name, value in strict.items():
        jax.config.update(name, value)
    program_folder.use(None)


@pytest.hookimpl(trylast=True)
def pytest_runtest_logfinish() -> None:
    """Forget compiled programs after a test, once they fill the memory."""
    if size() > LARGE:
        jax.clear_caches()
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)  # else the memory stays with the process


def size() -> int:
    """How many bytes of memory this process has; 0 where that is not told."""
    return int(STATUS.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if STATUS.exists() else 0
