"""Functions for `optimisation.py`: where they are defined, their minima, and how noisy they are made.

Boxes are those of the literature, except that none has its minimum at its centre. Two functions are not from
the literature: the loss of credo's default learner by 20 of its numbers (`optimisation_learning`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from optimisation_learning import HYPERPARAMETERS, Learning

__all__ = ["CHOSEN", "PROBLEMS", "SCORED", "Problem"]

Vector: TypeAlias = "np.ndarray"


@dataclass(frozen=True)
class Problem:
    """A function (d,) -> number over a box (d, 2), with its minimum, None if it is not known.

    Noise has a tenth of the standard deviation of the function over its box, if there is a noisy variant.
    """

    function: Callable[[Vector], float]
    box: tuple[tuple[float, float], ...]
    minimum: float | None
    noisy: bool = True

    @property
    def noise_sd(self) -> float:
        """The standard deviation of the noise, from 4,096 points at random."""
        low, high = np.asarray(self.box).T
        points = low + (high - low) * np.random.default_rng(0).random((4096, len(low)))
        return 0.1 * float(np.std([self.function(point) for point in points]))


def branin(x: Vector) -> float:
    """Three minima of one value in two variables."""
    a, b = x
    bowl = (b - 5.1 / (4 * np.pi**2) * a**2 + 5 / np.pi * a - 6) ** 2
    return float(bowl + 10 * (1 - 1 / (8 * np.pi)) * np.cos(a) + 10)


HEIGHTS = np.array([1.0, 1.2, 3.0, 3.2])
WIDTHS_6 = np.array(
    [
        [10, 3, 17, 3.5, 1.7, 8],
        [0.05, 10, 17, 0.1, 8, 14],
        [3, 3.5, 1.7, 10, 17, 8],
        [17, 8, 0.05, 10, 0.1, 14],
    ]
)
PLACES_6 = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)
WIDTHS_3 = np.array([[3.0, 10, 30], [0.1, 10, 35], [3, 10, 30], [0.1, 10, 35]])
PLACES_3 = 1e-4 * np.array([[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]])


def hartmann(x: Vector) -> float:
    """Four narrow wells in three or six variables."""
    widths, places = (WIDTHS_6, PLACES_6) if len(x) == 6 else (WIDTHS_3, PLACES_3)
    return float(-HEIGHTS @ np.exp(-(widths * (x - places) ** 2).sum(axis=1)))


def ackley(x: Vector) -> float:
    """A funnel with many dents."""
    funnel = -20 * np.exp(-0.2 * np.sqrt(np.mean(x**2)))
    return float(funnel - np.exp(np.mean(np.cos(2 * np.pi * x))) + 20 + np.e)


def rosenbrock(x: Vector) -> float:
    """A bent valley, with values up to a million at its sides."""
    return float(np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2))


def levy(x: Vector) -> float:
    """Waves over a bowl."""
    w = 1 + (x - 1) / 4
    middle = (w[:-1] - 1) ** 2 * (1 + 10 * np.sin(np.pi * w[:-1] + 1) ** 2)
    last = (w[-1] - 1) ** 2 * (1 + np.sin(2 * np.pi * w[-1]) ** 2)
    return float(np.sin(np.pi * w[0]) ** 2 + middle.sum() + last)


def goldstein_price(x: Vector) -> float:
    """Values from 3 to a million in two variables."""
    a, b = x
    first = 19 - 14 * a + 3 * a**2 - 14 * b + 6 * a * b + 3 * b**2
    second = 18 - 32 * a + 12 * a**2 + 48 * b - 36 * a * b + 27 * b**2
    return float((1 + (a + b + 1) ** 2 * first) * (30 + (2 * a - 3 * b) ** 2 * second))


def camel(x: Vector) -> float:
    """Six wells in two variables."""
    a, b = x
    return float((4 - 2.1 * a**2 + a**4 / 3) * a**2 + a * b + (4 * b**2 - 4) * b**2)


def griewank(x: Vector) -> float:
    """A bowl with ripples."""
    return float((x**2).sum() / 4000 - np.prod(np.cos(x / np.sqrt(np.arange(1, len(x) + 1)))) + 1)


def styblinski_tang(x: Vector) -> float:
    """Two wells in each variable."""
    return float(0.5 * np.sum(x**4 - 16 * x**2 + 5 * x))


def dixon_price(x: Vector) -> float:
    """A narrow valley."""
    steps = np.arange(2, len(x) + 1) * (2 * x[1:] ** 2 - x[:-1]) ** 2
    return float((x[0] - 1) ** 2 + steps.sum())


def michalewicz(x: Vector) -> float:
    """Narrow channels in flat land."""
    numbers = np.arange(1, len(x) + 1)
    return float(-np.sum(np.sin(x) * np.sin(numbers * x**2 / np.pi) ** 20))


def powell(x: Vector) -> float:
    """A bowl that is flat in some directions."""
    a, b, c, d = x.reshape(-1, 4).T
    return float(np.sum((a + 10 * b) ** 2 + 5 * (c - d) ** 2 + (b - 2 * c) ** 4 + 10 * (a - d) ** 4))


def zakharov(x: Vector) -> float:
    """A bowl whose sides rise with the fourth power in one direction."""
    side = 0.5 * np.arange(1, len(x) + 1) @ x
    return float(x @ x + side**2 + side**4)


SHEKEL_PLACES = np.array(
    [
        [4, 4, 4, 4],
        [1, 1, 1, 1],
        [8, 8, 8, 8],
        [6, 6, 6, 6],
        [3, 7, 3, 7],
        [2, 9, 2, 9],
        [5, 5, 3, 3],
        [8, 1, 8, 1],
        [6, 2, 6, 2],
        [7, 3.6, 7, 3.6],
    ]
)
SHEKEL_WIDTHS = np.array([0.1, 0.2, 0.2, 0.4, 0.4, 0.6, 0.3, 0.7, 0.5, 0.5])


def shekel(x: Vector) -> float:
    """Ten narrow holes in flat land."""
    return float(-np.sum(1 / (((x - SHEKEL_PLACES) ** 2).sum(axis=1) + SHEKEL_WIDTHS)))


def alpine(x: Vector) -> float:
    """Waves with edges."""
    return float(np.abs(x * np.sin(x) + 0.1 * x).sum())


def rastrigin(x: Vector) -> float:
    """Many dents in a bowl."""
    return float(10 * len(x) + np.sum(x**2 - 10 * np.cos(2 * np.pi * x)))


def learning(data: str) -> Problem:
    """The loss of the default learner on 300 rows of a data set: exact, and with an unknown minimum."""
    box = tuple((one.low, one.high) for one in HYPERPARAMETERS)
    return Problem(Learning(data, 300), box, None, noisy=False)


SCORED: dict[str, Problem] = {
    "branin": Problem(branin, ((-5, 10), (0, 15)), 0.39788735772973816),
    "hartmann-6": Problem(hartmann, ((0, 1),) * 6, -3.322368011391339),
    "ackley-5": Problem(ackley, ((-5, 10),) * 5, 0.0),
    "rosenbrock-4": Problem(rosenbrock, ((-5, 10),) * 4, 0.0),
    "levy-8": Problem(levy, ((-5, 10),) * 8, 0.0),
    "learn-20": learning("concrete"),
}
"""Functions that no choice has looked at."""

CHOSEN: dict[str, Problem] = {
    "goldstein-price": Problem(goldstein_price, ((-2, 2),) * 2, 3.0),
    "camel": Problem(camel, ((-3, 3), (-2, 2)), -1.031628453489877),
    "hartmann-3": Problem(hartmann, ((0, 1),) * 3, -3.862782147820756),
    "griewank-4": Problem(griewank, ((-50, 70),) * 4, 0.0),
    "styblinski-tang-5": Problem(styblinski_tang, ((-5, 5),) * 5, -195.83082851885163),
    "dixon-price-4": Problem(dixon_price, ((-10, 10),) * 4, 0.0),
    "michalewicz-5": Problem(michalewicz, ((0, np.pi),) * 5, -4.687658),
    "powell-8": Problem(powell, ((-4, 5),) * 8, 0.0),
    "zakharov-6": Problem(zakharov, ((-5, 10),) * 6, 0.0),
    "shekel-4": Problem(shekel, ((0, 10),) * 4, -10.536443),
    "alpine-6": Problem(alpine, ((-6, 10),) * 6, 0.0),
    "rastrigin-4": Problem(rastrigin, ((-4, 5.12),) * 4, 0.0),
    "learn-20-diabetes": learning("diabetes"),
}
"""Functions by which the default was chosen, or may be: of the last seven none has chosen anything."""

PROBLEMS = SCORED | CHOSEN
