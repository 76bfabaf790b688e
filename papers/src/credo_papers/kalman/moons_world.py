"""The world of `moons`: two interleaving half circles, and the network that learns them."""

from __future__ import annotations

from typing import NamedTuple

import jax
import numpy as np

import credo
from credo.core.types import Key, PyTree

__all__ = ["NET", "NOISE", "STEPS", "Streams", "make_moons", "make_streams"]

STEPS = 200
NOISE = 0.2

NET = credo.MLP(outputs=1, hidden=(5, 5), activation="sin")


def make_moons(rng: np.random.Generator, count: int, noise: float = NOISE) -> tuple[np.ndarray, np.ndarray]:
    """Return two interleaving half circles, in random order: points (count, 2) and labels 0 or 1 (count,).

    Arguments:
        rng: draws the order and the noise.
        count: how many points; half of them are of each label.
        noise: the standard deviation of the noise in each coordinate.
    """
    outer = np.linspace(0, np.pi, count // 2)
    inner = np.linspace(0, np.pi, count - count // 2)
    x = np.concatenate(
        [np.stack([np.cos(outer), np.sin(outer)], 1), np.stack([1 - np.cos(inner), 0.5 - np.sin(inner)], 1)]
    )
    y = np.repeat([0, 1], [outer.size, inner.size])
    order = rng.permutation(count)
    return (x[order] + noise * rng.normal(size=x.shape)).astype(np.float32), y[order].astype(np.float32)


class Streams(NamedTuple):
    """A stream, or several with a leading axis everywhere.

    Attributes:
        params: the initial parameters.
        x: points (200, 2).
        y: labels (200,).
    """

    params: PyTree
    x: np.ndarray
    y: np.ndarray


def make_streams(seed: int, purpose: int, count: int) -> Streams:
    """Return fresh streams for a purpose.

    Arguments:
        seed: the seed of the experiment.
        purpose: `SCORED` or `TUNING`.
        count: how many.
    """
    data = [make_moons(np.random.default_rng([seed, purpose, index]), STEPS) for index in range(count)]
    keys = jax.random.split(jax.random.fold_in(jax.random.key(seed), purpose), count)
    return Streams(jax.vmap(_initial)(keys), np.stack([x for x, _ in data]), np.stack([y for _, y in data]))


def _initial(key: Key) -> PyTree:
    """Weights N(0, 1 / fan-in) and biases 0: those of the network itself."""
    return NET.init(key, (2,))
