"""How fast are the doors of two checkouts: sessions, estimators and bandits?

    python benchmarks/doors.py ../before        # this checkout against the one in ../before
    python benchmarks/doors.py ../before --sync # without JAX's other thread, as docs/how-to/river.md advises

Both processes of a case live side by side and take turns, as in benchmarks/before_after.py. Where a call is
short, handing it to another thread takes longer than its arithmetic, and how long depends on the machine.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from before_after import HERE, TURNS, start, turn

Go = Callable[[], object]
INPUTS = 10
BATCH = 512


def _rows(count: int) -> list[dict[str, float]]:
    import numpy as np

    rng = np.random.default_rng(0)
    x = rng.normal(size=(count, INPUTS))
    y = x[:, 0] - 0.5 * x[:, 1] + 0.3 * rng.normal(size=count)
    names = [*"abcdefghij", "y"]
    return [dict(zip(names, row, strict=True)) for row in np.column_stack([x, y]).tolist()]


def _river(budget: str | None, count: int, many: bool) -> Iterator[Go]:
    import pandas as pd

    import credo

    rows = _rows(count)
    targets = [row.pop("y") for row in rows]
    frame = pd.DataFrame(rows)
    series = pd.Series(targets)
    model: Any = credo.RiverRegressor("linear") if budget is None else credo.RiverRegressor()

    def one() -> None:
        for row, target in zip(rows, targets, strict=True):
            model.learn_one(row, target)

    def batches() -> None:
        for at in range(0, count, BATCH):
            model.learn_many(frame[at : at + BATCH], series[at : at + BATCH])

    one()
    yield batches if many else one


def _partial_fit(size: int, count: int) -> Iterator[Go]:
    import numpy as np

    import credo

    table = np.array([list(row.values()) for row in _rows(count * size)])
    model: Any = credo.OnlineRegressor("linear")

    def learn() -> None:
        for part in np.split(table, count):
            model.partial_fit(part[:, :-1], part[:, -1])

    yield learn


def _session(budget: str, count: int, ask: int = 0) -> Iterator[Go]:
    from credo.sessions import Session

    rows = _rows(max(count, 600))
    options: Any = {"budget": budget}
    session = Session.from_rows(rows[:500], "y", **options)
    session.learn(rows[:600])
    asked = [{name: cell for name, cell in row.items() if name != "y"} for row in rows[:ask]]
    if ask == 1:
        yield lambda: [session.predict(asked) for _ in range(count)]
    elif ask:
        yield lambda: session.predict(asked)
    else:
        yield lambda: session.learn(rows[:count])


def _bandit(count: int) -> Iterator[Go]:
    import credo
    from credo import bandits

    model = credo.Model(credo.Linear(3), credo.Normal(0.1))
    bandit = bandits.Bandit(bandits.Agent(credo.bong(model, credo.Full()), arms=3), features=16)
    rows = _rows(count)

    def play() -> None:
        for row in rows:
            bandit.reward(bandit.decide(row).id, row["y"])

    yield play


CASES: dict[str, Callable[[], Iterator[Go]]] = {
    "River, linear: learn_one, 2,000 rows": lambda: _river(None, 2000, False),
    "River, linear: learn_many, 4 x 512 rows": lambda: _river(None, 4 * BATCH, True),
    "River, bank: learn_one, 100 rows": lambda: _river("default", 100, False),
    "scikit-learn, linear: partial_fit, 50 x 1 row": lambda: _partial_fit(1, 50),
    "scikit-learn, linear: partial_fit, 4 x 512 rows": lambda: _partial_fit(BATCH, 4),
    "Session, fast: learn 4,096 rows": lambda: _session("fast", 4096),
    "Session, bank: learn 1,024 rows": lambda: _session("default", 1024),
    "Session, bank: predict, 50 x 1 row": lambda: _session("default", 50, 1),
    "Session, bank: predict 512 rows": lambda: _session("default", 1, 512),
    "Bandit: decide and reward, 200 rounds": lambda: _bandit(200),
}


def main() -> None:
    """Take turns, and print the ratios."""
    arguments = [word for word in sys.argv[1:] if word != "--sync"]
    if len(arguments) < len(sys.argv) - 1:
        os.environ["CREDO_DOORS_SYNC"] = "1"
    if arguments[:1] == ["--worker"]:
        import jax

        jax.config.update("jax_cpu_enable_async_dispatch", "CREDO_DOORS_SYNC" not in os.environ)
        go = next(CASES[arguments[1]]())
        go()
        for _ in sys.stdin:
            started = time.perf_counter()
            go()
            print(time.perf_counter() - started, flush=True)
        return
    if len(arguments) != 1 or not (Path(arguments[0]) / "src" / "credo").is_dir():
        sys.exit("name the other checkout: python benchmarks/doors.py FOLDER [--sync]")
    print(f"{'case':48} {'before, ms':>11} {'after, ms':>11} {'after / before':>15}")
    for name in CASES:
        before, after = (start(checkout, __file__, name) for checkout in (Path(arguments[0]), HERE))
        for process in (before, after):
            turn(process)
        pairs = [(turn(before), turn(after)) for _ in range(TURNS)]
        old, new = (statistics.median(times) for times in zip(*pairs, strict=True))
        ratio = statistics.median(b / a for a, b in pairs)
        print(f"{name:48} {1e3 * old:11.1f} {1e3 * new:11.1f} {ratio:15.3f}", flush=True)
        for process in (before, after):
            process.kill()


if __name__ == "__main__":
    main()
