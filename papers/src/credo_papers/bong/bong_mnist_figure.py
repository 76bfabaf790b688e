"""The figure of `bong-mnist`: error against digits seen, NLPD, calibration and cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from credo.plots import PALETTE, new_figure
from credo_papers.bong.bong_grid import COLOURS, LINES, MNIST_CURVATURES
from credo_papers.bong.bong_mnist_published import PUBLISHED_ECE, PUBLISHED_ERROR, PUBLISHED_SECONDS
from credo_papers.bong.bong_mnist_table import PRIMARY

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw", "draw_calibration"]


_KINDS = {"": "-", ", diagonal": ":", ", full": "-."}
"""The line of a family, by the end of a cell's name; other ends are dashed."""


def _curvature(name: str) -> str:
    """The curvature in the name of a cell."""
    return name.split()[1].rstrip(",")


def draw(arrays: Mapping[str, np.ndarray], names: list[str]) -> Figure:
    """Draw every stream as a thin line or a dot, means as thick lines, and published numbers as hollow marks.

    Arguments:
        arrays: as in the outcome.
        names: the names of the cells.
    """
    figure = new_figure(15.0, 9.0)
    figure.suptitle("MNIST in one pass: rules, curvatures and what is kept of the covariance")
    upper, lower = figure.subplots(2, 3)
    for axes, curvature in zip(upper, MNIST_CURVATURES, strict=True):
        _errors(axes, arrays, [name for name in names if _curvature(name) == curvature], curvature)
    _losses(lower[0], arrays, names)
    ends = {name: int(arrays[f"{name} marks"][-1]) for name in names}
    _calibration(lower[1], arrays, ends)
    lower[1].set_title("Calibration error at the end")
    lower[1].legend(loc="lower right", ncols=3, fontsize=9.5, columnspacing=1.0, handletextpad=0.3)
    if any(f"{name} seconds" in arrays for name in names):
        _costs(lower[2], arrays, names)
    else:
        _reliability(lower[2], arrays, names)
    return figure


