"""The plots of a training: the loss with its floor, validation by step and stage, and particles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from credo.cli.html_report import Picture
from credo.flows import FlowOperator, Tasks
from credo.flows.objective import stage_loss
from credo.plots import COMPACT_PALETTE, compact_figure, legend_above

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw", "particles"]

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
    loss, floor = np.asarray(losses, float), np.asarray(floors, float)
    steps, width = np.arange(1, len(loss) + 1), min(len(loss), max(5, len(loss) // 50))
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
        below.plot(checks["step"], checks["gaussian"], color=ORANGE, marker=".", label="normal law")
        below.set_xlabel("steps")
        below.set_ylabel("cross-entropy (nats)")
        legend_above(below, 2)
    return Picture(drawing.png, "Scores on fresh sequences, which are the same at every validation.")


def _stages(stages: Mapping[str, Any]) -> Picture:
    places = np.arange(1, len(stages["loss"]) + 1)
    with compact_figure() as drawing:
        axes = drawing.panels[0]
        axes.plot(places, stages["kde"], color=BLUE, label="kernel density of the particles")
        axes.plot(places, stages["gaussian"], color=ORANGE, label="their normal law")
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

    task, sets = tasks.begin(jax.random.key(11)), list[tuple[int, list[np.ndarray]]]()
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
