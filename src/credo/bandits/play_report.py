"""The record of an agent in an environment: rewards, regret, arms, and whether P(best) was true."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from credo.bandits.agent import AgentBelief
from credo.plots.figures import PALETTE, new_figure, png, style

__all__ = ["PlayReport"]


@dataclass(frozen=True)
class PlayReport:
    """The steps of S runs of T decisions, and their summary.

    Attributes:
        arms: the chosen arms (S, T).
        rewards: their rewards (S, T), in units of the report; NaN if none was known.
        regrets: how much better the best allowed arm was expected to be (S, T).
        propensities: the probability of each choice (S, T).
        log_evidence: the log density of each reward before it was learned (S, T), in nats.
        refused: how many updates were refused, because a reward was missing or a result not finite.
        calibration: for classes of probability: the sum of the probabilities of arms, how often they were
            the best, and how many there were (3, 20).
        unit: what a reward of 1 that the agent sees is worth in units of the report.
        best_constant: the mean reward a step of the best constant arm; None if it differs from run to run.
        beliefs: the last beliefs, with a leading axis S.

    Example:
        >>> import credo
        >>> from credo import bandits
        >>> agent = bandits.Agent(credo.BetaBernoulli(), arms=2, design="arms")
        >>> world = bandits.environments.BernoulliArms(chances=[0.2, 0.8])
        >>> report = bandits.play(agent, world, steps=100, seeds=3)
        >>> report.summary().splitlines()[0][:22]
        '3 runs of 100 decision'
    """

    arms: np.ndarray
    rewards: np.ndarray
    regrets: np.ndarray
    propensities: np.ndarray
    log_evidence: np.ndarray
    refused: int
    calibration: np.ndarray
    unit: float
    best_constant: float | None
    beliefs: AgentBelief[Any] = field(repr=False)

    @property
    def totals(self) -> np.ndarray:
        """The total reward of each run (S,)."""
        return np.asarray(np.nansum(self.rewards.astype(float), axis=1))

    @property
    def mean(self) -> float:
        """The mean total reward of the runs."""
        return float(self.totals.mean())

    @property
    def worst(self) -> float:
        """The least total reward of a run."""
        return float(self.totals.min())

    @property
    def regret(self) -> np.ndarray:
        """The cumulative regret (S, T)."""
        return np.asarray(np.cumsum(self.regrets.astype(float), axis=1))

    @property
    def pulls(self) -> np.ndarray:
        """The number of choices of each arm in each run (S, K), up to the largest arm that was chosen."""
        size = int(self.arms.max()) + 1
        return np.stack([np.bincount(run, minlength=size) for run in self.arms])

    def summary(self) -> str:
        """The report in a few lines."""
        runs, steps = self.rewards.shape
        spread = self.totals.std(ddof=1) if runs > 1 else 0.0
        late = max(1, steps // 10)
        lines = [
            f"{runs} runs of {steps:,} decisions",
            f"total reward       {self.mean:,.1f} mean, {spread:,.1f} sd, {self.worst:,.1f} worst",
        ]
        if not np.isnan(self.regrets).any():
            final = self.regret[:, -1]
            lines.append(f"total regret       {final.mean():,.1f} mean, {final.max():,.1f} worst")
            lines.append(
                f"regret a step      {self.regrets[:, -late:].mean():.4f} in the last {late:,} steps"
            )
        if self.best_constant is not None:
            lines.append(f"best constant arm  {self.best_constant * steps:,.1f}")
        lines.append(f"log evidence       {np.nanmean(self.log_evidence):.4f} nats a reward")
        if self.refused:
            lines.append(f"refused updates    {self.refused:,} of {runs * steps:,}")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.summary()

    def plot(self, path: str | Path, title: str = "") -> Path:
        """Draw cumulative regret with a band over the runs, pulls by arm, and P(best) against its frequency.

        Arguments:
            path: where the PNG is written.
            title: the title of the figure.

        Returns:
            The path.
        """
        target = Path(path)
        with style():
            figure = new_figure(13.0, 4.2)
            axes = figure.subplots(1, 3)
            self._draw_curve(axes[0])
            self._draw_pulls(axes[1])
            self._draw_calibration(axes[2])
            if title:
                figure.suptitle(title)
            target.write_bytes(png(figure))
        return target

    def _draw_curve(self, axes: Any) -> None:
        known = not np.isnan(self.regrets).any()
        curves = self.regret if known else np.nancumsum(self.rewards, axis=1)
        steps = np.arange(1, curves.shape[1] + 1)
        low, middle, high = np.quantile(curves, [0.1, 0.5, 0.9], axis=0)
        axes.fill_between(steps, low, high, color=PALETTE["sky"], alpha=0.4, linewidth=0, label="80% of runs")
        axes.plot(steps, middle, color=PALETTE["blue"], label="median")
        axes.set(title="Cumulative regret" if known else "Cumulative reward", xlabel="decisions")
        axes.legend(loc="upper left")

    def _draw_pulls(self, axes: Any) -> None:
        shares = self.pulls / self.rewards.shape[1]
        axes.bar(np.arange(shares.shape[1]), shares.mean(axis=0), color=PALETTE["green"])
        axes.set(title="Share of choices by arm", xlabel="arm", ylim=(0, None))

    def _draw_calibration(self, axes: Any) -> None:
        claimed, best, count = self.calibration
        seen = count > 0
        axes.plot([0, 1], [0, 1], color=PALETTE["grey"], linewidth=1)
        axes.plot(claimed[seen] / count[seen], best[seen] / count[seen], "o-", color=PALETTE["orange"])
        axes.set(title="Was the arm the best?", xlabel="probability of choice", ylabel="frequency")
