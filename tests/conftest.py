"""What every test shares: strict JAX, a compilation cache, and a small Hypothesis profile.

The environment is set before JAX is imported, so that the worker processes of pytest-xdist agree with it.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import hypothesis
import jax
import pytest

ROOT = Path(__file__).resolve().parent.parent

# Closed forms are compared to 1e-10, so tests run in double precision; a test of single precision says so
# through its dtypes. Silent broadcasting of ranks and silent promotion of dtypes are errors.
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")

# Programs that take longer than this to compile are kept between runs.
jax.config.update("jax_compilation_cache_dir", str(ROOT / ".pytest_cache" / "jax"))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)

hypothesis.settings.register_profile("ci", deadline=None, max_examples=20, derandomize=True, print_blob=True)
hypothesis.settings.register_profile("thorough", deadline=None, max_examples=500)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

# Every compiled program holds some memory maps, of which Linux gives a process 65,530; past those, compiling
# crashes.
MAPS, MANY_MAPS = Path("/proc/self/maps"), 30_000


@pytest.fixture(autouse=True, scope="module")
def few_compiled_programs() -> Iterator[None]:
    """Forget compiled programs after a module, once there are many."""
    yield
    if MAPS.exists() and MAPS.read_bytes().count(b"\n") > MANY_MAPS:
        jax.clear_caches()
        gc.collect()
