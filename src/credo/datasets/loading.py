"""Data sets by name: one line about each, the function that loads it, and how it is divided.

The linear dynamical systems of a published benchmark, which are shipped with credo, are matrices.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal, get_args

import numpy as np

from credo.core.errors import CredoError, DataError, require_choice, require_integer, suggest
from credo.datasets import images, published
from credo.datasets.dataset import Array, Dataset, Task, divide
from credo.datasets.finder import Finder, package_file

__all__ = ["linear_system", "load", "names", "splits"]


@dataclass(frozen=True)
class Entry:
    """A data set that can be loaded by name; the rows of a stream are one split."""

    description: str
    read: Callable[[Finder, str], Dataset]
    splits: tuple[str, ...] = ("train", "test", "all")
    task: Task = "classification"


def _divided(finder: Finder, split: str, *, read: Callable[[Finder], Dataset]) -> Dataset:
    whole = read(finder)
    return divide(whole, split, test_rows=len(whole) // 5)


def _whole(finder: Finder, split: str, *, read: Callable[[Finder], Dataset]) -> Dataset:
    return read(finder)


def _entry(
    kind: Literal["rows", "stream"],
    description: str,
    read: Callable[[Finder], Dataset],
    task: Task = "classification",
) -> Entry:
    if kind == "stream":
        return Entry(description, partial(_whole, read=read), ("train", "all"), task)
    return Entry(description, partial(_divided, read=read), task=task)


CATALOGUE: dict[str, Entry] = {
    "mnist": Entry("70,000 handwritten digits, images of 28 x 28 pixels", images.mnist),
    "fashion-mnist": Entry("70,000 garments of 10 kinds, images of 28 x 28 pixels", images.fashion_mnist),
    "mnist-5000": Entry("5,000 of the digits of mnist, 500 of each", images.shipped_digits),
    "digits": _entry("rows", "1,797 handwritten digits, images of 8 x 8 pixels", published.scikit_learn),
    "breast-cancer": _entry("rows", "569 tumours, malignant or benign, 30 features", published.scikit_learn),
    "wine": _entry("rows", "178 wines of 3 growers, 13 features", published.scikit_learn),
    "diabetes": _entry(
        "rows", "progress of 442 patients' diabetes, 10 features", published.scikit_learn, "regression"
    ),
    "banana": _entry("rows", "5,300 points in two bent clusters, 2 features", published.banana),
    "phishing": _entry("rows", "1,250 web pages, phishing or not, 9 features", published.phishing),
    "segments": _entry("rows", "2,310 segments of images in 7 classes, 18 features", published.segments),
    "shuttle": _entry("rows", "49,097 readings of a shuttle, 7% anomalies, 9 features", published.shuttle),
    "solar-flare": _entry(
        "rows", "flares of 1,066 regions of the sun, mixed types", published.solar_flare, "regression"
    ),
    "concrete": _entry("rows", "strength of 1,030 concretes, 8 features", published.regression, "regression"),
    "energy": _entry("rows", "heating load of 768 buildings, 8 features", published.regression, "regression"),
    "kin8nm": _entry("rows", "8,192 poses of a robot's arm, 8 features", published.regression, "regression"),
    "power-plant": _entry(
        "rows", "output of a power plant in 9,568 hours, 4 features", published.regression, "regression"
    ),
    "wine-quality-red": _entry(
        "rows", "quality of 1,599 red wines, 11 features", published.regression, "regression"
    ),
    "yacht": _entry("rows", "resistance of 308 yachts, 6 features", published.regression, "regression"),
    "electricity": _entry(
        "stream", "45,312 half hours of electricity prices, up or down, with drift", published.electricity
    ),
    "trump-approval": _entry(
        "stream", "1,001 days of approval ratings", published.trump_approval, "regression"
    ),
    "airline-passengers": _entry(
        "stream",
        "144 months of airline passengers, with trend and season",
        published.airline_passengers,
        "regression",
    ),
    "water-flow": _entry(
        "stream", "1,268 hours of water flow, with anomalies", published.water_flow, "regression"
    ),
    "sp500": _entry("stream", "1,257 days of the returns of ten stocks", published.sp500, "regression"),
    "chick-weights": _entry("stream", "578 weights of growing chicks", published.chick_weights, "regression"),
    "statlog": _entry("stream", "bandit problem: 5,000 contexts of 9 numbers, 7 arms", published.bandit),
    "covertype": _entry("stream", "bandit problem: 5,000 contexts of 54 numbers, 7 arms", published.bandit),
}


def load(
    name: str,
    *,
    split: str = "train",
    limit: int | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    allow_download: bool = True,
) -> Dataset:
    """Load a data set by its name.

    Its files are looked for in `data_dir` (else `CREDO_DATA_DIR`), in the cache, in installed packages, and
    on the network, in this order. Rows that were published without test rows are divided by a fixed seed,
    4 to 1; a stream is one split, since every row of it is predicted before it is learned from.

    Arguments:
        name: one of `names()`.
        split: `"train"`, `"test"` or `"all"`; a stream has no test rows.
        limit: the largest number of rows, or None for all.
        data_dir: the folder to look in first.
        allow_download: whether the network may be used.

    Returns:
        The data set, with x of shape `(N, ...)` in float32 and y of shape `(N,)`.

    Raises:
        DataError: if the name or the split is unknown, or the data cannot be found or read; the message says
            where they were looked for and what to do.
        CredoError: if `limit` is not a whole number above 0.

    Example:
        >>> wine = load("wine", split="test", limit=10)
        >>> wine
        Dataset('wine', classification, 10 rows, x of shape (10, 13))
    """
    entry = _find_entry(name)
    if split not in entry.splits:
        why = (
            f"; {name!r} is one stream, in which every row is predicted before it is learned from"
            if split == "test"
            else ""
        )
        raise DataError(
            f"split of data set {name!r} must be one of {', '.join(entry.splits)}; got {split!r}{why}."
        )
    if limit is not None:
        require_integer("limit", limit, 1)
    data = entry.read(Finder(name, data_dir, allow_download), split)
    if limit is None:
        return data
    return data.rows(slice(limit))


def names(task: Task | None = None) -> dict[str, str]:
    """All data sets that can be loaded.

    Arguments:
        task: `"classification"` or `"regression"` for the data sets of this task, or None for all.

    Returns:
        A line about each data set, by its name.

    Raises:
        CredoError: if there is no such task.

    Example:
        >>> "mnist" in names()
        True
        >>> names()["yacht"]
        'resistance of 308 yachts, 6 features'
    """
    if task is not None:
        require_choice("task", task, get_args(Task))
    return {name: entry.description for name, entry in CATALOGUE.items() if task in (None, entry.task)}


def splits(name: str) -> tuple[str, ...]:
    """The splits a data set has.

    Arguments:
        name: one of `names()`.

    Returns:
        `("train", "test", "all")`, or `("train", "all")`, which are the same rows, for a stream.

    Raises:
        DataError: if the name is unknown.

    Example:
        >>> splits("electricity")
        ('train', 'all')
    """
    return _find_entry(name).splits


def _find_entry(name: str) -> Entry:
    if name not in CATALOGUE:
        hint = suggest(name, CATALOGUE) or f"the names are {', '.join(CATALOGUE)}."
        raise DataError(f"there is no data set {name!r}; {hint}")
    return CATALOGUE[name]


def linear_system(dim: int) -> tuple[Array, Array]:
    """The matrices A and B of a benchmark of particle filters (Chen, Dai & Song 2019).

        x_t = A x_{t-1} + N(0, I),    y_t = B x_t + N(0, I),    x_0 ~ N(0, I)

    They were published with the code of the paper, under the MIT licence. They are not what the sampler in
    that code draws, so the files are needed to compare with the published numbers.

    Arguments:
        dim: the dimension of x and of y, 2 or 10.

    Returns:
        A and B, each float32 of shape `(dim, dim)`.

    Raises:
        CredoError: there is no system of this dimension.
        DataError: the file, which is a part of credo, is missing.

    Example:
        >>> transition, observation = linear_system(10)
        >>> round(float(abs(np.linalg.eigvals(transition)).max()), 4)
        0.9887
    """
    if dim not in (2, 10):
        raise CredoError(f"dim must be 2 or 10; got {dim!r}.", field="dim")
    path = package_file("credo", "datasets/linear_systems.npz")
    if path is None:
        raise DataError("datasets/linear_systems.npz is missing from the installed credo; install it again.")
    with np.load(path, allow_pickle=False) as stored:
        return stored[f"A_{dim}"], stored[f"B_{dim}"]
