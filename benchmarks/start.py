"""What does a start cost? Processor time and memory of new processes, in units of `import jax`.

    python benchmarks/start.py                               # the table; a quarter of an hour on two cores
    python benchmarks/start.py --only again --runs 5         # some of the cases, by their short names
    python benchmarks/start.py --only again --caches FOLDER  # with caches that are kept from call to call

A "cold" case begins with a new folder for caches in every run. The cases "again", "fast-again" and "other"
find what an earlier command left there, which is run once for them if it is not measured itself. Where a
folder for caches is kept, what is in it serves them. Each number is the median of the runs; `import jax` is
measured before each run, and its median is the unit.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

CLASSES = "uvwabcdefg"
FIRST = """
import numpy as np
from credo.estimators import RiverClassifier
model = RiverClassifier()
for row in np.random.default_rng(0).normal(size=(3, 10)):
    x = dict(zip("abcdefghij", row.tolist()))
    model.predict_proba_one(x)
    model.learn_one(x, "u" if row[0] > 0 else "v")
"""
UNIT = (sys.executable, "-c", "import jax")


class Table(NamedTuple):
    """A file of rows with numbers, and a class to predict or, where there are 0 classes, a number."""

    name: str
    rows: int
    columns: int
    classes: int

    def write(self, folder: Path) -> Path:
        """Write the file."""
        rng = np.random.default_rng(0)
        x = rng.normal(size=(self.rows, self.columns)).round(3)
        score = x[:, 0] + 0.5 * x[:, 1] * x[:, 2] + 0.3 * rng.normal(size=self.rows)
        targets = [str(number) for number in score.round(3).tolist()]
        if self.classes:
            edges = np.quantile(score, np.arange(1, self.classes) / self.classes)
            targets = [CLASSES[place] for place in np.digitize(score, edges).tolist()]
        head = ",".join([*(f"x{place}" for place in range(self.columns)), "y"])
        lines = [",".join([*map(str, row), target]) for row, target in zip(x.tolist(), targets, strict=True)]
        path = folder / f"{self.name}.csv"
        path.write_text("\n".join([head, *lines]) + "\n")
        return path


SMALL = Table("small", 100, 3, 3)
OTHER = Table("other", 100, 7, 5)
LONG = Table("long", 2000, 10, 2)


@dataclass(frozen=True)
class Case:
    """A row of the table.

    Attributes:
        words: what it is.
        must, aim: the bounds of its processor time, in units of `import jax`; None if there are none.
        table: the file that is learned, or None for another program.
        flags: further words of the command.
        after: the case whose caches it finds; empty for new ones.
        until_line: the line of standard output that ends it; 0 for the end of the program.
    """

    words: str
    must: float | None
    aim: float | None
    table: Table | None = SMALL
    flags: tuple[str, ...] = ()
    after: str = ""
    until_line: int = 0

    def command(self, folder: Path, out: Path) -> list[str]:
        """The words of the command."""
        if self.table is None:
            return [sys.executable, "-c", FIRST]
        credo = [sys.executable, "-m", "credo", "learn", str(folder / f"{self.table.name}.csv")]
        return [*credo, "--target", "y", "--out", str(out), *self.flags]


FAST = ("--budget", "fast")
FORECASTS = ("--predictions", "-")
CASES = {
    "learn": Case("`credo learn`, 100 rows, 3 columns, 3 classes, nothing kept", 14, 10),
    "again": Case("the same again", 4, 3, after="learn"),
    "other": Case("another file after that: 7 columns, 5 classes", 4, 3, OTHER, after="learn"),
    "fast": Case("`--budget fast`, nothing kept", 6, None, flags=FAST),
    "fast-again": Case("`--budget fast`, again", 4, None, flags=FAST, after="fast"),
    "long": Case("2,000 rows, 10 columns, 2 classes, nothing kept", 25, 18, LONG),
    "first": Case(
        "the first forecast on the screen, nothing kept", 9, 7, LONG, flags=FORECASTS, until_line=2
    ),
    "river": Case("`RiverClassifier()`, 3 rows, nothing kept", None, None, table=None),
    "river-again": Case("the same again", None, None, table=None, after="river"),
}


class Cost(NamedTuple):
    """Processor time in seconds, and the largest memory in MB."""

    seconds: float
    megabytes: float


def _until(output: IO[bytes], line: int, process: int) -> None:
    """Read the output of a process, and end it as soon as a line came."""
    for number, _ in enumerate(output, 1):
        if number == line:
            os.kill(process, signal.SIGKILL)


def measure(command: Sequence[str], caches: Path, until_line: int = 0) -> Cost:
    """The cost of a process with the processes that it waited for, up to its end or to a line of output."""
    others = ("CREDO_", "JAX_", "PYTHONDONT")
    given = {k: v for k, v in os.environ.items() if k == "CREDO_DATA_DIR" or not k.startswith(others)}
    environment: Mapping[str, str] = given | {"CREDO_CACHE_DIR": str(caches)}
    with tempfile.TemporaryFile() as errors:
        child = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=errors)
        assert child.stdout is not None
        reader = threading.Thread(target=_until, args=(child.stdout, until_line, child.pid))
        reader.start()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        reader.join()
        child.stdout.close()
        expected = -signal.SIGKILL if until_line else 0
        if child.returncode != expected:
            errors.seek(0)
            raise SystemExit(f"{' '.join(command)} ended with {child.returncode}: {errors.read().decode()}")
    resident = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return Cost(usage.ru_utime + usage.ru_stime, resident / 1e6)


class Bench:
    """The cases that are measured, and the folders in which they run."""

    def __init__(self, folder: Path, measured: Sequence[str], kept: Path | None) -> None:
        self.folder = folder
        self.measured = measured
        self.filled = kept or folder / "filled"
        self.turn = 0
        for table in (SMALL, OTHER, LONG):
            table.write(folder)

    def caches(self, name: str) -> Path:
        """The folder for caches of a case: one for each run if it is measured, and otherwise one for all."""
        return (self.folder / f"run-{self.turn}" if name in self.measured else self.filled) / name

    def run(self, name: str) -> Cost:
        """Run a case, and before it the one whose caches it finds unless that is done."""
        case = CASES[name]
        caches = self.caches(case.after or name)
        if case.after and not caches.is_dir():
            self.run(case.after)
        if case.after and case.table is not CASES[case.after].table:
            earlier = caches
            caches = self.caches(name)
            shutil.copytree(earlier, caches)
        with tempfile.TemporaryDirectory(dir=self.folder) as out:
            return measure(case.command(self.folder, Path(out) / "run"), caches, case.until_line)


def main() -> None:
    """Run the cases and print a table."""
    parser = argparse.ArgumentParser(description="The cost of a start.")
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES), metavar="CASE")
    parser.add_argument("--runs", type=int, default=3, help="runs of each case; their median is printed")
    parser.add_argument("--caches", type=Path, help="a folder for caches that is kept")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        bench = Bench(Path(place), options.only, options.caches)
        units = []
        costs: dict[str, list[Cost]] = {name: [] for name in options.only}
        for bench.turn in range(options.runs):
            for name, found in costs.items():
                units.append(measure(UNIT, Path(place)).seconds)
                found.append(bench.run(name))
    unit = statistics.median(units)
    print(f"`import jax` takes {unit:.2f} s of processor time (from {min(units):.2f} to {max(units):.2f}).\n")
    print(
        "| case | x `import jax` | must | aim | seconds | from | to | MB |\n|---|--:|--:|--:|--:|--:|--:|--:|"
    )
    for name, found in costs.items():
        case = CASES[name]
        seconds = sorted(one.seconds for one in found)
        middle = statistics.median(seconds)
        memory = statistics.median(one.megabytes for one in found)
        bounds = " | ".join("" if bound is None else f"{bound:g}" for bound in (case.must, case.aim))
        print(
            f"| {case.words} ({name}) | {middle / unit:.1f} | {bounds} | {middle:.2f} | {seconds[0]:.2f} "
            f"| {seconds[-1]:.2f} | {memory:,.0f} |"
        )


if __name__ == "__main__":
    main()
