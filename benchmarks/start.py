"""How long does a start take? Processor time of new processes, without and with programs of an earlier one.

    python benchmarks/start.py            # the command on 100 rows, and the first rows of two estimators

Every case runs in a folder for caches of its own: first with nothing in it ("cold"), then again ("warm").
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

ROWS = 100
COLUMNS = 4
FIRST = """
import numpy as np
from credo.estimators import RiverClassifier
model = RiverClassifier({name})
for row in np.random.default_rng(0).normal(size=(3, 10)):
    x = dict(zip("abcdefghij", row.tolist()))
    model.predict_proba_one(x)
    model.learn_one(x, "u" if row[0] > 0 else "v")
"""


def write_tables(folder: Path, rows: int = ROWS, columns: int = COLUMNS) -> None:
    """Two files of rows, with numbers and with classes to predict."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(rows, columns)).round(3)
    y = (x[:, 0] + 0.5 * x[:, 1] * x[:, 2] + 0.3 * rng.normal(size=rows)).round(3)
    head = ",".join([*(f"x{place}" for place in range(columns)), "y"])
    for name, target in (("numbers", y), ("classes", np.array(["u", "v", "w"])[np.digitize(y, [-0.5, 0.5])])):
        lines = [
            ",".join(map(str, [*row, one])) for row, one in zip(x.tolist(), target.tolist(), strict=True)
        ]
        (folder / f"{name}.csv").write_text("\n".join([head, *lines]) + "\n")


def learn(*what: str) -> list[str]:
    """The command that learns."""
    return [str(Path(sys.executable).parent / "credo"), "learn", *what]


def cold_and_warm(command: Sequence[str], folder: Path, name: str) -> tuple[float, float]:
    """The processor time of a process without programs of an earlier one, and of the next one."""
    times = []
    for turn in ("cold", "warm"):
        out = ["--out", str(folder / f"{name}-{turn}")] if "learn" in command else []
        times.append(seconds([*command, *out], folder / f"caches-{name}"))
    return times[0], times[1]


def seconds(command: Sequence[str], caches: Path) -> float:
    """The processor time of a process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    given = {k: v for k, v in os.environ.items() if k == "CREDO_DATA_DIR" or not k.startswith("CREDO_")}
    environment = {k: v for k, v in given.items() if not k.startswith("JAX_")}
    subprocess.run(
        command, env=environment | {"CREDO_CACHE_DIR": str(caches)}, check=True, capture_output=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Run the cases and print a table."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_tables(folder)
        cases = {
            f"credo learn, {ROWS} rows of {name}": learn(str(folder / f"{name}.csv"), "--target", "y")
            for name in ("numbers", "classes")
        }
        cases |= {
            f"RiverClassifier({name}), 3 rows": [sys.executable, "-c", FIRST.format(name=name)]
            for name in ("", '"linear"')
        }
        cases["import credo.estimators.RiverClassifier alone"] = [
            sys.executable,
            "-c",
            "from credo.estimators import RiverClassifier",
        ]
        print("| case | cold s | warm s |\n|---|--:|--:|")
        for number, (name, command) in enumerate(cases.items()):
            cold, warm = cold_and_warm(command, folder, str(number))
            print(f"| {name} | {cold:.1f} | {warm:.2f} |", flush=True)


if __name__ == "__main__":
    main()
