"""Counts, Poisson and with more spread: log loss and coverage of what `credo learn --task count` uses.

`python benchmarks/count_streams.py fast default` prints a line for each stream. The dispersion that counts
begin with, and which members of the bank have one, were chosen on other streams and another seed.
"""

from __future__ import annotations

import argparse

import numpy as np

from credo.sessions import Session

__all__ = ["STREAMS", "counts"]

SEED = 23

Array = np.ndarray


def dispersed(rng: np.random.Generator, mean: Array, dispersion: Array | float) -> Array:
    """Negative binomial counts of these means, with variance m + a m^2."""
    spread = np.broadcast_to(dispersion, mean.shape)
    return np.asarray(rng.poisson(mean * rng.gamma(1 / spread, spread)))


STREAMS = {
    "6,000 rows, dispersion 1": 6000,
    "dispersion 4": 3000,
    "dispersion by a column": 3000,
    "small means, dispersion 1": 3000,
    "a day's cycle and a walk, dispersion 0.2": 3000,
    "150 rows, dispersion 0.4": 150,
    "Poisson, mean 1": 3000,
    "Poisson, mean 200": 3000,
    "Poisson, bent": 3000,
    "Poisson, walking weights": 3000,
    "Poisson, 150 rows": 150,
}
"""The streams and their numbers of rows."""


def counts(name: str, seed: int = SEED) -> tuple[Array, Array]:
    """Inputs (n, D) and counts (n,) of a stream."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(3000, 6))
    weights = rng.normal(size=6) / np.sqrt(6)
    linear = x @ weights
    n = STREAMS[name]
    rows = np.arange(3000)
    if name.startswith("6,000"):
        x = rng.normal(size=(n, 4))
        return x, dispersed(rng, 20 * np.exp(0.8 * x[:, 0] + 0.5 * np.sin(2 * x[:, 1])), 1.0)
    if name == "dispersion 4":
        y = dispersed(rng, 300 * np.exp(0.7 * linear), 4.0)
    elif name == "dispersion by a column":
        y = dispersed(rng, 30 * np.exp(0.5 * linear), np.exp(1.2 * x[:, 1] - 1))
    elif name.startswith("small"):
        y = dispersed(rng, 0.5 * np.exp(0.7 * linear), 1.0)
    elif name.startswith("a day"):
        x[:, 0], x[:, 1] = np.sin(2 * np.pi * rows / 24), np.cos(2 * np.pi * rows / 24)
        walk = 0.3 * np.cumsum(rng.normal(size=3000)) / 30
        y = dispersed(rng, 40 * np.exp(0.8 * x[:, 0] - 0.3 * x[:, 1] + 0.0003 * rows + walk), 0.2)
    elif name.startswith("150"):
        x = x[:n]
        y = dispersed(rng, 30 * np.exp(0.6 * linear[:n]), 0.4)
    elif name.endswith("mean 1"):
        y = rng.poisson(np.exp(0.7 * linear))
    elif name.endswith("mean 200"):
        y = rng.poisson(200 * np.exp(0.4 * linear))
    elif name.endswith("bent"):
        y = rng.poisson(20 * np.exp(0.6 * (np.sin(2 * x[:, 0]) + 0.5 * x[:, 1] * x[:, 2])))
    elif name.endswith("weights"):
        walks = 0.03 * np.cumsum(rng.normal(size=x.shape), axis=0)
        y = rng.poisson(10 * np.exp(0.4 * np.clip((x * walks).sum(axis=1) / np.sqrt(6), -4, 4)))
    else:
        x = x[:n]
        y = rng.poisson(30 * np.exp(0.6 * linear[:n]))
    return x, y


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("budgets", nargs="*", default=["fast", "default"], help="fast, default or thorough")
    for budget in parser.parse_args().budgets:
        for name in STREAMS:
            x, y = counts(name)
            cells = zip(x.tolist(), y.tolist(), strict=True)
            rows = [{f"x{i}": value for i, value in enumerate(row)} | {"y": count} for row, count in cells]
            session = Session.from_rows(rows[:1000], "y", task="count", budget=budget)
            session.learn(rows)
            ours = session.metrics()
            base = session.tally.baseline()
            print(
                f"{budget:8} {name:42} nlpd {ours['nlpd']:7.3f} baseline {base['nlpd']:7.3f}"
                f"  inside 90%: {ours['coverage_90']:.3f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
