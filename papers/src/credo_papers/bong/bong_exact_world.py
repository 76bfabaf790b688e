"""The worlds of `bong-linreg` and `bong-logreg`, in which everything is standard normal."""

from __future__ import annotations

from typing import Literal, TypeAlias, TypedDict

import numpy as np

__all__ = ["NOISE_VAR", "D", "Streams", "Task", "make_streams"]

D = 10
"""The number of weights."""

NOISE_VAR = 1.0
"""The variance of the noise of the linear regression."""

Task: TypeAlias = Literal["linreg", "logreg"]
"""Linear or logistic regression."""


class Streams(TypedDict):
    """Streams with a leading axis: x (n, T, D), y (n, T), the true weights w (n, D), and a seed each (n,)."""

    x: np.ndarray
    y: np.ndarray
    w: np.ndarray
    key: np.ndarray


def make_streams(task: Task, seed: int, count: int, first: int, length: int) -> Streams:
    """Return the data of `count` streams: rows and true weights are standard normal.

    Arguments:
        task: "linreg" (noise of variance 1) or "logreg".
        seed: the seed of the experiment.
        count: how many streams n.
        first: the number of the first stream: 0 for streams that are scored; others are for tuning.
        length: T.
    """
    rows = [_stream(task, np.random.default_rng([seed, k]), length) for k in range(first, first + count)]
    x, y, w = (np.stack(part) for part in zip(*rows, strict=True))
    return {"x": x, "y": y, "w": w, "key": np.arange(first, first + count)}


def _stream(task: Task, rng: np.random.Generator, length: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    w = rng.normal(size=D)
    x = rng.normal(size=(length, D))
    eta = x @ w
    noisy = eta + NOISE_VAR**0.5 * rng.normal(size=length)
    if task == "linreg":
        return x, noisy, w
    return x, (rng.uniform(size=length) < 1 / (1 + np.exp(-eta))).astype(float), w
