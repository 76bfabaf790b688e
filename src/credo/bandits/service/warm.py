"""Learning from a log of decisions that were taken elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias, get_args

import numpy as np

from credo.bandits.logs import Log
from credo.bandits.logs.contexts import row_of
from credo.bandits.service.content import require_within
from credo.bandits.service.engine import Engine
from credo.bandits.service.programs import Row
from credo.core.errors import CredoError, require_choice
from credo.core.types import PyTree

__all__ = ["LogWeights", "teach", "warm_start"]

LogWeights: TypeAlias = Literal["none", "propensity"]
"""How the rows of a log count: alike, or by 1 / propensity, which on average is made 1."""


def warm_start(engine: Engine, log: Log, weights: LogWeights) -> int:
    """Learn from a weighted log, row by row, in one program: how many rows were learned."""
    require_choice("weights", weights, get_args(LogWeights))
    if not isinstance(log, Log):
        raise CredoError(f"log must be a bandits.Log, such as Log.read(path); got {log!r}.", field="log")
    rows = np.flatnonzero(np.isfinite(log.rewards))
    if not rows.size:
        raise CredoError("log must have a row with a reward; there is none.", field="log")
    with engine.writing, engine.books:
        state = engine.state
        absent = sorted({log.arms[arm] for arm in log.chosen[rows]} - set(state.arms.names))
        if absent:
            raise CredoError(
                f"log must choose among the arms of the bandit; it chose {absent[0]!r}: add this arm first.",
                field="log",
            )
        for value in log.rewards[rows].tolist():
            require_within(value, engine.reward_range)
        weight = np.ones(rows.size)
        if weights == "propensity":
            weight = 1.0 / log.propensities[rows]
            weight /= weight.mean()
        names = state.arms.names
        contexts = [_in_order(log, row_of(log.contexts, int(row)), names) for row in rows]
        arms = [log.arms[arm] for arm in log.chosen[rows]]
        numbers = np.asarray(log.rewards, float)[rows].tolist(), weight.tolist()
        return teach(engine, list(zip(contexts, arms, *numbers, strict=True)))


def teach(engine: Engine, rows: Sequence[tuple[PyTree, str, float, float]]) -> int:
    """Learn rows of context, arm, reward and weight, or none by a CredoError: how many were learned."""
    with engine.writing, engine.books:
        state = engine.state
        before, shape = engine.inputs.contexts.copy(), engine.inputs.shape
        steps: list[Row] = []
        try:
            for step, (context, arm, reward, weight) in enumerate(rows):
                x = engine.inputs.of(engine.admit(context), state.arms, state.rows)
                steps.append((x, state.arms.slot(arm), reward, weight, state.version + step))
            learned = engine.programs.learn(state.words, steps)
            if engine.ledger is not None:
                engine.ledger.taught(rows)
        except CredoError:
            engine.inputs.contexts, engine.inputs.shape = before, shape
            raise
        engine.state = state._replace(words=learned.belief, version=state.version + len(steps))
        engine.tally["refused"] += learned.ok.count(False)
    engine.sync()
    return learned.ok.count(True)


def _in_order(log: Log, context: PyTree, names: tuple[str, ...]) -> PyTree:
    """The context; one with a row for each arm of the log has the rows of the bandit's arms."""
    if not isinstance(context, np.ndarray) or context.ndim != 2 or len(context) != len(log.arms):
        return context
    places = {name: place for place, name in enumerate(log.arms)}
    blank = np.zeros(context.shape[1])
    return np.stack([context[places[name]] if name in places else blank for name in names])
