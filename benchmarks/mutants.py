"""Would the tests notice? Mutants of the package, each run against the tests that can see it.

    python benchmarks/mutants.py --count 200 --seed 0 --jobs 2          # goes on where it stopped
    python benchmarks/mutants.py --count 30 --others                    # does `make affected` miss a test?
    python benchmarks/mutants.py --rooms linalg,dynamics --count 20     # some rooms
    python benchmarks/mutants.py --show                                 # the choice only, nothing is run

Every mutant (see `mutations.py`) is applied in a copy of the package, which stands first on the PYTHONPATH.
The tests are those that `tests/affected.py` selects for the changed file, nearest first by the names in it:
those of `make test`, then those that only `make test-all` runs (the examples in docstrings, slow tests, and
tests with optimised programs). With --others a survivor meets the remaining tests of `make test` as well:
where one of them notices it, the selection has a hole.

A test that fails counts if it passes without the mutant. A stage in which no test ends for some minutes,
longer than pytest lets a test take, counts as noticed; one that still runs at its time limit does not, and
the verdict names it. Verdicts are kept in a file, one line a mutant, from which a later call goes on. A
survivor is either a gap in the tests or a change that changes nothing; a person must tell these apart.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import functools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import Literal, TypeAlias

from mutations import Mutation, choose

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tests.affected_graph import Graph

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "credo"

NEAREST = 3
"""How many files of tests run first."""

STANDSTILL = 400.0
"""Seconds without an ended test that count as noticed; pytest stops a test after 300 of its own accord."""

EXAMPLES = "examples"
"""The stage of the examples in docstrings, which are in the copy itself."""

ALLOWED = 0.05
"""The share of mutants that may survive."""

Tier: TypeAlias = Literal["test", "all", "others", "neither"]
"""What notices a mutant: `make test`, `make test-all` only, a test that was not selected, or nothing."""

COLUMNS: dict[Tier, str] = {
    "test": "make test",
    "all": "make test-all",
    "others": "others",
    "neither": "neither",
}


_FAILED = r"^(?:FAILED|ERROR) ([^\s:]+(?:::[^\s\[]+)*(?:\[.*?\](?= - |$))?)"
"""A line of pytest with the name of a test, behind which there may be a reason."""


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant.

    Attributes:
        name: its name.
        room: the room of its file.
        tier: what noticed it.
        by: the stage and the test that noticed it, empty for a survivor.
        unfinished: the stages that ran out of time.
        seconds: how long all took.
        diff: the change.
    """

    name: str
    room: str
    tier: Tier
    by: str
    unfinished: list[str]
    seconds: float
    diff: str

    @property
    def late(self) -> str:
        """What is said of stages that ran out of time."""
        if self.unfinished:
            return f" (out of time: {', '.join(self.unfinished)})"
        return ""


@dataclass(frozen=True)
class Stage:
    """Tests that run together: what they belong to, their name, their `CREDO_TESTS`, and their files."""

    tier: Tier
    name: str
    mode: str
    files: list[str]


@dataclass(frozen=True)
class Outcome:
    """How a stage ended; where a test failed, with its name."""

    end: Literal["passed", "failed", "standstill", "out of time"]
    test: str = ""


@dataclass
class Plan:
    """How mutants are run.

    Attributes:
        graph: what depends on what.
        folder: where the copies of the package lie.
        limit: seconds for one stage.
        others: whether a survivor meets the tests that were not selected.
        sound: whether tests that failed with a mutant pass without one, as far as known.
    """

    graph: Graph
    folder: Path
    limit: float
    others: bool
    sound: dict[str, bool] = field(default_factory=dict)

    @property
    def clean(self) -> Path:
        """The copy that is not changed."""
        return self.folder / "clean"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the mutants that have no verdict yet, and print the table; 1 where too many survive."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--count", type=int, default=200, help="how many mutants")
    parser.add_argument("--seed", type=int, default=0, help="the seed of their choice")
    parser.add_argument("--rooms", default="", help="the rooms to choose from, with commas; all by default")
    parser.add_argument("--jobs", type=int, default=2, help="how many run side by side")
    parser.add_argument("--timeout", type=float, default=3600.0, help="seconds for one stage of tests")
    parser.add_argument("--others", action="store_true", help="show survivors to the remaining tests, too")
    parser.add_argument(
        "--out", type=Path, default=ROOT / "runs" / "mutants.jsonl", help="the file of verdicts"
    )
    parser.add_argument("--show", action="store_true", help="print the choice, and run nothing")
    options = parser.parse_args(arguments)
    rooms = [room for room in options.rooms.split(",") if room]
    for room in rooms:
        if not (PACKAGE / room).is_dir():
            parser.error(f"there is no room {room!r}")
    chosen = choose(PACKAGE, options.count, options.seed, rooms)
    graph = Graph(ROOT)
    if options.show:
        for mutation in chosen:
            print(mutation.name, *nearest_first(graph, mutation)[:NEAREST])
        return 0
    options.out.parent.mkdir(parents=True, exist_ok=True)
    known = dict(_read(options.out))
    left = [mutation for mutation in chosen if mutation.name not in known]
    print(f"{len(chosen)} mutants, of which {len(chosen) - len(left)} have their verdict", flush=True)
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        _run_all(left, Plan(graph, Path(folder), options.timeout, options.others), options.jobs, options.out)
    known = dict(_read(options.out))
    return report([known[mutation.name] for mutation in chosen if mutation.name in known])


