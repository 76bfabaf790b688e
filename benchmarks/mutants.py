"""Would the tests notice? Mutants of the package, each run against the tests nearest to it.

    python benchmarks/mutants.py --count 100 --seed 0 --jobs 2      # goes on where it stopped
    python benchmarks/mutants.py --show                             # the choice only, nothing is run

Every mutant (see `mutations.py`) is applied in a copy of the package, which stands first on the PYTHONPATH.
First the test files nearest to the changed file run, which are found by their names and by the names that
they use; where the mutant survives, the other tests of its room and of the rooms that build on it; and where
it survives those, the room's tests that run with optimised programs. The tests must pass without a mutant:
run them first. Results are kept in a file, one line a mutant, from which a later call goes on. A survivor is
either a gap in the tests or a change that changes nothing; a person must tell these apart.
"""

from __future__ import annotations

import argparse
import ast
import difflib
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
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue

from mutations import Mutation, choose

ROOT = Path(__file__).resolve().parent.parent
PACKAGE, TESTS = ROOT / "src" / "credo", ROOT / "tests"

ABOVE = {
    "linalg": ("covariances", "learners"),
    "covariances": ("learners", "streams"),
    "beliefs": ("learners", "streams", "adapt"),
    "likelihoods": ("learners", "metrics"),
    "dynamics": ("learners", "adapt"),
    "models": ("covariances", "learners", "streams"),
    "learners": ("covariances", "streams", "adapt", "ekf"),
    "metrics": ("streams", "sessions"),
    "tables": ("sessions", "cli"),
    "sessions": ("cli",),
    "streams": ("adapt", "sessions"),
    "core": ("learners", "streams", "tables"),
}
"""The rooms whose tests run after those of a room."""

NEAREST = 3
"""How many files of tests run first."""

