"""Learning from a log of decisions that were taken elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from credo.bandits.logs import Log
from credo.bandits.logs.contexts import ACTIONS, features_of_arm, row_of
from credo.bandits.service.asked_arms import Lesson
from credo.bandits.service.content import require_within
from credo.bandits.service.engine import Engine
from credo.bandits.service.programs import Row
from credo.core.errors import CredoError, require_choice
from credo.core.types import PyTree

__all__ = ["LogWeights", "teach", "warm_start"]

LogWeights: TypeAlias = Literal["none", "propensity"]
"""The weights of the rows of a log: all alike, or 1 / propensity, which on average is made 1."""


def warm_start(engine: Engine, log: Log, weights: LogWeights) -> int:
    """Learn from a weighted log, row by row, in one program: how many rows were learned."""
    require_choice("weights", weights, get_args(LogWeights))
    if not isinstance(log, Log):
        raise CredoError(f"log must be a bandits.Log, such as Log.read(path); got {log!r}.", field="log")
    rows = np.flatnonzero(np.isfinite(log.rewards))
    if not rows.size:
        raise CredoError("log must have a row with a reward; there is none.", field="log")
    with engine.writing, engine.books:
        lessons = [_of_row(engine, log, int(row)) for row in rows]
        standing = set(engine.state.arms.names)
        absent = sorted({one.arm for one in lessons if one.features is None} - standing)
        if absent:
            raise CredoError(
                f"log must choose among the arms of the bandit; it chose {absent[0]!r}: add this arm first.",
                field="log",
            )
        for one in lessons:
            require_within(one.reward, engine.reward_range)
        if weights == "propensity":
            mean = float((1.0 / log.propensities[rows]).mean())
            pairs = zip(lessons, log.propensities[rows].tolist(), strict=True)
            lessons = [one._replace(weight=1.0 / p / mean) for one, p in pairs]
        return teach(engine, lessons)


def teach(engine: Engine, lessons: Sequence[Lesson]) -> int:
    """Learn some choices, or none by a CredoError: how many were learned."""
    with engine.writing, engine.books:
        state = engine.state
        brought = any(one.features is not None for one in lessons)
        before = engine.inputs.mark(features=brought)
        steps: list[Row] = []
        try:
            for step, one in enumerate(lessons):
                cast = engine.cast(one.features)
                x = engine.inputs.of(engine.admit(one.context), cast.arms, cast.rows)
                steps.append((x, cast.arms.slot(one.arm), one.reward, one.weight, state.version + step))
            learned = engine.programs.learn(state.words, steps)
            if engine.ledger is not None:
                engine.ledger.taught(lessons)
        except CredoError:
            engine.inputs.back(before)
            raise
        engine.state = state._replace(words=learned.belief, version=state.version + len(steps))
        engine.tally["refused"] += learned.ok.count(False)
    engine.sync()
    return learned.ok.count(True)


def _of_row(engine: Engine, log: Log, row: int) -> Lesson:
    """A row of a log. Features of its arms are of use where the bandit knows features of arms."""
    context = row_of(log.contexts, row)
    arm = log.arms[log.chosen[row]]
    features = None
    if isinstance(context, Mapping) and ACTIONS in context:
        own = context[ACTIONS]
        context = {name: value for name, value in context.items() if name != ACTIONS} or None
        if engine.inputs.actions is not None:
            places = np.flatnonzero(log.allowed[row]).tolist()
            told = {log.arms[place]: features_of_arm(own, place) for place in places}
            features = None if _blank(list(told.values())) else told
    context = _in_order(log, context, engine.state.arms.names)
    return Lesson(context, arm, float(log.rewards[row]), 1.0, features)


def _blank(value: Any) -> bool:
    """Whether nothing is known."""
    if isinstance(value, Mapping | list):
        return all(map(_blank, value.values() if isinstance(value, Mapping) else value))
    return value is None or bool(np.all(value != value))


def _in_order(log: Log, context: PyTree, names: tuple[str, ...]) -> PyTree:
    """The context; one with a row for each arm of the log has the rows of the bandit's arms."""
    if not isinstance(context, np.ndarray) or context.ndim != 2 or len(context) != len(log.arms):
        return context
    places = {name: place for place, name in enumerate(log.arms)}
    blank = np.zeros(context.shape[1])
    return np.stack([context[places[name]] if name in places else blank for name in names])