def _read(path: Path) -> Iterator[tuple[str, Verdict]]:
    for line in path.read_text().splitlines() if path.exists() else []:
        verdict = Verdict(**json.loads(line))
        yield verdict.name, verdict


def _run_all(mutants: Sequence[Mutation], plan: Plan, jobs: int, out: Path) -> None:
    """Run mutants side by side, each in one of `jobs` copies of the package."""
    lock = threading.Lock()
    copies = SimpleQueue[Path]()
    for place in (plan.clean, *(plan.folder / str(number) for number in range(jobs))):
        shutil.copytree(PACKAGE, place / "credo", ignore=shutil.ignore_patterns("__pycache__"))
        if place != plan.clean:
            copies.put(place)

    def one(mutation: Mutation) -> None:
        place = copies.get()
        verdict = judge(mutation, place, plan)
        copies.put(place)
        with lock, out.open("a") as file:
            file.write(json.dumps(asdict(verdict)) + "\n")
            word = f"{COLUMNS[verdict.tier]}: {verdict.by}" if verdict.by else "SURVIVED"
            print(f"{verdict.seconds:6.0f} s  {mutation.name}: {word}{verdict.late}", flush=True)

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(one, mutants))


def judge(mutation: Mutation, place: Path, plan: Plan) -> Verdict:
    """Run the stages of tests against one mutant until one notices."""
    file = place / "credo" / mutation.path
    start = time.monotonic()
    source = file.read_bytes()
    changed = mutation.apply(source)
    file.write_bytes(changed)
    tier: Tier = "neither"
    by = ""
    unfinished = list[str]()
    try:
        for stage in stages(plan.graph, mutation, place, plan.others):
            outcome = noticed(stage, place, plan)
            if outcome.end == "out of time":
                unfinished.append(stage.name)
            elif outcome.end != "passed":
                tier = stage.tier
                by = f"{stage.name}: {outcome.test or outcome.end}"
                break
    finally:
        file.write_bytes(source)
    before = source.decode().splitlines()
    after = changed.decode().splitlines()
    diff = "\n".join(list(difflib.unified_diff(before, after, lineterm="", n=1))[2:])
    seconds = round(time.monotonic() - start, 1)
    return Verdict(mutation.name, mutation.path.split("/")[0], tier, by, unfinished, seconds, diff)


def stages(graph: Graph, mutation: Mutation, place: Path, others: bool) -> list[Stage]:
    """The stages of tests for a mutant in a copy of the package."""
    tests = nearest_first(graph, mutation)
    left = [test for test in graph.tests if test not in tests] if others else []
    examples = [str(place / "credo" / path) for path in _examples(graph, mutation)]
    found = [
        Stage("test", "nearest", "quick", tests[:NEAREST]),
        Stage("test", "quick", "quick", tests[NEAREST:]),
        Stage("all", EXAMPLES, "quick", examples),
        Stage("all", "slow", "slow", tests),
        Stage("all", "optimised", "optimised", tests),
        Stage("others", "others", "quick", left),
    ]
    return [stage for stage in found if stage.files]


def nearest_first(graph: Graph, mutation: Mutation) -> list[str]:
    """The tests that depend on the changed file, first those that use most of the names in it."""
    room = mutation.path.split("/")[0]
    stem = Path(mutation.path).stem
    names = _names(PACKAGE / mutation.path)

    def nearness(test: str) -> tuple[bool, int, bool]:
        words = _words(ROOT / test)
        return stem in Path(test).stem, sum(name in words for name in names), room in Path(test).parts

    return sorted(graph.affected(_nodes(mutation)), key=nearness, reverse=True)


def _nodes(mutation: Mutation) -> list[str]:
    path = f"src/credo/{mutation.path}"
    return [path, f"{path}::"]


def _examples(graph: Graph, mutation: Mutation) -> list[str]:
    """The files of the package with examples that depend on the changed file: itself first, then its room."""
    reached = graph.reaching(_nodes(mutation))
    files = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))
    found = [path for path in files if f"src/credo/{path}#" in reached and ">>> " in _text(PACKAGE / path)]
    room = mutation.path.split("/")[0]
    return sorted(found, key=lambda path: (path != mutation.path, path.split("/")[0] != room))


@functools.cache
def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@functools.cache
def _words(path: Path) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", _text(path)))


