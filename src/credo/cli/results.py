"""The results of a run: the final table, metrics.json, plots and the report."""

from __future__ import annotations

from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from credo import plots as drawing
from credo.cli import drift_plot, report, score_plots
from credo.cli.summary import Results, Summary, number, summary
from credo.core.files import json_bytes, write_atomically

__all__ = ["show", "write"]

NO_PLOTS = "matplotlib is not installed, so there are no plots: pip install 'credo[plot]'."

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
"""The metrics in the order of the table."""


def _lines(contents: Summary) -> list[report.Line]:
    """The lines of the table; a cell is blank where there is nothing."""
    test: dict[str, float] = contents["test"]["metrics"] if "test" in contents else {}
    lines: list[report.Line] = []
    for name, meaning in MEANING.items():
        if name in contents["metrics"]:
            base = contents["baseline"].get(name)
            beside = number(base) if isinstance(base, float) else ""
            held_out = number(test[name]) if name in test else ""
            lines.append(report.Line(name, number(contents["metrics"][name]), beside, held_out, meaning))
    return lines


def show(results: Results) -> None:
    """Print the table to standard output."""
    console, contents = Console(highlight=False), summary(results)
    title = (
        f"{results.source}: {results.rows:,} rows in {results.seconds:.1f} s "
        f"({results.rows_per_second:,.0f} rows/s)"
    )
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
    tested = "test" in contents
    if tested:
        table.add_column(f"held out ({contents['test']['rows']:,})", justify="right", no_wrap=True)
    wide = console.width >= 100
    if wide:
        table.add_column("meaning")
    for line in _lines(contents):
        cells = [line.name, line.ours, line.baseline]
        cells += ([line.test] if tested else []) + ([line.meaning] if wide else [])
        table.add_row(*cells)
    console.print(table)
    words = contents["verdict"]
    console.print(words[0].upper() + words[1:] + ".", markup=False)
    if "last_value_baseline" in contents and results.session.tally.scored:
        word, value = next(iter(contents["last_value_baseline"].items()))
        console.print(f"For information: repeating the last value has {word} {number(value)}.", markup=False)
    for sentence in contents["changes"]["sentences"] if "changes" in contents else []:
        console.print(sentence, markup=False)


def write(folder: Path, results: Results, *, plots: bool) -> list[str]:
    """Write metrics.json and, unless the run was cut short, plots and the report.

    Arguments:
        folder: the folder to write to.
        results: the results of the run.
        plots: whether to draw plots and write the report.

    Returns:
        Hints to show.
    """
    contents = summary(results)
    write_atomically(folder / "metrics.json", json_bytes(contents))
    if not plots:
        return []
    hints = [] if drawing.available() else [NO_PLOTS]
    pictures = {} if hints else _draw(results)
    for name, picture in pictures.items():
        write_atomically(folder / "plots" / f"{name}.png", picture.png)
    page = report.page(contents, _lines(contents), pictures, hints)
    write_atomically(folder / "report.html", page.encode())
    return hints


def _draw(results: Results) -> dict[str, report.Picture]:
    session = results.session
    pictures = score_plots.draw(
        session.tally,
        target=session.encoding.target,
        baseline=results.baseline_name,
        ordered=results.ordered,
        uncertain=session.uncertain,
    )
    if session.changes is not None and session.changes.rows:
        pictures["drift"] = drift_plot.draw(session.changes)
    return pictures
