"""Environments by name: generators, and every data set that is a classification or a bandit problem."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from credo import datasets
from credo.bandits.environments.arms import BernoulliArms, ContextualArms, GaussianArms, Products, Wheel
from credo.bandits.environments.base import Environment
from credo.bandits.environments.motion import Drifts, Jumps
from credo.bandits.environments.rows import Classification, KnownRewards
from credo.bandits.environments.wrapped import Intercept, RewardUnit
from credo.core.errors import CredoError, DataError, suggest
from credo.core.types import ArrayLike
from credo.likelihoods import Bernoulli

__all__ = ["AnyEnvironment", "environment_names", "load_environment"]

AnyEnvironment: TypeAlias = Environment[Any]
"""An environment with any state."""

_DRIFT = Drifts(0.003)
_JUMPS = Jumps(0.005)

# For each generator: one line about it, and the class with the arguments that differ from its own.
_GENERATORS: dict[str, tuple[str, Callable[..., AnyEnvironment]]] = {
    "bernoulli": ("10 arms with chances from U(0, 1)", partial(BernoulliArms, arms=10)),
    "bernoulli-drifting": (
        "10 restless arms: chances that walk with variance .003 a step",
        partial(BernoulliArms, arms=10, motion=_DRIFT),
    ),
    "bernoulli-jumping": (
        "10 arms with chances that are drawn anew every 200 steps or so",
        partial(BernoulliArms, arms=10, motion=_JUMPS),
    ),
    "gaussian": ("10 arms with means from N(0, 1) and noise variance 1", partial(GaussianArms, arms=10)),
    "gaussian-drifting": (
        "10 arms with means that walk with variance .003 a step",
        partial(GaussianArms, arms=10, motion=_DRIFT),
    ),
    "gaussian-jumping": (
        "10 arms with means that are drawn anew every 200 steps or so",
        partial(GaussianArms, arms=10, motion=_JUMPS),
    ),
    "linear": ("linear rewards of 10 numbers, 7 arms, noise variance .01", ContextualArms),
    "linear-drifting": (
        "as linear, with weights that walk with variance .003 a step",
        partial(ContextualArms, motion=_DRIFT),
    ),
    "logistic": (
        "rewards 0 or 1, logistic in 10 numbers, 7 arms",
        partial(ContextualArms, likelihood=Bernoulli()),
    ),
    "logistic-drifting": (
        "as logistic, with weights that walk with variance .003 a step",
        partial(ContextualArms, likelihood=Bernoulli(), motion=_DRIFT),
    ),
    "products": ("10 new products a step with 5 features, linear rewards", Products),
    "products-clicked": (
        "10 new products a step with 5 features, rewards 0 or 1",
        partial(Products, likelihood=Bernoulli()),
    ),
    "wheel": ("5 arms and points of a disk, few of them with large rewards", Wheel),
}


def load_environment(
    name: str, *, intercept: bool = False, divisor: ArrayLike | None = None, **options: object
) -> AnyEnvironment:
    """Load an environment by its name.

    A generator takes the arguments of its class: `load_environment("wheel", delta=0.99)`. A data set takes
    `limit`, `data_dir` and `allow_download` as `credo.datasets.load` does, `shuffle` and `noise_var` as
    `Classification` does, and `flat`, which lays images out as vectors unless it is False. All rows of a data
    set are used, and a regression has no arms.

    Arguments:
        name: one of `environment_names()`.
        intercept: whether contexts end with a 1; see `Intercept`.
        divisor: a number by which rewards are divided, or None; see `RewardUnit`.
        options: what the environment of this name takes beside.

    Returns:
        The environment.

    Raises:
        DataError: there is no such environment, or its data cannot be found.
        CredoError: an option is unknown, or its value is not allowed.

    Example:
        >>> world = load_environment("digits", limit=500)
        >>> world.arms, world.steps
        (10, 500)
    """
    make = _maker(name)
    allowed = [option for option in inspect.signature(make).parameters]
    for option in options:
        if option not in allowed:
            hint = suggest(option, allowed)
            raise CredoError(
                f"options of {name!r} are {', '.join([*allowed, 'intercept', 'divisor'])}; got {option!r}"
                + (f" ({hint})." if hint else "."),
                field=option,
            )
    environment = make(**options)
    if intercept:
        environment = Intercept(environment)
    if divisor is None:
        return environment
    return RewardUnit(environment, divisor)


def environment_names() -> dict[str, str]:
    """All environments that can be loaded.

    Returns:
        A line about each environment, by its name.

    Example:
        >>> environment_names()["wheel"]
        '5 arms and points of a disk, few of them with large rewards'
    """
    generators = {name: line for name, (line, _) in _GENERATORS.items()}
    return generators | datasets.names(task="classification")


def _maker(name: str) -> Callable[..., AnyEnvironment]:
    if name in _GENERATORS:
        return _GENERATORS[name][1]
    names = environment_names()
    if name in names:
        return partial(_of_data, name)
    if name in datasets.names():
        raise DataError(f"the data set {name!r} is a regression, which has no arms to choose from.")
    hint = suggest(name, names) or f"the names are {', '.join(names)}."
    raise DataError(f"there is no environment {name!r}; {hint}")


def _of_data(
    name: str,
    /,
    *,
    limit: int | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    allow_download: bool = True,
    flat: bool = True,
    shuffle: bool = True,
    noise_var: ArrayLike | None = None,
) -> AnyEnvironment:
    """The environment of a data set."""
    data = datasets.load(name, split="all", limit=limit, data_dir=data_dir, allow_download=allow_download)
    x = data.x.reshape(len(data), -1) if flat else data.x
    if data.rewards is not None:
        return KnownRewards(x, data.rewards, noise_var=noise_var, shuffle=shuffle)
    labels = np.asarray(data.y)
    return Classification(x, labels, len(data.class_names), noise_var=noise_var, shuffle=shuffle)
