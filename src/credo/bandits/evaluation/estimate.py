"""An estimate of what a policy earns, and several of them side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from credo.bandits.evaluation.estimator_kinds import EstimatorName
from credo.core.text import aligned
from credo.plots import COMPACT_PALETTE, Chart, Mark, Pen

__all__ = ["INTERVALS", "Comparison", "Estimate", "IntervalName"]

IntervalName: TypeAlias = Literal["likelihood", "bootstrap", "bernstein", "sequence"]
"""The intervals: two asymptotic ones, for any distribution, and for any distribution at all times."""

INTERVALS: tuple[IntervalName, ...] = get_args(IntervalName)
"""All intervals."""

_COLORS = [COMPACT_PALETTE[name] for name in ("blue", "orange", "green", "pink", "sky", "amber", "ink")]

_HOW: dict[IntervalName, str] = {
    "likelihood": "empirical likelihood",
    "bootstrap": "bootstrap",
    "bernstein": "empirical Bernstein",
    "sequence": "confidence sequence",
}


@dataclass(frozen=True)
class Estimate:
    """An estimate of what a policy would have earned per row, in units of the reward.

    Arguments:
        value: the estimate.
        low, high: the ends of its interval.
        level: the probability with which that is to hold the truth.
        ess: how many rows with equal weights would count as much (Kish).
        rows: the rows with rewards.
        weights_max: the greatest weight pi(a | x) / p.
        on_policy: the mean reward of the log itself.
        estimator, interval: how it was estimated.
        warnings: what speaks against it, in sentences without full stops.
        clip: the bound of the weights, as given or chosen; None if there is none.
        unit: what a row is: "row", or "slate" of several.

    Example:
        >>> print(Estimate(0.5, 0.4, 0.6, 0.95, 80.0, 100, 2.0, 0.45, "dr", "bootstrap"))
        0.5 a row, 95% interval 0.4 to 0.6 (dr, bootstrap).
        The log earned 0.45 a row; its 100 rows count as 80, and the greatest weight is 2.
    """

    value: float
    low: float
    high: float
    level: float
    ess: float
    rows: int
    weights_max: float
    on_policy: float
    estimator: str
    interval: IntervalName
    warnings: tuple[str, ...] = ()
    clip: float | None = None
    unit: Literal["row", "slate"] = "row"

    def __str__(self) -> str:
        value, low, high = (f"{number:.4g}" for number in (self.value, self.low, self.high))
        said = [
            f"{value} a {self.unit}, {100 * self.level:.4g}% interval {low} to {high} "
            f"({self.estimator}, {_HOW[self.interval]}).",
            f"The log earned {self.on_policy:.4g} a {self.unit}; its {self.rows:,} {self.unit}s count as "
            f"{self.ess:,.0f}, "
            f"and the greatest weight is {self.weights_max:.3g}.",
        ]
        return "\n".join([*said, *(f"Warning: {sentence}." for sentence in self.warnings)])


@dataclass(frozen=True)
class Comparison:
    """Estimates of several policies, each by one or more estimators.

    Arguments:
        estimates: by the policy's name and the estimator.

    Example:
        >>> one = Estimate(0.5, 0.4, 0.6, 0.95, 80.0, 100, 2.0, 0.45, "dr", "bootstrap")
        >>> print(Comparison({("new", "dr"): one}))
        policy   estimator  value  low  high  rows  count as  greatest weight
        new      dr           0.5  0.4   0.6   100        80                2
        the log              0.45              100
    """

    estimates: Mapping[tuple[str, EstimatorName], Estimate]

    def __getitem__(self, key: tuple[str, EstimatorName]) -> Estimate:
        return self.estimates[key]

    def table(self) -> list[dict[str, str | float]]:
        """One dict for each estimate, for a DataFrame."""
        return [
            {
                "policy": policy,
                "estimator": estimator,
                "value": one.value,
                "low": one.low,
                "high": one.high,
                "rows": one.rows,
                "ess": one.ess,
                "weights_max": one.weights_max,
            }
            for (policy, estimator), one in self.estimates.items()
        ]

    def plot(self, path: str | Path, title: str = "") -> Path:
        """Draw the estimates with their intervals, and a line at what the log itself earned.

        Arguments:
            path: where the SVG is written; its name ends with `.svg`.
            title: the title of the figure.

        Returns:
            The path.
        """
        return self.chart(title).save(path)

    def chart(self, title: str = "") -> Chart:
        """The chart that `plot` draws."""
        estimates = list(self.estimates.values())
        places = list(range(len(estimates)))[::-1]
        colors = dict(zip(dict.fromkeys(one.estimator for one in estimates), cycle(_COLORS), strict=False))
        chart = Chart(size=(648.0, 115.0 + 26.0 * len(estimates)))
        chart.label = "reward a row; dashed: what the log earned"
        panel = chart.panels[0]
        panel.title = title or f"{100 * estimates[0].level:g}% intervals"
        panel.low = -0.7
        panel.high = len(places) - 0.3
        panel.marks = [
            Mark(place, f"{policy} ({name})")
            for place, (policy, name) in zip(places, self.estimates, strict=True)
        ]
        panel.upright([estimates[0].on_policy], Pen(COMPACT_PALETTE["grey"], 1.2, "5 3"))
        for place, one in zip(places, estimates, strict=True):
            color = colors[one.estimator]
            panel.line([one.low, one.high], [place, place], Pen(color, 2.0))
            panel.dots([one.value], [place], color, size=6.0)
        return chart

    def __str__(self) -> str:
        head = ["policy", "estimator", "value", "low", "high", "rows", "count as", "greatest weight"]
        body = [
            [
                policy,
                estimator,
                *(f"{number:.4g}" for number in (one.value, one.low, one.high)),
                f"{one.rows:,}",
                f"{one.ess:,.0f}",
                f"{one.weights_max:.3g}",
            ]
            for (policy, estimator), one in self.estimates.items()
        ]
        first = next(iter(self.estimates.values()))
        body.append(["the log", "", f"{first.on_policy:.4g}", "", "", f"{first.rows:,}", "", ""])
        said = dict.fromkeys(
            f"Warning ({policy}, {estimator}): {sentence}."
            for (policy, estimator), one in self.estimates.items()
            for sentence in one.warnings
        )
        return "\n".join([*aligned([head, *body], words=2), *said])
