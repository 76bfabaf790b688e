"""The world of `lofi-fashion`: streams of Fashion-MNIST that stand still or drift, and their tests.

- stationary: the ten classes, as they are.
- permuted: every 300 rows the pixels are put in another random order.
- rotated: images turn steadily, from 0 to 180 degrees at the end.
- split: every 300 rows there are two other classes, labelled 0 and 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from credo.datasets import Dataset
from credo_papers.engine.purposes import TUNING

__all__ = ["STREAMS", "Pool", "Stream", "StreamName", "make_pool", "make_stream", "rotate"]

StreamName: TypeAlias = Literal["stationary", "permuted", "rotated", "split"]
"""The kinds of streams."""

STREAMS: tuple[StreamName, ...] = get_args(StreamName)
"""All kinds of streams."""

PIXELS = 784
ANGLE = 180.0


class Pool(NamedTuple):
    """Standardised images (N, 28, 28) and labels (N,) to draw rows from, and those to test on."""

    x: np.ndarray
    y: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray


class Stream(NamedTuple):
    """Several streams of T rows, and what they are tested on after each of K chunks.

    Attributes:
        x, y: rows (S, T, 784) and labels (S, T).
        pixels: the order of the test pixels (S, K, 784).
        x_test, y_test: test sets that all streams share (G, N, 784) and (G, N).
        which: which of the test sets belongs to each chunk (K,).
    """

    x: np.ndarray
    y: np.ndarray
    pixels: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray
    which: np.ndarray


def make_pool(train: Dataset, test: Dataset, purpose: int) -> Pool:
    """Return the images for a purpose.

    `SCORED` streams come from the first five sixths of the training images and are tested on the test images;
    `TUNING` streams and their test rows come from the last sixth. Pixels are standardised by their mean and
    standard deviation over the last sixth.

    Arguments:
        train, test: the images.
        purpose: `SCORED` or `TUNING`.
    """
    border = len(train) * 5 // 6
    center = train.x[border:].mean()
    scale = train.x[border:].std()

    def standard(x: np.ndarray) -> np.ndarray:
        pixels: np.ndarray = ((x - center) / scale).astype(np.float32)
        return pixels

    rest = train.rows(slice(border, None))
    if purpose == TUNING:
        half = len(rest) // 2
        return Pool(standard(rest.x[:half]), rest.y[:half], standard(rest.x[half:]), rest.y[half:])
    return Pool(standard(train.x[:border]), train.y[:border], standard(test.x), test.y)


def rotate(images: np.ndarray, degrees: np.ndarray) -> np.ndarray:
    """Return square images that are turned about their centre, with bilinear interpolation.

    Outside of the images lies their darkest value.

    Arguments:
        images: (N, side, side).
        degrees: an angle for each image (N,).

    Example:
        >>> image = np.arange(9.0).reshape(1, 3, 3)
        >>> rotate(image, np.array([90.0]))[0].round(6).tolist()
        [[2.0, 5.0, 8.0], [1.0, 4.0, 7.0], [0.0, 3.0, 6.0]]
    """
    count, side, _ = images.shape
    middle = (side - 1) / 2
    down, right = np.meshgrid(np.arange(side) - middle, np.arange(side) - middle, indexing="ij")
    turn = np.deg2rad(np.asarray(degrees, float))[:, None, None]
    source_down = np.cos(turn) * down + np.sin(turn) * right + middle
    source_right = -np.sin(turn) * down + np.cos(turn) * right + middle
    padded = np.pad(images, ((0, 0), (1, 2), (1, 2)), constant_values=images.min())
    place_down, place_right = (np.clip(s.round(9), -1, side) + 1 for s in (source_down, source_right))
    low_down, low_right = (np.floor(s).astype(int) for s in (place_down, place_right))
    part_down = place_down - low_down
    part_right = place_right - low_right
    each = np.arange(count)[:, None, None]
    canvas = np.zeros(images.shape)
    for i, weight_down in ((0, 1 - part_down), (1, part_down)):
        for j, weight_right in ((0, 1 - part_right), (1, part_right)):
            canvas += weight_down * weight_right * padded[each, low_down + i, low_right + j]
    return canvas.astype(images.dtype)


def make_stream(
    name: StreamName,
    pool: Pool,
    rng_key: Sequence[int],
    count: int,
    *,
    rows: int,
    task: int,
    every: int,
    test_rows: int,
) -> Stream:
    """Return several streams of one kind.

    Arguments:
        name: one of `STREAMS`.
        pool: from which rows are drawn without replacement.
        rng_key: stream i is drawn by `numpy.random.default_rng([*rng_key, i])`.
        count: how many streams S.
        rows: the length T.
        task: the length of a task, for "permuted" and "split".
        every: the rows of a chunk, after which the stream is tested.
        test_rows: how many rows a test set has at most.
    """
    streams = [_one(name, pool, np.random.default_rng([*rng_key, i]), rows, task) for i in range(count)]
    x, y, orders = (np.stack(part) for part in zip(*streams, strict=True))
    last = np.arange(every, rows + 1, every) - 1  # the last row of each chunk
    of_task = last // task
    which = np.zeros(len(last), int)
    flat = pool.x_test[:test_rows].reshape(1, -1, PIXELS)
    labels = pool.y_test[None, :test_rows]
    if name == "rotated":
        which = np.arange(len(last))
        images = pool.x_test[:test_rows]
        flat = np.stack([rotate(images, np.full(len(images), _angle(t, rows))) for t in last])
        labels = np.repeat(labels, len(last), axis=0)
    if name == "split":
        which = of_task
        pairs = [np.flatnonzero(pool.y_test // 2 == k)[:test_rows] for k in range(of_task[-1] + 1)]
        size = min(map(len, pairs))
        flat = np.stack([pool.x_test[pair[:size]] for pair in pairs])
        labels = np.stack([pool.y_test[pair[:size]] % 2 for pair in pairs])
    pixels = orders[:, of_task] if name == "permuted" else orders[:, np.zeros(len(last), int)]
    return Stream(x, y, pixels, flat.reshape(len(flat), -1, PIXELS), labels, which)


def _angle(t: ArrayLike, rows: int) -> np.ndarray:
    return ANGLE * np.asarray(t) / (rows - 1)


def _one(
    name: StreamName, pool: Pool, rng: np.random.Generator, rows: int, task: int
) -> tuple[np.ndarray, ...]:
    """One stream: x (T, 784), y (T,), and the order of the pixels in each task (tasks, 784)."""
    tasks = -(-rows // task)
    still = np.arange(PIXELS)[None, :]
    if name == "split":
        indices = np.concatenate(
            [rng.choice(np.flatnonzero(pool.y // 2 == k), task, replace=False) for k in range(tasks)]
        )[:rows]
        return pool.x[indices].reshape(rows, PIXELS), pool.y[indices] % 2, still
    indices = rng.choice(len(pool.y), rows, replace=False)
    x = pool.x[indices]
    y = pool.y[indices]
    if name == "rotated":
        x = rotate(x, _angle(np.arange(rows), rows))
    flat = x.reshape(rows, PIXELS)
    if name == "permuted":
        orders = np.stack([rng.permutation(PIXELS) for _ in range(tasks)])
        return np.take_along_axis(flat, orders[np.arange(rows) // task], axis=1), y, orders
    return flat, y, still
