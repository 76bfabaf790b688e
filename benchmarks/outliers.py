"""What one absurd value costs the default bank, `--budget fast` and a bandit, beside a stream without it.

    python benchmarks/outliers.py            # about ten minutes
    python benchmarks/outliers.py --quick    # fewer cases, about two

A stream of 3,000 rows has six normal inputs and a target that is no linear function of them. At row 900 an
input or the target is absurd, once or five times in a row, or has other units for good. Reported is by how
many nats a row the forecasts of later rows are worse than without it (aim .005, at most .02), and what the
absurd row itself costs (at most 20). Of a bandit the share of its reward that is left is reported (at least
95%), and how many choices are the same where rewards have other units (at least 99%).
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator

import numpy as np
from default_ours import Recorder

from credo import bandits
from credo.sessions import BudgetName, Session

ROWS = 3000
INPUTS = 6
BAD = 900
ROUNDS = 3000
ARMS = 5
Table = tuple[np.ndarray, np.ndarray]


def stream() -> Table:
    """The inputs (N, D) and the targets (N,)."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(ROWS, INPUTS))
    mean = np.sin(2 * x[:, 0]) + 0.5 * x[:, 1] * x[:, 2] + x[:, 3] - 0.5 * x[:, 4]
    return x, mean + 0.32 * rng.normal(size=ROWS)


def losses(table: Table, budget: BudgetName | None) -> np.ndarray:
    """The log loss of each row (N,), NaN for the first ten, which say what the units are."""
    x, y = table
    columns = {f"x{place}": column for place, column in enumerate(x.T)} | {"y": y}
    first = {name: column[:800] for name, column in columns.items()}
    session = Session.from_rows(first, "y", task="regression", budget=budget)
    tally = session.tally = Recorder(session.tally)
    session.learn(columns)
    own = -np.concatenate(tally.log_prob)
    return np.concatenate([np.full(ROWS - len(own), np.nan), own])


def cases(quick: bool) -> Iterator[tuple[str, Table, float]]:
    """Streams with something absurd in them, and the log of the factor of targets that grow for good."""
    x, y = stream()

    def changed(rows: slice, change: float | Callable[[np.ndarray], np.ndarray], target: bool) -> Table:
        x2 = x.copy()
        y2 = y.copy()
        part = y2[rows] if target else x2[rows, 0]
        part[:] = change(part) if callable(change) else change
        return x2, y2

    for value in (1e6,) if quick else (1e3, 1e6, 1e9, 1e300):
        for count in (1, 5):
            rows = slice(BAD, BAD + count)
            yield f"input {value:g}, {count} rows", changed(rows, value, False), 0.0
    for value in (1e2, 1e9) if quick else (1e2, 1e4, 1e6, 1e9, 1e37):
        for count in (1, 5):
            rows = slice(BAD, BAD + count)
            yield f"target {value:g}, {count} rows", changed(rows, value, True), 0.0
    after = slice(BAD, None)
    yield "input x 1000 for good", changed(after, lambda part: 1000 * part, False), 0.0
    yield "input + 1e6 for good", changed(after, lambda part: part + 1e6, False), 0.0
    yield "target x 1000 for good", changed(after, lambda part: 1000 * part, True), float(np.log(1000))
    yield "target + 1e6 for good", changed(after, lambda part: part + 1e6, True), 0.0
    early = slice(3, 4)
    yield "input 1e6 at row 3", changed(early, 1e6, False), 0.0
    yield "target 1e6 at row 3", changed(early, 1e6, True), 0.0


def streams(quick: bool) -> None:
    """The table of streams."""
    for budget in ("default", "fast"):
        own: BudgetName | None = None if budget == "default" else "fast"
        clean = losses(stream(), own)
        early = np.nanmean(clean[1000:1500])
        late = np.nanmean(clean[-500:])
        print(
            f"\n`--budget {budget}`, without: {early:.3f} nats (rows 1,000 to 1,500), {late:.3f} (last 500)\n"
        )
        print("| | worst bad row | 905-1,000 | 1,000-1,500 | last 500 | back within 0.1 after |")
        print("|---|--:|--:|--:|--:|--:|")
        for name, table, shift in cases(quick):
            loss = losses(table, own)
            lasting = "for good" in name
            worst = np.nanmax(loss[3:60] if "row 3" in name else loss[BAD : BAD + (12 if lasting else 5)])
            loss[BAD:] -= shift
            gaps = loss - clean
            parts = [np.nanmean(gaps[a:b]) for a, b in ((905, 1000), (1000, 1500), (2500, 3000))]
            means = [gaps[start : start + 20].mean() for start in range(BAD, BAD + 200)]
            back = next((row for row, mean in enumerate(means) if mean < 0.1), 200) if lasting else 0
            cells = " | ".join(f"{part:+.4f}" for part in parts)
            print(f"| {name} | {worst:.1f} | {cells} | {f'{back} rows' if lasting else ''} |", flush=True)


def bandit(
    factor: float = 1.0, shift: float = 0.0, context: float | None = None, reward: float | None = None
) -> tuple[float, np.ndarray]:
    """The reward of the default agent, and its choices.

    Arguments:
        factor, shift: what rewards are multiplied by, and what is added.
        context: the age in one context at row 900 that is decided and never rewarded; below 0 a factor of the
            incomes from there on.
        reward: the reward that is given at row 900, whatever was earned.
    """
    rng = np.random.default_rng(1)
    weights = np.random.default_rng(7).normal(size=(ARMS, 4))
    start = bandits.default_agent(ARMS, 8)
    service = bandits.Bandit(start.agent, belief=start.init(), features=8)
    chosen = np.zeros(ROUNDS, int)
    earned = 0.0
    for step in range(ROUNDS):
        z = rng.normal(size=3)
        chance = rng.random()
        row = {"age": 40 + 10 * z[0], "income": 3000 + 500 * z[1], "visits": z[2]}
        if context is not None and context < 0 and step >= BAD:
            row["income"] *= -context
        if context is not None and context > 0 and step == BAD:
            service.decide(row | {"age": context})
        decision = service.decide(row)
        arm = int(decision.arm)
        one = float(chance < 1 / (1 + np.exp(-2 * weights[arm] @ [*z, 1.0])))
        given = reward if reward is not None and step == BAD else factor * one + shift
        service.reward(decision.id, given)
        chosen[step] = arm
        earned = earned + one
    return earned, chosen


def decisions(quick: bool) -> None:
    """The table of the bandit."""
    earned, chosen = bandit()
    print(f"\nbandit, clean: {earned:.0f} of {ROUNDS:,} rewards\n")
    print("| | reward left | same choices |\n|---|--:|--:|")
    rows: dict[str, dict[str, float]] = {
        "one context with age 1e5": {"context": 1e5},
        "one reward of 1e6": {"reward": 1e6},
        "incomes x 1000 for good": {"context": -1000.0},
        "rewards x 0.01": {"factor": 0.01},
        "rewards x 100": {"factor": 100.0},
        "rewards x 1e5 - 1e3": {"factor": 1e5, "shift": -1e3},
    }
    for name, change in list(rows.items())[:: 2 if quick else 1]:
        other, choices = bandit(**change)
        print(f"| {name} | {other / earned:.1%} | {(choices == chosen).mean():.1%} |", flush=True)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer cases")
    arguments = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        streams(arguments.quick)
        decisions(arguments.quick)


if __name__ == "__main__":
    main()
