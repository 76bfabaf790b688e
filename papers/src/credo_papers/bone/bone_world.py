"""The common part of the changing worlds of BONE: streams of numbers, one for each seed, drawn with NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import jax
import numpy as np

from credo.core.types import PyTree

__all__ = ["Draw", "Streams", "draw_labels", "draw_regimes", "make_streams", "powers"]


class Streams(NamedTuple):
    """A stream of T steps; or several, with a leading axis everywhere.

    Attributes:
        x: inputs (T, F).
        y: observations (T,).
        truth: E[y | x] under the parameters of the time (T,).
        change: whether a regime begins here (T,), 0 or 1; the first step counts as none.
        start: the prior mean of the parameters.
    """

    x: np.ndarray
    y: np.ndarray
    truth: np.ndarray
    change: np.ndarray
    start: PyTree


Draw: TypeAlias = Callable[[np.random.Generator], Streams]
"""Draws one stream of a world from a generator of random numbers."""


def make_streams(draw: Draw, seed: int, purpose: int, count: int) -> Streams:
    """Return fresh streams for a purpose; no random numbers are shared between two purposes.

    Arguments:
        draw: the function that draws a world.
        seed: the seed of the experiment.
        purpose: `SCORED` or `TUNING`.
        count: how many.
    """
    streams = [draw(np.random.default_rng([seed, purpose, index])) for index in range(count)]
    stack: Streams = jax.tree.map(
        lambda *leaves: np.stack([np.asarray(leaf, np.float32) for leaf in leaves]), *streams
    )
    return stack


def powers(x: np.ndarray, degree: int = 2) -> np.ndarray:
    """Return the features 1, x, ..., x^degree, on a new last axis.

    Arguments:
        x: of any shape.
        degree: at least 0.

    Example:
        >>> powers(np.array([2.0])).tolist()
        [[1.0, 2.0, 4.0]]
    """
    features: np.ndarray = x[..., None] ** np.arange(degree + 1)
    return features


def draw_regimes(rng: np.random.Generator, steps: int, hazard: float) -> tuple[np.ndarray, np.ndarray]:
    """Return where regimes begin (T,), and the number of the regime at each step (T,).

    Arguments:
        rng: the random numbers.
        steps: T.
        hazard: the probability that a regime begins.
    """
    change = rng.random(steps) < hazard
    change[0] = False
    return change, np.cumsum(change)


def draw_labels(rng: np.random.Generator, x: np.ndarray, weights: np.ndarray, change: np.ndarray) -> Streams:
    """Return a stream of labels 0 or 1 of a logistic regression.

    Arguments:
        rng: the random numbers.
        x: inputs (T, 2).
        weights: at each step (T, 2).
        change: where regimes begin (T,).
    """
    truth = 1.0 / (1.0 + np.exp(-np.sum(x * weights, axis=1)))
    return Streams(x, rng.random(len(x)) < truth, truth, change, np.zeros(2))