@functools.cache
def _names(path: Path) -> list[str]:
    """The public names that a file defines, and its module's own."""
    nodes = [
        node for node in ast.walk(ast.parse(_text(path))) if isinstance(node, ast.ClassDef | ast.FunctionDef)
    ]
    return [path.stem, *(node.name for node in nodes if not node.name.startswith("_") and len(node.name) > 3)]


def noticed(stage: Stage, place: Path, plan: Plan) -> Outcome:
    """How a stage ends with a mutant, without the tests that fail without it."""
    broken: list[str] = []
    while True:
        left_out = [word for test in broken for word in ("--deselect", test)]
        outcome = run(
            _pytest(stage, place, [*stage.files, *left_out]), _environment(stage, place), plan.limit
        )
        if not outcome.test:
            if outcome.end == "failed":
                _require_collected(stage, plan)
            return outcome
        test = outcome.test.removeprefix(f"{os.path.relpath(place, ROOT)}/")
        key = f"{stage.mode} {test}"
        if key not in plan.sound:
            file = f"{plan.clean}/{test}" if stage.name == EXAMPLES else test
            alone = run(_pytest(stage, plan.clean, [file]), _environment(stage, plan.clean), plan.limit)
            plan.sound[key] = not alone.test  # one that is not found has its name from the mutant
        if plan.sound[key] or test in broken:
            return Outcome("failed", test)
        broken.append(test)
        print(f"        {test} fails without a mutant, too", flush=True)


def _require_collected(stage: Stage, plan: Plan) -> None:
    """Stop where pytest cannot even collect the tests of a stage, which is no merit of a mutant."""
    command = _pytest(stage, plan.clean, ["--collect-only", *stage.files])
    if run(command, _environment(stage, plan.clean), plan.limit).end != "passed":
        raise RuntimeError(f"{' '.join(command)} fails without a mutant")


def _pytest(stage: Stage, place: Path, arguments: Sequence[str]) -> list[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "--tb=no", "-p", "no:cacheprovider"]
    command += ["-c", str(ROOT / "pyproject.toml"), "--rootdir"]
    if stage.name == EXAMPLES:
        # A module that is imported twice has two classes of every name: `append` imports it once.
        own = ["-p", "tests.haste", "--import-mode=append", "--doctest-modules"]
        return [*command, str(place), *own, *arguments]
    return [*command, str(ROOT), *arguments]


def _environment(stage: Stage, place: Path) -> dict[str, str]:
    return os.environ | {
        "PYTHONPATH": f"{place}{os.pathsep}{ROOT}",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
        "CREDO_TESTS": stage.mode,
    }


def run(
    command: Sequence[str], environment: dict[str, str], limit: float, standstill: float = STANDSTILL
) -> Outcome:
    """Run pytest until it ends, until it says nothing for too long, or until its time is over."""
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=said, stderr=said, start_new_session=True
        )
        start = last = time.monotonic()
        length = 0
        while process.poll() is None:
            now = time.monotonic()
            size = os.fstat(said.fileno()).st_size
            if size != length:
                last = now
                length = size
            if now - last > standstill or now - start > limit:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                return Outcome("standstill" if now - last > standstill else "out of time")
            time.sleep(min(0.2, standstill / 10))
        said.seek(0)
        output = said.read().decode(errors="replace")
    if process.returncode in (0, 5):  # 5: no test was selected
        return Outcome("passed")
    found = re.search(_FAILED, output, re.MULTILINE)
    return Outcome("failed", found.group(1) if found else "")


def report(verdicts: Sequence[Verdict]) -> int:
    """Print the table and the diffs of the survivors."""
    tiers: list[Tier] = [
        tier for tier in COLUMNS if tier != "others" or any(one.tier == tier for one in verdicts)
    ]
    print(f"\n{'room':14} {'mutants':>8}", *(f"{COLUMNS[tier]:>13}" for tier in tiers), f"{'survived':>9}")
    for room in [*sorted({verdict.room for verdict in verdicts}), "all"]:
        here = [verdict.tier for verdict in verdicts if room in (verdict.room, "all")]
        share = here.count("neither") / max(len(here), 1)
        print(f"{room:14} {len(here):8}", *(f"{here.count(tier):13}" for tier in tiers), f"{share:9.1%}")
    for verdict in verdicts:
        if verdict.tier in ("neither", "others"):
            print(f"\n{verdict.name} {verdict.by}".rstrip() + verdict.late, verdict.diff, sep="\n")
    late = sum(bool(verdict.unfinished) for verdict in verdicts)
    share = sum(verdict.tier == "neither" for verdict in verdicts) / max(len(verdicts), 1)
    print(f"\n{share:.1%} survived; at most {ALLOWED:.0%} may.")
    if late:
        print(f"{late} met a stage that ran out of time.")
    return int(share > ALLOWED)


if __name__ == "__main__":
    sys.exit(main())
