"""What the benchmark of kernels reads in a compiled program."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("kernels")


def test_operations_are_counted_by_their_names(kernels: Any) -> None:
    lines = (
        "%a.1 = f32[3]{0} fusion(%b), kind=kLoop",
        "ROOT %c = f32[] dot(%a.1, %b)",
        "%d = f32[3] fusion(%c)",
    )
    assert kernels.counts("\n".join(lines)) == {"fusion": 2, "dot": 1}


def test_exponentials_of_single_numbers_are_found_by_their_kernel(kernels: Any, tmp_path: Path) -> None:
    one = "%exp_f32.i = fmul <1 x float> %x, splat (float 1.0)\n%1 = call <1 x float> @llvm.floor.v1f32(%x)\n"
    eight = one.replace("<1 x float>", "<8 x float>")
    for name, code in (("exp_fusion.1", 2 * one), ("fast_fusion", eight), ("add_fusion", "fadd float")):
        (tmp_path / f"module_0001.jit_run.{name}_kernel_module.ir-with-opt.ll").write_text(code)
    assert kernels.scalar_kernels(tmp_path) == {"exp_fusion.1": 2}
