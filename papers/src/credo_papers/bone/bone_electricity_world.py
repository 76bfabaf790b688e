"""The world of `bone-electricity`: demand and prices of electricity, standardised by the past."""

from __future__ import annotations

import jax
import numpy as np

import credo
from credo.datasets import load
from credo_papers.bone.bone_world import Streams

__all__ = ["AHEAD", "HALF_LIFE", "NET", "make_rows", "make_streams", "standardized"]

# In half hours: how far ahead demand is forecast, the half-life of the moments, and a day.
AHEAD = 2
HALF_LIFE = 20.0
DAY = 48

NET = credo.MLP(outputs=1, hidden=(4, 4), activation="relu")


def standardized(values: np.ndarray) -> np.ndarray:
    """Return each column less its exponentially weighted mean, over its weighted standard deviation.

    Both are those of the rows before; the first two rows are 0.

    Arguments:
        values: (N, columns).

    Example:
        >>> standardized(np.array([[1.0], [3.0], [5.0]])).round(3).tolist()
        [[0.0], [0.0], [2.983]]
    """
    keep = 0.5 ** (1.0 / HALF_LIFE)
    total = np.zeros(values.shape[1])
    first = total.copy()
    second = total.copy()
    weight = 0.0
    scores = np.zeros_like(values, dtype=np.float64)
    for t, row in enumerate(values):
        if t >= 2:
            mean = first / weight
            var = np.maximum(second / weight - mean**2, 1e-6)
            scores[t] = (row - mean) / np.sqrt(var)
        first = keep * first + row
        second = keep * second + row**2
        weight = keep * weight + 1.0
    return np.clip(scores, -10.0, 10.0)


def make_rows() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return inputs (N, 6), targets (N,), and what the same half hour of the day before says (N,)."""
    columns = load("electricity", split="all").columns
    assert columns is not None
    names = ("nswdemand", "nswprice", "vicdemand", "transfer")
    raw = np.stack([np.asarray(columns[name], np.float64) for name in names], axis=1)
    scaled = standardized(raw)
    angle = 2 * np.pi * np.asarray(columns["period"], np.float64)
    x = np.concatenate([scaled, np.sin(angle)[:, None], np.cos(angle)[:, None]], axis=1)
    y = scaled[AHEAD:, 0]
    yesterday = np.concatenate([np.zeros(DAY - AHEAD), scaled[: len(scaled) - DAY, 0]])
    return x[:-AHEAD].astype(np.float32), y.astype(np.float32), yesterday


def make_streams(seed: int, purpose: int, count: int, x: np.ndarray, y: np.ndarray) -> Streams:
    """Return several times the same rows, with initial weights of their own.

    Arguments:
        seed: the seed of the experiment.
        purpose: `SCORED` or `TUNING`.
        count: how many.
        x, y: inputs (N, 6) and targets (N,).
    """
    keys = jax.random.split(jax.random.fold_in(jax.random.key(seed), purpose), count)
    start = jax.vmap(lambda key: NET.init(key, (x.shape[1],)))(keys)
    xs = np.broadcast_to(x, (count, *x.shape))
    ys = np.broadcast_to(y, (count, *y.shape))
    return Streams(xs, ys, ys, np.zeros_like(ys), start)
