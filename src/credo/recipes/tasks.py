"""Recipes of tasks: the likelihood of each, and the numbers of its learners that are its own."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from credo.beliefs import InverseGamma
from credo.core.names import Task
from credo.likelihoods import (
    Bernoulli,
    Categorical,
    HeteroscedasticNormal,
    NegativeBinomial,
    Normal,
    OpenCategorical,
)
from credo.likelihoods.base import LikelihoodBase
from credo.recipes import defaults

__all__ = ["RECIPES", "Noise", "TaskRecipe", "slots"]

Noise: TypeAlias = float | Literal["input"] | InverseGamma
"""The noise variance of numbers: one that is known, that follows the inputs, or what is believed of it."""


Start: TypeAlias = float | tuple[float, ...] | None
"""The first biases of the outputs: one number for all, or one for each; None adds nothing."""


@dataclass(frozen=True)
class TaskRecipe:
    """The recipe of a task: its likelihood for a noise variance, so many classes, and the first ones (0: all
    are fixed); by how much members of a bank may scale the variance of their outputs, whether they may trust
    their mean alone, and the degrees of freedom of heavier tails; what a target without a noise variance is;
    its own scale of prior variances; the output that forecasts a mean, where targets are learned in their own
    units; what the dispersion begins with, if it is a second output; and what an effect is a change of, {}
    the target.
    """

    likelihood: Callable[[Noise, int, int], LikelihoodBase]
    scales: tuple[float, ...]
    plugin: bool = False
    tails: tuple[float, ...] = ()
    noiseless: str = ""
    prior_var: float | None = None
    start: Callable[[float], float] = float
    dispersion: float | None = None
    effect: str = "{}"

    @property
    def outputs(self) -> int:
        """The number of outputs that stand for a number: its mean alone, or also its dispersion."""
        if self.dispersion is None:
            return 1
        return 2

    def begin(self, start: float | None, dispersion: float | None = None) -> Start:
        """The first biases of the outputs, for that of the first and a dispersion."""
        if self.dispersion is None:
            return start
        return 0.0 if start is None else start, math.log(dispersion or self.dispersion)


_AT_LEAST = 4
"""The least number of outputs that are added at a time."""


def slots(first: int, classes: int) -> int:
    """The number of classes that there is room for, of which the first rows showed `first`, 0 where they are
    fixed. Room is made for several at a time, so that few programs are compiled again. Outputs that no class
    has taken begin at the prior, and have no probability (`OpenCategorical`): without new classes nothing is
    different.
    """
    room = first or classes
    while room < classes:
        room += max(_AT_LEAST, room // 2)
    return room


def _of_classes(_: Noise, classes: int, first: int) -> LikelihoodBase:
    if classes > first > 0:
        return OpenCategorical(slots(first, classes), classes, reference=first == 2)
    if classes == 2:
        return Bernoulli()
    return Categorical(classes)


def _of_numbers(noise: Noise, *_: int) -> LikelihoodBase:
    if isinstance(noise, str):
        return HeteroscedasticNormal()
    return Normal(noise)


RECIPES: Mapping[Task, TaskRecipe] = {
    "classification": TaskRecipe(_of_classes, scales=(0.3,), plugin=True, noiseless="classified"),
    "regression": TaskRecipe(_of_numbers, scales=(0.0, 1.0), tails=(2.5, 5.0)),
    "count": TaskRecipe(
        lambda *_: NegativeBinomial(),
        scales=(0.3, 1.0),
        plugin=True,
        noiseless="counted, and its noise is that of a negative binomial",
        prior_var=0.5,  # the mean is exp(eta), which a wide eta carries away
        start=lambda mean: float(np.log(max(mean, 0.1))),  # one in ten where the first counts were 0
        dispersion=defaults.DISPERSION,
        effect="the log of the mean of {}",
    ),
}
"""The recipe of each task."""
