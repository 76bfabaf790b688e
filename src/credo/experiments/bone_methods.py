"""The adaptive methods that the BONE experiments compare, each made from one inner learner and a few numbers.

A method is a *program* (names and whole numbers, on which the compiled program depends) and *values* (numbers
that are arguments of it): `make(inner, program, values)`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from credo.adapt import ChangeProbability, ChangeTimes, Experts, LearnedHazard, RunLength, SoftReset
from credo.core.records import replace
from credo.core.trees import as_like
from credo.dynamics import Inflation, OrnsteinUhlenbeck, RandomWalk, Static
from credo.experiments.bone_streams import Streams
from credo.experiments.sweep import One
from credo.learners import Learner

__all__ = ["BANK", "make", "online"]

BANK = (1.0, 0.999, 0.997, 0.99, 0.97, 0.95, 0.9, 0.8)
"""What each expert of the bank keeps a step of the way from the prior."""

_LEVELS = tuple(1.0 - 0.1 * level for level in range(10)) + (0.0,)


def make(inner: Any, program: Mapping[str, Any], values: Mapping[str, Any]) -> Learner:
    """A method around a learner.

    Args:
        inner: The learner of one regime, with `Static()` dynamics.
        program: `method`, one of the names below, and for some `capacity`.
        values: What it is tuned by; see the function of each method.
    """
    return _MAKERS[program["method"]](inner, program, values)


def _soft(inner: Any, program: Mapping[str, Any], values: Mapping[str, Any]) -> Learner:
    """CPP-OU: the share kept is marginalised with prior Beta(strength + 1, 1) on a grid."""
    log_prior = values["strength"] * jnp.log(jnp.maximum(jnp.asarray(_LEVELS), 1e-30))
    return ChangeProbability(inner, _LEVELS, log_prior, "ou", "marginal")


def _experts(inner: Any, program: Mapping[str, Any], values: Mapping[str, Any]) -> Learner:
    bank = jax.vmap(lambda gamma: replace(inner, dynamics=OrnsteinUhlenbeck(gamma)))(jnp.asarray(BANK))
    return Experts(bank, values["switching"])


def _walking(inner: Any, values: Mapping[str, Any]) -> Any:
    """The learner with a random walk inside its segments, where one is asked for."""
    return replace(inner, dynamics=RandomWalk(values["q"])) if "q" in values else inner


_MAKERS: dict[str, Callable[[Any, Mapping[str, Any], Mapping[str, Any]], Learner]] = {
    "static": lambda inner, program, values: replace(inner, dynamics=Static()),
    "aci": lambda inner, program, values: replace(inner, dynamics=RandomWalk(values["q"])),
    "ou": lambda inner, program, values: replace(inner, dynamics=OrnsteinUhlenbeck(values["gamma"])),
    "forgetting": lambda inner, program, values: replace(
        inner, dynamics=Inflation(1.0 / values["forgetting"] - 1.0, "simple")
    ),
    "rl-pr": lambda inner, program, values: RunLength(
        _walking(inner, values), values["hazard"], program["capacity"]
    ),
    "rlcc-pr": lambda inner, program, values: RunLength(
        inner, LearnedHazard(1.0, values["b"]), program["capacity"]
    ),
    "rl-mmpr": lambda inner, program, values: RunLength(
        inner, values["hazard"], program["capacity"], RandomWalk(values["jump"])
    ),
    "cpl-mci": lambda inner, program, values: ChangeTimes(
        inner, values["hazard"], program["capacity"], Inflation(values["alpha"], "simple")
    ),
    "rl-oupr": lambda inner, program, values: SoftReset(inner, values["hazard"]),
    "cpp-ou": _soft,
    "experts": _experts,
}


def online(inner: Callable[[Mapping[str, Any], Mapping[str, Any]], Any], program: Mapping[str, Any]) -> One:
    """The function of one stream: forecast, then learn, row by row.

    Args:
        inner: `inner(program, values)` makes the learner of one regime.
        program: See `make`; without a `method` the learner is that of `inner`.

    Returns:
        `one(values, stream, shared)`, which gives for each step `mean` (the forecast's), `log_prob` (of y
        under the forecast), where the method has one `alarm` (a change is reported here), and with
        `lengths` = L in the program the probabilities of the run lengths (T, L). `values["var"]` is the prior
        variance, `values["scale"]` a factor on the prior mean.
    """

    def one(values: dict[str, jax.Array], stream: Streams, shared: Any) -> dict[str, jax.Array]:
        learner = inner(program, values)
        learner = make(learner, program, values) if "method" in program else learner
        start = jax.tree.map(lambda leaf: as_like(values.get("scale", 1.0), leaf) * leaf, stream.start)
        prior = learner.init(start, var=values.get("var", 1.0))

        def body(belief: Any, row: Any) -> tuple[Any, dict[str, jax.Array]]:
            x, y = row
            belief = learner.predict(belief)
            forecast = learner.forecast(belief, x)
            told = {"mean": jnp.reshape(forecast.mean, ())}
            told["log_prob"] = jnp.reshape(forecast.log_prob(y), ())
            belief, info = learner.update(belief, x, y)
            if "lengths" in program:
                told["lengths"] = belief.run_length_probs(program["lengths"])
            if hasattr(info.extras, "alarm"):
                told["alarm"] = info.extras.alarm
            return belief, told

        return jax.lax.scan(body, prior, (stream.x, stream.y))[1]

    return one
