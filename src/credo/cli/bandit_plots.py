"""The plots of a play: regret with its band, choices by arm, whether P(best) was true, and propensities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from credo.bandits import Report
from credo.cli.html_report import Picture
from credo.plots import COMPACT_PALETTE, compact_figure, count_rows, legend_above, thousands

__all__ = ["draw"]

BLUE, ORANGE, GREY, SKY = (COMPACT_PALETTE[name] for name in ("blue", "orange", "grey", "sky"))

MOST_LABELS = 20
"""Up to how many arms each has its number below it."""


def draw(report: Report, data: Mapping[str, Any]) -> dict[str, Picture]:
    """All plots of a report and what report.json holds, by file name without suffix."""
    return {
        "regret": _curve(data["curves"], report.rewards.shape[0]),
        "pulls": _pulls(data["pulls"]),
        "calibration": _calibration(data["calibration"]),
        "propensities": _propensities(report.propensities),
    }


def _curve(curves: Mapping[str, Any], runs: int) -> Picture:
    name = "regret" if "regret" in curves else "reward"
    curve = curves[name]
    with compact_figure() as drawing:
        axes = drawing.panels[0]
        if runs > 1:
            axes.fill_between(
                curve["steps"],
                curve["low"],
                curve["high"],
                color=SKY,
                alpha=0.35,
                linewidth=0,
                label="80% of runs",
            )
        axes.plot(curve["steps"], curve["median"], color=BLUE, label="median" if runs > 1 else name)
        axes.set_xlabel("decisions")
        axes.set_ylabel(f"cumulative {name}")
        axes.set_xlim(0, curve["steps"][-1])
        axes.set_ylim(0 if curve["low"].min() >= 0 else None, None)
        count_rows(axes)
        axes.yaxis.set_major_formatter(thousands())
        legend_above(axes, 2)
    words = (
        "How much more the best allowed arms were expected to earn than the chosen ones, summed over the "
        "decisions: the flatter, the less there is left to learn."
        if name == "regret"
        else "The rewards so far. What the best arms would have earned is not known."
    )
    return Picture(drawing.png, words)


def _pulls(pulls: np.ndarray) -> Picture:
    shares = pulls / pulls.sum(axis=1, keepdims=True)
    arms = np.arange(shares.shape[1])
    with compact_figure() as drawing:
        axes = drawing.panels[0]
        axes.bar(arms, shares.mean(axis=0), color=SKY, label="mean of the runs")
        if len(pulls) > 1:
            for number, run in enumerate(shares):
                axes.plot(arms, run, ".", color=BLUE, markersize=5, label="" if number else "a run")
        if len(arms) <= MOST_LABELS:
            axes.set_xticks(arms)
        axes.set_xlabel("arm")
        axes.set_ylabel("share of the decisions")
        legend_above(axes, 2)
    return Picture(drawing.png, "How often each arm was chosen.")


def _calibration(bins: Mapping[str, np.ndarray]) -> Picture:
    count = bins["count"]
    seen = count > 0
    claimed, best = bins["claimed"][seen] / count[seen], bins["best"][seen] / count[seen]
    with compact_figure((3, 1)) as drawing:
        drawing.figure.set_size_inches(5.4, 5.0)
        axes, below = drawing.panels
        axes.plot([0, 1], [0, 1], color=GREY, linestyle="--", linewidth=1.2, label="calibrated")
        size = 18 + 130 * np.sqrt(count[seen] / count.max())
        axes.plot(claimed, best, color=BLUE, linewidth=1.2, zorder=2)
        axes.scatter(claimed, best, s=size, color=BLUE, zorder=3, label="arms")
        axes.set_ylabel("share that was the best")
        axes.set_ylim(-0.03, 1.05)
        legend_above(axes, 2)
        below.bar((np.arange(len(count)) + 0.5) / len(count), count, width=0.9 / len(count), color=SKY)
        below.set_xlabel("probability of the choice")
        below.set_ylabel("arms")
        below.yaxis.set_major_formatter(thousands())
        below.set_xlim(0, 1.02)
    return Picture(
        drawing.png,
        "Of the arms that were to be chosen with a probability, how many were the best. Thompson sampling "
        "chooses an arm as often as it believes it to be the best, so its points should lie on the diagonal; "
        "policies that are greedy, or explore more, need not.",
    )


def _propensities(propensities: np.ndarray) -> Picture:
    steps = propensities.shape[1]
    tenths = np.array_split(np.arange(steps), min(10, steps))
    with compact_figure((1, 1)) as drawing:
        axes, below = drawing.panels
        edges = np.linspace(0.0, 1.0, 21)
        for panel, part, words in ((axes, tenths[0], "first"), (below, tenths[-1], "last")):
            counts, _ = np.histogram(propensities[:, part], bins=edges)
            panel.bar(edges[:-1] + 0.025, counts / counts.sum(), width=0.045, color=SKY)
            panel.set_ylabel("share")
            panel.set_title(f"The {words} tenth of the decisions", fontsize=10)
        below.set_xlabel("propensity of the chosen arm")
        below.set_xlim(0, 1.02)
    return Picture(
        drawing.png,
        "The probability with which the chosen arm was drawn, which off-policy evaluation divides by. The "
        f"least one is {propensities.min():.3g}.",
    )
