"""What each test costs: tracing, lowering, compiling and running, and how many programs it makes.

    python tests/costs.py                      # all folders, a line each
    python tests/costs.py tests/adapt          # the files of a folder
    python tests/costs.py tests/adapt --tests  # its 40 dearest tests
    python tests/costs.py --kept FOLDER        # tables of a run whose costs are kept in FOLDER

Seconds are processor time for a test and its child processes, and wall time for the parts that JAX reports,
so that on a busy machine the parts are too long. Where one part happens inside another, as tracing inside
tracing, its time is counted once. What child processes compile is not seen: it is part of "running".
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

FOLDER = "CREDO_COSTS"
"""The environment variable with the folder in which a run of the tests keeps its costs."""

EVENTS = {
    "/jax/core/compile/jaxpr_trace_duration": "tracing",
    "/jax/core/compile/jaxpr_to_mlir_module_duration": "lowering",
    "/jax/core/compile/backend_compile_duration": "compiling",
}
FOUND = "/jax/compilation_cache/cache_hits"


@dataclass
class Cost:
    """What one test costs.

    Attributes:
        name: the test, as pytest names it.
        seconds: processor time of the test, its fixtures and its child processes.
        wall: wall time of the same.
        tracing, lowering, compiling: wall time of what JAX does before it runs a program.
        programs: how many programs are compiled, or found among those that were kept.
        kept: how many of them were found.
    """

    name: str = ""
    seconds: float = 0.0
    wall: float = 0.0
    tracing: float = 0.0
    lowering: float = 0.0
    compiling: float = 0.0
    programs: int = 0
    kept: int = 0

    def add(self, other: Cost) -> None:
        """Add the numbers of another."""
        for part in fields(self):
            if part.name != "name":
                setattr(self, part.name, getattr(self, part.name) + getattr(other, part.name))


@dataclass
class Watch:
    """What JAX reports while tests run, as a plugin of pytest."""

    file: Path
    now: Cost = field(default_factory=Cost)
    spans: threading.local = field(default_factory=threading.local)

    def took(self, event: str, duration_secs: float, **_: object) -> None:
        """Count a part that has just ended, without the parts inside it."""
        part = EVENTS.get(event)
        if part is None:
            return
        end = time.perf_counter()
        start = end - duration_secs
        earlier: list[tuple[float, float]] = self.spans.__dict__.setdefault("ended", [])
        inside = 0.0
        while earlier and earlier[-1][0] >= start:
            inner_start, inner_end = earlier.pop()
            inside += inner_end - inner_start
        earlier.append((start, end))
        setattr(self.now, part, getattr(self.now, part) + duration_secs - inside)
        self.now.programs += part == "compiling"

    def happened(self, event: str, **_: object) -> None:
        """Count a program that was kept."""
        self.now.kept += event == FOUND

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Measure a test with its fixtures, and write its line."""
        self.now = Cost(item.nodeid)
        spent = _processor()
        start = time.perf_counter()
        try:
            return (yield)
        finally:
            self.now.seconds = _processor() - spent
            self.now.wall = time.perf_counter() - start
            with self.file.open("a") as file:
                file.write(json.dumps(asdict(self.now)) + "\n")


def _processor() -> float:
    """Processor time of this process and of the children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def pytest_configure(config: pytest.Config) -> None:
    """Watch where a folder for costs is named, but not in a process that deals tests out to others."""
    folder = os.environ.get(FOLDER)
    deals = config.getoption("numprocesses", None) and not hasattr(config, "workerinput")
    if not folder or deals:
        return
    import jax

    Path(folder).mkdir(parents=True, exist_ok=True)
    watch = Watch(Path(folder) / f"{os.getpid()}.jsonl")
    jax.monitoring.register_event_duration_secs_listener(watch.took)
    jax.monitoring.register_event_listener(watch.happened)
    config.pluginmanager.register(watch, "costs")


def read(folder: Path) -> list[Cost]:
    """The costs that a run has kept."""
    lines = [line for file in sorted(folder.glob("*.jsonl")) for line in file.read_text().splitlines()]
    return [Cost(**json.loads(line)) for line in lines]


def table(costs: Sequence[Cost], depth: int | None) -> str:
    """The table of groups of tests, the dearest first.

    `depth` is how many folders, the file among them, name a group; without it every test has its line.
    """
    groups: dict[str, Cost] = defaultdict(Cost)
    tests: dict[str, int] = defaultdict(int)
    for cost in costs:
        path, _, test = cost.name.partition("::")
        name = "/".join(path.split("/")[1:][:depth]) if depth else f"{path}::{test}"
        for group in (name, "all"):
            groups[group].add(cost)
            tests[group] += 1
    head = f"{'tests':>6} {'seconds':>8} {'tracing':>8} {'lowering':>8} {'compiling':>9} {'running':>8}"
    lines = [f"{head} {'programs':>8} {'kept':>6}"]
    for name, cost in sorted(groups.items(), key=lambda group: -group[1].seconds):
        before = cost.tracing + cost.lowering + cost.compiling
        numbers = f"{tests[name]:6} {cost.seconds:8.1f} {cost.tracing:8.1f} {cost.lowering:8.1f}"
        numbers += (
            f" {cost.compiling:9.1f} {max(cost.seconds - before, 0.0):8.1f} {cost.programs:8} {cost.kept:6}"
        )
        lines.append(f"{numbers}  {name}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the tests of some folders, and print what they cost."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folders", nargs="*", help="folders or files of tests; all by default")
    parser.add_argument("--tests", action="store_true", help="a line for each of the 40 dearest tests")
    parser.add_argument("--kept", type=Path, help="print what an earlier run kept here, and run nothing")
    parser.add_argument("--keep", type=Path, help="a folder to keep the costs in")
    parser.add_argument("--jobs", type=int, default=1, help="how many processes run tests")
    options, rest = parser.parse_known_args(arguments)
    status = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.kept or options.keep or Path(temporary)
        if options.kept is None:
            jobs = ["-n", str(options.jobs), "--dist", "worksteal"] if options.jobs > 1 else []
            command = [
                sys.executable,
                "-m",
                "pytest",
                "-q",
                "-p",
                "tests.costs",
                *jobs,
                *rest,
                *options.folders,
            ]
            status = subprocess.run(
                command, cwd=ROOT, env=os.environ | {FOLDER: str(folder.resolve())}
            ).returncode
        costs = read(folder)
    if not costs:
        print(f"there are no costs of tests in {folder}", file=sys.stderr)
        return status or 2
    depth = 1 if not options.folders else 9
    lines = table(costs, None if options.tests else depth).split("\n")
    print("\n".join(lines[:42] if options.tests else lines))
    return status


if __name__ == "__main__":
    sys.exit(main())
