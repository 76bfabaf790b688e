"""Choices that were made elsewhere, by a legacy policy or a human, on their way into a bandit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from credo.bandits.service.arms import Arms, Limits
from credo.bandits.service.casting import Names, as_names
from credo.bandits.service.content import content_of, require_reward, require_within
from credo.bandits.service.decision import Observed
from credo.bandits.service.engine import Engine
from credo.bandits.service.programs import Answer
from credo.bandits.service.rewarding import reward as learn_reward
from credo.bandits.service.window import Entry
from credo.core.errors import CredoError

__all__ = ["Propensity", "observe"]

Propensity: TypeAlias = float | Mapping[str, float] | None
"""The probability of the chosen arm, or those of all arms by name; None where nobody knows."""


def observe(
    engine: Engine,
    context: Any,
    arm: str,
    reward: float | None,
    propensity: Propensity,
    names: Names,
    id: str | None,
) -> Observed:
    """Take in a choice and its reward, in one piece; or what is new about the one of this id."""
    if reward is not None:
        require_reward(reward)
        require_within(float(reward), engine.reward_range)
    given = dict(propensity) if isinstance(propensity, Mapping) else propensity
    if names is None and isinstance(given, dict):
        names = tuple(given)
    names = as_names(names)
    content = content_of(context, names, arm=arm, propensity=given)
    now = engine.now()
    engine.expire(now)
    with engine.writing, engine.books:
        known = engine.known(id, content)
        if known is None:
            standing = engine.state.arms
            arms = standing.brought(names) if isinstance(names, Mapping) else standing
            mask = arms.mask(None if isinstance(names, Mapping) else names, forbidden=True)
            slot = arms.slot(arm)
            if not mask[slot]:
                raise CredoError(
                    f"arm must be among the arms of the choice; got {arm!r}, which is not.", field="arm"
                )
            pmf = _pmf(arms, slot, mask, given)
            value = None if reward is None else float(reward)
            known = _take_in(engine, context, names, (slot, mask, pmf), value, id, now, content)
            status = known.status
        elif reward is None:
            status = known.status
        else:
            status = learn_reward(engine, [known.id], [reward], [None])[0]
    engine.sync()
    return Observed(known.id, status)


def _pmf(arms: Arms, slot: int, mask: np.ndarray, propensity: Any) -> np.ndarray:
    """The probabilities of the slots (K,), NaN if nobody knows; a CredoError if they are none."""
    pmf = np.where(mask, math.nan, 0.0)
    if propensity is None:
        return pmf
    if isinstance(propensity, dict):
        for name, p in propensity.items():
            pmf[arms.slot(name)] = _probability(p)
        total = math.fsum(pmf[mask])
        if not abs(total - 1.0) < 1e-4:  # NaN is none
            raise CredoError(
                f"propensity must be probabilities of all arms that sum to 1; they sum to {total:g}.",
                field="propensity",
            )
        propensity = pmf[slot]
    pmf[slot] = _probability(propensity)
    if pmf[slot] == 0.0:
        raise CredoError("propensity of the chosen arm must be above 0; got 0.", field="propensity")
    unknown = np.flatnonzero(np.isnan(pmf))
    if unknown.size == 1:
        pmf[unknown] = 1.0 - pmf[slot]
    return pmf


def _probability(value: Any) -> float:
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not number or not 0.0 <= value <= 1.0:
        raise CredoError(
            f"propensity must be a probability, above 0 and at most 1, or None where it is unknown; got "
            f"{value!r}.",
            field="propensity",
        )
    return float(value)


def _take_in(
    engine: Engine,
    context: Any,
    names: Names,
    choice: tuple[int, np.ndarray, np.ndarray],
    reward: float | None,
    id: str | None,
    now: float,
    content: str,
) -> Entry:
    """A new choice, from its context to its line in the log. Both locks are held."""
    slot, mask, pmf = choice
    engine.say()
    cast, vector, asked = engine.take_in(context, names, free=False)
    number = engine.count
    written = False
    engine.count += 1
    try:
        engine.expire(now, room=1)
        state = engine.state
        x = engine.inputs.of(vector, cast.arms, cast.rows)
        answer = engine.programs.decide(state.words, x, Limits(mask, cast.arms.bounds), number)
        numbers = answer.numbers.astype(np.float64)
        numbers[0] = pmf
        kept = x if cast.rows is None else vector
        entry = engine.entry(id, number, Answer(slot, numbers), kept, cast, state.version, now, content)
        entry.observed = True
        if reward is None:
            engine.record([(entry, asked)])
        else:
            engine.learn([(entry, reward)], now, imputed=False, new=[(entry, asked)])
        written = True
        return entry
    finally:
        if not written and engine.ledger is not None:
            engine.unsaid.append((number, asked))
