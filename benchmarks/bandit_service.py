"""A `Bandit` in service: microseconds a decision and a reward, and its memory over many steps.

    python benchmarks/bandit_service.py --steps 100000

Prints medians for one agent of each design (10 inputs, 7 arms) and for the default agent with 5 and 50 arms,
and the resident memory of the process along the way: with a window of 1,000 decisions, a log, a third of the
rewards late and a tenth lost.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np

import credo
from credo import bandits

ARMS = 7
INPUTS = 10


def bandit(design: str, folder: Path, window: int = 1_000) -> bandits.Bandit:
    """A linear bandit with a log."""
    net = credo.Linear(ARMS if design == "outputs" else 1)
    learner = credo.extended_kalman(credo.Model(net, credo.Normal(0.1)))
    agent = bandits.Agent(
        learner, ARMS, "outputs" if design == "outputs" else "arms", bandits.Thompson(floor=0.01)
    )
    log = folder / f"{design}.jsonl" if window < 10_000 else None
    return bandits.Bandit(agent, params=net.init(0, (INPUTS,)), window=window, log=log, on_missing=0.0)


def call_seconds(
    one: bandits.Bandit, contexts: np.ndarray, clock: Callable[[], float] = time.perf_counter
) -> tuple[list[float], list[float]]:
    """What each decision and each reward takes; the first tenth is left out."""
    took: tuple[list[float], list[float]] = ([], [])
    for x in contexts:
        start = clock()
        decision = one.decide(x)
        middle = clock()
        one.reward(decision.id, float(x.flat[0]))
        took[0].append(middle - start)
        took[1].append(clock() - middle)
    first = max(len(contexts) // 10, 1)
    return took[0][first:], took[1][first:]


def latency(one: bandits.Bandit, steps: int) -> str:
    """The microseconds of a decision and of a reward: the median, and the fastest and slowest tenth."""
    contexts = np.random.default_rng(0).normal(size=(steps, INPUTS))
    words = []
    for what, times in zip(("decide", "reward"), call_seconds(one, contexts), strict=True):
        low, middle, high = 1e6 * np.percentile(times, [10, 50, 90])
        words.append(f"{what} {middle:4.0f} us ({low:.0f} to {high:.0f})")
    return ", ".join(words)


def resident() -> float:
    """The memory of the process in MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100_000)
    steps = parser.parse_args().steps
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for design in ("arms", "outputs"):
            print(f"{design:8} {latency(bandit(design, folder, 10_000), min(steps, 5_000))}", flush=True)
        for arms in (5, 50):
            agent = bandits.default_agent(arms, INPUTS)
            print(f"default, {arms:2} arms {latency(bandits.Bandit(agent), min(steps, 500))}", flush=True)
        one = bandit("arms", folder)
        rng = np.random.default_rng(1)
        late: list[str] = []
        for step in range(steps + 1):
            if step % max(steps // 10, 1) == 0:
                print(f"step {step:7,} resident {resident():7.1f} MiB, {one.counts}", flush=True)
            decision = one.decide(rng.normal(size=INPUTS))
            fate = rng.random()
            if fate < 0.57:
                one.reward(decision.id, rng.normal())
            elif fate < 0.9:
                late.append(decision.id)
            if len(late) > 300:
                one.reward(late.pop(0), rng.normal())


if __name__ == "__main__":
    main()
