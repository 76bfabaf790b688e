"""The changing worlds of the BONE experiments: one stream of numbers a seed, drawn with NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from credo.experiments.moons import make_moons

__all__ = [
    "SCORED",
    "TUNING",
    "Streams",
    "drifting_and_jumping",
    "heavy_tails",
    "make_streams",
    "piecewise_linear",
    "piecewise_polynomial",
    "powers",
    "rotating",
    "rotating_moons",
    "two_regimes",
]

SCORED, TUNING = range(2)  # what a stream is for


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
    start: Any


def make_streams(
    draw: Callable[[np.random.Generator], Streams], seed: int, purpose: int, count: int
) -> Streams:
    """Fresh streams for a purpose, `SCORED` or `TUNING`: no random numbers are shared between the two."""
    import jax

    drawn = [draw(np.random.default_rng([seed, purpose, index])) for index in range(count)]
    return jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf, np.float32) for leaf in leaves]), *drawn)


def powers(x: np.ndarray, degree: int = 2) -> np.ndarray:
    """The features 1, x, ..., x^degree, on a new last axis.

    >>> powers(np.array([2.0])).tolist()
    [[1.0, 2.0, 4.0]]
    """
    return x[..., None] ** np.arange(degree + 1)


def _regimes(rng: np.random.Generator, steps: int, hazard: float) -> tuple[np.ndarray, np.ndarray]:
    """Where regimes begin (T,), and the number of the regime at each step (T,)."""
    change = rng.random(steps) < hazard
    change[0] = False
    return change, np.cumsum(change)


def piecewise_linear(rng: np.random.Generator) -> Streams:
    """300 steps of y = (1, x, x^2) w + N(0, 1), x ~ U(-2, 2); w ~ N(0, 3 I) anew with probability .009."""
    change, regime = _regimes(rng, 300, 0.009)
    features = powers(rng.uniform(-2, 2, 300))
    weights = rng.normal(size=(regime[-1] + 1, 3)) * np.sqrt(3.0)
    truth = np.sum(features * weights[regime], axis=1)
    return Streams(features, truth + rng.normal(size=300), truth, change, np.zeros(3))


def heavy_tails(rng: np.random.Generator) -> Streams:
    """300 steps with noise of Student's t with 2.01 degrees of freedom; w begins at (1, 1, 1) and is
    U(-3, 3)^3 anew with probability .01.
    """
    change, regime = _regimes(rng, 300, 0.01)
    features = powers(rng.uniform(-2, 2, 300))
    weights = np.concatenate([np.ones((1, 3)), rng.uniform(-3, 3, size=(regime[-1], 3))])
    truth = np.sum(features * weights[regime], axis=1)
    return Streams(features, truth + rng.standard_t(2.01, size=300), truth, change, np.zeros(3))


def piecewise_polynomial(rng: np.random.Generator) -> Streams:
    """Quadratics in x minus the x at which the segment began, each of which begins where the last one ends.

    500 points x sorted over (-5, 5), of which the first 300 are taken; a segment begins with probability .01,
    with a slope and a curvature from U(-3, 3); noise of standard deviation .2.
    """
    steps = 300
    change, regime = _regimes(rng, steps, 0.01)
    x = np.sort(rng.uniform(-5, 5, 500))[:steps]
    shape, level = rng.uniform(-3, 3, size=(regime[-1] + 1, 2)), rng.uniform(-3, 3)
    starts = np.flatnonzero(change | (np.arange(steps) == 0))
    truth = np.empty(steps)
    for number, first in enumerate(starts):
        last = starts[number + 1] if number + 1 < len(starts) else steps
        # The first x of the next segment too: the value there is its level.
        gap = x[first : last + 1] - x[first]
        value = level + gap * shape[number, 0] + gap**2 * shape[number, 1]
        truth[first:last] = value[: last - first]
        level = value[-1]
    return Streams(x[:, None], truth + 0.2 * rng.normal(size=steps), truth, change, np.zeros(3))


def _labels(rng: np.random.Generator, x: np.ndarray, weights: np.ndarray, change: np.ndarray) -> Streams:
    truth = 1.0 / (1.0 + np.exp(-np.sum(x * weights, axis=1)))
    return Streams(x, rng.random(len(x)) < truth, truth, change, np.zeros(2))


def rotating(rng: np.random.Generator) -> Streams:
    """720 labels of a logistic regression whose weights, of length 10, turn by 5 degrees a step."""
    angle = np.deg2rad(5.0) * np.arange(720)
    weights = 10.0 * np.stack([np.sin(angle), np.cos(angle)], axis=1)
    return _labels(rng, rng.uniform(-3, 3, size=(720, 2)), weights, np.zeros(720))


def drifting_and_jumping(rng: np.random.Generator) -> Streams:
    """720 labels of a logistic regression whose weights walk by N(0, .01^2) a step and jump to U(-2, 2)^2
    with probability .01.
    """
    change, regime = _regimes(rng, 720, 0.01)
    jumps = rng.uniform(-2, 2, size=(regime[-1] + 1, 2))
    walk = np.cumsum(0.01 * rng.normal(size=(720, 2)), axis=0)
    start = np.maximum.accumulate(np.where(change, np.arange(720), 0))
    weights = jumps[regime] + walk - walk[start]
    return _labels(rng, rng.uniform(-3, 3, size=(720, 2)), weights, change)


def rotating_moons(rng: np.random.Generator, angles: tuple[float, ...], count: int) -> Streams:
    """Two moons of noise .2 for each angle in degrees, `count` points each, turned about the origin.

    `start` is drawn by the experiment, whose network it belongs to; the truth is not known.
    """
    xs, ys = [], []
    for angle in np.deg2rad(angles):
        x, y = make_moons(rng, count)
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        xs.append(x @ turn.T)
        ys.append(y)
    y = np.concatenate(ys)
    change = (np.arange(y.size) % count == 0) & (np.arange(y.size) > 0)
    return Streams(np.concatenate(xs), y, np.full(y.size, np.nan), change, np.zeros(0))


def two_regimes(rng: np.random.Generator) -> Streams:
    """5,000 steps of length .01 of dy = .8 (m - y) dt + dB, whose level m is drawn from N(0, 4^2) anew with
    probability .001; x = (1, y) and the observation is the increment of y over dt, whose noise has variance
    100.
    """
    steps, rate, dt = 5000, 0.8, 0.01
    change, regime = _regimes(rng, steps, 0.001)
    levels = 4.0 * rng.normal(size=regime[-1] + 1)
    noise = np.sqrt(dt) * rng.normal(size=steps)
    place, x, truth = 0.0, np.empty((steps, 2)), np.empty(steps)
    for t in range(steps):
        x[t] = 1.0, place
        truth[t] = rate * (levels[regime[t]] - place)
        place += truth[t] * dt + noise[t]
    return Streams(x, truth + noise / dt, truth, change, np.zeros(2))
