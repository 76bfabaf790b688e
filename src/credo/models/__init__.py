"""Models: a function from parameters and inputs to outputs, with a likelihood for what is observed.

`Model(apply, likelihood)` takes any function `apply(params, x) -> eta` of one row and any pytree of
parameters. `joint(model)` linearises all rows of a mini-batch together. `Linear`, `MLP` and `CNN` are
networks with initial values and prior variances that work without tuning; `from_equinox` and `from_flax`
adapt others. `freeze`, `last_layer` and `subspace` make models over a part of the parameters.
"""

from credo.models.edges import Clipped, OrientedEdges, RandomFeatures
from credo.models.model import Model, Picked, from_equinox, from_flax, joint
from credo.models.networks import CNN, MLP, BlendedMLP, Linear
from credo.models.partial import freeze, last_layer, random_basis, subspace, svd_basis

__all__ = [
    "CNN",
    "MLP",
    "BlendedMLP",
    "Clipped",
    "Linear",
    "Model",
    "OrientedEdges",
    "Picked",
    "RandomFeatures",
    "freeze",
    "from_equinox",
    "from_flax",
    "joint",
    "last_layer",
    "random_basis",
    "subspace",
    "svd_basis",
]
