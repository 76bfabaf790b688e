"""The learners of `bayesopt-ackley`, and the program that takes a search through its evaluations."""

from __future__ import annotations

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import credo
from credo import bandits
from credo.bandits import optimize
from credo.core.types import Array
from credo_papers.bandits.bayesopt_ackley_plan import (
    BANK_FEATURES,
    BANK_LENGTHS,
    BANK_NOISES,
    EVALUATIONS,
    FEATURE_NOISE,
    FEATURES,
    INITIAL,
    INPUT_VAR,
    LENGTHS,
    NETWORK_LENGTHS,
    NETWORK_NOISE,
    RANK,
    WIDTH,
    LearnerName,
    Method,
)
from credo_papers.bandits.bayesopt_ackley_world import HIGH, LOW, ackley

__all__ = ["SPACE", "beliefs", "encode", "play"]

SPACE = bandits.Space.read([[LOW, HIGH]])


def _learner(name: LearnerName, key: Array) -> tuple[Any, Any]:
    """A learner and its prior."""
    if name == "bank":
        return _bank(key)
    if name == "features":
        return _features(key)
    if name == "sine networks":
        return _sine_networks(key)
    return _elu_network(key)


def _bank(key: Array) -> tuple[Any, Any]:
    """Random features of seven length scales and two noises, for values of variance 1."""
    net = credo.models.RandomFeatures.draw(jax.random.split(key)[0], 1, BANK_FEATURES)
    learner = credo.Experts(
        [
            credo.extended_kalman(credo.Model(credo.replace(net, length=length), credo.Normal(noise)))
            for length in BANK_LENGTHS
            for noise in BANK_NOISES
        ],
        switching=0.0,
    )
    return learner, learner.init(net.init())


def _features(key: Array) -> tuple[Any, Any]:
    net = credo.models.RandomFeatures.draw(key, 1, FEATURES)
    learner = credo.Experts(
        [
            credo.extended_kalman(credo.Model(credo.replace(net, length=length), credo.Normal(FEATURE_NOISE)))
            for length in LENGTHS
        ],
        switching=0.0,
    )
    return learner, learner.init(net.init())


def _sine_networks(key: Array) -> tuple[Any, Any]:
    """Networks whose first layer starts with frequencies N(0, 1 / length^2), and learns from there."""
    net = credo.MLP(1, (WIDTH,), "sin")
    first, second = jax.random.split(key)
    start = net.init(first, (1,))
    phases = jax.random.uniform(second, (WIDTH,), start[0]["b"].dtype, maxval=2.0 * math.pi)
    last = jax.tree.map(jnp.zeros_like, start[1])
    params = [[{"w": start[0]["w"] / length, "b": phases}, last] for length in NETWORK_LENGTHS]
    variances = [
        [{"w": INPUT_VAR / length**2, "b": INPUT_VAR}, {"w": 2.0 / WIDTH, "b": 1.0}]
        for length in NETWORK_LENGTHS
    ]
    one = credo.lofi(credo.Model(net, credo.Normal(NETWORK_NOISE)), RANK)
    learner = credo.Experts([one] * len(params), switching=0.0)
    return learner, learner.init(credo.adapt.Each(params), var=credo.adapt.Each(variances))


def _elu_network(key: Array) -> tuple[Any, Any]:
    net = credo.MLP(1, (50, 50), "elu")
    learner = credo.lofi(credo.Model(net, credo.Normal(NETWORK_NOISE)), RANK)
    params = net.init(key, (1,))
    return learner, learner.init(params, var=net.prior_var(params, 10.0))


def _search(method: Method, key: Array) -> tuple[optimize.Search, optimize.Trials]:
    """A search and its first trials."""
    first, second = jax.random.split(key)
    learner, prior = _learner(method.learner, first)
    search = optimize.Search(learner, prior, SPACE, acquisition=method.policy, initial=INITIAL)
    return search, search.start(second, EVALUATIONS)


@functools.partial(jax.jit, static_argnames=("method",))
def play(method: Method, keys: Array) -> tuple[Array, Array]:
    """Search once for each key, from nothing.

    Arguments:
        method: the learner and the policy.
        keys: the keys (S,).

    Returns:
        The encoded points (S, T) and their values (S, T).
    """

    def one(key: Array) -> tuple[Array, Array]:
        search, trials = _search(method, key)

        def trial(trials: optimize.Trials, _: None) -> tuple[optimize.Trials, tuple[Array, Array]]:
            trials, row = search.ask(trials)
            value = ackley(SPACE.values(row)[0])
            return search.tell(trials, row, value), (row[0], value)

        _, points = jax.lax.scan(trial, trials, length=EVALUATIONS)
        return points

    points: tuple[Array, Array] = jax.lax.map(one, keys)
    return points


@functools.partial(jax.jit, static_argnames=("method",))
def beliefs(
    method: Method, key: Array, points: Array, values: Array, counts: Array, grid: Array
) -> tuple[Array, Array]:
    """The beliefs of a search after some of its evaluations.

    Arguments:
        method, key: as in `play`.
        points, values: its points, encoded, and their values (T,).
        counts: after how many evaluations (C,).
        grid: where (G,), encoded.

    Returns:
        The means and the standard deviations (C, G), in units of the function.
    """
    search, trials = _search(method, key)

    def after(count: Array) -> tuple[Array, Array]:
        seen = credo.replace(trials, rows=points[:, None], values=values, count=count)
        belief, units = search.belief(seen)

        def at(x: Array) -> tuple[Array, Array]:
            distribution = search.learner.expect(belief, x[None])
            return units.back(distribution.mean[0]), units.sd * distribution.sd[0]

        return jax.vmap(at)(grid)

    found: tuple[Array, Array] = jax.lax.map(after, counts)
    return found


def encode(x: np.ndarray) -> np.ndarray:
    """Places on the line between -1 and 1."""
    return 2.0 * (x - LOW) / (HIGH - LOW) - 1.0
