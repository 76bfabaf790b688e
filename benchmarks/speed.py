"""Everything that must be fast, in one table: what it takes, what it must take, what it should, and whether.

    python benchmarks/speed.py                      # all rows: some twenty minutes on one core
    python benchmarks/speed.py --codes FOLDER       # the official codes lie there (`official.py`)
    python benchmarks/speed.py --only bank --small  # one group; short streams, to see whether it runs

Each group of rows runs in a process of its own, on one core, and counts processor time. Peers that are not
installed and official codes that are not there give a row that says so; the update of BONG has a
transcription (`published.py`), which stands in for its official code and is named. What must be and what
should be is in `aims.py`. The table is printed in Markdown at the end, and progress on standard error.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import aims
import numpy as np

COLUMNS = 10
OFFICIAL = ("full", "kalman", "low-rank", "run-lengths", "python")
"""The cases of `official.py` of which something is asked."""


class Reading(NamedTuple):
    """What was measured: the row, what it is held against, and the number or the reason why there is none."""

    row: str
    against: str
    value: float | None
    why: str = ""


class Plan(NamedTuple):
    """How long the streams are, and where the official codes lie."""

    scale: float = 1.0
    turns: int = 5
    codes: Path | None = None

    def rows(self, count: int) -> int:
        """A number of rows in this plan."""
        return max(int(self.scale * count), 4)


Readings = Iterator[Reading]


def bank(plan: Plan) -> Readings:
    """The bank of classes in a scan, over the learners inside its members alone, one after another."""
    import jax
    import jax.numpy as jnp
    from timing import medians

    import credo
    from credo.core.groups import pick

    rng = np.random.default_rng(0)
    xs = jnp.asarray(rng.normal(size=(plan.rows(1000), COLUMNS)), jnp.float32)
    ys = jnp.asarray(rng.integers(0, 2, len(xs)))
    whole: Any = credo.auto(COLUMNS, "classification")
    begin = whole.init()
    experts = whole
    beliefs = begin
    while not hasattr(experts, "learners"):  # what watches the bank, and what is stacked on it
        experts = experts.learner
        beliefs = beliefs.belief
    members = [(pick(experts.learners, place), pick(beliefs.beliefs, place)) for place in range(experts.size)]
    # members without a network are calibrated, or stand alone
    pairs = [(getattr(one, "learner", one), getattr(belief, "belief", belief)) for one, belief in members]

    def stream(learner: Any, belief: Any) -> None:
        jax.block_until_ready(credo.run(learner, belief, xs, ys))

    calls: dict[str, Callable[[], object]] = {
        str(place): functools.partial(stream, *pair) for place, pair in enumerate([(whole, begin), *pairs])
    }
    times = medians(calls, plan.turns, time.process_time)
    together, *alone = (times[str(place)][0] for place in range(len(times)))
    yield Reading("the bank of two classes, a scan", "the learners inside alone", together / sum(alone))


def command(plan: Plan) -> Readings:
    """Rows a second of the command, without its start: what more rows take of processor time."""
    import start

    few = plan.rows(5000)
    many = plan.rows(25_000)
    with tempfile.TemporaryDirectory() as place:
        times: dict[tuple[str, int], float] = {}
        for count in (few, many):
            folder = Path(place) / str(count)
            folder.mkdir()
            for name, classes in (("classes", 3), ("numbers", 0)):
                table = start.Table(name, count, COLUMNS, classes).write(folder)
                own = folder / name
                own.mkdir()
                times[name, count] = cold_and_warm([str(table), "--target", "y"], own)["warm"]
        for name in ("classes", "numbers"):
            spent = times[name, many] - times[name, few]
            yield Reading(f"credo learn, {name}, rows a second", "", (many - few) / max(spent, 1e-9))


def river(plan: Plan) -> Readings:
    """One row a call of the linear classifier, over River's scaler and logistic regression."""
    import jax

    jax.config.update("jax_cpu_enable_async_dispatch", False)
    row = 'RiverClassifier("linear").learn_one'
    peer = "River, scaler and logistic regression"
    with _named(peer, row) as missing:
        from timing import medians

        import estimators

        cases = estimators.one_row(plan.rows(4000))
        pair = {name: cases[name].call for name in ("RiverClassifier.learn_one", estimators.LOGISTIC)}
        (ours, _), (theirs, _) = medians(pair, plan.turns, time.process_time).values()
        yield Reading(row, peer, ours / theirs)
    yield from missing


