"""The world of `bone-moons` and `bone-moons-long`: two moons that are turned, and the network."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import numpy as np

from credo_papers.bone.bone_world import Streams
from credo_papers.kalman.moons_world import NET, make_moons

__all__ = ["NET", "rotating_moons"]


def rotating_moons(rng: np.random.Generator, angles: Sequence[float], count: int) -> Streams:
    """Draw two moons of noise 0.2 for each angle, turned about the origin; the truth is not known.

    Arguments:
        rng: the random numbers, which draw the initial weights of the network too.
        angles: in degrees.
        count: how many points for each angle.
    """
    xs = []
    ys = []
    for angle in np.deg2rad(angles):
        x, y = make_moons(rng, count)
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        xs.append(x @ turn.T)
        ys.append(y)
    y = np.concatenate(ys)
    change = (np.arange(y.size) % count == 0) & (np.arange(y.size) > 0)
    start = NET.init(jax.random.key(int(rng.integers(2**31))), (2,))
    return Streams(np.concatenate(xs), y, np.full(y.size, np.nan), change, start)
