"""An estimate of what a policy earns, and several of them side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from credo.bandits.evaluation.estimator_kinds import EstimatorName
from credo.core.text import aligned
from credo.plots import PALETTE, new_figure, png, style

__all__ = ["INTERVALS", "Comparison", "Estimate", "IntervalName"]

IntervalName: TypeAlias = Literal["likelihood", "bootstrap", "bernstein", "sequence"]
"""The intervals: two asymptotic ones, for any distribution, and for any distribution at all times."""

INTERVALS: tuple[IntervalName, ...] = get_args(IntervalName)
"""All intervals."""

_COLORS = [PALETTE[name] for name in ("blue", "orange", "green", "pink", "sky", "amber", "ink")]

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
            path: where the PNG is written; it needs matplotlib (`credo[plot]`).
            title: the title of the figure.

        Returns:
            The path.
        """
        target = Path(path)
        target.write_bytes(self.picture(title))
        return target

    def picture(self, title: str = "") -> bytes:
        """The bytes of the PNG."""
        estimates = list(self.estimates.values())
        places = list(range(len(estimates)))[::-1]
        colors = dict(zip(dict.fromkeys(one.estimator for one in estimates), cycle(_COLORS), strict=False))
        with style():
            figure = new_figure(9.0, 1.6 + 0.45 * len(estimates))
            axes: Any = figure.subplots()
            axes.axvline(estimates[0].on_policy, color=PALETTE["grey"], linestyle="--")
            for place, one in zip(places, estimates, strict=True):
                axes.plot([one.low, one.high], [place, place], color=colors[one.estimator], linewidth=2)
                axes.plot(one.value, place, "o", color=colors[one.estimator])
            axes.set_yticks(places, [f"{policy} ({name})" for policy, name in self.estimates])
            axes.set_xlabel("reward a row; dashed: what the log earned")
            axes.set_ylim(-0.7, len(places) - 0.3)
            axes.set_title(title or f"{100 * estimates[0].level:g}% intervals")
            return png(figure)

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
