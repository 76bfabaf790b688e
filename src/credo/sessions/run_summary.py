"""The summary of a run: the contents of metrics.json, and the verdict in words."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple, NotRequired, TypedDict

from credo.core.errors import Named, Sentence
from credo.core.files import versions
from credo.sessions import ChangeSummary, SavedSettings, Session, Tally
from credo.sessions.bank_summary import BankSummary, summarize_bank
from credo.sessions.horizons import HorizonSummary
from credo.sessions.paths import PathForecast

__all__ = [
    "MEANING",
    "Ahead",
    "ImportanceSummary",
    "OfClass",
    "Results",
    "RowCounts",
    "Summary",
    "number",
    "summarize_run",
    "verdict",
]

DIVERGED = 5.0
"""A learner that loses so many nats a row against the baseline has diverged. A row costs at most some 20."""

LEVEL = 5e-4
"""Fewer nats a row are no difference."""


MEANING = {
    "error": "share of wrong classes",
    "rmse": "root mean squared error",
    "nlpd": "negative log predictive density (nats)",
    "nlpd_plugin": "the same, ignoring the uncertainty of the parameters",
    "nlpd_unscaled": "the same, before the members' forecasts are scaled",
    "brier": "squared distance of the probabilities to the label",
    "ece": "calibration error of the predicted class (0 is calibrated)",
    "ece_classwise": "calibration error of every class, averaged",
    "auc": "area under the ROC curve, mean over classes (0.5 is chance)",
    "average_precision": "average precision, mean over classes",
    "mae": "mean absolute error",
    "r2": "share of the squared error of the running mean that is gone (1 is best)",
    "crps": "continuous ranked probability score, in units of the target (lower is better)",
    "width_90": "mean width of the 90% interval, in units of the target",
    "coverage_90": "share inside the 90% interval (0.90 is right)",
}
"""The meanings of the metrics, in the order of the table."""


class RowCounts(TypedDict):
    """Counts of the rows, and what was wrong with some."""

    read: int
    learned: int
    scored: int
    skipped: int
    refused: int
    restarts: list[int]
    missing_cells: dict[str, int]
    unseen_categories: dict[str, int]
    bad: list[str]


class Scored(TypedDict):
    """The scores of held-out rows, or of those of this run alone, where it went on from an earlier one."""

    rows: int
    metrics: dict[str, float]
    baseline: dict[str, float]


class OfClass(TypedDict):
    """The scores of one class against the rest; `auc_error` is the most by which `auc` can be wrong."""

    rows: int
    auc: float
    auc_error: float
    average_precision: float
    log_loss: float
    ece: float


class ReportedChanges(ChangeSummary):
    """The reports about changes, in numbers and in words."""

    sentences: list[str]


class ResolvedSettings(SavedSettings):
    """The settings of the learner, and how many parameters it has."""

    parameters: int


class Ahead(NamedTuple):
    """The scores of the forecasts of the next steps of a series, and the forecast of those after its end."""

    scores: HorizonSummary
    forecast: PathForecast


class ImportanceSummary(TypedDict):
    """By how much the NLPD of some rows rises if a column is shuffled, its standard error, and by how much
    the error or RMSE does, by column; `of` says which rows."""

    rows: int
    of: str
    columns: dict[str, dict[str, float]]


class Summary(TypedDict):
    """The contents of metrics.json. The last eight are present where they apply."""

    format: int
    source: str
    task: str
    target: str
    classes: list[str]
    settings: ResolvedSettings
    notes: list[str]
    rows: RowCounts
    metrics: dict[str, float]
    baseline: dict[str, str | float]
    verdict: str
    interrupted: bool
    seconds: float
    rows_per_second: float
    versions: dict[str, str]
    last_value_baseline: NotRequired[dict[str, float]]
    this_run: NotRequired[Scored]
    by_class: NotRequired[dict[str, OfClass]]
    changes: NotRequired[ReportedChanges]
    bank: NotRequired[BankSummary]
    test: NotRequired[Scored]
    horizons: NotRequired[HorizonSummary]
    importance: NotRequired[ImportanceSummary]


@dataclasses.dataclass(frozen=True)
class Results:
    """A finished run: what was said about data, learner and skipped rows (`sentences`, `bad`), the scores of
    held-out rows and those before this run (`test`, `before`), the seconds of learning with compilation, and
    the number of rows learned from; `ordered` rows are one stream.
    """

    source: str
    session: Session
    sentences: tuple[str, ...]
    bad: list[str]
    test: Tally | None
    seconds: float
    rows: int
    interrupted: bool
    ordered: bool
    before: Tally | None = None
    ahead: Ahead | None = None
    importance: ImportanceSummary | None = None

    @property
    def this_run(self) -> Tally | None:
        """The scores of this run alone; None if there was none before it."""
        if self.before is None or not self.before.scored:
            return None
        return self.session.tally.since(self.before)

    @property
    def baseline_name(self) -> str:
        """The name of the baseline."""
        if self.session.regression:
            return "running mean"
        return "running majority"

    @property
    def rows_per_second(self) -> float:
        """The speed of this run."""
        return self.rows / max(self.seconds, 1e-9)


def summarize_run(results: Results) -> Summary:
    """The contents of metrics.json."""
    session = results.session
    tally = results.session.tally
    contents: Summary = {
        "format": 1,
        "source": results.source,
        "task": session.settings.task,
        "target": session.encoding.target,
        "classes": list(session.encoding.classes),
        "settings": {**session.settings.to_dict(), "parameters": session.size},
        "notes": list(results.sentences),
        "rows": {
            "read": session.rows_read,
            "learned": session.rows_used - session.rows_refused,
            "scored": tally.scored,
            "skipped": session.rows_read - session.rows_used,
            "refused": session.rows_refused,
            "restarts": session.recovery.rows,
            "missing_cells": dict(session.missing),
            "unseen_categories": dict(session.unseen),
            "bad": results.bad,
        },
        "metrics": session.metrics(),
        "baseline": {"name": results.baseline_name, **tally.baseline()},
        "verdict": verdict(results),
        "interrupted": results.interrupted,
        "seconds": results.seconds,
        "rows_per_second": results.rows_per_second,
        "versions": versions(),
    }
    if results.ordered:
        word = "rmse" if session.regression else "error"
        contents["last_value_baseline"] = {word: tally.latest("last_loss")}
    recent = results.this_run
    if recent is not None:
        contents["this_run"] = _scored(session, recent)
    if tally.scored and not session.regression:
        contents["by_class"] = _by_class(session)
    bank = summarize_bank(session)
    if bank is not None:
        contents["bank"] = bank
    elif session.changes is not None and session.changes.rows:
        contents["changes"] = {**session.changes.summary(), "sentences": session.changes.sentences()}
    if results.test is not None and results.test.scored:
        contents["test"] = _scored(session, results.test)
    if results.ahead is not None:
        contents["horizons"] = results.ahead.scores
    if results.importance is not None:
        contents["importance"] = results.importance
    return contents


def _scored(session: Session, tally: Tally) -> Scored:
    metrics = tally.metrics(session.uncertain)
    return {"rows": tally.scored, "metrics": metrics, "baseline": tally.baseline()}


def _by_class(session: Session) -> dict[str, OfClass]:
    scores = session.tally.by_class.scores()
    return {
        name: {
            "rows": int(scores.rows[c]),
            "auc": float(scores.auc[c]),
            "auc_error": float(scores.auc_error[c]),
            "average_precision": float(scores.average_precision[c]),
            "log_loss": float(scores.log_loss[c]),
            "ece": float(scores.ece[c]),
        }
        for c, name in enumerate(session.encoding.classes)
    }


def verdict(results: Results) -> str:
    """Whether the learner beats the baseline by its log score, in words, over all rows that were scored."""
    tally = results.session.tally
    if not tally.scored:
        return "too few rows to score: a regression is scored once 10 targets with some spread were seen"
    ours = tally.latest("nlpd")
    base = tally.latest("base_nlpd")
    gain = base - ours
    if not gain > -DIVERGED:
        rate = results.session.settings.learning_rate
        said = f"the learner has diverged: its NLPD is {number(ours)} nats a row"
        if rate is None:
            return said
        return Sentence(f"{said}; try a {Named('learning_rate')} below {rate:g}")
    verb = "draws level with"
    if abs(gain) > LEVEL:
        verb = "beats" if gain > 0 else "loses to"
    by = f" by {abs(gain):.3f} nats a row" if abs(gain) > LEVEL else ""
    word = "error" if tally.kind.classed else "RMSE"
    loss = tally.latest("loss")
    floor = tally.latest("base_loss")
    latest = tally.latest("last_loss") if results.ordered else float("nan")
    stronger = latest < min(loss, floor)
    against = (gain > LEVEL and (loss > floor or stronger)) or (gain < -LEVEL and loss < floor)
    mark = ", although its" if against else "; its"
    last = f", and repeating the last value has {latest:.4g}, less than both" if stronger else ""
    return (
        f"the learner {verb} the {results.baseline_name}{by} (NLPD {ours:.3f} against {base:.3f})"
        f"{mark} {word} is {loss:.4g} against {floor:.4g}{last}"
    )


def number(value: float) -> str:
    """A number for a table."""
    if not abs(value) < 1e7:
        return f"{value:.2e}"
    if abs(value) < 1000:
        return f"{value:.4f}"
    return f"{value:,.1f}"
