"""Learners of particles that the tests of this folder share, each with another mechanism."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

import credo
from credo.particles import (
    KernelBayes,
    KernelFilter,
    Langevin,
    Metropolis,
    MirrorDescent,
    NonparametricVariational,
    learned_filter,
)

N, P, T = 8, 2, 4
LINEAR = credo.Model(lambda z, x: x @ z, credo.Normal(0.5))
BENT = credo.Model(lambda z, x: jnp.tanh(x @ z), credo.Normal(0.5))
WALK = credo.RandomWalk(0.1)
XS = jnp.asarray(np.random.default_rng(0).normal(size=(T, P)))
YS = jnp.asarray(np.random.default_rng(1).normal(size=T))

LEARNERS: dict[str, Any] = {
    "bootstrap": credo.particle_filter(BENT, N, WALK, threshold=0.9),
    "guided": credo.particle_filter(BENT, N, WALK, proposal="guided", move=Metropolis(2), threshold=0.9),
    "adapted": credo.particle_filter(BENT, N, WALK, proposal="adapted"),
    "one pass": credo.one_pass_smc(BENT, N, threshold=1.0),
    "Liu-West": credo.liu_west(BENT, N),
    "tempered": credo.tempered_smc(BENT, N, moves=Metropolis(2, "langevin"), threshold=0.9),
    "map": credo.gaussian_map(BENT, N, WALK),
    "EDH": credo.daum_huang(BENT, N, WALK, steps=2),
    "LEDH, weighted": credo.daum_huang(BENT, N, WALK, local=True, weighted=True, steps=2),
    "SVGD": credo.svgd(BENT, N, steps=3),
    "Fokker-Planck": credo.fokker_planck(BENT, N, steps=3),
    "kernel Bayes": KernelBayes(BENT, N, WALK),
    "kernel filter": KernelFilter(BENT, N, WALK, pairs=N, horizon=2),
    "mirror descent": MirrorDescent(BENT, N, iterations=2),
    "Langevin": Langevin(BENT, N, iterations=2),
    "nonparametric": NonparametricVariational(BENT, N, components=2, iterations=2),
    "GRU proposal": learned_filter(
        BENT, WALK, example=(XS[0], YS[0]), size=P, particles=N, network="gru", hidden=(4,), memory=3
    ),
}
"""One learner for each mechanism. To have another one tested as a learner, add it here."""
