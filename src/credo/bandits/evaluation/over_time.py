"""The value of a policy from part to part of a log, beside what the log earned and what it knows.

The support of a policy in a log is told by rows without weight, effective rows, and the largest weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from credo.bandits.evaluation.estimate import Estimate, IntervalName
from credo.bandits.evaluation.estimate_warnings import effective_rows
from credo.bandits.evaluation.estimator_kinds import KINDS, EstimatorName
from credo.bandits.evaluation.evaluate_policy import evaluate_policy
from credo.bandits.evaluation.target_policies import Target
from credo.bandits.evaluation.weighed_rows import DirectModel, WeighedRows, reward_values, weigh_rows
from credo.bandits.logs import Log
from credo.core.errors import CredoError, require_integer
from credo.core.text import aligned
from credo.plots import COMPACT_PALETTE, Chart, Legend, Pen, stepped

__all__ = ["Course", "Part", "Support", "evaluate_over_time", "log_support", "support_of"]

LARGEST = 5
"""The number of largest weights that are kept."""


@dataclass(frozen=True)
class Support:
    """The support of a policy in a log: how much the log says about it. It prints as a sentence.

    Attributes:
        rows: the rows with rewards.
        unused: the share of them whose weight is 0, as the policy never chooses their arm there.
        ess: how many rows with equal weights would count as much (Kish).
        largest: the largest weights pi(a | x) / p, from the largest on.
        heaviest: the share of all weight that these carry.
        missing: the share of the policy's choices that the log never makes there; None if the log does not
            have the probabilities of all arms.

    Example:
        >>> print(Support(100, 0.25, 60.0, (4.0, 2.5), 0.065, None))
        100 rows count as 60; 25% have the weight 0; the 2 largest weights, 4 to 2.5, carry 6.5% of all.
    """

    rows: int
    unused: float
    ess: float
    largest: tuple[float, ...]
    heaviest: float
    missing: float | None

    def __str__(self) -> str:
        lost = f" The log never makes {100 * self.missing:.3g}% of its choices." if self.missing else ""
        ends = f"{self.largest[0]:.3g} to {self.largest[-1]:.3g}"
        return (
            f"{self.rows:,} rows count as {self.ess:,.0f}; {100 * self.unused:.3g}% have the weight 0; "
            f"the {len(self.largest)} largest weights, {ends}, carry "
            f"{100 * self.heaviest:.3g}% of all.{lost}"
        )


def log_support(log: Log, policy: Target) -> Support:
    """Say how much of a log speaks about a policy.

    With the weights w = pi(a | x) / p, the rows count as (sum w)^2 / sum w^2 (Kish, 1965). A policy near to
    that of the log has many effective rows; an estimate of it rests on all of them. Exact.

    Cost: O(N K).

    Arguments:
        log: N decisions with propensities. Rows without a reward are left out.
        policy: see `target_pmfs`.

    Returns:
        The shares and weights, which print as a sentence.

    Raises:
        CredoError, DataError: as `evaluate`.

    Example:
        >>> log = Log(("a", "b"), [0, 1, 0, 0], [1.0, 0.0, 1.0, 0.0], [0.5, 0.5, 0.5, 0.5])
        >>> found = log_support(log, "a")
        >>> found.unused, found.ess, found.largest[0]
        (0.25, 3.0, 2.0)
    """
    return support_of(weigh_rows(log, policy))


def support_of(weighed: WeighedRows) -> Support:
    """The support in rows that are weighed already."""
    weights = weighed.weights
    every = weighed.all_weights
    largest = np.sort(weights)[::-1][:LARGEST]
    total = float(weights.sum())
    missing = None
    if every is not None:
        missing = float(np.where(np.isinf(every), weighed.target, 0.0).sum(axis=1).mean())
    return Support(
        rows=weights.size,
        unused=float((weights == 0.0).mean()),
        ess=effective_rows(weights),
        largest=tuple(largest.tolist()),
        heaviest=float(largest.sum() / total) if total > 0.0 else 0.0,
        missing=missing,
    )


FEWEST = 20
"""The fewest rows of a part."""


class Part(NamedTuple):
    """A part of a log, from one row with a reward up to another.

    Attributes:
        first, last: the numbers of its first row and of the row after its last one, among the rows of the
            log that have rewards.
        estimate: the value of the policy there; None if the policy never chooses an arm that the log chose.
        support: what the part knows of the policy.
        on_policy: the mean reward of the log itself.

    Example:
        >>> Part(0, 10, None, Support(10, 1.0, 0.0, (0.0,), 0.0, None), 0.5).last
        10
    """

    first: int
    last: int
    estimate: Estimate | None
    support: Support
    on_policy: float


@dataclass(frozen=True)
class Course:
    """The value of a policy over the time of a log, which prints as a table.

    Attributes:
        whole: the estimate from all rows.
        support: what all rows know of the policy.
        parts: the parts, in the order of time.

    Example:
        >>> chosen = np.arange(200) % 2
        >>> log = Log(("a", "b"), chosen, chosen * 1.0, np.full(200, 0.5))
        >>> print(evaluate_over_time(log, [0.5, 0.5], parts=2, estimator="snips"))
           rows  value     low    high  the log  count as  weight 0  greatest weight
          1-100    0.5  0.4029  0.5971      0.5       100        0%                1
        101-200    0.5  0.4029  0.5971      0.5       100        0%                1
            all    0.5   0.431   0.569      0.5       200        0%                1
    """

    whole: Estimate
    support: Support
    parts: tuple[Part, ...]

    def table(self) -> list[dict[str, float]]:
        """One dict for each part, for a DataFrame; NaN if a part knows nothing of the policy."""
        return [
            {
                "first": part.first,
                "last": part.last,
                "value": np.nan if part.estimate is None else part.estimate.value,
                "low": np.nan if part.estimate is None else part.estimate.low,
                "high": np.nan if part.estimate is None else part.estimate.high,
                "on_policy": part.on_policy,
                "ess": part.support.ess,
                "unused": part.support.unused,
                "weights_max": part.support.largest[0],
            }
            for part in self.parts
        ]

    def plot(self, path: str | Path) -> Path:
        """Draw the value with its intervals and what the log earned; below, what the log knows of the policy.

        Arguments:
            path: where the SVG is written; its name ends with `.svg`.

        Returns:
            The path.
        """
        return self.chart().save(path)

    def chart(self) -> Chart:
        """The chart that `plot` draws."""
        blue, orange, grey, sky = (COMPACT_PALETTE[name] for name in ("blue", "orange", "grey", "sky"))
        edges = np.array([self.parts[0].first, *(part.last for part in self.parts)], dtype=float)
        middle = (edges[1:] + edges[:-1]) / 2.0
        columns = {name: np.array([row[name] for row in self.table()]) for name in self.table()[0]}
        value = columns["value"]
        chart = Chart((2, 1), (518.0, 374.0), low=float(edges[0]), high=float(edges[-1]))
        chart.label = "rows with rewards; above each bar: the greatest weight"
        above, below = chart.panels
        above.label = "reward a row"
        above.strip(self.whole.low, self.whole.high, sky, 0.25)
        above.across(self.whole.value, Pen(blue, 1.0), name="the policy, all rows")
        above.line(*stepped(edges, columns["on_policy"]), Pen(grey, 1.2), name="the log")
        reach = np.abs(np.stack([value - columns["low"], columns["high"] - value]))
        above.whiskers(middle, value, reach, Pen(blue, 1.4), upright=True)
        above.dots(middle, value, blue, size=4.0, name=f"the policy, {100 * self.whole.level:g}% intervals")
        above.legend = Legend(columns=3)
        shares = columns["ess"] / (columns["last"] - columns["first"])
        below.label = "share of the rows"
        below.low = 0.0
        below.high = 1.15
        below.bars(middle, shares, 0.9 * np.diff(edges), sky, name="effective rows")
        below.dots(middle, columns["unused"], orange, name="rows with weight 0")
        for place, share, weight in zip(middle, shares, columns["weights_max"], strict=True):
            below.words(float(place), float(share), f"{weight:.3g}")
        below.legend = Legend(columns=2)
        chart.count_rows()
        return chart

    def __str__(self) -> str:
        head = ["rows", "value", "low", "high", "the log", "count as", "weight 0", "greatest weight"]
        body = [
            [f"{part.first + 1:,}-{part.last:,}", *_cells(part.estimate, part.support, part.on_policy)]
            for part in self.parts
        ]
        body.append(["all", *_cells(self.whole, self.support, self.whole.on_policy)])
        return "\n".join(aligned([head, *body], words=0))


def _cells(estimate: Estimate | None, support: Support, on_policy: float) -> list[str]:
    known = () if estimate is None else (estimate.value, estimate.low, estimate.high)
    return [
        *(f"{number:.4g}" for number in known or (np.nan,) * 3),
        f"{on_policy:.4g}",
        f"{support.ess:,.0f}",
        f"{100 * support.unused:.3g}%",
        f"{support.largest[0]:.3g}",
    ]


def evaluate_over_time(  # noqa: PLR0913 - settings, each by its name
    log: Log,
    policy: Target,
    *,
    parts: int = 10,
    estimator: EstimatorName = "dr",
    model: DirectModel | None = None,
    interval: IntervalName = "likelihood",
    level: float = 0.95,
    clip: float | None = None,
    reward_range: tuple[float, float] | None = None,
    seed: int = 0,
) -> Course:
    """Estimate the value of a policy in each part of a log, in the order of its rows.

    Each part has as many rows as the others, but for one. Its value is `evaluate_policy` on its rows alone; a
    direct model is fitted once, on other rows of the whole log. So a policy whose value changes is seen to
    change, and so is a log that knows less and less of it, as that of an agent that learns. The intervals are
    of each part alone: of ten of them, one may miss where nothing changes.

    Cost: twice that of `evaluate_policy`.

    Arguments:
        log: N decisions with propensities, in the order of time. Rows without a reward are left out.
        policy: see `target_pmfs`.
        parts: how many parts, of `FEWEST` = 20 rows or more each.
        estimator, model, interval, level, clip, reward_range, seed: see `evaluate_policy`.

    Returns:
        The estimates of the parts and of the whole, with the support of each; `plot` draws them.

    Raises:
        CredoError, DataError: as `evaluate_policy`; or there are too many parts for the rows.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> chosen = rng.integers(0, 2, 1000)
        >>> rewards = chosen * (np.arange(1000) >= 500.0)  # the arm b is good in the second half
        >>> log = Log(("a", "b"), chosen, rewards, np.full(1000, 0.5))
        >>> course = evaluate_over_time(log, "b", parts=2, estimator="snips")
        >>> [part.estimate.value for part in course.parts]
        [0.0, 1.0]
    """
    require_integer("parts", parts, 1)

    def one(
        log: Log, policy: Target, model: DirectModel | None, ends: tuple[float, float] | None
    ) -> Estimate:
        return evaluate_policy(
            log,
            policy,
            estimator=estimator,
            model=model,
            interval=interval,
            level=level,
            clip=clip,
            reward_range=ends,
            seed=seed,
        )

    whole = one(log, policy, model, reward_range)
    weighed = weigh_rows(log, policy)
    rows = weighed.log.rows
    rewards = weighed.log.rewards
    if rows < FEWEST * parts:
        raise CredoError(
            f"parts must be at most {max(rows // FEWEST, 1)}, so that each has {FEWEST} rows with rewards or "
            f"more; got {parts}, and there are {rows:,} rewards.",
            field="parts",
        )
    values = None
    if KINDS[estimator].models:
        values = reward_values(weighed, model, before=interval == "sequence", seed=seed)
    if interval in ("bernstein", "sequence") and reward_range is None:
        reward_range = float(rewards.min()), float(rewards.max())
    edges = np.linspace(0, rows, parts + 1).astype(int)
    found = []
    for first, last in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        here = slice(first, last)
        part = weighed.take(here)
        estimate = None
        if not KINDS[estimator].weighs or (part.weights > 0).any():
            estimate = one(part.log, part.target, None if values is None else values[here], reward_range)
        found.append(Part(first, last, estimate, support_of(part), float(rewards[here].mean())))
    return Course(whole, support_of(weighed), tuple(found))
