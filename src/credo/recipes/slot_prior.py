"""The learner of features that come and go, and its prior belief, at any number of inputs.

The prior of a feature depends on its slot and on the number of features of the first row, never on how many
inputs there are by now. So a belief that was widened is one that was wide from the start.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from credo.adapt import Each, Standardised
from credo.core.records import replace
from credo.core.types import PyTree
from credo.models import RandomFeatures
from credo.recipes import defaults
from credo.recipes.assembly import members, plain_learner
from credo.recipes.auto import Auto
from credo.recipes.image_members import ImageMember
from credo.recipes.networks import (
    count_parameters,
    first_parameters,
    network,
    outputs_of,
    prior_variances,
)
from credo.recipes.posterior import Posterior
from credo.recipes.resolution import require_memory
from credo.recipes.settings import Settings

__all__ = ["Beginning", "Extent", "begin", "require_room"]

TARGET_CLIP = 8.0
"""The largest size of a standardised target that is learned."""

FIRST_CLASSES = 2
"""The number of classes for which there is one output; further classes get outputs of their own."""


class Extent(NamedTuple):
    """What a learner is for.

    Attributes:
        settings: how it learns.
        narrow: the number of inputs at the first row, by which the kind of each covariance is chosen.
        features: the number of features of the first row, by which prior variances are divided.
        scale: whether inputs are standardised.
    """

    settings: Settings
    narrow: int
    features: int
    scale: bool


class Beginning(NamedTuple):
    """A learner, and what its `init` and `widen` are given.

    Attributes:
        learner: the learner.
        arguments: the arguments by their names.
    """

    learner: Standardised[Any]
    arguments: dict[str, Any]


@functools.lru_cache(maxsize=32)
def begin(extent: Extent, inputs: int, classes: int) -> Beginning:
    """The learner of so many inputs and classes, and its prior.

    Arguments:
        extent: what it is for.
        inputs: the number of inputs.
        classes: the number of classes, 0 for a regression.

    Returns:
        The learner, and the arguments of its `init` but for `scaled`. Estimators of one kind share both.
    """
    settings, shape = extent.settings, (inputs,)
    first = FIRST_CLASSES if classes else 0
    learner = plain_learner(settings, (extent.narrow,), classes, first)
    learner = _with_frequencies(learner, extent, inputs)
    outputs = outputs_of(settings.task, classes, first, settings.noise_var)
    details: dict[str, Any] = {"size": inputs}
    if isinstance(learner, Auto):
        params, var = [], []
        for member in members(settings, (extent.narrow,), classes, first):
            assert not isinstance(member, ImageMember)
            net = network(member.network, outputs + (member.noise == "input"), shape, 0, member.activation)
            drawn, spread = _prior(net, extent, inputs, member.prior_var)
            params.append(drawn)
            var.append(spread)
        details |= {"params": Each(tuple(params)), "var": Each(tuple(var))}
    else:
        net = network(settings.model, outputs, shape, settings.seed)
        details["params"], details["var"] = _prior(net, extent, inputs, settings.prior_var)
        if settings.posterior is None:
            label = np.int32(0) if settings.task == "classification" else np.float32(0)
            details |= {"example": (np.zeros(shape, np.float32), label)}
            del details["var"]
        elif settings.posterior.particles is not None:
            details["key"] = settings.seed
    regression = settings.task == "regression"
    clip = TARGET_CLIP if regression else defaults.CLIP
    return Beginning(Standardised(learner, extent.scale, regression, clip), details)


def _prior(net: Any, extent: Extent, inputs: int, scale: float) -> tuple[PyTree, PyTree]:
    """The prior mean and variances of a network whose fan-in is the number of features of the first row."""
    params = first_parameters(net, (inputs,), extent.settings.seed)
    var = prior_variances(net, params, scale)
    if isinstance(net, RandomFeatures):
        return params, var
    ratio = inputs / extent.features
    # row j of the first layer is drawn from the place of its numbers alone, whatever the number of rows
    first = params[0] | {"w": params[0]["w"] * jnp.float32(math.sqrt(ratio))}
    return [first, *params[1:]], [var[0] | {"w": var[0]["w"] * ratio}, *var[1:]]


def _with_frequencies(learner: Any, extent: Extent, inputs: int) -> Any:
    """The learner with random features of so many inputs, those of the first slots first."""

    def wider(node: Any) -> Any:
        if not isinstance(node, RandomFeatures):
            return node
        lead, waves = node.frequencies.shape[:-2], node.frequencies.shape[-2]
        draws = jax.random.normal(jax.random.key(extent.settings.seed), (inputs, waves), node.phases.dtype)
        length = jnp.full(jnp.shape(node.length), math.sqrt(extent.features), jnp.float32)
        return replace(node, frequencies=jnp.broadcast_to(draws.T, (*lead, waves, inputs)), length=length)

    return jax.tree.map(wider, learner, is_leaf=lambda node: isinstance(node, RandomFeatures))


def require_room(extent: Extent, inputs: int, classes: int) -> None:
    """Refuse more inputs or classes than fit in memory.

    Raises:
        CredoError: they do not fit.
    """
    settings = extent.settings
    first = FIRST_CLASSES if classes else 0
    outputs = outputs_of(settings.task, classes, first, settings.noise_var)
    bank = members(settings, (extent.narrow,), classes, first)
    if not bank:
        size = count_parameters(settings.model, outputs, (inputs,))
        require_memory(
            settings.posterior, size, settings.drift, model=settings.model, outputs=outputs,
            method=settings.method,
        )  # fmt: skip
        return
    for net in {member.network for member in bank}:
        size = count_parameters(net, outputs, (inputs,))
        start = outputs_of(settings.task, classes and FIRST_CLASSES, first)
        narrow = count_parameters(net, start, (extent.narrow,))
        whole = start * narrow**2 <= defaults.FULL_COST
        posterior = Posterior("full") if whole else Posterior("low-rank", defaults.BANK_RANK)
        require_memory(posterior, size, settings.drift, model=net, outputs=outputs)
