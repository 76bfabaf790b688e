"""Where does the time of a compiled stream go? Its kernels, by JAX's profiler.

    python benchmarks/kernels.py                          # the names of the cases
    python benchmarks/kernels.py "bank, 3 classes"        # the 20 kernels that cost most

The cases are those of `before_after.py`. A kernel is a loop that XLA compiled, or a call of LAPACK, started
one after another at .2 to .4 us each. Times are those of a run that is traced, a half longer than one that is
not: compare them with each other. Beside them stand counts in the program, which no load disturbs, and
`scalar`, how many exponentials or logarithms a kernel takes of single numbers: XLA unrolls an innermost loop
of up to about 40 numbers, and then no longer takes eight at once, so that each costs ten times as much.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

from before_after import NAMES, stream_of

SHOWN = 20
"""How many kernels are shown."""

COUNTED = ("fusion", "dot", "custom-call", "reduce", "while", "conditional", "sort", "gather", "scatter")
"""The operations of a compiled program that are counted."""

CONTROL = ("while", "cond", "conditional", "call")
"""What runs kernels, and is none."""


def counts(text: str) -> dict[str, int]:
    """How often a compiled program, as text, has each operation that is counted."""
    found = re.findall(r"= \S+ ([a-z-]+)\(", text)
    return {name: found.count(name) for name in COUNTED if name in found}


def scalar_kernels(folder: Path) -> dict[str, int]:
    """The kernels in a dump of XLA that have exponentials or logarithms of single numbers, and how many."""
    found = {}
    for file in folder.glob("*ir-with-opt.ll"):
        code = file.read_text(encoding="utf-8")
        name = re.search(r"\.jit_\w*\.([\w.-]+)_kernel_module", file.name)
        singles = len(re.findall(r"call <1 x float> @llvm\.floor|call float @llvm\.floor", code))
        if name and singles and ("exp_f32" in code or "log_f32" in code):
            found[name.group(1)] = singles
    return found


def times(run: Any) -> dict[str, tuple[int, float]]:
    """How often each kernel ran, and its mean microseconds, in one run that is traced."""
    import jax

    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            run()
        (trace,) = Path(folder).rglob("*.trace.json.gz")
        events = json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"]
    sums: dict[str, list[float]] = defaultdict(list)
    for event in events:
        inside = event.get("name", "").partition(".")[0] not in CONTROL
        if inside and "dur" in event and event.get("args", {}).get("hlo_op"):
            sums[event["name"]].append(event["dur"])
    return {name: (len(each), sum(each) / len(each)) for name, each in sums.items()}


def main() -> None:
    """Print the kernels of a case."""
    if len(sys.argv) != 2 or sys.argv[1] not in NAMES:
        sys.exit("name a case: " + "; ".join(NAMES))
    with tempfile.TemporaryDirectory() as dump:
        os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_dump_to={dump}"
        os.environ["JAX_ENABLE_COMPILATION_CACHE"] = "false"
        run, rows = stream_of(sys.argv[1])
        programs = [file.read_text("utf-8") for file in Path(dump).glob("*cpu_after_optimizations.txt")]
        scalar = scalar_kernels(Path(dump))
    each = times(run)
    ranked = sorted(each.items(), key=lambda item: -item[1][0] * item[1][1])
    started = sum(count for count, _ in each.values()) / rows
    print(f"{len(each)} kernels, {started:.0f} starts a row; in the largest program:")
    print(", ".join(f"{count} {name}" for name, count in counts(max(programs, key=len)).items()))
    print(f"{'kernel':60} {'a row':>7} {'us':>8} {'us a row':>9}  scalar")
    for name, (count, mean) in ranked[:SHOWN]:
        single = scalar.get(name, 0) or ""
        print(f"{name[:60]:60} {count / rows:7.1f} {mean:8.2f} {count * mean / rows:9.2f}  {single}")


if __name__ == "__main__":
    main()
