"""Wrappers around particles: fresh ones for every regime, pulled ones, mixtures, and robust updates."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.streams.setups import bitwise

import credo
from credo.adapt import (
    ChangeProbability,
    ChangeTimes,
    Experts,
    GammaWeight,
    OutlierIndicator,
    PriorReset,
    RunLength,
    SoftReset,
    StudentTNoise,
    WeightedPast,
    WoLF,
)
from credo.adapt.moments import collapse
from credo.adapt.nested import renewed

N, T = 400, 16
MODEL = credo.Model(lambda z, x: x @ z, credo.Normal(0.25))
WALK = credo.RandomWalk(0.01)
PARTICLES = credo.particle_filter(MODEL, N, WALK)
KALMAN = credo.extended_kalman(MODEL, dynamics=WALK)
XS = jnp.asarray(np.random.default_rng(0).normal(size=(T, 2)))
LEVELS = jnp.where(jnp.arange(T)[:, None] < T // 2, 1.0, -2.0)
YS = jnp.sum(LEVELS * XS, axis=1) + 0.5 * jnp.asarray(np.random.default_rng(1).normal(size=T))

WRAPPED: dict[str, Any] = {
    "prior reset": lambda inner: RunLength(inner, 0.1, 4),
    "soft reset": lambda inner: RunLength(inner, 0.1, 4, conditional_prior=credo.OrnsteinUhlenbeck(0.5)),
    "walk": lambda inner: RunLength(inner, 0.1, 4, conditional_prior=credo.RandomWalk(2.0)),
    "merge": lambda inner: RunLength(inner, 0.1, 3, overflow="merge"),
    "times": lambda inner: ChangeTimes(inner, 0.1, 3),
    "pull": lambda inner: SoftReset(inner, 0.1),
    "levels": lambda inner: ChangeProbability(inner, (1.0, 0.9, 0.3)),
    "inflation": lambda inner: ChangeProbability(inner, (0.0, 0.5), kind="inflation"),
    "experts": lambda inner: Experts([inner, credo.replace(inner, dynamics=credo.RandomWalk(0.5))], 0.01),
    "wolf": lambda inner: WoLF(inner, threshold=3.0),
    "student": lambda inner: StudentTNoise(inner, df=4.0),
    "gamma": lambda inner: GammaWeight(inner, shape=2.0, rate=2.0),
    "outlier": lambda inner: OutlierIndicator(inner),
}


SAMPLED = ("prior reset", "soft reset", "merge", "pull", "levels", "wolf", "student")
"""The wrappers that every run of the tests goes through."""

NAMES = [n if n in SAMPLED else pytest.param(n, marks=pytest.mark.thorough) for n in WRAPPED]


@pytest.mark.table
@pytest.mark.parametrize("name", NAMES)
def test_particles_do_in_a_wrapper_what_a_kalman_filter_does_there(name: str) -> None:
    exact, particles = WRAPPED[name](KALMAN), WRAPPED[name](PARTICLES)
    # Robust updates forget nothing, so that the particles would have nowhere to jump to.
    count = T // 2 if name in ("wolf", "student", "gamma", "outlier") else T
    xs, ys = XS[:count], YS[:count]
    kalman, expected = credo.run(exact, exact.init(jnp.zeros(2), var=4.0), xs, ys)
    belief, trace = credo.run(particles, particles.init(jnp.zeros(2), var=4.0, key=1), xs, ys)
    assert bool(trace.ok.all())
    # N particles: an error of a few posterior standard deviations over the square root of their number.
    assert jnp.all(jnp.abs(belief.mean - kalman.mean) < 0.6 * kalman.sd + 0.05), name
    gap = float(trace.log_evidence.sum() - expected.log_evidence.sum())
    assert abs(gap) < 2.5, (name, gap)


def test_every_regime_begins_with_particles_of_its_own() -> None:
    prior = PARTICLES.init(jnp.zeros(2), var=4.0, key=1)
    parent = credo.replace(prior, t=jnp.asarray(7))
    reset: PriorReset[credo.Particles] = PriorReset()
    first = reset.begin(parent, prior, None)
    second = reset.begin(credo.replace(parent, t=jnp.asarray(8)), prior, None)
    assert int(first.t) == 7 and not np.intersect1d(first.values, second.values).size
    assert jnp.allclose(first.var, 4.0, rtol=0.4)
    # Without a source, the prior's own particles are all there is.
    bare = credo.replace(prior, source=None)
    assert jnp.array_equal(renewed(bare, jnp.asarray(7)).values, prior.values)
    # Beliefs that hold beliefs are renewed inside.
    nested = RunLength(PARTICLES, 0.1, 2).init(jnp.zeros(2))
    inside = renewed(nested, jnp.asarray(3))
    assert not np.intersect1d(inside.prior.values, nested.prior.values).size


def test_one_set_stands_for_a_mixture_of_sets() -> None:
    one = PARTICLES.init(jnp.zeros(2), var=0.01)
    two = PARTICLES.init(jnp.full(2, 5.0), var=0.01)
    both = jax.tree.map(lambda a, b: jnp.stack([a, b]), one, two)
    belief: Any = collapse(jnp.log(jnp.array([0.25, 0.75])), both)
    share = float(jnp.mean(belief.values[:, 0] > 2.5))
    assert belief.values.shape == (N, 2) and abs(share - 0.75) <= 1 / N + 1e-9
    assert jnp.allclose(jnp.exp(belief.log_weights), 1 / N)


@pytest.mark.optimised
def test_a_loop_and_a_run_give_the_same_bits() -> None:
    learner = WRAPPED["prior reset"](credo.replace(PARTICLES, particles=16))
    belief = learner.init(jnp.zeros(2))
    whole, _ = credo.run(learner, belief, XS, YS)
    for x, y in zip(XS, YS, strict=True):
        belief, _ = learner.step(belief, x, y)
    bitwise(belief, whole)


def test_a_weighted_past_starts_from_fresh_particles() -> None:
    learner = WeightedPast(credo.particle_filter(MODEL, N), memory=4, iterations=0)
    belief = learner.init(jnp.zeros(2), example=(XS[0], YS[0]))
    belief, trace = credo.run(learner, belief, XS[:6], YS[:6])
    assert bool(trace.ok.all()) and jnp.all(jnp.isfinite(belief.mean))
