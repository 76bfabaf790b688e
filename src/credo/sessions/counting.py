"""The running scores of a session and what was reported, of which those of lone rows are counted later."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from credo.live.change_steps import Steps, join
from credo.metrics import Scores
from credo.sessions.change_tally import ChangeTally
from credo.sessions.tally import Tally

__all__ = ["Counting"]

MOST = 64
"""How many calls may wait: to count a row costs as much as to count many."""

Scored: TypeAlias = tuple[Scores, np.ndarray, np.ndarray]
"""Scores of rows, and the baseline's log probability and loss of each."""


class Counting:
    """A `Tally` and, where the learner reports changes, a `ChangeTally`: of single rows they are brought up
    to date by `settle`, and by every 64th. What is counted does not depend on when.
    """

    def __init__(self, tally: Tally, changes: ChangeTally | None) -> None:
        self.tally, self.changes = tally, changes
        self._scored: list[Scored] = []
        self._steps: list[Steps] = []

    def add(self, scored: Scored) -> None:
        """Take in the scores of consecutive rows."""
        rows = len(scored[0])
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
        if len(scored) == 1:
            self.tally.add(*scored[0])
        elif scored:
            scores, log_probs, losses = zip(*scored, strict=True)
            self.tally.add(Scores.concatenate(scores), np.concatenate(log_probs), np.concatenate(losses))
        if self.changes is not None and steps is not None:
            self.changes.add(steps)
        return self
