"""Programs compiled in haste: imported before JAX, by the tests and, as a plugin, by the run of the examples.

Options of the compiler change with its version, and an unknown one is an error: elsewhere, there is no haste.
"""

from __future__ import annotations

import importlib.metadata
import os
from pathlib import Path

FLAGS = (
    "--xla_cpu_use_fusion_emitters=false",
    "--xla_backend_optimization_level=0",
    "--xla_llvm_disable_expensive_passes=true",
)
KNOWN = importlib.metadata.version("jaxlib").startswith("0.9.")
ASKED = os.environ.get("CREDO_TESTS", "hasty")
OPTIMISED = ASKED in ("optimised", "thorough")

CACHE = Path(__file__).parent.parent / ".pytest_cache" / "jax"

os.environ.setdefault("JAX_PLATFORMS", "cpu")
# Compiled programs are kept here, not in the user's folder.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(CACHE))
if KNOWN and not OPTIMISED and FLAGS[0] not in os.environ.get("XLA_FLAGS", ""):
    os.environ["XLA_FLAGS"] = " ".join([os.environ.get("XLA_FLAGS", ""), *FLAGS]).strip()
