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

ROWS, COLUMNS = 100, 4
FIRST = """
import numpy as np
from credo.estimators import RiverClassifier
model = RiverClassifier({name})
for row in np.random.default_rng(0).normal(size=(3, 10)):
    x = dict(zip("abcdefghij", row.tolist()))
    model.predict_proba_one(x)
    model.learn_one(x, "u" if row[0] > 0 else "v")
"""


def write_tables(folder: Path) -> None:
    """Two files of rows, with numbers and with classes to predict."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(ROWS, COLUMNS)).round(3)
    y = (x[:, 0] + 0.5 * x[:, 1] * x[:, 2] + 0.3 * rng.normal(size=ROWS)).round(3)
    for name, target in (("numbers", y), ("classes", np.array(["u", "v", "w"])[np.digitize(y, [-0.5, 0.5])])):
        lines = [
            ",".join(map(str, [*row, one])) for row, one in zip(x.tolist(), target.tolist(), strict=True)
        ]
        (folder / f"{name}.csv").write_text("\n".join(["a,b,c,d,y", *lines]) + "\n")


def seconds(command: Sequence[str], caches: Path) -> float:
    """The processor time of a process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("JAX_", "CREDO_"))}
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
        learn = [str(Path(sys.executable).parent / "credo"), "learn"]
        cases = {
            f"credo learn, {ROWS} rows of {name}": [*learn, str(folder / f"{name}.csv"), "--target", "y"]
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
            times = []
            for turn in ("cold", "warm"):
                out = ["--out", str(folder / f"{number}-{turn}")] if "learn" in command else []
                times.append(seconds([*command, *out], folder / f"caches-{number}"))
            print(f"| {name} | {times[0]:.1f} | {times[1]:.2f} |", flush=True)


if __name__ == "__main__":
    main()
