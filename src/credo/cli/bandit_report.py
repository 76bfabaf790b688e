"""The results of a play: the table in the terminal, report.json, plots and the page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from credo.bandits import PlayReport
from credo.cli.html_report import Grid, Line, Picture, document
from credo.cli.results import show_report, write_plots
from credo.core.files import json_bytes, versions, write_atomically
from credo.plots import COMPACT_PALETTE, compact_figure, count_rows, legend_above, thousands

__all__ = ["Contents", "contents", "draw", "show", "write"]

BLUE, ORANGE, GREY, SKY = (COMPACT_PALETTE[name] for name in ("blue", "orange", "grey", "sky"))

MOST_LABELS = 20
"""Up to how many arms each has its number below it."""


def draw(report: PlayReport, data: Mapping[str, Any]) -> dict[str, Picture]:
    """All plots of a report and what report.json holds, by file name without suffix."""
    return {
        "regret": _mean_curve(data["curves"], report.rewards.shape[0]),
        "pulls": _pulls(data["pulls"]),
        "calibration": _calibration(data["calibration"]),
        "propensities": _propensities(report.propensities),
    }


def _mean_curve(curves: Mapping[str, Any], runs: int) -> Picture:
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
    claimed = bins["claimed"][seen] / count[seen]
    best = bins["best"][seen] / count[seen]
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


POINTS = 200
"""At how many steps the curves stand in report.json."""


class Contents(NamedTuple):
    """What report.json holds; `scores` are the table's numbers by name: mean, sd and worst of the runs."""

    settings: Mapping[str, Any]
    scores: Mapping[str, Mapping[str, float]]
    data: Mapping[str, Any]

    @property
    def verdict(self) -> str:
        """What came of it, in a sentence."""
        total = self.scores["total_reward"]
        best = self.data["best_constant"]
        steps = self.settings["steps"]
        words = f"A decision earned {total['mean'] / steps:.4g} on average"
        if best is not None:
            words += f"; always choosing the best constant arm earns {best / steps:.4g}"
        if "total_regret" in self.scores:
            words += f"; regret was {self.data['late_regret']:.4g} a decision in the last tenth"
        return words + "."


_MEANING = {
    "total_reward": "sum of the rewards of a run",
    "total_regret": "how much more the best arms were expected to earn",
    "log_evidence": "log density of a reward before it was learned (nats)",
}


def contents(report: PlayReport, arms: int, settings: Mapping[str, Any], seconds: float) -> Contents:
    """Gather the results of a play."""
    runs, steps = report.rewards.shape
    scores = {"total_reward": _score(report.totals, worst=np.min)}
    curves = {"reward": _curve(np.nancumsum(report.rewards.astype(float), axis=1))}
    late = None
    if not np.isnan(report.regrets).any():
        scores["total_regret"] = _score(report.regret[:, -1], worst=np.max)
        curves["regret"] = _curve(report.regret)
        late = float(report.regrets[:, -max(1, steps // 10) :].mean())
    scores["log_evidence"] = _score(np.nanmean(report.log_evidence, axis=1), worst=np.min)
    pulls = np.stack([np.bincount(run, minlength=arms) for run in report.arms])
    counts, edges = np.histogram(report.propensities, bins=20, range=(0.0, 1.0))
    claimed, best, seen = report.calibration
    data = {
        "seconds": seconds,
        "decisions_per_second": runs * steps / seconds,
        "best_constant": None if report.best_constant is None else report.best_constant * steps,
        "late_regret": late,
        "refused": report.refused,
        "totals": report.totals,
        "curves": curves,
        "pulls": pulls,
        "calibration": {"claimed": claimed, "best": best, "count": seen},
        "propensities": {"edges": edges, "counts": counts, "least": float(report.propensities.min())},
        "versions": versions(),
    }
    return Contents(settings, scores, data)


def _score(values: np.ndarray, worst: Any) -> dict[str, float]:
    spread = float(values.std(ddof=1)) if len(values) > 1 else 0.0
    return {"mean": float(values.mean()), "sd": spread, "worst": float(worst(values))}


def _curve(values: np.ndarray) -> dict[str, np.ndarray]:
    """Quantiles over the runs, at some steps."""
    steps = np.unique(np.linspace(1, values.shape[1], min(POINTS, values.shape[1])).astype(int))
    low, middle, high = np.quantile(values[:, steps - 1], [0.1, 0.5, 0.9], axis=0)
    return {"steps": steps, "low": low, "median": middle, "high": high, "mean": values[:, steps - 1].mean(0)}


def _grid(data: Contents) -> Grid:
    best = data.data["best_constant"]
    lines = [
        Line(name.replace("_", " "), tuple(_number(value) for value in score.values()), _MEANING[name])
        for name, score in data.scores.items()
    ]
    if best is not None:
        lines.insert(1, Line("best constant arm", (_number(best), "", ""), "the arm with the best mean"))
    return Grid(("mean", "sd", "worst"), lines)


def _number(value: float) -> str:
    if abs(value) >= 100:
        return f"{value:,.1f}"
    return f"{value:.4g}"


def _title(data: Contents) -> str:
    settings = data.settings
    numbers = data.data
    runs = f"{settings['seeds']} run{'s'[: settings['seeds'] != 1]}"
    return (
        f"{runs} of {settings['steps']:,} decisions in {numbers['seconds']:.1f} s, compiling included "
        f"({numbers['decisions_per_second']:,.0f} decisions/s)"
    )


def show(data: Contents) -> None:
    """Print the table to standard output."""
    show_report(f"{data.settings['environment']}: {_title(data)}", _grid(data), [data.verdict, *_notes(data)])


def _notes(data: Contents) -> list[str]:
    if not data.data["refused"]:
        return []
    total = data.settings["seeds"] * data.settings["steps"]
    return [
        f"{data.data['refused']:,} of {total:,} updates were refused: the reward was missing or not usable."
    ]


def write(folder: Path, report: PlayReport, data: Contents) -> list[str]:
    """Write report.json, the plots and the page; the hints to show."""
    whole = {"format": 1, "settings": data.settings, "scores": data.scores, **data.data}
    write_atomically(folder / "report.json", json_bytes({**_plain(whole), "verdict": data.verdict}))
    pictures, hints = write_plots(folder, lambda: draw(report, data.data))
    page = document(
        data.settings["environment"],
        f"A bandit: {_title(data)}.",
        data.verdict,
        _grid(data),
        pictures,
        [*hints, *_notes(data)],
        data.settings,
        "credo bandit run",
        data.data["versions"],
    )
    write_atomically(folder / "report.html", page.encode())
    return hints


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value
