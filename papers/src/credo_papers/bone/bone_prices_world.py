"""The world of `bone-prices`: half hours of electricity, whose price goes up or down (Elec2)."""

from __future__ import annotations

import numpy as np

from credo.datasets import load

__all__ = ["FIRST", "make_rows"]

FIRST = 4000
"""The number of rows by which the inputs are standardised."""


def make_rows() -> tuple[np.ndarray, np.ndarray]:
    """Return the inputs, standardised by the first 4,000 rows and with a constant, and the labels."""
    data = load("electricity", split="all")
    x = np.asarray(data.x, np.float64)
    first = x[:FIRST]
    scaled = (x - first.mean(axis=0)) / np.maximum(first.std(axis=0), 1e-2)
    ones = np.ones((len(x), 1))
    return np.concatenate([np.clip(scaled, -10, 10), ones], axis=1).astype(np.float32), np.asarray(data.y)
