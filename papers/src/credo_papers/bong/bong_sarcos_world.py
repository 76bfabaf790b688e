"""The world of `bong-sarcos`: inverse dynamics of a robot arm, and orders of its rows."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from credo.core.errors import DataError
from credo.datasets.finder import DataFile, Finder
from credo_papers.bong.robot_arm import motions

__all__ = ["Orders", "SplitRows", "make_orders", "measurements", "split_rows"]


class Orders(TypedDict):
    """Orders of rows (n, T), and a seed each (n,)."""

    order: np.ndarray
    key: np.ndarray


@dataclass(frozen=True)
class SplitRows:
    """Standardised rows and what each is for.

    Attributes:
        x, y: all rows (N, 21) and targets (N,), standardised by the rows to learn from.
        test, check, train: indices of the rows for tests, for tuning, and to learn from.
        unit: the standard deviation of the targets to learn from.
        source: what was measured.
    """

    x: np.ndarray
    y: np.ndarray
    test: np.ndarray
    check: np.ndarray
    train: np.ndarray
    unit: float
    source: str

    def held_out(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return all rows and targets, and those of some rows."""
        return self.x, self.y, self.x[rows], self.y[rows]


def measurements(seed: int) -> tuple[np.ndarray, np.ndarray, str]:
    """Return inputs (N, 21), targets (N,), and a few words on what they are.

    They are the SARCOS measurements where the data folder has them, or else a simulated arm.

    Arguments:
        seed: the seed of the simulated arm.
    """
    try:
        file = Finder("sarcos", allow_download=False).read(DataFile("sarcos/sarcos_inv.mat"))
    except DataError:
        return (*motions(seed, 6000), "a simulated arm of the same shape (SARCOS is not at hand)")
    from scipy.io import loadmat

    table = loadmat(io.BytesIO(file.content))["sarcos_inv"].astype(np.float32)
    return table[:, :21], table[:, 21], "SARCOS, first torque"


def split_rows(seed: int) -> SplitRows:
    """Return the rows in three parts: 1,000 for tests, 500 for tuning, and the others to learn from.

    Arguments:
        seed: the seed of the division, and of the simulated arm.
    """
    x, y, source = measurements(seed)
    rows = np.random.default_rng(seed).permutation(len(x))
    test = rows[:1000]
    check = rows[1000:1500]
    train = rows[1500:]
    centre = x[train].mean(axis=0)
    scale = x[train].std(axis=0)
    mean = float(y[train].mean())
    unit = float(y[train].std())
    return SplitRows((x - centre) / scale, (y - mean) / unit, test, check, train, unit, source)


def make_orders(seed: int, first: int, count: int, pool: np.ndarray, length: int) -> Orders:
    """Return data orders (n, T) among some rows, and keys.

    Arguments:
        seed: the seed of the experiment.
        first: the number of the first order: 0 for orders that are scored; others are for tuning.
        count: how many orders n.
        pool: the rows to choose from.
        length: T.
    """
    rngs = [np.random.default_rng([seed, first + k]) for k in range(count)]
    return {
        "order": np.stack([rng.permutation(pool)[:length] for rng in rngs]),
        "key": np.arange(first, first + count),
    }
