"""Wide streams: many columns, of which few matter, much text, and many classes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from default_streams import Stream
from default_unseen import keel

__all__ = ["WIDE", "many_classes", "many_columns"]


def many_columns(width: int, rows: int, useful: int = 8, seed: int = 7) -> Stream:
    """Normal columns, of which the first `useful` say something: a linear sum, and a sine of the first."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(rows, width))
    weights = random.normal(size=useful)
    y = x[:, :useful] @ weights / np.sqrt(useful) + np.sin(2.0 * x[:, 0]) + 0.3 * random.normal(size=rows)
    return Stream({f"x{i}": column for i, column in enumerate(x.T)}, y, "regression")


def many_classes(classes: int, rows: int, width: int = 10, seed: int = 7) -> Stream:
    """Normal clouds around two centres for each of the classes, of which some are ten times as frequent."""
    random = np.random.default_rng(seed)
    centres = 2.0 * random.normal(size=(2 * classes, width))
    shares = np.geomspace(1.0, 0.1, 2 * classes)[random.permutation(2 * classes)]
    cloud = random.choice(2 * classes, size=rows, p=shares / shares.sum())
    x = centres[cloud] + random.normal(size=(rows, width))
    labels = np.array([f"class{number:02d}" for number in range(classes)])[cloud % classes]
    return Stream({f"x{i}": column for i, column in enumerate(x.T)}, labels, "classification")


WIDE: dict[str, Callable[[], Stream]] = {
    "splice": partial(keel, "splice"),
    "letter": partial(keel, "letter"),
    "columns-100": partial(many_columns, 100, 5000),
    "columns-500": partial(many_columns, 500, 4000),
    "classes-20": partial(many_classes, 20, 6000),
    "classes-50": partial(many_classes, 50, 10_000),
}
"""The streams by name: genes as 60 columns of letters, written letters, and simulations."""