def first_rows(plan: Plan) -> Readings:
    """The command on a hundred rows, without and with the programs of an earlier process."""
    import start

    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        table = start.SMALL.write(folder)
        for turn, took in cold_and_warm([str(table), "--target", "y"], folder).items():
            yield Reading(f"credo learn, 100 rows, {turn}", "", took)


def mnist(plan: Plan) -> Readings:
    """`credo learn mnist`, without and with the programs of an earlier process."""
    with tempfile.TemporaryDirectory() as place:
        took: dict[str, float] = {}
        why = ""
        try:
            took = cold_and_warm(["mnist"], Path(place))
        except SystemExit:
            why = "it failed; it needs the digits (CREDO_DATA_DIR)"
        for turn in TURNS:
            yield Reading(f"credo learn mnist, {turn}", "", took.get(turn), why)


TURNS = ("cold", "warm")


def cold_and_warm(what: Sequence[str], folder: Path) -> dict[str, float]:
    """The processor time of `credo learn` without programs of an earlier process, and of the next one."""
    import start

    took = {}
    for turn in TURNS:
        command = [sys.executable, "-m", "credo", "learn", *what, "--out", str(folder / turn)]
        took[turn] = start.measure(command, folder / "caches").seconds
    return took


def bandit(plan: Plan) -> Readings:
    """A decision and its reward, one call after the other, beside VW; and compiled Thompson sampling."""
    import jax

    jax.config.update("jax_cpu_enable_async_dispatch", False)
    from timing import medians

    from credo import bandits

    times = importlib.import_module("bandit_peer_times")
    service = importlib.import_module("bandit_service")
    rows = times.rows_of(bandits.load_environment("linear"), plan.rows(1000))
    long = times.rows_of(bandits.load_environment("linear"), plan.rows(20_000))
    calls = "Bandit, decide and reward, 10 inputs, 7 arms"
    compiled = "Thompson, unknown noise, 7 arms, a scan"
    others = times.callers(rows)
    with tempfile.TemporaryDirectory() as folder:
        one = service.bandit("arms", Path(folder), 10_000)
        mine = ("Bandit", one.decide, lambda decision, x, reward: one.reward(decision.id, reward))
        spent: dict[str, list[float]] = {}
        for _ in range(plan.turns + 1):
            for name, decide, learn in (mine, *others):
                pairs = times.call_times(decide, learn, rows)
                spent.setdefault(name, []).append(sum(processor for _, processor in pairs))
    ours, *theirs = (statistics.median(each[1:]) for each in spent.values())
    yield Reading(calls, "VW", theirs[0] / ours) if theirs else _absent(calls, "VW", "vowpalwabbit")
    entries = times.peer_entries({"VW": (times.VW, plan.rows(2000))}, long)
    entries["ours"] = times.linear_agents(long)["unknown noise, Thompson"]
    took = medians({name: entry.call for name, entry in entries.items()}, plan.turns, time.process_time)
    each = {name: took[name][0] / entry.steps for name, entry in entries.items()}
    ready = "VW" in each
    yield (
        Reading(compiled, "VW", each["VW"] / each["ours"])
        if ready
        else _absent(compiled, "VW", "vowpalwabbit")
    )


def default_agent(plan: Plan) -> Readings:
    """The rewards of the default agent, and decisions among a thousand arms with features."""
    import jax

    jax.config.update("jax_cpu_enable_async_dispatch", False)
    import credo
    from credo import bandits

    service = importlib.import_module("bandit_service")
    rng = np.random.default_rng(0)

    def middle(agent: Any, shape: tuple[int, ...], part: int, params: Any = None) -> float:
        one = bandits.Bandit(agent, params=params)
        contexts = rng.normal(size=(plan.rows(200), *shape))
        took: list[float] = service.call_seconds(one, contexts, time.process_time)[part]
        return 1e3 * statistics.median(took)

    for arms in (5, 50):
        agent = bandits.default_agent(arms, COLUMNS)
        yield Reading(f"default agent, {arms} arms, a reward, ms", "", middle(agent, (COLUMNS,), 1))
    arms = max(int(1000 * min(plan.scale, 1.0)), 20)
    net = credo.Linear()
    learner = credo.extended_kalman(credo.Model(net, credo.Normal(0.1)))
    thompson = bandits.Agent(learner, arms, "actions", bandits.Thompson())
    usual = bandits.default_agent(arms, COLUMNS, design="actions")
    many: list[tuple[str, Any, Any]] = [
        ("linear, Thompson", thompson, net.init(0, (COLUMNS,))),
        ("default agent", usual, None),
    ]
    for name, one, params in many:
        took = middle(one, (arms, COLUMNS), 0, params)
        yield Reading(f"1,000 arms with features, {name}, a decision, ms", "", took)


