"""The results of a run: the final table, metrics.json, plots and the report."""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
from rich import box
from rich.table import Table

from credo import plots as drawing
from credo.cli import (
    bank_report,
    class_plot,
    drift_plot,
    forecast_plot,
    forecasting,
    html_report,
    importance,
    score_plots,
)
from credo.cli.flags import in_flags
from credo.cli.progress import Screen
from credo.core.extensions import extra
from credo.core.files import json_bytes, write_atomically
from credo.sessions import SeriesEncoding
from credo.sessions.run_summary import Results, Summary, number, summarize_run

__all__ = ["show", "show_report", "write", "write_plots"]

NO_PLOTS = f"matplotlib is not installed, so there are no plots: {extra('plot')}."

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
"""The metrics in the order of the table."""


# The most classes in the table of classes, and the share of rows below which a class is rare (among many
# classes, half of an equal share).
SHOWN_CLASSES = 40
RARE = 0.1


def _columns(contents: Summary) -> dict[str, Mapping[str, object]]:
    """The columns of numbers of the table of scores, by their heads."""
    learned = "credo"
    columns: dict[str, Mapping[str, object]] = {}
    if "this_run" in contents:
        run = contents["this_run"]
        columns[f"credo, this run ({run['rows']:,})"] = run["metrics"]
        learned = f"credo, all rows ({contents['rows']['scored']:,})"
    columns |= {learned: contents["metrics"], str(contents["baseline"]["name"]): contents["baseline"]}
    if "test" in contents:
        columns[f"held out ({contents['test']['rows']:,})"] = contents["test"]["metrics"]
    return columns


def _scores(contents: Summary) -> html_report.Grid:
    """The table of scores; a cell is blank if there is nothing."""
    columns = _columns(contents)
    lines: list[html_report.Line] = []
    for name, meaning in MEANING.items():
        if name in contents["metrics"]:
            cells = (column.get(name) for column in columns.values())
            numbers = tuple(number(cell) if isinstance(cell, float) else "" for cell in cells)
            lines.append(html_report.Line(name, numbers, meaning))
    return html_report.Grid(tuple(columns), lines)


def _classes(contents: Summary) -> html_report.Grid | None:
    """The table of the classes by falling numbers of rows; of many classes, the most frequent and rarest."""
    classes = contents.get("by_class")
    if not classes:
        return None
    rows = np.array([scores["rows"] for scores in classes.values()])
    names = list(classes)
    lines = []
    for c in class_plot.select_classes(rows, SHOWN_CLASSES):
        scores = classes[names[c]]
        auc = f"{number(scores['auc'])} ± {scores['auc_error']:.1g}"
        others = (number(scores["average_precision"]), number(scores["log_loss"]), number(scores["ece"]))
        lines.append(
            html_report.Line(names[c], (f"{rows[c]:,}", f"{rows[c] / rows.sum():.2%}", auc, *others))
        )
    heads = ("rows", "share", "AUC", "average precision", "log loss (nats)", "calibration error")
    return html_report.Grid(heads, lines)


def _rarest(contents: Summary) -> str | None:
    """A sentence on the rarest class, if it is rare."""
    classes = contents.get("by_class", {})
    present = {name: scores for name, scores in classes.items() if scores["rows"]}
    if len(present) < 2:
        return None
    name = min(present, key=lambda one: present[one]["rows"])
    scores = present[name]
    total = sum(one["rows"] for one in present.values())
    share = scores["rows"] / total
    if share >= min(RARE, 0.5 / len(present)):
        return None
    rows = "row" if scores["rows"] == 1 else "rows"
    return (
        f"The rarest class, {name!r} ({scores['rows']:,} {rows}, {share:.2%}), has AUC {scores['auc']:.3f}, "
        f"average precision {scores['average_precision']:.3f} and log loss {scores['log_loss']:.3f}; "
        "the report has those of every class."
    )


def _summary(results: Results) -> Summary:
    """The summary of a run in the words of the command line."""
    contents = summarize_run(results)
    contents["verdict"] = in_flags(contents["verdict"])
    return contents


