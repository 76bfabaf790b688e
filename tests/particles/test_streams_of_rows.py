"""Learners of static parameters against the conjugate posterior, for streams of known and unknown length."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo.core.errors import CredoError
from credo.core.types import Array
from credo.particles import Langevin, MirrorDescent, NonparametricVariational, svi

ROWS, BATCH = 40, 10
MODEL = credo.Model(lambda z, x: z, credo.Normal(1.0))
JOINT = credo.joint(MODEL)
YS = 1.5 + np.random.default_rng(0).normal(size=(ROWS, 1))
BATCHES = jnp.asarray(YS.reshape(-1, BATCH, 1))
MEAN, SD = YS.sum() / (1 + ROWS), (1 + ROWS) ** -0.5

SO_FAR: dict[str, tuple[Any, float, float]] = {
    # importance weights of N = 128 particles in four batches: an error of 1 / sqrt(ESS) a batch
    "mirror descent": (MirrorDescent(JOINT, 128, iterations=2), 0.5, 0.3),
    # exact for normal targets but for the moments of the first draws, which the data outweigh
    "Langevin": (Langevin(JOINT, 128), 0.05, 0.05),
    # one component is the posterior here; the error is what 30 damped steps leave
    "nonparametric": (NonparametricVariational(JOINT, 128, components=1), 0.05, 0.05),
    # antithetic draws: the noise of the diagonal's estimate, 1 / sqrt(samples)
    "SVI": (svi(JOINT, samples=50), 0.3, 0.15),
}
"""Learners, and how far mean and sd may be from the posterior of all rows, in its standard deviations."""


def falling(t: Array) -> Array:
    """The rate (t + 2)^-0.7, which ends at 0.07."""
    return (t.astype(float) + 2.0) ** -0.7


def decaying(t: Array) -> Array:
    """The rate of Langevin steps, from 0.02: near the posterior variance of 1 / 41 at first."""
    return 0.02 * (1.0 + t.astype(float) / 4.0) ** -0.55


# Batch means differ by sqrt(ROWS / BATCH) = 2 posterior standard deviations. Steps of a size g keep about
# sqrt(g / 2) of that: 0.3 for mirror descent (g = 0.05 at the end of 10 passes) and the variational methods,
# 0.7 for Langevin steps, which turn over 15% of their distance from the posterior in each step.
OF_ALL: dict[str, tuple[Any, float, float]] = {
    "mirror descent": (MirrorDescent(JOINT, 128, total=ROWS), 0.6, 0.3),
    "Langevin": (Langevin(JOINT, 128, total=ROWS, rate=decaying), 1.0, 0.25),
    "nonparametric": (
        NonparametricVariational(JOINT, 128, components=4, total=ROWS, rate=falling),
        0.6,
        0.15,
    ),
    "SVI": (svi(JOINT, samples=50, total=ROWS, rate=falling), 0.6, 0.15),
}
"""The same, for streams whose length is known and which pass ten times."""


@pytest.mark.table
@pytest.mark.parametrize("name", SO_FAR)
def test_without_a_total_the_belief_is_the_posterior_of_the_rows_so_far(name: str) -> None:
    _check(*SO_FAR[name], passes=1)


@pytest.mark.table
@pytest.mark.parametrize("name", OF_ALL)
def test_with_a_total_the_belief_settles_at_the_posterior_of_all_rows(name: str) -> None:
    _check(*OF_ALL[name], passes=10)


def _check(learner: Any, mean: float, sd: float, passes: int) -> None:
    ys = jnp.tile(BATCHES, (passes, 1, 1))
    belief, trace = credo.run(learner, learner.init(jnp.zeros(1)), jnp.zeros(ys.shape), ys, key=0)
    assert bool(jnp.all(trace.ok))
    assert abs(float(belief.mean[0]) - MEAN) < mean * SD
    assert abs(float(belief.sd[0]) / SD - 1) < sd


def test_settings_that_do_not_fit_are_refused_in_a_sentence() -> None:
    for refused, match in (
        (lambda: MirrorDescent(MODEL, rate=0.5), "rate is for a stream of known length"),
        (lambda: Langevin(MODEL, total=10), "rate must be given with `total`"),
        (lambda: Langevin(MODEL, 2).init(jnp.zeros(3)), "particles must be more than the 3 parameters"),
        (lambda: NonparametricVariational(MODEL, 10, components=4), "particles must be a multiple of the 4"),
        (lambda: NonparametricVariational(MODEL, components=0), "components must be a whole number"),
        (lambda: NonparametricVariational(MODEL, 6, components=4), "particles must be .* at least 8"),
        (lambda: NonparametricVariational(MODEL, iterations=0), "iterations must be a whole number"),
        (lambda: NonparametricVariational(MODEL, probes=0), "probes must be a whole number"),
        (lambda: NonparametricVariational(MODEL, total=-1.0), "total must be"),
        (lambda: svi(MODEL, total=10, iterations=3), "iterations must be None with `total`"),
    ):
        with pytest.raises(CredoError, match=match):
            refused()
