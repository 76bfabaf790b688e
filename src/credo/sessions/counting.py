"""The running scores of a session and what was reported, of which those of lone rows are counted later."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from credo.live.change_steps import Steps, join
from credo.live.targets import baseline_sd, beside_baseline
from credo.metrics import Scores, normal_crps
from credo.sessions.change_tally import ChangeTally
from credo.sessions.tally import Tally
from credo.tables import ScaledTarget

__all__ = ["Counting", "Scored", "add_scored"]

MOST = 256
"""How many calls may wait: to count a row costs as much as to count many."""


class Scored(NamedTuple):
    """Scores of consecutive rows, as the learner has them; of numbers also how the targets were standardised,
    how many came `before` each, and log densities in own units (None: as scored).
    """

    scores: Scores
    scaling: ScaledTarget | None = None
    before: np.ndarray | None = None
    log_prob: np.ndarray | None = None


class Counting:
    """A `Tally` and, where the learner reports changes, a `ChangeTally`: of single rows they are brought up
    to date by `settle`, and by every 256th. What is counted does not depend on when.
    """

    def __init__(self, tally: Tally, changes: ChangeTally | None) -> None:
        self.tally, self.changes = tally, changes
        self._scored: list[Scored] = []
        self._steps: list[Steps] = []

    def add(self, scored: Scored) -> None:
        """Take in the scores of consecutive rows."""
        rows = len(scored.scores)
        if rows:
            self._scored.append(scored)
        if rows > 1 or len(self._scored) >= MOST:
            self.settle()

    def report(self, steps: Steps) -> None:
        """Take in what was reported of consecutive rows."""
        self._steps.append(steps)
        if steps.size > 1 or len(self._steps) >= MOST:
            self.settle()

    def settle(self) -> Counting:
        """Count all that waits; this."""
        scored, self._scored = self._scored, []
        steps, self._steps = join(self._steps), []
        if scored:
            add_scored(self.tally, _joined(scored))
        if self.changes is not None and steps is not None:
            self.changes.add(steps)
        return self


def add_scored(tally: Tally, scored: Scored) -> None:
    """Count rows beside the baseline before each of them."""
    tally.add(*_beside_baseline(scored, tally), _baseline_crps(scored, tally))


def _joined(scored: Sequence[Scored]) -> Scored:
    """The scores of several calls as those of one."""
    if len(scored) == 1:
        return scored[0]
    parts, scalings, counts, logs = zip(*scored, strict=True)
    scores = Scores.concatenate(parts)
    if scalings[0] is None:
        return Scored(scores)
    names = [field.name for field in dataclasses.fields(ScaledTarget)]
    scaling = ScaledTarget(*(np.concatenate([getattr(one, name) for one in scalings]) for name in names))
    log_prob = None if logs[0] is None else np.concatenate(logs)
    return Scored(scores, scaling, np.concatenate(counts), log_prob)


def _baseline_crps(scored: Scored, tally: Tally) -> np.ndarray | None:
    """The CRPS of the baseline for each row of a regression."""
    if scored.scaling is None or scored.before is None or not tally.kind.standardised:
        return None
    location, scale = scored.scaling.location, scored.scaling.scale
    return normal_crps(np.asarray(scored.scores.y, float), location, baseline_sd(scale, scored.before))


def _beside_baseline(scored: Scored, tally: Tally) -> tuple[Scores, np.ndarray, np.ndarray]:
    """The scores, and the log probability and loss of the baseline for each row."""
    if scored.scaling is None or scored.before is None:
        return scored.scores, *tally.class_baseline(scored.scores.y)
    return beside_baseline(scored.scores, scored.scaling, scored.before, tally.kind, scored.log_prob)
