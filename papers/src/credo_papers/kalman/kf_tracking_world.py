"""The world of `kf-tracking`: an object in the plane, whose position is observed with noise.

z_0 ~ N([8, 10, 1, 0], 0.1 I)      the first state, observed without a move before it
z_t = F z_{t-1} + N(0, 0.001 I)    F adds the velocity to the position
y_t = [I 0] z_t + N(0, I)          15 observations
"""

from __future__ import annotations

import math

import numpy as np

__all__ = ["MOVE_VAR", "NOISE_VAR", "OBSERVATION", "START", "START_VAR", "STEPS", "TRANSITION", "simulate"]

STEPS = 15
TRANSITION = np.array([[1, 0, 1, 0], [0, 1, 0, 1], [0, 0, 1, 0], [0, 0, 0, 1]], np.float32)
OBSERVATION = np.eye(2, 4, dtype=np.float32)
START = np.array([8, 10, 1, 0], np.float32)
START_VAR = 0.1
MOVE_VAR = 1e-3
NOISE_VAR = 1.0


def simulate(seed: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return true states (count, 15, 4) and observations (count, 15, 2) of several tracks.

    Arguments:
        seed: the seed of the random numbers.
        count: how many tracks.
    """
    rng = np.random.default_rng([seed, 0])
    states = [START + math.sqrt(START_VAR) * rng.normal(size=(count, 4))]
    for _ in range(STEPS - 1):
        states.append(states[-1] @ TRANSITION.T + math.sqrt(MOVE_VAR) * rng.normal(size=(count, 4)))
    truth = np.stack(states, axis=1)
    noise = math.sqrt(NOISE_VAR) * rng.normal(size=(count, STEPS, 2))
    return truth.astype(np.float32), (truth @ OBSERVATION.T + noise).astype(np.float32)
