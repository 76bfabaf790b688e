"""The results of a training: the table in the terminal, report.json, the page and its plots.

The plots show the loss with its floor, validation by step and stage, and particles.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from credo.cli.html_report import Grid, Line, Picture, document
from credo.cli.results import show_report, write_plots
from credo.core.files import json_bytes, versions, write_atomically
from credo.flows import FlowOperator, History, Tasks
from credo.flows.objective import stage_loss
from credo.flows.settings import Settings
from credo.plots import COMPACT_PALETTE, compact_figure, legend_above

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["MEANING", "Contents", "contents", "show", "show_grid", "write"]

BLUE, ORANGE, GREY, SKY = (COMPACT_PALETTE[name] for name in ("blue", "orange", "grey", "sky"))

SHOWN = (0, 2, 8)
"""The stages whose particles are drawn."""

LINEAR = (1e-3, 1.0)
"""The bounds (nats over the floor) of the part around 0 where the axis of losses is not logarithmic."""

NARROW = 0.02
"""No linear axis shows less than this (nats)."""


def draw(data: Mapping[str, Any], operator: FlowOperator, tasks: Tasks[Any]) -> dict[str, Picture]:
    """All plots of a trained operator, by file name without suffix; `data` is what report.json holds."""
    pictures = {"loss": _loss(data["loss"], data["floor"])}
    if data["validation"]["step"]:
        pictures["validation"] = _validation(data["validation"])
        if len(data["stages"]["loss"]) > 1:
            pictures["stages"] = _stages(data["stages"])
    if operator.dim > 1:
        pictures["particles"] = particles(operator, tasks)
    return pictures


def _smooth(values: np.ndarray, width: int) -> np.ndarray:
    sums = np.cumsum(np.concatenate([[0.0], values]))
    ends = np.arange(1, len(values) + 1)
    starts = np.maximum(ends - width, 0)
    mean: np.ndarray = (sums[ends] - sums[starts]) / (ends - starts)
    return mean


def _loss(losses: Any, floors: Any) -> Picture:
    loss = np.asarray(losses, float)
    floor = np.asarray(floors, float)
    steps = np.arange(1, len(loss) + 1)
    width = min(len(loss), max(5, len(loss) // 50))
    known = bool(np.isfinite(floor).all())
    curve = loss - floor if known else loss
    with compact_figure() as drawing:
        axes = drawing.panels[0]
        axes.plot(steps, curve, color=SKY, linewidth=0.6, label="each step")
        axes.plot(steps, _smooth(curve, width), color=BLUE, label=f"mean of {width} steps")
        if known:
            axes.axhline(0, color=GREY, linestyle="--", linewidth=1.2, label="exact floor")
            # most of a training is near the floor, so the axis is linear there and logarithmic above
            noise = float(np.std(curve[-max(5, len(curve) // 4) :]))
            linear = float(np.clip(10 ** np.ceil(np.log10(noise + 1e-12)), *LINEAR))
            axes.set_yscale("symlog", linthresh=linear)
            axes.set_ylim(min(1.5 * float(np.min(curve)), -linear), None)
        axes.set_xlabel("steps")
        axes.set_ylabel("loss above its floor (nats)" if known else "loss (nats)")
        legend_above(axes, 3)
    words = (
        "The training loss minus the least that it can be in expectation, minus the log evidence of the same "
        "observations. It is noisy, but its mean cannot lie below 0 where densities are exact."
        if known
        else "The training loss. How low it can be is not known for these tasks."
    )
    return Picture(drawing.png, words)


def _at_least(axes: Axes, curve: np.ndarray) -> None:
    """An axis that does not stretch rounding errors over the whole picture."""
    if np.max(np.abs(curve)) < NARROW:
        axes.set_ylim(-NARROW, NARROW)


def _validation(checks: Mapping[str, Any]) -> Picture:
    known = bool(np.isfinite(checks["floor"]).all())
    curve = np.subtract(checks["loss"], checks["floor"]) if known else np.asarray(checks["loss"])
    with compact_figure((1, 1)) as drawing:
        above, below = drawing.panels
        above.plot(checks["step"], curve, color=BLUE, marker=".", label="loss")
        if known:
            above.axhline(0, color=GREY, linestyle="--", linewidth=1.2, label="exact floor")
            _at_least(above, curve)
        above.set_ylabel("nats above the floor" if known else "loss (nats)")
        legend_above(above, 2)
        below.plot(checks["step"], checks["kde"], color=BLUE, marker=".", label="kernel density")
        below.plot(checks["step"], checks["gaussian"], color=ORANGE, marker=".", label="normal distribution")
        below.set_xlabel("steps")
        below.set_ylabel("cross-entropy (nats)")
        legend_above(below, 2)
    return Picture(drawing.png, "Scores on fresh sequences, which are the same at every validation.")


def _stages(stages: Mapping[str, Any]) -> Picture:
    places = np.arange(1, len(stages["loss"]) + 1)
    with compact_figure() as drawing:
        axes = drawing.panels[0]
        axes.plot(places, stages["kde"], color=BLUE, label="kernel density of the particles")
        axes.plot(places, stages["gaussian"], color=ORANGE, label="their normal distribution")
        axes.set_xlabel("observations")
        axes.set_ylabel("cross-entropy (nats)")
        legend_above(axes, 2)
    return Picture(drawing.png, "The last validation, observation by observation.")


def particles(operator: FlowOperator, tasks: Tasks[Any]) -> Picture:
    """The first two coordinates of particles before and after some updates, on a sequence of its own."""

    @jax.jit
    def step(task: Any, key: jax.Array) -> tuple[Any, Any, jax.Array]:
        keys = jax.random.split(key)
        seen, stage = tasks.observe(task, keys[0])
        _, new = stage_loss(operator, operator.params, tasks, stage, "elbo")
        return tasks.advance(seen, stage, new, keys[1]), stage, new

    task = tasks.begin(jax.random.key(11))
    sets = list[tuple[int, list[np.ndarray]]]()
    for place in range(SHOWN[-1] + 1):
        task, stage, new = step(task, jax.random.fold_in(jax.random.key(12), place))
        if place in SHOWN:
            shown = (stage.values, new, stage.targets)
            sets.append((place + 1, [np.asarray(each)[:, :2] for each in shown]))
    with compact_figure((1,) * len(sets)) as drawing:
        drawing.figure.set_size_inches(5.4, 3.6 * len(sets))
        for axes, (place, (before, after, exact)) in zip(drawing.panels, sets, strict=True):
            axes.plot(*before.T, ".", color=GREY, alpha=0.5, markersize=4, label="before")
            if len(exact) > 1 and np.isfinite(exact).all():
                axes.plot(*exact.T, "x", color=ORANGE, markersize=4, label="exact posterior")
            axes.plot(*after.T, ".", color=BLUE, markersize=4, label="after")
            axes.set_title(f"Update {place}", fontsize=10, loc="right")
            axes.set_ylabel("second coordinate")
        drawing.panels[-1].set_xlabel("first coordinate")
        legend_above(drawing.panels[0], 3)
    return Picture(drawing.png, "Particles before an update and where the operator takes them.")


RECENT = 100
"""Over how many of the last steps the training loss is averaged."""

MEANING = {
    "training_loss": "mean loss of the last steps (nats)",
    "training_floor": "the least that it can be in expectation",
    "loss": "mean loss on fresh sequences (nats)",
    "floor": "the least that it can be in expectation, from the exact evidence of the same sequences",
    "kde": "cross-entropy from the exact posterior to the kernel density of the particles (nats)",
    "gaussian": "cross-entropy from the exact posterior to the normal distribution of the particles (nats)",
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
    """Gather the results of a training, of which this run took some seconds."""
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
    show_report(title, _grid(scores), [])


def show(data: Contents) -> None:
    """Print the table to standard output."""
    show_report(_title(data), _grid(data.scores), [data.verdict, *_notes(data)])


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
    pictures, hints = write_plots(folder, lambda: draw(data.data, operator, settings.tasks))
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
