"""The world of `bone-bandit`: ten arms whose chances of a reward walk all the time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

__all__ = ["ARMS", "STEP_VAR", "Worlds", "make_worlds"]

ARMS = 10
STEP_VAR = 0.003


class Worlds(NamedTuple):
    """A world, or several with a leading axis everywhere.

    Attributes:
        chance: the chance of a reward (T, arms).
        reward: whether a pull would be rewarded (T, arms), 0 or 1.
    """

    chance: np.ndarray
    reward: np.ndarray


def make_worlds(seed: int, purpose: int, count: int, steps: int) -> Worlds:
    """Return worlds whose chances begin at U(0, 1) and walk with variance 0.003 a step, cut off at 0 and 1.

    Arguments:
        seed: the seed of the experiment.
        purpose: `SCORED` or `TUNING`.
        count: how many worlds.
        steps: how many steps.
    """
    chance = np.empty((count, steps, ARMS), np.float32)
    reward = np.empty((count, steps, ARMS), np.float32)
    for world in range(count):
        rng = np.random.default_rng([seed, purpose, world])
        now = rng.random(ARMS)
        walk = np.sqrt(STEP_VAR) * rng.normal(size=(steps, ARMS))
        for t in range(steps):
            chance[world, t] = now
            now = np.clip(now + walk[t], 0.0, 1.0)
        reward[world] = rng.random((steps, ARMS)) < chance[world]
    return Worlds(chance, reward)