def show(results: Results) -> None:
    """Print the table to standard output."""
    console = Screen()
    contents = _summary(results)
    parts = [
        f"{results.source}:",
        f"{results.rows:,} rows in {results.seconds:.1f} s ({results.rows_per_second:,.0f} rows/s)",
    ]
    if "this_run" in contents:
        parts[-1] += ","
        parts.append(f"after {contents['rows']['learned'] - results.rows:,} rows of earlier runs")
    title = " ".join(parts)
    console.print("\n".join(parts) if len(title) > console.width else title, style="bold")
    _print_grid(console, _scores(contents), "metric", wide=100)
    words = contents["verdict"]
    console.print(words[0].upper() + words[1:] + ".")
    rarest = _rarest(contents)
    if rarest is not None:
        console.print(rarest)
    if (
        "last_value_baseline" in contents
        and results.session.tally.scored
        and "the last value" not in contents["verdict"]
    ):
        word, value = next(iter(contents["last_value_baseline"].items()))
        console.print(f"For information: repeating the last value has {word} {number(value)}.")
    sentences = contents["changes"]["sentences"] if "changes" in contents else []
    for sentence in contents["bank"]["short"] if "bank" in contents else sentences:
        console.print(sentence)
    if results.importance is not None:
        console.print(importance.sentence(results.importance))
    if results.ahead is not None:
        _show_ahead(console, results)


def _show_ahead(console: Screen, results: Results) -> None:
    """Print the scores by step ahead, and the forecast after the last row."""
    assert results.ahead is not None
    tables = forecasting.grids(results.ahead)
    if "crps" in tables:
        console.print("\nCRPS by step ahead, in units of the target (lower is better):", style="bold")
        _print_grid(console, tables["crps"], "step", wide=1000)
    console.print(forecasting.verdict(results.ahead))
    console.print("\nforecast after the last row:", style="bold")
    _print_grid(console, tables["forecast"], "step", wide=1000)


def show_report(title: str, grid: html_report.Grid, sentences: list[str]) -> None:
    """Print a title, a table of scores and sentences to standard output."""
    console = Screen()
    console.print(title, style="bold")
    _print_grid(console, grid, "score", wide=90, no_wrap=True)
    for sentence in sentences:
        console.print(sentence)


def _print_grid(
    console: Screen, grid: html_report.Grid, first: str, *, wide: int, no_wrap: bool = False
) -> None:
    """Print a table whose first column is called `first`, with meanings from a width on."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    table.add_column(first, no_wrap=True)
    for head in grid.heads:
        table.add_column(head, justify="right", no_wrap=no_wrap)
    if console.width >= wide:
        table.add_column("meaning")
    for line in grid.lines:
        table.add_row(line.name, *line.numbers, *([line.meaning] if console.width >= wide else []))
    console.print(table)


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Draw without the words of matplotlib, which are about fonts and folders and not about the run."""
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


def write_plots(
    folder: Path, draw: Callable[[], dict[str, html_report.Picture]]
) -> tuple[dict[str, html_report.Picture], list[str]]:
    """Draw and write the plots, where matplotlib is installed; the plots, and the hints to show."""
    if not drawing.available():
        return {}, [NO_PLOTS]
    with _quietly():
        pictures = draw()
    for name, picture in pictures.items():
        write_atomically(folder / "plots" / f"{name}.png", picture.png)
    return pictures, []


def write(folder: Path, results: Results, *, plots: bool) -> list[str]:
    """Write metrics.json and, unless the run was cut short, plots and the report; the hints to show."""
    contents = _summary(results)
    write_atomically(folder / "metrics.json", json_bytes(contents))
    if not plots:
        return []
    pictures, hints = write_plots(folder, lambda: _draw(results, contents))
    sections = [] if results.ahead is None else forecasting.sections(results.ahead)
    sections += [importance.section(contents["importance"])] if "importance" in contents else []
    sections += bank_report.parts(contents["bank"]) if "bank" in contents else []
    page = html_report.page(contents, _scores(contents), _classes(contents), pictures, hints, sections)
    write_atomically(folder / "report.html", page.encode())
    return hints


def _draw(results: Results, contents: Summary) -> dict[str, html_report.Picture]:
    session = results.session
    ahead: dict[str, html_report.Picture] = {}
    if results.ahead is not None and isinstance(session.encoding, SeriesEncoding):
        ahead = forecast_plot.draw(results.ahead, session.encoding)
    pictures = ahead | score_plots.draw(
        session.tally,
        target=session.encoding.target,
        baseline=results.baseline_name,
        ordered=results.ordered,
        uncertain=session.uncertain,
    )
    if session.tally.scored and not session.regression:
        pictures["classes"] = class_plot.draw(session.tally, session.encoding.classes)
    if "importance" in contents:
        pictures["importance"] = importance.draw(contents["importance"])
    if "bank" in contents and session.changes is not None:
        pictures["weights"] = bank_report.draw(session.changes, session.members, session.tally.timeline())
        if bank_report.has_effects(contents["bank"]):
            pictures["effects"] = bank_report.draw_effects(contents["bank"])
    elif session.changes is not None and session.changes.rows:
        pictures["drift"] = drift_plot.draw(session.changes, session.tally.timeline())
    return pictures
