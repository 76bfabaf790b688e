"""Arms without contexts: regret like log T for Bernoulli arms, and like sqrt T for arms on a circle.

No policy whose regret is small on all Bernoulli arms can do with less than
sum_a gap_a / KL(p_a, p_best) log T in the long run (Lai & Robbins 1985). Arms on a circle have rewards
x_a'w + N(0, 1). Neighbours of the best arm are nearly as good, and say little about which is better; so the
regret of a linear bandit grows like sqrt T as long as the circle is finer than the belief (Rusmevichientong &
Tsitsiklis 2010).
"""

from __future__ import annotations

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

import credo
from credo.bandits import UCB, Agent, PlayReport, Thompson, play
from credo.bandits.environments import BernoulliArms, Products
from credo.bandits.policies import BayesUCB, EpsilonGreedy, Policy
from credo_papers.bandits.bandit_mab_figure import draw
from credo_papers.engine.cell_folder import Cells
from credo_papers.engine.experiment import Outcome, Size
from credo_papers.engine.plain_data import Arrays, Json
from credo_papers.engine.portions import Progress
from credo_papers.engine.purposes import SCORED
from credo_papers.engine.quantities import Row, mean_se

__all__ = ["lower_bound", "run", "slope"]

# World

CHANCES = (0.4, 0.5, 0.2, 0.9)
BERNOULLI = BernoulliArms(chances=np.array(CHANCES, np.float32))
CIRCLE = Products(arms=60, size=2, likelihood=credo.Normal(1.0), turnover=0.0, distribution="sphere")


def lower_bound(chances: tuple[float, ...]) -> float:
    """The least slope of regret against log T: sum_a gap_a / KL(p_a, p_best).

    Example:
        >>> round(lower_bound((0.5, 0.9)), 3)
        0.783
    """
    best = max(chances)
    others = [p for p in chances if p < best]
    return sum(
        (best - p) / (p * math.log(p / best) + (1 - p) * math.log((1 - p) / (1 - best))) for p in others
    )


# Learner

BETA = credo.BetaBernoulli()
LINE = credo.extended_kalman(credo.Model(lambda w, x: x @ w, credo.Normal(1.0)))

# Plan

SIZES: dict[Size, tuple[int, int]] = {"quick": (20, 2000), "full": (50, 10_000)}
"""The number of runs, and their steps."""

SHOWN = (20, 200)
"""After how many decisions the posteriors are shown."""

ARMS: dict[str, Policy] = {
    "Thompson": Thompson(),
    "Bayes-UCB": BayesUCB(),
    "UCB, 1 sd": UCB(1.0),
    "UCB, 2 sd": UCB(2.0),
    "epsilon-greedy, .1": EpsilonGreedy(0.1),
}
BOUND = lower_bound(CHANCES)
ASYMPTOTE = (round(BOUND, 2), "Lai & Robbins, as T grows")
STUCK = (None, "flat, but a run may never leave a wrong arm: see its worst regret")
NOTES: dict[str, tuple[float | None, str]] = {
    "Thompson": ASYMPTOTE,
    "Bayes-UCB": ASYMPTOTE,
    "UCB, 1 sd": STUCK,
    "UCB, 2 sd": STUCK,
    "epsilon-greedy, .1": (None, "not like log T: it explores for ever"),
}
LINEAR: dict[str, Policy] = {"linear UCB": UCB(2.0), "linear Thompson": Thompson(draws=64)}

# Run


def run(size: Size, seed: int, progress: Progress, cells: Cells | None = None) -> Outcome:
    """Run every policy, on the same keys, and fit the slopes of regret over the last decade."""
    runs, steps = SIZES[size]
    key = jax.random.fold_in(jax.random.key(seed), SCORED)
    step = np.unique(np.geomspace(1, steps, 120).round().astype(int))
    series: Arrays = {"step": step}
    arrays: Arrays = {}
    rows: list[Row] = []
    slopes: list[Row] = []
    for number, (label, policy) in enumerate((ARMS | LINEAR).items()):
        progress(number / len(ARMS | LINEAR), label)
        linear = label in LINEAR
        report = (
            play(
                Agent(LINE, CIRCLE.arms, "actions", policy),
                CIRCLE,
                steps=steps,
                seeds=runs,
                key=key,
                params=jnp.zeros(2),
            )
            if linear
            else play(Agent(BETA, len(CHANCES), "arms", policy), BERNOULLI, steps=steps, seeds=runs, key=key)
        )
        regret = report.regret[:, step - 1]
        series[label] = regret.mean(axis=0)
        arrays[f"regret {label}"] = regret
        rows.append(
            Row(f"regret of {steps:,} pulls, {label}", *mean_se(regret[:, -1]), note=_spread(regret[:, -1]))
        )
        if linear:
            power = slope(np.log(step), np.log(series[label]), step)
            slopes.append(Row(f"power of T, {label}", power, None, "0.5", note="arms on a circle"))
        else:
            published, note = NOTES[label]
            fitted = [slope(np.log(step), one, step) for one in regret]
            slopes.append(Row(f"regret a unit of log T, {label}", *mean_se(fitted), published, None, note))
        if label == "Thompson":
            arrays["posteriors"] = _posteriors(report)
    settings: dict[str, Json] = {
        "chances": list(CHANCES),
        "circle": f"{CIRCLE.arms} arms on the unit circle, drawn for each run; noise variance 1",
        "runs": runs,
        "steps": steps,
        "slopes": "least squares over the last decade of T",
        "lower bound of the slope": BOUND,
        "prior": "Beta(1, 1); w ~ N(0, I)",
    }
    seeds: dict[str, Json] = {"scored": f"keys split from ({seed}, {SCORED}); nothing was tuned"}
    figure = functools.partial(draw, series, arrays, list(ARMS), list(LINEAR), CHANCES, BOUND)
    return Outcome((*slopes, *rows), settings, seeds, series, arrays, figure)


def slope(x: np.ndarray, y: np.ndarray, step: np.ndarray) -> float:
    """The slope of y against x by least squares, over the last decade of the steps.

    Example:
        >>> steps = np.geomspace(1, 1000, 50)
        >>> round(slope(np.log(steps), 3 * np.log(steps), steps), 6)
        3.0
    """
    late = step >= step[-1] / 10
    return round(float(np.polyfit(x[late], y[late], 1)[0]), 9)


def _spread(totals: np.ndarray) -> str:
    return f"sd {totals.std(ddof=1):.0f}, worst {totals.max():.0f}"


def _posteriors(report: PlayReport) -> np.ndarray:
    """The Beta posteriors in the first run, after the steps of `SHOWN` and at the end (n, K, 2)."""
    arms = report.arms[0]
    rewards = report.rewards[0]
    pulled = arms[:, None] == np.arange(len(CHANCES))
    lengths = [*SHOWN, len(arms)]
    ones = np.stack([(pulled[:n] * rewards[:n, None]).sum(0) for n in lengths])
    pulls = np.stack([pulled[:n].sum(0) for n in lengths])
    prior = np.array([BETA.a, BETA.b], dtype=float)
    posteriors: np.ndarray = np.stack([ones, pulls - ones], axis=-1) + prior
    return posteriors
