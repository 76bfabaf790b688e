"""All data sets by name: one line about each, the function that loads it, and how it is divided."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

from credo.datasets import images, published, shipped
from credo.datasets.dataset import Dataset, Task, divide
from credo.datasets.finder import Finder

__all__ = ["CATALOGUE", "Entry"]


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
    "digits": _entry("rows", "1,797 handwritten digits, images of 8 x 8 pixels", shipped.scikit_learn),
    "breast-cancer": _entry("rows", "569 tumours, malignant or benign, 30 features", shipped.scikit_learn),
    "wine": _entry("rows", "178 wines of 3 growers, 13 features", shipped.scikit_learn),
    "diabetes": _entry(
        "rows", "progress of 442 patients' diabetes, 10 features", shipped.scikit_learn, "regression"
    ),
    "banana": _entry("rows", "5,300 points in two bent clusters, 2 features", shipped.banana),
    "phishing": _entry("rows", "1,250 web pages, phishing or not, 9 features", shipped.phishing),
    "segments": _entry("rows", "2,310 segments of images in 7 classes, 18 features", shipped.segments),
    "shuttle": _entry("rows", "49,097 readings of a shuttle, 7% anomalies, 9 features", shipped.shuttle),
    "solar-flare": _entry(
        "rows", "flares of 1,066 regions of the sun, mixed types", shipped.solar_flare, "regression"
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
        "stream", "1,001 days of approval ratings", shipped.trump_approval, "regression"
    ),
    "airline-passengers": _entry(
        "stream",
        "144 months of airline passengers, with trend and season",
        shipped.airline_passengers,
        "regression",
    ),
    "water-flow": _entry(
        "stream", "1,268 hours of water flow, with anomalies", shipped.water_flow, "regression"
    ),
    "sp500": _entry("stream", "1,257 days of the returns of ten stocks", shipped.sp500, "regression"),
    "chick-weights": _entry("stream", "578 weights of growing chicks", shipped.chick_weights, "regression"),
    "statlog": _entry("stream", "bandit problem: 5,000 contexts of 9 numbers, 7 arms", published.bandit),
    "covertype": _entry("stream", "bandit problem: 5,000 contexts of 54 numbers, 7 arms", published.bandit),
}
