"""Predictions with their observations."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

__all__ = ["Scores"]


@dataclasses.dataclass(frozen=True)
class Scores:
    """Predictions of N rows with their observations. Rows without an observation are left out.

    Attributes:
        y: the observations (N,), or (N, C) for several outputs, of which some may be NaN.
        mean, sd: the predictive mean and standard deviation, shaped as y (regression); None for class
            probabilities, and where the likelihood has none.
        log_prob: log p(y | x, past) of each row (N,), in nats.
        pit: P(Y <= y | x, past) (N,) or (N, C); uniform where the predictive is calibrated (regression). None
            where the likelihood has no distribution function.
        probs: class probabilities (N, C), or None for regression.
        others: log p(y | x, past) under other forecast methods, by their names.
        log_evidence: the log evidence that updates reported (N,).
        ok: whether the row was taken in (N,).
        loss: what the decision on each row cost (N,), where decisions were taken; see `credo.Decision`.
        action: these decisions, with a leading axis N.
        compared: class probabilities (N, C), or `mean` and `sd` side by side (N, 2), under other forecast
            methods, by their names.

    Example:
        >>> one = np.ones(2)
        >>> scores = Scores(np.array([1.0, 3.0]), one, one, -one, None, None, {}, one, one > 0)
        >>> len(scores), scores.classification
        (2, False)
    """

    y: np.ndarray
    mean: np.ndarray | None
    sd: np.ndarray | None
    log_prob: np.ndarray
    pit: np.ndarray | None
    probs: np.ndarray | None
    others: dict[str, np.ndarray]
    log_evidence: np.ndarray
    ok: np.ndarray
    loss: np.ndarray | None = None
    action: np.ndarray | None = None
    compared: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.log_prob)

    @property
    def classification(self) -> bool:
        """Whether y is a class."""
        return self.probs is not None

    @property
    def correct(self) -> np.ndarray:
        """Whether the most probable class was observed (N,)."""
        assert self.probs is not None
        return np.asarray(self.probs.argmax(axis=1) == self.y)

    @property
    def observed_pit(self) -> np.ndarray:
        """The `pit` of what was observed: outputs that are NaN in y are left out."""
        assert self.pit is not None
        several = self.pit.ndim > 1 and self.pit.shape == self.y.shape
        return self.pit[~np.isnan(self.y)] if several else self.pit

    def rows(self, where: np.ndarray | slice) -> Scores:
        """The scores of some of the rows.

        Arguments:
            where: booleans (N,), positions, or a slice.
        """
        return self._each(lambda column: column[where])

    @staticmethod
    def concatenate(parts: Sequence[Scores]) -> Scores:
        """The scores of consecutive chunks as one.

        Arguments:
            parts: the scores, at least one, all of the same task and with the same other forecasts.
        """
        return Scores(
            np.concatenate([part.y for part in parts]),
            _joined([part.mean for part in parts]),
            _joined([part.sd for part in parts]),
            np.concatenate([part.log_prob for part in parts]),
            _joined([part.pit for part in parts]),
            _joined([part.probs for part in parts]),
            {name: np.concatenate([part.others[name] for part in parts]) for name in parts[0].others},
            np.concatenate([part.log_evidence for part in parts]),
            np.concatenate([part.ok for part in parts]),
            _joined([part.loss for part in parts]),
            _joined([part.action for part in parts]),
            {name: np.concatenate([part.compared[name] for part in parts]) for name in parts[0].compared},
        )

    def _each(self, function: Callable[[np.ndarray], np.ndarray]) -> Scores:
        def optional(column: np.ndarray | None) -> np.ndarray | None:
            if column is None:
                return None
            return function(column)

        return Scores(
            function(self.y),
            optional(self.mean),
            optional(self.sd),
            function(self.log_prob),
            optional(self.pit),
            optional(self.probs),
            {name: function(column) for name, column in self.others.items()},
            function(self.log_evidence),
            function(self.ok),
            optional(self.loss),
            optional(self.action),
            {name: function(column) for name, column in self.compared.items()},
        )


def _joined(columns: Sequence[np.ndarray | None]) -> np.ndarray | None:
    present = [column for column in columns if column is not None]
    if present:
        return np.concatenate(present)
    return None