def posteriors(plan: Plan) -> Readings:
    """The diagonal Fisher EKF of a network, 32 rows a batch, beside `posteriors`."""
    row = "diagonal Fisher EKF, P = 101,770, 32 rows a batch"
    peer = "posteriors ekf.diag_fisher"
    if plan.codes is not None:
        importlib.import_module("official_codes").open_codes(plan.codes, clone=False)
    with _named(peer, row) as missing:
        import grid
        from timing import Table

        table = Table()
        grid.fisher(table, [(784, 128, 32, plan.rows(20), max(plan.rows(5) // 2, 2))])
        yield Reading(row, peer, next(line.ratio for line in table.rows if line.ratio is not None))
    yield from missing


def official(plan: Plan) -> Readings:
    """The official codes, and where they are not there, what is transcribed of them."""
    race: Any = importlib.import_module("official")
    if plan.codes is None:
        race.codes = importlib.import_module("transcribed")
    else:
        race.codes.open_codes(plan.codes, clone=False)
        race.codes = race.codes.guarded()
    race.TURNS = plan.turns
    for name in OFFICIAL:
        with _named("its peer", f"official.py, {name}") as missing:
            race.CASES[name]()
        yield from missing
    for found in race.MEASURED:
        if aims.goal(found.title, found.ours, found.peer) is not None:
            own = plan.codes is None and found.peer.startswith("BONG")
            peer = found.peer.replace("update alone", "transcribed (published.py)") if own else found.peer
            yield Reading(f"{found.title}: {found.ours}", peer, found.ratio, found.why)


GROUPS: dict[str, Callable[[Plan], Readings]] = {
    "official": official,
    "posteriors": posteriors,
    "bank": bank,
    "command": command,
    "river": river,
    "first-rows": first_rows,
    "mnist": mnist,
    "bandit": bandit,
    "default-agent": default_agent,
}


def _absent(row: str, peer: str, package: str) -> Reading:
    return Reading(row, peer, None, f"{package} is not installed")


@contextlib.contextmanager
def _named(peer: str, row: str) -> Iterator[list[Reading]]:
    """A list that gets a row which says so where a package is not installed."""
    missing: list[Reading] = []
    try:
        yield missing
    except ImportError as error:
        missing.append(_absent(row, peer, error.name or "a package"))


def measure(name: str, plan: Plan) -> list[Reading]:
    """The rows of a group, in this process; whatever it prints goes to standard error."""
    with contextlib.redirect_stdout(sys.stderr):
        return list(GROUPS[name](plan))


def elsewhere(name: str, options: list[str]) -> list[Reading]:
    """The rows of a group, in a process of its own."""
    made = subprocess.run(
        [sys.executable, __file__, "--group", name, *options], stdout=subprocess.PIPE, text=True, check=False
    )
    if made.returncode:
        return [Reading(name, "", None, f"the process ended with {made.returncode}")]
    return [Reading(*values) for values in json.loads(made.stdout)]


def table(readings: list[Reading]) -> list[str]:
    """The lines of the table."""
    lines = ["| row | against | measured | must | aim | reached |", "|---|---|--:|--:|--:|---|"]
    for row, against, value, why in readings:
        asked = aims.asked(row, against)
        must, aim = ("", "") if asked is None else asked.words()
        measured = f"{value:,.4g}" if value is not None else why.replace("|", "/")
        reached = "" if value is None or asked is None else asked.reached(value)
        lines.append(f"| {row} | {against} | {measured} | {must} | {aim} | {reached} |")
    return lines


def main() -> None:
    """Measure all groups, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--codes", type=Path, help="the folder of the official codes")
    parser.add_argument("--only", choices=list(GROUPS), action="append")
    parser.add_argument("--small", action="store_true", help="short streams")
    parser.add_argument("--out", type=Path, help="a file for the table")
    parser.add_argument("--group", choices=list(GROUPS), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.group:
        plan = Plan(0.02 if given.small else 1.0, 1 if given.small else 5, given.codes)
        print(json.dumps(measure(given.group, plan)))
        return
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")
    options = ["--small"] * given.small + (["--codes", str(given.codes)] if given.codes else [])
    readings: list[Reading] = []
    for name in given.only or GROUPS:
        print(f"{name} ...", file=sys.stderr, flush=True)
        found = elsewhere(name, options)
        print("\n".join(table(found)[2:]), file=sys.stderr, flush=True)
        readings += found
    text = "\n".join(table(readings))
    print(text)
    if given.out:
        given.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
