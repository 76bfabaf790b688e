"""The networks of sessions: built from settings, with the parameters that they begin with."""

from __future__ import annotations

import math
from typing import Any, Literal, TypeAlias

import jax
import numpy as np

from credo.core.errors import CredoError
from credo.core.types import PyTree
from credo.models import CNN, MLP, Linear, RandomFeatures
from credo.models.networks import BlendedMLP
from credo.recipes import defaults
from credo.recipes.architecture import Network
from credo.recipes.growth import slots
from credo.recipes.settings import NoiseVar, TaskName

__all__ = ["Net", "count_parameters", "first_parameters", "network", "outputs_of", "prior_variances"]

Net: TypeAlias = Linear | MLP | CNN | RandomFeatures
"""The networks of sessions."""

Bend: TypeAlias = Literal["elu", "tanh"]
"""The non-linearities of the members of a bank, which share one program."""

_BLEND: tuple[Bend, Bend] = ("elu", "tanh")


def network(
    model: Network, outputs: int, shape: tuple[int, ...], seed: int = 0, activation: Bend | None = None
) -> Net:
    """The network of a setting.

    Arguments:
        model: the setting.
        outputs: the number C of outputs.
        shape: the shape of one row of inputs.
        seed: the seed of random features.
        activation: the non-linearity of a perceptron that is a member of a bank; None for a single learner.

    Raises:
        CredoError: a cnn is asked for, and the rows are not images; or the setting is a bank of networks.
    """
    images = len(shape) > 1
    if model.banked:
        raise CredoError(f"`model={str(model)!r}` is several networks.", field="model")
    if model.kind == "features":
        inputs = math.prod(shape)
        return RandomFeatures.draw(seed, inputs, model.widths[0], np.float32(math.sqrt(inputs)), outputs)
    if model.kind == "cnn":
        if not images:
            raise CredoError(
                f"`model='cnn'` needs images; this data has {math.prod(shape)} features: "
                "use linear or mlp:50."
            )
        return CNN(outputs, activation=defaults.activation(images))
    if model.kind == "linear":
        return Linear(outputs)
    if activation is not None:
        return BlendedMLP(outputs, model.widths, *_BLEND, share=float(_BLEND.index(activation)))
    return MLP(outputs, model.widths, defaults.activation(images))


def outputs_of(task: TaskName, classes: int, first: int = 0, noise_var: NoiseVar = None) -> int:
    """How many outputs a model has: one for numbers and for two classes, else one a class.

    Where the noise follows the inputs there are two, the mean and the log of the noise variance.

    Arguments:
        task: what is predicted.
        classes: the number of classes.
        first: how many classes the first rows showed, where new ones get room; 0 where they are fixed.
        noise_var: the noise variance of a regression.
    """
    if task != "classification":
        return 2 if noise_var == "input" else 1
    room = slots(first, classes)
    return room - 1 if 2 in (first, room) else room


def count_parameters(model: Network, outputs: int, shape: tuple[int, ...]) -> int:
    """The number P of parameters, without any computation."""
    params = jax.eval_shape(lambda: first_parameters(network(model, outputs, shape), shape))
    return sum(int(np.prod(leaf.shape)) for leaf in jax.tree.leaves(params))


def first_parameters(net: Net, shape: tuple[int, ...], seed: int = 0, start: float | None = None) -> Any:
    """The parameters that a network begins with, the mean of its prior.

    Arguments:
        net: the network.
        shape: the shape of one row of inputs.
        seed: the seed of the initial weights.
        start: what the biases of the outputs begin with; None for 0.
    """
    if isinstance(net, RandomFeatures):
        weights = net.init()
        return weights if start is None else weights.at[-1].add(start)
    params = net.init(jax.random.key(seed), shape)
    if start is not None:
        params[-1]["b"] = params[-1]["b"] + start
    return params


def prior_variances(net: Net, params: PyTree, scale: float) -> PyTree:
    """The prior variances of the parameters of a network for tables."""
    return scale if isinstance(net, RandomFeatures) else net.prior_var(params, scale)
