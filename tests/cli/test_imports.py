"""Imports: a command waits only for what it uses."""

from __future__ import annotations

import subprocess
import sys

import pytest

SELDOM = {"matplotlib", "narwhals", "optax", "pandas", "polars", "pyarrow", "scipy", "sklearn"}
"""What takes from a tenth to all of the time of JAX to import, and is for some runs."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "modules", ["credo.cli.app", "credo.cli.app, credo.cli.learning, credo.cli.prediction"]
)
def test_a_command_imports_only_what_every_run_needs(modules: str) -> None:
    asked = f"import sys, {modules}; print(*{{name.split('.')[0] for name in sys.modules}})"
    found = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    loaded = set(found.stdout.split())
    assert "credo" in loaded and not loaded & SELDOM
    assert ("jax" in loaded) == ("learning" in modules)
