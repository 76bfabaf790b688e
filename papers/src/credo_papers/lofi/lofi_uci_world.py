"""The world of `lofi-uci`: regressions of UCI, randomly divided into training and test rows."""

from __future__ import annotations

from typing import NamedTuple

import jax
import numpy as np

from credo.core.types import Array
from credo.datasets import Dataset, load

__all__ = ["Split", "load_set", "make_splits"]

FILE_NAMES = {"power": "power-plant", "wine": "wine-quality-red"}


def load_set(name: str) -> Dataset:
    """Return a data set by the name that it has in the publication."""
    return load(FILE_NAMES.get(name, name), split="all")


class Split(NamedTuple):
    """A division of a data set, or several with a leading axis everywhere; standardised by the training rows.

    Attributes:
        x, y: training rows (N, D) and targets (N,), in their random order.
        x_test, y_test: test rows.
        unit: the standard deviation of the training targets.
        key: draws the initial weights.
    """

    x: np.ndarray
    y: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray
    unit: np.ndarray
    key: Array


def make_splits(data: Dataset, seed: int, count: int) -> Split:
    """Return random divisions of a data set, with round(0.9 N) rows for training.

    Arguments:
        data: a regression with N rows.
        seed: division i is drawn by `numpy.random.default_rng([seed, i])`.
        count: how many divisions.
    """
    x = data.x.astype(np.float64)
    y = data.y.astype(np.float64)
    border = round(0.9 * len(y))
    divisions = []
    for i in range(count):
        order = np.random.default_rng([seed, i]).permutation(len(y))
        train = order[:border]
        test = order[border:]
        center = x[train].mean(axis=0)
        scale = x[train].std(axis=0)
        scale[scale == 0] = 1.0
        level = y[train].mean()
        unit = y[train].std()
        rows = [((x[part] - center) / scale, (y[part] - level) / unit) for part in (train, test)]
        divisions.append((*rows[0], *rows[1], unit))
    parts = [np.stack(part).astype(np.float32) for part in zip(*divisions, strict=True)]
    x_train, y_train, x_test, y_test, units = parts
    return Split(x_train, y_train, x_test, y_test, units, jax.random.split(jax.random.key(seed), count))
