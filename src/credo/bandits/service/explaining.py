"""Explanations of the choices of a bandit."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.bandits.agent import Agent, AgentBelief
from credo.bandits.best import probability_best
from credo.bandits.service.decision import ArmDecision, Explanation
from credo.bandits.service.engine import Engine
from credo.bandits.service.schema import shared_in
from credo.bandits.service.window import Entry
from credo.core.records import replace
from credo.core.types import Array, PyTree
from credo.core.verbs import verb

__all__ = ["explain"]

NAMED = 20
"""The largest number of arms that a sentence names."""


def explain(engine: Engine, entry: Entry, prior: AgentBelief[Any] | None) -> Explanation:
    """The explanation of a remembered decision, beside the belief before any reward, if it is known."""
    decision = engine.answer(entry)
    state = engine.state
    allowed = entry.arms.by_name(entry.numbers[3])
    greedy = max((name for name in allowed if allowed[name]), key=entry.decision.mean.__getitem__)
    belief = engine.programs.unpack(state.words)
    mean, sd, best = _asked(engine, belief, entry)
    # what was believed at first, in the units of today
    first = None if prior is None else replace(prior, scaler=belief.scaler, units=belief.units)
    prior_mean, prior_sd, _ = ({}, {}, {}) if first is None else _asked(engine, first, entry)
    floor = float(np.asarray(engine.agent.policy.floor))
    least = max(floor, entry.arms.shares.get(entry.arm, (0.0, 1.0))[0])
    return Explanation(
        decision=decision,
        greedy=greedy,
        explored=decision.arm != greedy,
        floor=floor,
        reason=_elsewhere(decision)
        if entry.observed
        else _reason(decision, greedy, least, [name for name in allowed if allowed[name]]),
        version=state.version,
        mean=engine.within(mean),
        sd=sd,
        best=best,
        prior_mean=engine.within(prior_mean),
        prior_sd=prior_sd,
        data_share={name: _share(sd[name], begun) for name, begun in prior_sd.items()},
        status="pending" if entry.status is None else entry.status.value,
        shared=_shared(engine, entry),
    )


def _shared(engine: Engine, entry: Entry) -> tuple[tuple[str, ...], ...]:
    """The names that share a place in which the context of a decision has something."""
    encoder = engine.inputs.contexts
    if entry.x is None or engine.inputs.shape != (encoder.size,):
        return ()
    return shared_in(encoder, entry.x.tolist())


def _asked(engine: Engine, belief: AgentBelief[Any], entry: Entry) -> list[dict[str, float]]:
    """The view of a belief on the arms as they were, by name: mean, sd, and probability of being best."""
    key = jax.random.fold_in(jax.random.key(engine.seed), entry.number)
    agent = jax.tree.map(jnp.asarray, engine.agent)  # a program with numbers of Python's is not kept
    rows = _ask(agent, belief, engine.x_of(entry), jnp.asarray(entry.numbers[3] > 0), key)
    return [entry.arms.by_name(np.asarray(row)) for row in rows]


@verb(static=(), kept=True)
def _ask(
    agent: Agent, belief: AgentBelief[Any], x: PyTree, allowed: Array, key: Array
) -> tuple[Array, Array, Array]:
    law = agent.rewards.expect_arms(belief, x)
    mean = law.mean
    sd = law.sd
    if belief.units is not None:
        mean = belief.units.location + belief.units.scale * mean
        sd = belief.units.scale * sd
    return mean, sd, probability_best(law, allowed, key=key, draws=1000)


def _share(sd: float, first: float) -> float:
    """The share of the prior variance that is gone."""
    if first > 0:
        return min(max(1.0 - (sd / first) ** 2, 0.0), 1.0)
    return 0.0


def _elsewhere(decision: ArmDecision) -> str:
    p = decision.propensity
    chance = f"the probability {p:.3g}" if p == p else "a probability that nobody knows"
    return f"{decision.arm!r} was chosen elsewhere, with {chance}."


def _reason(decision: ArmDecision, greedy: str, floor: float, allowed: list[str]) -> str:
    arm = decision.arm
    p = decision.propensity
    if len(allowed) == 1:
        return f"{arm!r} was the only arm that was allowed."
    names = [repr(name) for name in allowed[:NAMED]]
    last = f"{len(allowed) - NAMED} more" if len(allowed) > NAMED else names.pop()
    among = f"among {len(allowed)} allowed arms ({', '.join(names)} and {last})"
    mine = f"{decision.mean[arm]:.3g} +- {decision.sd[arm]:.2g}"
    chance = f"with the probability {p:.3g}"
    if arm == greedy:
        return f"{arm!r} was chosen {among} {chance}: it has the largest expected reward, {mine}."
    best = f"{decision.mean[greedy]:.3g} +- {decision.sd[greedy]:.2g}"
    why = "by the floor alone" if p <= floor * (1 + 1e-6) else "as it may be the better one"
    return f"{arm!r} was explored {among} {chance}, {why}: it expects {mine} where {greedy!r} expects {best}."
