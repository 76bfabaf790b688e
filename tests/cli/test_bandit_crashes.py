"""`credo bandit decide` that is killed under a writer; `benchmarks/soak_bandit.py` does it thirty times."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "benchmarks" / "soak_bandit.py"


@pytest.mark.slow
def test_nothing_that_was_acknowledged_is_lost_when_the_command_is_killed(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("soak_bandit", SOURCE)
    assert spec is not None and spec.loader is not None
    loop = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = loop
    spec.loader.exec_module(loop)
    counts, wrong = loop.soak(
        tmp_path, kills=2, seed=3, options=["--agent", "linear", "--policy", "thompson"]
    )
    assert not wrong and counts["kills"] == 2
    assert counts["decisions"] > 100 and counts["learned"] > 50 and counts["expired"] and counts["duplicate"]
