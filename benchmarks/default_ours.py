"""credo's own row in the table of defaults: a session as `credo learn FILE --target y` makes it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from default_scores import LEVELS, Scores, class_scores, number_scores, running_normal
from default_streams import Stream
from scipy.stats import norm

from credo.metrics import Scores as RowScores
from credo.recipes.defaults import SCHEMA_ROWS
from credo.sessions import Session
from credo.sessions.session import Forecasts
from credo.sessions.tally import Tally

__all__ = ["ours", "session_of", "with_first_rows"]

TIMED = 5000
"""The most rows of the second run, which measures the speed when everything is compiled."""

WARM = 300
"""The rows that a session learns before, so that everything is compiled."""


class Recorder(Tally):
    """A tally that keeps the log probability and the PIT of every row."""

    def __init__(self, tally: Tally) -> None:
        super().__init__(tally.task, len(tally.counts))
        self.log_prob: list[np.ndarray] = []
        self.pit: list[np.ndarray] = []

    def add(
        self,
        scores: RowScores,
        base_log_prob: np.ndarray,
        base_loss: np.ndarray,
        base_crps: np.ndarray | None = None,
    ) -> None:
        super().add(scores, base_log_prob, base_loss, base_crps)
        self.log_prob.append(np.asarray(scores.log_prob, float))
        if scores.pit is not None:
            self.pit.append(np.asarray(scores.pit, float))


def ours(stream: Stream, options: Mapping[str, Any] | None = None, timed: bool = True) -> Scores:
    """Forecast and learn every row, once; then learn the first rows again, to measure the speed.

    The first 1,000 rows say what the columns mean, as they do for the command. The task is inferred, too,
    unless what is inferred is not the task of the stream (a few whole numbers are taken for classes).

    Arguments:
        stream: the rows.
        options: settings of `Session.from_rows`; by default everything is left to the session.
        timed: whether the first rows are learned again.
    """
    session = session_of(stream, options)
    recorder = Recorder(session.tally)
    session.tally = recorder
    started = time.process_time()
    regression = stream.task == "regression"
    forecasts, _ = session.forecast_then_learn(stream.rows, LEVELS.tolist() if regression else ())
    seconds = time.process_time() - started
    if regression:
        mean = np.concatenate([part.mean for part in forecasts if part.mean is not None])
        quantiles = np.concatenate([part.quantiles for part in forecasts if part.quantiles is not None])
        log_prob, pit = (np.concatenate(column) for column in (recorder.log_prob, recorder.pit))
        scores = number_scores(*with_first_rows(mean, log_prob, pit, quantiles, stream.target))
    else:
        scores = class_scores(_probs(stream, forecasts), np.searchsorted(stream.classes, stream.target))
    scores["seconds"] = seconds
    if timed:
        scores["rows_per_second"] = _speed(stream, options)
    return scores


def with_first_rows(
    mean: np.ndarray, log_prob: np.ndarray, pit: np.ndarray, quantiles: np.ndarray, y: np.ndarray
) -> tuple[np.ndarray, ...]:
    """The arguments of `number_scores`, with a forecast of the first rows, which a session does not score.

    A session scores a row once ten targets have said in which units the others are. A target far from those
    before it does not count among the ten, so that there may be more such rows than the ten which nobody is
    scored on. They are forecast as a peer's are that says nothing, by the mean and the spread of the targets
    so far.

    Arguments:
        mean, quantiles: of all rows (N,) and (N, L).
        log_prob, pit: of the latest rows (n,), those that were scored.
        y: the targets (N,).
    """
    first = len(y) - len(log_prob)
    running, sd = (column[:first] for column in running_normal(y))
    z = (y[:first] - running) / sd
    return (
        np.concatenate([running, mean[first:]]),
        np.concatenate([norm.logpdf(z) - np.log(sd), log_prob]),
        np.concatenate([norm.cdf(z), pit]),
        np.concatenate([running[:, None] + sd[:, None] * norm.ppf(LEVELS), quantiles[first:]]),
        y,
    )


def _probs(stream: Stream, forecasts: Sequence[Forecasts]) -> np.ndarray:
    """The probabilities of the stream's classes (N, C).

    A session makes room for a class when its first row comes, before it forecasts that row. Until then
    nothing was said about the class, so here its probability is 0 up to that row.
    """
    probs = np.zeros((len(stream.target), len(stream.classes)))
    first = 0
    for part in forecasts:
        assert part.probs is not None
        probs[first : first + len(part.lines), np.searchsorted(stream.classes, part.classes)] = part.probs
        first += len(part.lines)
    for number, label in enumerate(stream.classes):
        arrival = int(np.argmax(stream.target == label))
        if arrival >= SCHEMA_ROWS:
            probs[: arrival + 1, number] = 0.0
    return probs


def session_of(stream: Stream, options: Mapping[str, Any] | None = None) -> Session:
    """A session for the rows of a stream, as `credo learn` makes it, before any row."""
    rows = {name: cells[:SCHEMA_ROWS] for name, cells in stream.rows.items()}
    given: dict[str, Any] = dict(options or {})
    session = Session.from_rows(rows, "y", **given)
    if session.settings.task == stream.task or "task" in given:
        return session
    given["task"] = stream.task
    return Session.from_rows(rows, "y", **given)


def _speed(stream: Stream, options: Mapping[str, Any] | None) -> float:
    """Rows a second of a session that only learns and scores, as the command does, once it is compiled."""
    seconds = 0.0
    for most in (WARM, TIMED):
        session = session_of(stream, options)
        rows = {name: cells[:most] for name, cells in stream.rows.items()}
        started = time.process_time()
        session.learn(rows)
        seconds = time.process_time() - started
    return min(len(stream.target), TIMED) / seconds
