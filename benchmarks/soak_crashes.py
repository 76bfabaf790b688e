"""A crash loop: `credo learn` is stopped at random times again and again, and must end as if it never was.

    python benchmarks/soak_crashes.py [--kills 30] [--rows 40000] [--seed 0] [-- OPTIONS OF credo learn]

One run over the rows of the electricity stream (from `CREDO_DATA_DIR`) is left alone. Another is ended at
random times by SIGKILL, SIGTERM or SIGINT and goes on by `--resume`. Compared bit by bit: all arrays of the
saved belief (learner, belief, encoding, scores), the file of predictions, and `drift.csv`.
"""

from __future__ import annotations

import argparse
import csv
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

from credo.datasets import load
from credo.streams import checkpoint

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)


def main() -> int:
    """Run the loop, and say what came of it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--rows", type=int, default=40_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("options", nargs="*", default=["--model", "linear", "--drift", "run-length:0.002,3"])
    words = parser.parse_args()
    chance = random.Random(words.seed)
    with tempfile.TemporaryDirectory(prefix="credo-soak-") as name:
        folder = Path(name)
        write_rows(folder / "electricity.csv", words.rows)
        start = time.monotonic()
        learn(folder, "whole", words.options)
        print(f"{words.rows:,} rows undisturbed: {time.monotonic() - start:.1f} s", flush=True)
        counts: Counter[str] = Counter()
        wrong: list[str] = []
        while sum(counts.values()) < words.kills and not wrong:
            shutil.rmtree(folder / "parts", ignore_errors=True)
            (folder / "parts.jsonl").unlink(missing_ok=True)
            counts += crash(folder, words.options, words.kills - sum(counts.values()), words.rows, chance)
            wrong = differences(folder)
    print(f"stopped {sum(counts.values())} times: {dict(counts)}")
    for sentence in wrong:
        print(f"DIFFERS: {sentence}")
    print("the belief, its scores, the predictions and drift.csv are the same, bit by bit" * (not wrong))
    return bool(wrong)


def write_rows(path: Path, count: int) -> None:
    """The first rows of the electricity stream as a CSV file; some lack the target, some are torn."""
    data = load("electricity")
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow([*data.feature_names, "target"])
        for row in range(min(count, len(data))):
            cells = [*(f"{value:.6g}" for value in data.x[row]), data.class_names[int(data.y[row])]]
            if row > 1000 and row % 97 == 0:
                cells[-1] = ""
            table.writerow(cells[: 3 if row > 1000 and row % 89 == 0 else len(cells)])


def command(out: str, rest: list[str]) -> list[str]:
    """The words of a run, or of its continuation."""
    program = [sys.executable, "-c", "import sys; from credo.cli import main; sys.exit(main())"]
    files = ["--predictions", f"{out}.jsonl", "--checkpoint", "0.5", "-q"]
    return [*program, "learn", "electricity.csv", *files, *rest]


def learn(folder: Path, out: str, options: list[str]) -> None:
    """A run that is left alone."""
    words = command(out, ["--target", "target", "--out", out, *options])
    subprocess.run(words, cwd=folder, check=True, stdout=subprocess.DEVNULL)


def crash(folder: Path, options: list[str], kills: int, rows: int, chance: random.Random) -> Counter[str]:
    """A run that is stopped at random places until it was stopped often enough, or is over before.

    Three of four times it is stopped soon after a row that is drawn, otherwise at a random time of its start.
    """
    counts: Counter[str] = Counter()
    out = folder / "parts"
    answers = folder / "parts.jsonl"
    places = sorted(chance.randrange(rows * 3 // 4) for _ in range(kills))
    while True:
        going = bool(list(out.glob("**/belief.credo")))
        rest = ["--resume", "parts"] if going else ["--target", "target", "--out", "parts", *options]
        process = subprocess.Popen(
            command("parts", rest), cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        number = sum(counts.values())
        if number == kills:
            _, said = process.communicate()
            if process.returncode:
                raise SystemExit(f"the last run failed with {process.returncode}: {said}")
            return counts
        if chance.random() < 0.75:
            wait_for(answers, places[number], process)
            time.sleep(chance.uniform(0.0, 0.5))
        else:
            time.sleep(chance.uniform(0.0, 4.0))
        kind = chance.choice(SIGNALS)
        process.send_signal(kind)
        _, said = process.communicate()
        if process.returncode == 0:
            print(f"    it was over before {kind.name} at {count_rows(answers):,} rows: {said}", flush=True)
            return counts
        if process.returncode not in (-kind, 128 + kind):
            raise SystemExit(f"{kind.name} ended with {process.returncode}: {said}")
        if going and not list(out.glob("**/belief.credo")):
            raise SystemExit(f"{kind.name} lost the belief: {said}")
        counts[kind.name] += 1
        print(f"{number + 1:3} {kind.name:8} at {count_rows(answers):6,} rows", flush=True)


def count_rows(path: Path) -> int:
    """The lines of a file; 0 where there is none."""
    if path.exists():
        return path.read_bytes().count(b"\n")
    return 0


def wait_for(path: Path, rows: int, process: subprocess.Popen[str]) -> None:
    """Wait until a run has answered so many rows, or is over."""
    while count_rows(path) < rows and process.poll() is None:
        time.sleep(0.05)


def differences(folder: Path) -> list[str]:
    """What differs between the two runs, in words."""
    one, other = (checkpoint.read(folder / name / "belief.credo") for name in ("whole", "parts"))
    wrong = [] if one.learner == other.learner and one.belief == other.belief else ["learner or belief"]
    if one.arrays.keys() != other.arrays.keys():
        wrong.append("the names of the arrays")
    wrong += [
        f"the array {name}"
        for name, array in one.arrays.items()
        if not np.array_equal(array, other.arrays.get(name, np.zeros(0)), equal_nan=array.dtype.kind == "f")
    ]
    for part in ("counters", "missing", "unseen"):
        if one.meta[part] != other.meta[part]:
            wrong.append(f"{part}: {one.meta[part]} and {other.meta[part]}")
    pairs = [("whole.jsonl", "parts.jsonl"), ("whole/drift.csv", "parts/drift.csv")]
    for first, second in pairs:
        if (folder / first).exists() and (folder / first).read_bytes() != (folder / second).read_bytes():
            wrong.append(second)
    hidden = [path.name for path in (folder / "parts").rglob("*") if path.name.startswith(".")]
    unfinished = (folder / "parts" / "unfinished").exists()
    return wrong + [f"left behind: {name}" for name in hidden] + ["unfinished is there"] * unfinished


if __name__ == "__main__":
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    sys.exit(main())
