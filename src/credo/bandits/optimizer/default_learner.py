"""The learner of a search for which none was given: random features of many length scales."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np

from credo.adapt import Bank, Experts
from credo.bandits.optimizer.space import Space, even_points
from credo.beliefs import Gaussian
from credo.core.keys import as_key
from credo.core.records import replace
from credo.core.types import Array, Key
from credo.learners import extended_kalman
from credo.likelihoods import Normal
from credo.models import Model, RandomFeatures

__all__ = ["default_learner"]

LENGTHS = (0.1, 0.14, 0.2, 0.28, 0.4, 0.56, 0.8)
"""Length scales, for inputs between -1 and 1, times the root of the number of variables."""

UNLIKE = 8
"""How many experts have another length scale for each variable, where there are several variables."""

NOISES = (1e-4, 3e-2)
"""Noise variances, for values of variance 1."""

FEATURES = 128


def default_learner(space: Space, key: Key) -> tuple[Experts[Gaussian], Bank[Gaussian]]:
    """Random features whose length scales and noise are averaged over, by how well they predicted.

    This is nearly a Gaussian process with a squared-exponential kernel whose hyper-parameters are integrated
    over a grid: each expert is exact for its features, and the weights are those of Bayes. Cost of a step:
    P^2 for each of the 14 experts (30 for several variables), with P = 129.
    """
    first, second = jax.random.split(as_key(key))
    net = RandomFeatures.draw(first, inputs=space.size, features=FEATURES)
    lengths = _lengths(space, second)
    experts = [
        extended_kalman(Model(replace(net, length=length), Normal(noise)))
        for length in lengths
        for noise in NOISES
    ]
    learner: Experts[Gaussian] = Experts(experts, switching=0.0)
    return learner, learner.init(net.init())


def _lengths(space: Space, key: Array) -> list[Array]:
    """The length scales of the experts, (D,) each: equal ones, and for several variables unlike ones too."""
    count = len(space.variables)
    columns = np.repeat(np.arange(count), [variable.columns for variable in space.variables])
    root = math.sqrt(count)
    kind = jnp.result_type(float)
    rows = [jnp.full(count, root * length, kind) for length in LENGTHS]
    if count > 1:
        low, high = math.log(LENGTHS[0]), math.log(3.0 * LENGTHS[-1])
        rows += list(root * jnp.exp(low + (high - low) * even_points(key, 0, UNLIKE, count)))
    return [row[columns] for row in rows]
