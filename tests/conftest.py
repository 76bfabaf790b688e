"""What every test shares: strict JAX, programs compiled in haste, and a small Hypothesis profile.

The environment is set before JAX is imported, so that the worker processes of pytest-xdist agree with it.

Most of the time of the tests goes into compiling. So programs are compiled in haste (half the time), but for
the tests marked `optimised`, which need them as users get them: those that compare bits, and those that run
long. `make tests` runs the two kinds one after the other; `CREDO_TESTS=optimised` asks for the second. Tests
marked `thorough` go through more of what another test samples: `make thorough` runs them, optimised.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path

from tests.haste import ASKED, FLAGS, OPTIMISED

# isort: split
import hypothesis
import jax
import pytest

from credo.core import program_folder
from credo.recipes import defaults

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

# A test may change a constant, which no digest of a program notices: in this process, programs are compiled.
program_folder.use(None)

hypothesis.settings.register_profile("ci", deadline=None, max_examples=20, derandomize=True, print_blob=True)
hypothesis.settings.register_profile("thorough", deadline=None, max_examples=500)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

# Where a test chooses no learner it takes a single one, which compiles in a quarter of the time of a bank.
defaults.USUAL = "mlp:20"

# Tracing makes many small objects, few of which are rubbish: looking for it less often saves 7% of the time.
gc.set_threshold(100_000, 20, 20)

# Every compiled program holds some memory maps, of which Linux gives a process 65,530; past those, compiling
# crashes.
MAPS, MANY_MAPS = Path("/proc/self/maps"), 30_000


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests marked `optimised`, `thorough` or `crash` are skipped where nobody asked for them."""
    for item in items:
        if item.get_closest_marker("crash") and "crash" not in str(config.getoption("markexpr")):
            item.add_marker(pytest.mark.skip(reason="runs with -m crash"))
        if item.get_closest_marker("thorough") and ASKED != "thorough":
            item.add_marker(pytest.mark.skip(reason="runs with CREDO_TESTS=thorough"))
    if FLAGS and not OPTIMISED:
        for item in items:
            if item.get_closest_marker("optimised"):
                item.add_marker(pytest.mark.skip(reason="runs with CREDO_TESTS=optimised"))


@pytest.fixture(autouse=True)
def usual_learner(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests marked `bank` have the bank that users get where they choose no learner."""
    if request.node.get_closest_marker("bank"):
        monkeypatch.setattr(defaults, "USUAL", "bank")


@pytest.fixture(autouse=True, scope="module")
def few_compiled_programs() -> Iterator[None]:
    """Forget compiled programs after a module, once there are many."""
    yield
    if MAPS.exists() and MAPS.read_bytes().count(b"\n") > MANY_MAPS:
        jax.clear_caches()
        gc.collect()
