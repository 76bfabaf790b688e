"""The world of `bong-mnist`: digits of MNIST, one at a time."""

from __future__ import annotations

from typing import TypeAlias, TypedDict

import jax
import numpy as np

from credo.core.types import Array
from credo.datasets import load

__all__ = ["SCALE", "Digits", "Streams", "load_digits", "make_streams"]

SCALE = 2.0
"""The largest brightness."""

Digits: TypeAlias = dict[str, tuple[np.ndarray, np.ndarray]]
"""Images and labels by their use: "stream", "validation", "test"."""


class Streams(TypedDict):
    """Streams with a leading axis: images x (n, T, ...), labels y (n, T), and a key each (n,)."""

    x: np.ndarray
    y: np.ndarray
    key: Array


def load_digits(pool: int, validation_rows: int, test_rows: int) -> tuple[Digits, str]:
    """Return the images, with values from 0 to 2, and a note on where they come from.

    The last sixth of the training digits is for validation, the others are for streams.

    Arguments:
        pool: images are averaged over squares of this many pixels; 1 leaves them as they are.
        validation_rows, test_rows: how many digits to keep for validation and for tests.
    """
    train = load("mnist", split="train")
    test = load("mnist", split="test")
    cut = len(train.y) - len(train.y) // 6
    parts = {
        "stream": (train.x[:cut], train.y[:cut]),
        "validation": (train.x[cut:][:validation_rows], train.y[cut:][:validation_rows]),
        "test": (test.x[:test_rows], test.y[:test_rows]),
    }
    return {name: (_pooled(x, pool), y) for name, (x, y) in parts.items()}, train.note


def _pooled(x: np.ndarray, pool: int) -> np.ndarray:
    rows, height, width = x.shape
    squares = x.reshape(rows, height // pool, pool, width // pool, pool)
    means: np.ndarray = SCALE * squares.mean(axis=(2, 4), dtype=np.float32)
    return means


def make_streams(digits: Digits, seed: int, purpose: int, count: int, steps: int) -> Streams:
    """Return streams for a purpose: each draws its digits again, without repeats.

    Arguments:
        digits: as `load_digits` gives them.
        seed: the seed of the experiment.
        purpose: `SCORED` or `TUNING`.
        count: how many streams n.
        steps: their length T.
    """
    x, y = digits["stream"]
    rows = np.stack(
        [np.random.default_rng([seed, purpose, index]).permutation(len(y))[:steps] for index in range(count)]
    )
    key = jax.random.fold_in(jax.random.key(seed), purpose)
    return {"x": x[rows], "y": y[rows], "key": jax.random.split(key, count)}
