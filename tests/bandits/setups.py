"""Agents and worlds that the tests of bandits share, so that their programs are compiled once."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

import credo
from credo import bandits
from credo.bandits import designs

SIZE, ARMS = 3, 4
RNG = np.random.default_rng(0)
XS = jnp.asarray(RNG.normal(size=(40, SIZE)))
ROWS = jnp.asarray(RNG.normal(size=(40, ARMS, SIZE)))
NOISE = 0.25

MODEL = credo.Model(lambda w, x: x @ w, credo.Normal(NOISE))
LINEAR = credo.extended_kalman(MODEL)
NET = credo.MLP(outputs=ARMS, hidden=(4,), activation="tanh")
NETWORK = credo.lofi(credo.Model(NET, credo.Normal(NOISE)), rank=3)


def agent(design: Any, **options: Any) -> tuple[bandits.Agent, Any, Any]:
    """An agent of a design, its first belief, and its contexts."""
    if design == "outputs":
        one = bandits.Agent(NETWORK, ARMS, design, **options)
        params: Any = NET.init(0, (SIZE,))
        contexts = XS
    else:
        learner = credo.RunLength(designs.ArmsDesign(LINEAR, ARMS), 0.1, 2) if design == "pairs" else LINEAR
        one = bandits.Agent(learner, ARMS, design, **options)
        params, contexts = jnp.zeros(SIZE), ROWS if design == "actions" else XS
    scale = {"context": contexts[0]} if one.takes_example else {}
    return one, one.init(params, var=2.0, **scale), contexts
