"""Programs compiled in haste: imported before JAX, by the tests and, as a plugin, by the run of the examples.

Options of the compiler change with its version, and an unknown one is an error: elsewhere, there is no haste.
"""

from __future__ import annotations

import importlib.metadata
import os
from pathlib import Path

VERSION = importlib.metadata.version("jaxlib")
KNOWN = VERSION.startswith("0.9.")
"""Whether the operations of compiled programs can be counted: the counts are those of this version."""

_QUICK = (
    "--xla_backend_optimization_level=0",
    "--xla_llvm_disable_expensive_passes=true",
    "--xla_cpu_parallel_codegen_split_count=1",  # a program in one part: a quarter less work for small ones
)
FLAGS = {"0.9": ("--xla_cpu_use_fusion_emitters=false", *_QUICK), "0.12": _QUICK}.get(
    ".".join(VERSION.split(".")[:2]), ()
)
"""What compiles in haste; nothing for a version that these options were not tried with."""

# From JAX 0.12 on, a loop over less than a kilobyte is one kernel of its own, whose last bits may differ from
# those of a step (docs/how-to/performance.md). The tests compare bits on rows that are so few.
SAME_BITS = "--xla_backend_extra_options=xla_cpu_small_while_loop_byte_threshold=0"

ASKED = os.environ.get("CREDO_TESTS", "quick")
"""The tier of tests that runs (`tests/tiers.py`)."""

OPTIMISED = ASKED in ("optimised", "thorough")

CACHE = Path(__file__).parent.parent / ".pytest_cache" / "jax"

os.environ.setdefault("JAX_PLATFORMS", "cpu")
# Between two small products of matrices the threads of OpenBLAS wait busily, a fifth of the processor time of
# the tests, and take the core of the other process that runs tests.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Each operation of a program remembers ten frames of Python, which takes a tenth of the time to lower it.
os.environ.setdefault("JAX_TRACEBACK_IN_LOCATIONS_LIMIT", "0")
# Compiled programs are kept here, not in the user's folder.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(CACHE))
_WANTED = (() if OPTIMISED else FLAGS) + (() if KNOWN else (SAME_BITS,))
_GIVEN = os.environ.get("XLA_FLAGS", "")
os.environ["XLA_FLAGS"] = " ".join([_GIVEN, *(flag for flag in _WANTED if flag not in _GIVEN)]).strip()
