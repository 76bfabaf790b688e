"""The table of a GPU, on tiny sizes: the programs for an accelerator, run here beside those for a CPU."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.setattr(jax, "default_backend", lambda: "cuda")
    yield importlib.import_module("gpu")
    jax.clear_caches()  # of programs that were traced for a GPU


@pytest.fixture
def tiny(gpu: Any) -> Any:
    return gpu.Plan((3,), inputs=4, learners=2, particles=8, seeds=2, rows=3, turns=1, copied=2**12)


@pytest.mark.thorough
def test_every_case_runs_and_agrees_with_a_cpu(gpu: Any, tiny: Any) -> None:
    device, _, *lines = gpu.table(tiny, list(gpu.GROUPS))
    assert device.startswith("cpu")
    assert len(lines) == len(gpu.HEAD) + len(gpu.GROUPS)
    for line in lines:
        assert line.count("|") == gpu.HEAD[0].count("|"), line
    for line in lines[len(gpu.HEAD) :]:
        assert line.endswith(" yes |"), line


def test_a_case_that_cannot_run_says_why(gpu: Any, tiny: Any) -> None:
    def build() -> None:
        raise MemoryError("too large\nand more")

    line = gpu.line(gpu.Case("one", 1000, build), tiny, 1e9)
    assert "| one | 1,000 | cannot run: MemoryError: too large |" in line
    assert line.count("|") == gpu.HEAD[0].count("|")


def test_what_must_move_is_the_belief_twice_and_the_gap_is_relative(gpu: Any, tiny: Any) -> None:
    def build() -> Any:
        belief = jnp.zeros(250_000, jnp.float32)
        return gpu.Stream(lambda belief, xs: belief, belief, (jnp.zeros(2),), lambda end: [end])

    line = gpu.line(gpu.Case("one", 1, build), tiny, 1e9)
    assert line.split("|")[4].strip() == "2.000"
    assert gpu.off([np.array([1.0, 9.0])], [np.array([1.0, 10.0])]) == pytest.approx(0.1)