ALLOWED = 0.05
"""The share of mutants that may survive."""


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant: `by` is the stage and the test that noticed it, empty for a survivor."""

    name: str
    room: str
    killed: bool
    by: str
    seconds: float
    diff: str


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the mutants that have no verdict yet, and print the table; 1 where too many survive."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--count", type=int, default=100, help="how many mutants")
    parser.add_argument("--seed", type=int, default=0, help="the seed of their choice")
    parser.add_argument("--jobs", type=int, default=2, help="how many run side by side")
    parser.add_argument("--timeout", type=float, default=900.0, help="seconds for one stage of tests")
    parser.add_argument(
        "--out", type=Path, default=ROOT / "runs" / "mutants.jsonl", help="the file of verdicts"
    )
    parser.add_argument("--show", action="store_true", help="print the choice, and run nothing")
    options = parser.parse_args(arguments)
    chosen = choose(PACKAGE, options.count, options.seed)
    if options.show:
        for mutation in chosen:
            print(mutation.name, *_stages(mutation)[0][1][-NEAREST:])
        return 0
    options.out.parent.mkdir(parents=True, exist_ok=True)
    known = dict(_read(options.out))
    left = [mutation for mutation in chosen if mutation.name not in known]
    print(f"{len(chosen)} mutants, of which {len(chosen) - len(left)} have their verdict", flush=True)
    _run_all(left, options.jobs, options.timeout, options.out)
    known = dict(_read(options.out))
    return _report([known[mutation.name] for mutation in chosen if mutation.name in known])


def _read(path: Path) -> Iterator[tuple[str, Verdict]]:
    for line in path.read_text().splitlines() if path.exists() else []:
        verdict = Verdict(**json.loads(line))
        yield verdict.name, verdict


def _run_all(mutants: Sequence[Mutation], jobs: int, timeout: float, out: Path) -> None:
    """Run mutants side by side, each in one of `jobs` copies of the package."""
    lock, copies = threading.Lock(), SimpleQueue[Path]()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        for number in range(jobs):
            copies.put(Path(folder) / str(number))
            shutil.copytree(PACKAGE, Path(folder) / str(number) / "credo", ignore=_caches)

        def one(mutation: Mutation) -> None:
            place = copies.get()
            verdict = _judge(mutation, place, timeout)
            copies.put(place)
            with lock, out.open("a") as file:
                file.write(json.dumps(asdict(verdict)) + "\n")
                word = f"killed by {verdict.by}" if verdict.killed else "SURVIVED"
                print(f"{verdict.seconds:6.0f} s  {mutation.name}: {word}", flush=True)

        with ThreadPoolExecutor(jobs) as pool:
            list(pool.map(one, mutants))


_caches = shutil.ignore_patterns("__pycache__")


def _judge(mutation: Mutation, place: Path, timeout: float) -> Verdict:
    """Run the stages of tests against one mutant until one notices."""
    file, start = place / "credo" / mutation.path, time.monotonic()
    source = file.read_bytes()
    changed = mutation.apply(source)
    file.write_bytes(changed)
    by = ""
    try:
        for stage, command, mode in _stages(mutation):
            by = _noticed(command, place, mode, timeout)
            if by:
                by = f"{stage}: {by}"
                break
    finally:
        file.write_bytes(source)
    before, after = source.decode().splitlines(), changed.decode().splitlines()
    diff = "\n".join(list(difflib.unified_diff(before, after, lineterm="", n=1))[2:])
    room = mutation.path.split("/")[0]
    return Verdict(mutation.name, room, bool(by), by, round(time.monotonic() - start, 1), diff)


def _noticed(command: Sequence[str], place: Path, mode: str, timeout: float) -> str:
    """The test that fails with the mutant, or another word for how it was noticed; empty where it was not."""
    environment = os.environ | {
        "PYTHONPATH": f"{place}{os.pathsep}{ROOT}",
        "PYTHONDONTWRITEBYTECODE": "1",
        "CREDO_TESTS": mode,
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-q", "-x", "--tb=no", "-p", "no:cacheprovider", *command],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return "a timeout"
    if process.returncode in (0, 5):  # 5: no test was selected
        return ""
    found = re.search(r"^(?:FAILED|ERROR) (\S+)", output, re.MULTILINE)
    return found.group(1) if found else f"exit status {process.returncode}"


def _stages(mutation: Mutation) -> list[tuple[str, list[str], str]]:
    """The stages of tests: their name, the arguments of pytest, and how programs are compiled."""
    room, stem = mutation.path.split("/")[0], Path(mutation.path).stem
    names = _names(PACKAGE / mutation.path)
    folders = [folder for folder in (room, *ABOVE.get(room, ())) if (TESTS / folder).is_dir()]
    files = [file for folder in folders for file in sorted((TESTS / folder).rglob("test_*.py"))]

    def nearness(file: Path) -> tuple[bool, int, bool]:
        text = file.read_text()
        hits = sum(bool(re.search(rf"\b{name}\b", text)) for name in names)
        return stem in file.stem, hits, room in file.parts

    near = sorted(files, key=nearness, reverse=True)[:NEAREST]
    own = [str(file) for file in files if file not in near and room in file.parts]
    other = [str(file) for file in files if file not in near and room not in file.parts]
    quick = ["-m", "not slow"]
    return [
        ("nearest", [*quick, *map(str, near)], "hasty"),
        ("room", [*quick, *(own or ["--collect-only"])], "hasty"),
        ("rooms above", [*quick, *(other or ["--collect-only"])], "hasty"),
        ("optimised", ["-m", "optimised", *[str(TESTS / folder) for folder in folders[:1]]], "optimised"),
    ]


def _names(path: Path) -> list[str]:
    """The public names that a file defines, and its module's own."""
    tree = ast.parse(path.read_text())
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef | ast.FunctionDef)]
    return [path.stem, *(node.name for node in nodes if not node.name.startswith("_") and len(node.name) > 3)]


def _report(verdicts: Sequence[Verdict]) -> int:
    """Print the table and the diffs of the survivors."""
    print(f"\n{'room':14} {'mutants':>8} {'killed':>8} {'survived':>9}")
    for room in sorted({verdict.room for verdict in verdicts}):
        here = [verdict.killed for verdict in verdicts if verdict.room == room]
        print(f"{room:14} {len(here):8} {sum(here):8} {len(here) - sum(here):9}")
    survivors = [verdict for verdict in verdicts if not verdict.killed]
    share = len(survivors) / max(len(verdicts), 1)
    print(f"{'all':14} {len(verdicts):8} {len(verdicts) - len(survivors):8} {len(survivors):9}")
    for verdict in survivors:
        print(f"\n{verdict.name}\n{verdict.diff}")
    print(f"\n{share:.1%} survived; at most {ALLOWED:.0%} may.")
    return int(share > ALLOWED)


if __name__ == "__main__":
    sys.exit(main())
