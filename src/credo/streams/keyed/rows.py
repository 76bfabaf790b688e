"""Forecasts and reports for rows with keys."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from credo.core.types import PyTree
from credo.learners import Info
from credo.metrics import Scores
from credo.streams.scoring import Outcome, to_scores

__all__ = ["KeyedRows"]


@dataclass(frozen=True)
class KeyedRows:
    """The forecasts and reports for the rows of a call of `Keyed.learn`, in their order.

    Attributes:
        outcome: the forecasts before learning with their scores, arrays (n, ...): `mean`, `sd`, `probs`,
            `log_prob`, `pit`, None if a forecast has none.
        info: what the updates reported, likewise. Its `extras` are the `change` and `alarm` of a wrapper that
            reports changes, and otherwise None.
        ys: the observations.
        late: which rows were earlier than another of their key (n,), and were learned without a step of time;
            None without times.
        slots: the place of the key of each row among all keys (n,). A key keeps its place until it is dropped
            or evicted; then another one may have it.

    Example:
        >>> import credo
        >>> coins = credo.Keyed(credo.BetaBernoulli(), credo.BetaBernoulli().init())
        >>> coins.learn(["a", "b", "a"], None, np.array([1, 0, 1])).outcome.probs.shape
        (3, 2)
    """

    outcome: Outcome
    info: Info
    ys: PyTree
    late: np.ndarray | None = None
    slots: np.ndarray | None = None

    @property
    def ok(self) -> np.ndarray:
        """Whether each row was taken in (n,), as `Info.ok` says."""
        return np.asarray(self.info.ok)

    @property
    def alarm(self) -> np.ndarray | None:
        """Whether each row reported a change (n,), None for a learner that reports none."""
        if self.info.extras is None:
            return None
        return np.asarray(self.info.extras["alarm"])

    @property
    def scores(self) -> Scores:
        """The scores of the observed rows."""
        return to_scores(self.outcome, self.info, self.ys)
