"""What came of a run: the final table, metrics.json, and the report."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from credo.cli import drift_plot, report
from credo.cli import plots as drawing
from credo.cli.session import Session
from credo.cli.tally import Tally
from credo.core.files import json_bytes, versions, write_atomically

__all__ = ["MEANING", "Results", "show", "summary", "verdict", "write"]

MEANING = {
    "error": "share of wrong classes",
    "rmse": "root mean squared error",
    "nlpd": "negative log predictive density (nats)",
    "nlpd_plugin": "the same, ignoring the uncertainty of the parameters",
    "brier": "squared distance of the probabilities to the label",
    "ece": "expected calibration error (0 is calibrated)",
    "mae": "mean absolute error",
    "coverage_90": "share inside the 90% interval (0.90 is right)",
}
ORDER = tuple(MEANING)

DIVERGED = 100.0
"""A learner that loses so many nats a row against the baseline has diverged."""


@dataclasses.dataclass(frozen=True)
class Results:
    """A finished run.

    Attributes:
        source: as asked for.
        session: at its end.
        sentences: what was said of the data and the learner.
        bad: sentences on skipped rows.
        held: scores of held-out rows.
        seconds: of learning, compilation included.
        rows: learned from in this run.
        interrupted: by Ctrl-C.
        ordered: whether the rows are one stream.
    """

    source: str
    session: Session
    sentences: tuple[str, ...]
    bad: list[str]
    held: Tally | None
    seconds: float
    rows: int
    interrupted: bool
    ordered: bool

    @property
    def baseline_name(self) -> str:
        """What the baseline is."""
        return "running mean" if self.session.regression else "running majority"


def summary(results: Results) -> dict[str, Any]:
    """The contents of metrics.json."""
    session, tally = results.session, results.session.tally
    classification = not session.regression
    made: dict[str, Any] = {
        "format": 1,
        "source": results.source,
        "task": session.settings.task,
        "target": session.encoding.target,
        "classes": list(session.encoding.classes),
        "settings": session.settings.to_dict() | {"parameters": session.size()},
        "notes": list(results.sentences),
        "rows": {
            "read": session.read,
            "learned": session.used - session.refused,
            "scored": tally.scored,
            "skipped": session.read - session.used,
            "refused": session.refused,
            "missing_cells": dict(session.missing),
            "unseen_categories": dict(session.unseen),
            "bad": results.bad,
        },
        "metrics": tally.metrics(session.uncertain),
        "baseline": {"name": results.baseline_name, **tally.baseline()},
        "verdict": verdict(results),
        "interrupted": results.interrupted,
        "seconds": results.seconds,
        "rows_per_second": results.rows / max(results.seconds, 1e-9),
        "versions": versions(),
    }
    if results.ordered:
        made["last_value_baseline"] = {"error" if classification else "rmse": tally.latest("last_loss")}
    if session.changes is not None and session.changes.rows:
        made["changes"] = session.changes.summary() | {"sentences": session.changes.sentences()}
    if results.held is not None and results.held.scored:
        held = results.held
        made["test"] = {
            "rows": held.scored,
            "metrics": held.metrics(session.uncertain),
            "baseline": held.baseline(),
        }
    return made


def verdict(results: Results) -> str:
    """Whether the learner beats the baseline, in words."""
    tally = results.session.tally
    if not tally.scored:
        return "too few rows to score: a regression is scored once 10 targets with some spread were seen"
    word = "error" if tally.task == "classification" else "RMSE"
    ours, base = tally.latest("loss"), tally.latest("base_loss")
    nats = tally.latest("base_nlpd") - tally.latest("nlpd")
    if not nats > -DIVERGED:
        rate = results.session.settings.learning_rate
        advice = "" if rate is None else f"; try a --learning-rate below {rate:g}"
        return f"the learner has diverged: its NLPD is {_number(tally.latest('nlpd'))} nats a row{advice}"
    better = ours < base and nats > 0
    start = "beats" if better else "does not clearly beat" if ours < base or nats > 0 else "does not beat"
    gain = f"by {nats:.3f} nats a row" if nats > 0 else f"and loses {-nats:.3f} nats a row"
    return f"the learner {start} the {results.baseline_name}: {word} {ours:.4g} against {base:.4g}, {gain}"


def rows_of(results: Results) -> list[tuple[str, str, str, str, str]]:
    """The table: metric, ours, baseline, held-out, meaning; blank where there is nothing."""
    data = summary(results)
    test = data.get("test", {})
    made = []
    for name in ORDER:
        if name in data["metrics"]:
            cells = [data["metrics"][name], data["baseline"].get(name), test.get("metrics", {}).get(name)]
            made.append((name, *(("" if cell is None else _number(cell)) for cell in cells), MEANING[name]))
    return made  # type: ignore[return-value]


def _number(value: float) -> str:
    if not abs(value) < 1e7:
        return f"{value:.2e}"
    return f"{value:.4f}" if abs(value) < 1000 else f"{value:,.1f}"


def show(results: Results) -> None:
    """Print the table to standard output."""
    console, data = Console(highlight=False), summary(results)
    seconds, rate = data["seconds"], data["rows_per_second"]
    title = f"{results.source}: {results.rows:,} rows in {seconds:.1f} s ({rate:,.0f} rows/s)"
    table = Table(
        title=title,
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        title_justify="left",
        title_style="bold",
        header_style="bold",
    )
    table.add_column("metric", no_wrap=True)
    table.add_column("credo", justify="right", no_wrap=True)
    table.add_column(results.baseline_name, justify="right", no_wrap=True)
    if "test" in data:
        table.add_column(f"held out ({data['test']['rows']:,})", justify="right", no_wrap=True)
    wide = console.width >= 100
    if wide:
        table.add_column("meaning")
    for name, ours, base, held, meaning in rows_of(results):
        table.add_row(name, ours, base, *([held] if "test" in data else []), *([meaning] if wide else []))
    console.print(table)
    console.print(verdict(results)[0].upper() + verdict(results)[1:] + ".", markup=False)
    if results.ordered and data["metrics"] and results.session.tally.scored:
        word, value = next(iter(data["last_value_baseline"].items()))
        console.print(f"For information: repeating the last value has {word} {_number(value)}.", markup=False)
    for sentence in data.get("changes", {}).get("sentences", []):
        console.print(sentence, markup=False)


def write(folder: Path, results: Results, *, plots: bool) -> list[str]:
    """Write metrics.json and, unless the run was cut short, plots and report; returns hints to show."""
    data = summary(results)
    write_atomically(folder / "metrics.json", json_bytes(data))
    if not plots:
        return []
    session = results.session
    hints = [] if drawing.available() else [drawing.MISSING]
    images = {}
    if not hints:
        images = drawing.draw(
            session.tally,
            target=session.encoding.target,
            baseline=results.baseline_name,
            ordered=results.ordered,
            uncertain=session.uncertain,
        )
        if session.changes is not None and session.changes.rows:
            images["drift"] = drift_plot.draw(session.changes)
    for name, (image, _) in images.items():
        write_atomically(folder / "plots" / f"{name}.png", image)
    write_atomically(folder / "report.html", report.page(data, rows_of(results), images, hints).encode())
    return hints
