"""Small worlds whose policies have known values, and the logs that they leave."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from credo.bandits import Log

MEANS = np.array([[0.2, 0.5, 0.7], [0.6, 0.4, 0.1]])
"""The expected rewards of three arms in two contexts, which are equally frequent."""

TARGET = np.array([[0.1, 0.3, 0.6], [0.7, 0.2, 0.1]])
"""The probabilities of a policy in the two contexts."""

VALUE = float((TARGET * MEANS).sum(axis=1).mean())
"""What that policy earns."""


class World(NamedTuple):
    """A log, and the probabilities of `TARGET` in its rows."""

    log: Log
    target: np.ndarray


def draw(pmfs: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One arm for each row of probabilities."""
    return np.asarray((rng.random((len(pmfs), 1)) > pmfs.cumsum(axis=1)[:, :-1]).sum(axis=1))


def fixed_log(rows: int, seed: int, *, all_pmfs: bool = True) -> World:
    """A log of a policy that does not change."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 2, rows)
    pmfs = np.array([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]])[x]
    chosen = draw(pmfs, rng)
    rewards = (rng.random(rows) < MEANS[x, chosen]).astype(float)
    p = pmfs[np.arange(rows), chosen]
    log = Log(("a", "b", "c"), chosen, rewards, p, x.astype(float), pmfs if all_pmfs else None)
    return World(log, TARGET[x])


def learning_logs(rows: int, runs: int, seed: int) -> list[World]:
    """Logs of agents that learn: each gives .7 to the arm that did best so far in its context."""
    rng = np.random.default_rng(seed)
    run = np.arange(runs)
    wins, pulls = np.ones((runs, 2, 3)), np.full((runs, 2, 3), 2.0)
    columns = []
    for _ in range(rows):
        x = rng.integers(0, 2, runs)
        best = np.argmax((wins / pulls)[run, x], axis=1)
        pmfs = np.where(np.arange(3) == best[:, None], 0.7, 0.15)
        chosen = draw(pmfs, rng)
        rewards = (rng.random(runs) < MEANS[x, chosen]).astype(float)
        wins[run, x, chosen] += rewards
        pulls[run, x, chosen] += 1.0
        columns.append((x, chosen, rewards, pmfs))
    x, chosen, rewards, pmfs = (np.stack(column, axis=1) for column in zip(*columns, strict=True))
    every = np.arange(rows)
    return [
        World(
            Log(
                ("a", "b", "c"), chosen[n], rewards[n], pmfs[n, every, chosen[n]], x[n].astype(float), pmfs[n]
            ),
            TARGET[x[n]],
        )
        for n in run
    ]
