"""What came of a training: the table in the terminal, report.json, plots and the page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from credo import plots as drawing
from credo.cli import flow_plots
from credo.cli.html_report import Grid, Line, document
from credo.cli.results import NO_PLOTS
from credo.core.files import json_bytes, versions, write_atomically
from credo.flows import FlowOperator, History
from credo.flows.settings import Settings

__all__ = ["MEANING", "Contents", "contents", "show", "show_grid", "write"]

RECENT = 100
"""Over how many of the last steps the training loss is averaged."""

MEANING = {
    "training_loss": "mean loss of the last steps (nats)",
    "training_floor": "the least that it can be in expectation",
    "loss": "mean loss on fresh sequences (nats)",
    "floor": "the least that it can be in expectation, from the exact evidence of the same sequences",
    "kde": "cross-entropy from the exact posterior to the kernel density of the particles (nats)",
    "gaussian": "cross-entropy from the exact posterior to the normal law of the particles (nats)",
}


class Contents(NamedTuple):
    """What report.json holds, and beside it the numbers of the table, by name."""

    scores: Mapping[str, float]
    data: Mapping[str, Any]

    @property
    def verdict(self) -> str:
        """What came of it, in a sentence."""
        scores = self.scores
        kind = "fresh sequences" if "loss" in scores else "the last steps"
        loss = scores.get("loss", scores["training_loss"])
        floor = scores.get("floor", scores["training_floor"])
        if not np.isfinite(floor):
            return f"The loss on {kind} is {loss:.4g} nats an update; its floor is not known."
        return (
            f"The loss on {kind} is {loss:.4g} nats, {loss - floor:.3g} above its exact floor of {floor:.4g}."
        )


def contents(settings: Settings, history: History, seconds: float) -> Contents:
    """Gather what came of a training, of which this run took some seconds."""
    scores = {
        "training_loss": float(np.mean(history.loss[-RECENT:])),
        "training_floor": float(np.mean(history.floor[-RECENT:])),
    }
    checks = {
        name: [check[name] for check in history.checks] for name in ("loss", "floor", "kde", "gaussian")
    }
    means = {name: [float(np.mean(column)) for column in columns] for name, columns in checks.items()}
    if history.checks:
        best = int(np.nanargmin(means["loss"]))
        scores |= {name: column[best] for name, column in means.items() if np.isfinite(column[best])}
    data = {
        "settings": settings.plain,
        "steps": history.steps,
        "early": history.steps < settings.plan.steps,
        "seconds": seconds,
        "loss": history.loss,
        "floor": history.floor,
        "validation": {"step": [check["step"] for check in history.checks], **means},
        "stages": {name: columns[-1] for name, columns in checks.items() if columns},
        "retreats": history.retreats,
        "versions": versions(),
    }
    return Contents(scores, data)


def _grid(scores: Mapping[str, float]) -> Grid:
    lines = [
        Line(name.replace("_", " "), (f"{value:.4f}",), MEANING[name])
        for name, value in scores.items()
        if np.isfinite(value)
    ]
    return Grid(("value",), lines)


def show_grid(scores: Mapping[str, float], title: str) -> None:
    """Print a table of scores to standard output."""
    console = Console(highlight=False)
    console.print(title, style="bold", markup=False)
    wide = console.width >= 90
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    table.add_column("score", no_wrap=True)
    table.add_column("value", justify="right", no_wrap=True)
    if wide:
        table.add_column("meaning")
    for line in _grid(scores).lines:
        table.add_row(line.name, *line.numbers, *([line.meaning] if wide else []))
    console.print(table)


def show(data: Contents) -> None:
    """Print the table to standard output."""
    show_grid(data.scores, _title(data))
    console = Console(highlight=False)
    console.print(data.verdict, markup=False)
    for sentence in _notes(data):
        console.print(sentence, markup=False)


def _title(data: Contents) -> str:
    return f"{data.data['steps']:,} steps in {data.data['seconds']:.0f} s, compiling included"


def _notes(data: Contents) -> list[str]:
    sentences = []
    if data.data["early"]:
        sentences.append(
            f"Training stopped early, after {data.data['steps']:,} steps: validation had become no better."
        )
    if data.data["retreats"]:
        sentences.append(f"Training went back {len(data.data['retreats'])} times, where the loss had leapt.")
    return sentences


def write(folder: Path, data: Contents, operator: FlowOperator, settings: Settings) -> list[str]:
    """Write report.json, the plots and the page; the hints to show."""
    whole = {"format": 1, "scores": data.scores, **data.data, "verdict": data.verdict}
    write_atomically(folder / "report.json", json_bytes(whole))
    hints = [] if drawing.available() else [NO_PLOTS]
    pictures = {} if hints else flow_plots.draw(data.data, operator, settings.tasks)
    for name, picture in pictures.items():
        write_atomically(folder / "plots" / f"{name}.png", picture.png)
    flat = {
        f"{table}: {name}": value if len(str(value)) < 200 else f"{str(value)[:200]} ..."
        for table, values in settings.plain.items()
        for name, value in values.items()
    }
    page = document(
        type(settings.operator).__name__,
        f"A learned Bayes rule for {type(settings.tasks).__name__}: {_title(data)}.",
        data.verdict,
        _grid(data.scores),
        pictures,
        [*hints, *_notes(data)],
        flat,
        "credo flow train",
        data.data["versions"],
    )
    write_atomically(folder / "report.html", page.encode())
    return hints
