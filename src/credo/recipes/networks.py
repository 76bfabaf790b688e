"""The networks of recipes: built from settings, with the parameters that they begin with.

The family of a member of a bank is chosen by what a row costs with it.
"""

from __future__ import annotations

import functools
import math
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.errors import CredoError, Named
from credo.core.records import replace
from credo.core.types import PyTree
from credo.covariances import Diagonal, Full, UnitBlocks
from credo.covariances.unit_covariance import layers_of
from credo.models import CNN, MLP, Linear, RandomFeatures
from credo.models.networks import BlendedMLP
from credo.recipes import defaults
from credo.recipes.language import Network
from credo.recipes.options import NoiseVar, TaskName
from credo.recipes.tasks import RECIPES, Start, slots
from credo.tables.schema import TARGET_KINDS

__all__ = [
    "MemberFamily",
    "Net",
    "Origin",
    "count_parameters",
    "family_of",
    "first_parameters",
    "leaf_shapes",
    "network",
    "numbers_of",
    "outputs_of",
    "prior_variances",
    "unit_cost",
    "with_waves",
]

Net: TypeAlias = Linear | MLP | CNN | RandomFeatures
"""The networks of sessions."""


T = TypeVar("T")


class Origin(NamedTuple):
    """The inputs that a learner begins with, by which members, covariances and prior variances are chosen: so
    a belief that was widened is one that was wide from the start.
    """

    inputs: int
    features: int


Bend: TypeAlias = Literal["elu", "tanh"]
"""The non-linearities of the members of a bank, which share one program."""

_BLEND: tuple[Bend, Bend] = ("elu", "tanh")


def network(
    model: Network,
    outputs: int,
    shape: tuple[int, ...],
    seed: int = 0,
    activation: Bend | None = None,
    features: int | None = None,
) -> Net:
    """The network of a setting with C outputs, for rows of a shape; `activation` is that of a perceptron in a
    bank, `features` how many inputs there were at first. A CredoError refuses a cnn for a table, and a bank.
    """
    images = len(shape) > 1
    if model.banked:
        raise CredoError(f"{Named('model', str(model))} is several networks.", field="model")
    if model.kind == "features":
        inputs = math.prod(shape)
        waves = model.widths[0]
        length = np.float32(math.sqrt(features or inputs))
        drawn = RandomFeatures.draw(seed, inputs, waves, length, outputs)
        # the waves of an input are drawn from its place alone, whatever the number of inputs
        columns = jax.random.normal(jax.random.key(seed), (inputs, waves), drawn.phases.dtype)
        return replace(drawn, frequencies=columns.T)
    if model.kind == "cnn":
        if not images:
            raise CredoError(
                f"{Named('model', 'cnn')} needs images; this data has {math.prod(shape)} features: use "
                "linear or mlp:50.",
            )
        return CNN(outputs, activation=defaults.activation(images))
    if model.kind == "linear":
        return Linear(outputs)
    if activation is not None:
        return BlendedMLP(outputs, model.widths, *_BLEND, share=float(_BLEND.index(activation)))
    return MLP(outputs, model.widths, defaults.activation(images))


def with_waves(learner: T, former: T) -> T:
    """A learner whose random waves are those of a former one, as far as it had inputs."""

    def waves(node: object) -> bool:
        return isinstance(node, RandomFeatures)

    olds = iter([node for node in jax.tree.leaves(former, is_leaf=waves) if waves(node)])

    def kept(new: Any) -> Any:
        if not waves(new):
            return new
        old = next(olds).frequencies
        return replace(new, frequencies=jnp.asarray(new.frequencies).at[..., : old.shape[-1]].set(old))

    whole: T = jax.tree.map(kept, learner, is_leaf=waves)
    return whole


def outputs_of(task: TaskName, classes: int, first: int = 0, noise_var: NoiseVar = None) -> int:
    """The number of outputs of a model: one for numbers and two classes, two where the noise follows the
    inputs, else one a class, or as many as there is room for where the first rows showed `first`.
    """
    if not TARGET_KINDS[task].classed:
        return RECIPES[task].outputs + (noise_var == "input")
    room = slots(first, classes)
    if 2 in (first, room):
        return room - 1
    return room


@functools.lru_cache(maxsize=256)
def leaf_shapes(model: Network, outputs: int, shape: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """The shapes of the arrays of parameters, without any computation."""
    params = jax.eval_shape(lambda: first_parameters(network(model, outputs, shape), shape))
    return tuple(leaf.shape for leaf in jax.tree.leaves(params))


def count_parameters(model: Network, outputs: int, shape: tuple[int, ...]) -> int:
    """The number P of parameters, without any computation."""
    return sum(math.prod(leaf) for leaf in leaf_shapes(model, outputs, shape))


def first_parameters(
    net: Net, shape: tuple[int, ...], seed: int = 0, start: Start = None, features: int | None = None
) -> Any:
    """The parameters that a network begins with, the mean of its prior. `start` is what the biases of the
    outputs begin with, and `features` the fan-in of the first layer, where more inputs have come since.
    """
    if isinstance(net, RandomFeatures):
        weights = net.init()
        if start is None:
            return weights
        return weights.at[-1].add(jnp.asarray(start, weights.dtype))
    params = net.init(jax.random.key(seed), shape)
    if start is not None:
        params[-1]["b"] = params[-1]["b"] + jnp.asarray(start, jnp.float32)
    if features in (None, math.prod(shape)):
        return params
    # row j of the first layer is drawn from the place of its numbers alone, whatever the number of rows
    ratio = math.prod(shape) / features
    return [params[0] | {"w": params[0]["w"] * np.float32(math.sqrt(ratio))}, *params[1:]]


def prior_variances(net: Net, params: PyTree, scale: float, features: int | None = None) -> PyTree:
    """The prior variances of the parameters of a network for tables; `features` as in `first_parameters`."""
    if isinstance(net, RandomFeatures):
        return scale
    var = net.prior_var(params, scale)
    inputs = len(params[0]["w"])
    if features in (None, inputs):
        return var
    return [var[0] | {"w": var[0]["w"] * (inputs / features)}, *var[1:]]


MemberFamily = Full | UnitBlocks | Diagonal
"""The families of the members of a bank for tables."""


def unit_cost(network: Network, outputs: int, inputs: int) -> int:
    """The numbers in the covariances of all units: m n^2 a layer of m units with n inputs each."""
    layers = layers_of(leaf_shapes(network, outputs, (inputs,)))
    return sum(units * size**2 for size, units in layers)


def family_of(network: Network, outputs: int, inputs: int) -> MemberFamily:
    """The richest family with which a row of so many inputs costs little: the whole covariance of C outputs
    and P parameters if C P^2 is at most `defaults.FULL_COST`, that of every unit if its numbers are at most
    `defaults.UNIT_COST`, and else the variances.
    """
    size = sum(math.prod(leaf) for leaf in leaf_shapes(network, outputs, (inputs,)))
    if outputs * size**2 <= defaults.FULL_COST:
        return Full("dense")
    if unit_cost(network, outputs, inputs) <= defaults.UNIT_COST:
        return UnitBlocks()
    return Diagonal()


def numbers_of(family: MemberFamily, network: Network, outputs: int, inputs: int) -> int:
    """The count of numbers that a family keeps for a network grown to so many outputs and inputs."""
    if isinstance(family, UnitBlocks):
        return unit_cost(network, outputs, inputs)
    size = sum(math.prod(leaf) for leaf in leaf_shapes(network, outputs, (inputs,)))
    if isinstance(family, Full):
        return size**2
    return size