def draw_calibration(arrays: Mapping[str, np.ndarray], names: list[str]) -> Figure:
    """Draw the calibration errors at every number of digits, a panel each, as boxes where streams are enough.

    Arguments:
        arrays: as in the outcome.
        names: the names of the cells.
    """
    marks = sorted({mark for name in names for mark in arrays[f"{name} marks"].tolist()})
    columns = min(4, len(marks))
    lines = -(-len(marks) // columns)
    figure = new_figure(4.4 * columns + 1.0, (0.28 * len(names) + 2.2) * lines + 0.5)
    figure.suptitle("MNIST in one pass: calibration by the number of digits seen")
    panels = figure.subplots(lines, columns, squeeze=False, sharex=True, sharey=True).ravel()
    for axes, mark in zip(panels, marks, strict=False):
        same: dict[str, int] = {name: mark for name in names}
        _calibration(axes, arrays, same)
        axes.set_title(f"after {mark:,} digits", fontsize=12)
        axes.set_ylim(len(names) - 0.4, -0.6)
    for axes in panels[len(marks) :]:
        axes.remove()
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def _errors(axes: Axes, arrays: Mapping[str, np.ndarray], names: list[str], curvature: str) -> None:
    longest = 1
    for name in names:
        rule, _, kind = name.partition(f" {curvature}")
        line = _KINDS.get(kind, "--")
        t = arrays[f"{name} marks"]
        error = arrays[f"{name} {PRIMARY} error"]
        longest = max(longest, t[-1])
        axes.plot(t, error.T, line, color=COLOURS[rule], lw=0.6, alpha=0.45)
        axes.plot(t, error.mean(axis=0), line, color=COLOURS[rule], label=rule + kind)
        published = {at: value for at, value in PUBLISHED_ERROR.get(name, {}).items() if at <= t[-1]}
        axes.plot(
            list(published), list(published.values()), "o:", mfc="none", color=COLOURS[rule], lw=1, ms=6
        )
    axes.plot([], [], "o:", mfc="none", color=PALETTE["grey"], lw=1, ms=6, label="published")
    axes.set(title=f"Error on test digits, {curvature}", xlabel="digits seen t", ylabel="misclassification")
    axes.set(xlim=(0, 1.03 * longest), ylim=(0, 0.95))
    axes.legend(loc="upper right", ncols=2)


def _losses(axes: Axes, arrays: Mapping[str, np.ndarray], names: list[str]) -> None:
    for name in names:
        rule, curvature = name.split()[:2]
        if not name.endswith(curvature):
            continue
        t = arrays[f"{name} marks"]
        loss = arrays[f"{name} {PRIMARY} nlpd"]
        mean = loss.mean(axis=0)
        se = loss.std(axis=0, ddof=1) / np.sqrt(len(loss)) if len(loss) > 1 else 0 * mean
        axes.fill_between(t, mean - 2 * se, mean + 2 * se, color=COLOURS[rule], alpha=0.15, lw=0)
        axes.plot(t, mean, LINES[curvature], color=COLOURS[rule])
    for rule in dict.fromkeys(name.split()[0] for name in names):
        axes.plot([], [], color=COLOURS[rule], label=rule)
    for curvature in dict.fromkeys(map(_curvature, names)):
        axes.plot([], [], LINES[curvature], color=PALETTE["ink"], label=curvature)
    axes.set(title="NLPD on test digits, mean ± 2 se", xlabel="digits seen t", ylabel="nats", yscale="log")
    axes.set_ylim(0.15, 4.5)
    axes.set_yticks([0.2, 0.3, 0.5, 1, 2, 4], ["0.2", "0.3", "0.5", "1", "2", "4"])
    axes.set_yticks([], minor=True)
    axes.legend(loc="upper right", ncols=2)


def _calibration(axes: Axes, arrays: Mapping[str, np.ndarray], marks: Mapping[str, int]) -> None:
    """Draw the calibration errors of each cell after a number of digits, if it was scored there."""
    for place, (name, mark) in enumerate(marks.items()):
        reached = arrays[f"{name} marks"].tolist()
        if mark not in reached:
            continue
        at = reached.index(mark)
        colour = COLOURS[name.split()[0]]
        values = arrays[f"{name} {PRIMARY} ece"][:, at]
        if len(values) > 2:
            style = {"color": colour, "lw": 1.4}
            axes.boxplot(
                [values],
                positions=[place],
                orientation="horizontal",
                widths=0.6,
                showfliers=False,
                boxprops=style,
                whiskerprops=style,
                capprops=style,
                medianprops=style,
            )
        axes.plot(values, np.full(len(values), place), "o", ms=4, alpha=0.7, color=colour)
        axes.plot(arrays[f"{name} plugin ece"][:, at].mean(), place, "|", ms=14, mew=2, color=PALETTE["ink"])
        median = PUBLISHED_ECE.get(name, {}).get(mark)
        if median is not None:
            axes.plot(median, place, "s", mfc="none", ms=8, color=colour)
    axes.plot([], [], "o", color=PALETTE["grey"], ms=4, label="a seed")
    axes.plot([], [], "|", color=PALETTE["ink"], ms=14, mew=2, label="plug-in, mean")
    axes.plot([], [], "s", mfc="none", color=PALETTE["grey"], ms=8, label="published median")
    axes.set_yticks(range(len(marks)), list(marks))
    axes.set(xlabel="ECE, 15 bins", xlim=(0, None), ylim=(len(marks) + 1.4, -0.6))


def _costs(axes: Axes, arrays: Mapping[str, np.ndarray], names: list[str]) -> None:
    for place, name in enumerate(names):
        colour = COLOURS[name.split()[0]]
        axes.plot(float(arrays[f"{name} seconds"]), place, "o", color=colour, ms=8)
        if name in PUBLISHED_SECONDS:
            axes.plot(PUBLISHED_SECONDS[name], place, "s", mfc="none", color=colour, ms=8)
    axes.plot([], [], "o", color=PALETTE["grey"], ms=8, label="ours, here")
    axes.plot([], [], "s", mfc="none", color=PALETTE["grey"], ms=8, label="published, on a GPU")
    axes.set_yticks(range(len(names)), names)
    axes.set(title="Cost of 2,000 steps, compiling included", xlabel="seconds", xscale="log")
    axes.set(xlim=(1, 20_000), ylim=(len(names) + 1.4, -0.6))
    axes.set_xticks([1, 10, 100, 1000, 10_000], ["1", "10", "100", "1,000", "10,000"])
    axes.legend(loc="lower right", ncols=2, fontsize=9.5)


def _reliability(axes: Axes, arrays: Mapping[str, np.ndarray], names: list[str], bins: int = 10) -> None:
    axes.plot([0, 1], [0, 1], color=PALETTE["grey"], ls=":", lw=1.5, label="calibrated")
    for name in names:
        confidence, correct = (
            arrays[f"{name} {PRIMARY} {what}"].ravel() for what in ("confidence", "correct")
        )
        which = np.clip((confidence * bins).astype(int), 0, bins - 1)
        count = np.bincount(which, minlength=bins)
        full = count >= 10
        x, y = (np.bincount(which, values, bins)[full] / count[full] for values in (confidence, correct))
        axes.plot(x, y, LINES[_curvature(name)], marker="o", ms=4, color=COLOURS[name.split()[0]], label=name)
    axes.set(title="Reliability at the end, all seeds", xlabel="confidence", ylabel="accuracy")
    axes.set(xlim=(0, 1), ylim=(0, 1))
    axes.legend(loc="upper left", fontsize=9.5)
