"""Why a bandit chose an arm."""

from __future__ import annotations

from typing import Any

import numpy as np

from credo.bandits.agent import AgentBelief
from credo.bandits.service.arms import Arms
from credo.bandits.service.decision import Decision, Explanation
from credo.bandits.service.engine import Engine
from credo.bandits.service.window import Entry

__all__ = ["explain"]


def explain(engine: Engine, entry: Entry, prior: AgentBelief[Any] | None) -> Explanation:
    """The explanation of a decision.

    Arguments:
        engine: what decided.
        entry: the decision.
        prior: the belief before any reward, where it is known.
    """
    decision, state = entry.decision, engine.state
    allowed = entry.arms.by_name(entry.numbers[3])
    greedy = max((name for name in allowed if allowed[name]), key=decision.mean.__getitem__)
    mean, sd = _expected(engine, engine.programs.unpack(state.words), entry)
    start: tuple[dict[str, float], dict[str, float]] = ({}, {})
    if prior is not None:
        start = _expected(engine, prior, entry)
    share = {name: _share(sd[name], first) for name, first in start[1].items()}
    floor = float(np.asarray(engine.agent.policy.floor))
    return Explanation(
        decision=decision,
        greedy=greedy,
        explored=decision.arm != greedy,
        floor=floor,
        reason=_reason(decision, greedy, floor, entry.arms),
        version=state.version,
        mean=mean,
        sd=sd,
        prior_mean=start[0],
        prior_sd=start[1],
        data_share=share,
        status="pending" if entry.status is None else entry.status.value,
    )


def _expected(
    engine: Engine, belief: AgentBelief[Any], entry: Entry
) -> tuple[dict[str, float], dict[str, float]]:
    """The expected rewards of the arms as they were, and their standard deviations, by a belief."""
    law = engine.agent.expect(belief, entry.x)
    return entry.arms.by_name(np.asarray(law.mean)), entry.arms.by_name(np.asarray(law.sd))


def _share(sd: float, first: float) -> float:
    """The share of the prior variance that is gone."""
    return min(max(1.0 - (sd / first) ** 2, 0.0), 1.0) if first > 0 else 0.0


def _reason(decision: Decision, greedy: str, floor: float, arms: Arms) -> str:
    arm, p = decision.arm, decision.propensity
    if sum(chance > 0 for chance in decision.pmf.values()) == 1:
        return f"{arm!r} was the only arm that could be chosen."
    mine = f"{decision.mean[arm]:.3g} +- {decision.sd[arm]:.2g}"
    if arm == greedy:
        return f"{arm!r} has the largest expected reward, {mine}, and had the probability {p:.3g}."
    best = f"{decision.mean[greedy]:.3g} +- {decision.sd[greedy]:.2g}"
    why = "by the floor alone" if p <= floor * (1 + 1e-6) else "because it may be the better one"
    return (
        f"{arm!r} was explored {why}: it expects {mine} where {greedy!r} expects {best}, "
        f"and had the probability {p:.3g}."
    )
