"""The methods that the BONE experiments compare, around the learner of one regime, along a stream.

A method is a *program* (names and whole numbers, on which the compiled program depends) and *values* (numbers
that are arguments of it). The methods themselves are those of `credo.adapt.named`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import jax
import jax.numpy as jnp

from credo.adapt import ChangeProbability, Experts, named
from credo.core.records import replace
from credo.core.trees import as_like
from credo.core.types import Array
from credo.dynamics import Inflation, OrnsteinUhlenbeck, RandomWalk
from credo_papers.bone.bone_plan import BoneProgram
from credo_papers.bone.bone_world import Streams
from credo_papers.engine.any_learner import AnyBelief, AnyLearner
from credo_papers.engine.sweep import One

__all__ = ["BANK", "METHODS", "make", "online"]

TracedValues: TypeAlias = Mapping[str, Array | float]
"""Hyper-parameters, which may be traced."""

BANK = (1.0, 0.999, 0.997, 0.99, 0.97, 0.95, 0.9, 0.8)
"""The share of its way from the prior that each expert of the bank keeps in a step."""

_LEVELS = (*(1.0 - 0.1 * level for level in range(10)), 0.0)


def _forgetting(inner: AnyLearner, values: TracedValues) -> AnyLearner:
    return replace(inner, dynamics=Inflation(1.0 / values["forgetting"] - 1.0, "simple"))


def _walking(inner: AnyLearner, values: TracedValues) -> AnyLearner:
    """The learner with a random walk inside its segments, where `q` is among the values."""
    if "q" in values:
        return replace(inner, dynamics=RandomWalk(values["q"]))
    return inner


def _graded(inner: AnyLearner, values: TracedValues) -> AnyLearner:
    """CPP-OU with a strength that may be traced; `named.cpp_ou` has its grid in NumPy."""
    log_prior = values["strength"] * jnp.log(jnp.maximum(jnp.asarray(_LEVELS), 1e-30))
    return ChangeProbability(inner, _LEVELS, log_prior, "ou", "marginal")


def _experts(inner: AnyLearner, values: TracedValues) -> AnyLearner:
    bank = jax.vmap(lambda gamma: replace(inner, dynamics=OrnsteinUhlenbeck(gamma)))(jnp.asarray(BANK))
    return Experts(bank, values["switching"])


METHODS: dict[str, Callable[[AnyLearner, int, TracedValues], AnyLearner]] = {
    "static": lambda inner, capacity, values: named.c_static(inner),
    "aci": lambda inner, capacity, values: named.c_aci(inner, values["q"]),
    "ou": lambda inner, capacity, values: named.c_ou(inner, values["gamma"]),
    "forgetting": lambda inner, capacity, values: _forgetting(inner, values),
    "rl-pr": lambda inner, capacity, values: named.rl_pr(_walking(inner, values), values["hazard"], capacity),
    "rlcc-pr": lambda inner, capacity, values: named.rlcc_pr(inner, capacity, 1.0, values["b"]),
    "rl-oupr": lambda inner, capacity, values: named.rl_oupr(inner, values["hazard"]),
    "cpp-ou": lambda inner, capacity, values: _graded(inner, values),
    "experts": lambda inner, capacity, values: _experts(inner, values),
}
"""By code: makes a method around the learner of one regime, from its capacity and its values."""


def make(inner: AnyLearner, program: BoneProgram, values: TracedValues) -> AnyLearner:
    """Return a method around a learner.

    Arguments:
        inner: the learner of one regime, with `Static()` dynamics.
        program: `method`, a key of `METHODS`, and for some methods `capacity`.
        values: what the method is tuned by.
    """
    return METHODS[program.get("method", "static")](inner, program.get("capacity", 0), values)


def online(
    inner: Callable[[BoneProgram, TracedValues], AnyLearner], program: BoneProgram
) -> One[Streams, None]:
    """Return the function of one stream: forecast, then learn, row by row.

    It gives for each step `mean` (of the forecast), `log_prob` (of y under the forecast), where the method
    has one `alarm` (whether a change is reported here), and with `lengths` = L in the program the
    probabilities of the run lengths (T, L). `values["var"]` is the prior variance, and `values["scale"]` a
    factor on the prior mean.

    Arguments:
        inner: `inner(program, values)` makes the learner of one regime.
        program: see `make`; without a `method` the learner is that of `inner`.
    """

    def one(values: Mapping[str, Array], stream: Streams, shared: None) -> Mapping[str, Array]:
        learner = inner(program, values)
        learner = make(learner, program, values) if "method" in program else learner
        start = jax.tree.map(lambda leaf: as_like(values.get("scale", 1.0), leaf) * leaf, stream.start)
        prior = learner.init(start, var=values.get("var", 1.0))

        def body(belief: AnyBelief, row: tuple[Array, Array]) -> tuple[AnyBelief, dict[str, Array]]:
            x, y = row
            belief = learner.predict(belief)
            forecast = learner.forecast(belief, x)
            report = {"mean": jnp.reshape(forecast.mean, ())}
            report["log_prob"] = jnp.reshape(forecast.log_prob(y), ())
            belief, info = learner.update(belief, x, y)
            if "lengths" in program:
                report["lengths"] = belief.run_length_probs(program["lengths"])
            if hasattr(info.extras, "alarm"):
                report["alarm"] = info.extras.alarm
            return belief, report

        reports: dict[str, Array]
        _, reports = jax.lax.scan(body, prior, (jnp.asarray(stream.x), jnp.asarray(stream.y)))
        return reports

    return one
