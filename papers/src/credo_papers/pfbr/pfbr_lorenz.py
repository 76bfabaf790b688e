"""Chaos seen through heavy-tailed noise: particles are compared by the log scores of their forecasts.

The posterior has no closed form, so a bootstrap filter with very many particles is the yardstick. The second
part, a hidden volatility, has an exact answer by quadrature, and few particles come close to it.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy as np

from credo.core.types import Array, PyTree
from credo.plots import PALETTE, new_figure
from credo_papers.engine.cell_folder import Cells
from credo_papers.engine.experiment import Outcome, Size
from credo_papers.engine.plain_data import Arrays, Json
from credo_papers.engine.portions import Progress, portion
from credo_papers.engine.quantities import Row, mean_se
from credo_papers.pfbr.pfbr_figure import LineStyle, style_of
from credo_papers.pfbr.pfbr_lorenz_world import (
    exact_volatility_scores,
    lorenz_problem,
    simulate_lorenz,
    simulate_volatility,
    volatility_problem,
)
from credo_papers.pfbr.pfbr_methods import METHODS, NONLINEAR
from credo_papers.pfbr.pfbr_scores import WeightedSet
from credo_papers.pfbr.pfbr_training import simulated, train_methods
from credo_papers.pfbr.pfbr_trials import Trial, rows_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["run"]

# Plan


@dataclass(frozen=True)
class LorenzPlan:
    """The plan of a run.

    Arguments:
        sequences: how many.
        length: observations of each.
        methods: each with its number of particles.
        steps: of training, by the name of the method.
        volatility: sequences and length of the hidden volatility, and numbers of particles.
    """

    sequences: int
    length: int
    methods: tuple[tuple[str, int], ...]
    volatility: tuple[int, int, tuple[int, ...]]
    steps: Mapping[str, int]


_BOOT = "bootstrap, systematic"
PLANS: dict[Size, LorenzPlan] = {
    "quick": LorenzPlan(2, 20, ((_BOOT, 256),), (2, 50, (256,)), {}),
    "full": LorenzPlan(
        10,
        100,
        (*((name, 256) for name in NONLINEAR), (_BOOT, 4096), (_BOOT, 65536)),
        (10, 500, (256, 4096)),
        {"PFBR, ours": 3000},
    ),
}

# Run


def run(size: Size, seed: int, progress: Progress, cells: Cells | None = None) -> Outcome:
    """Score the forecasts of every method."""
    plan = PLANS[size]
    results = _lorenz(plan, seed, cells, portion(progress, 0.0, 0.8))
    rows = [
        *rows_of("Lorenz-96 log score", "forecast", results),
        *rows_of("Lorenz-96 log evidence", "evidence", results),
        *rows_of("Lorenz-96 error of the mean", "rmse", results),
        *(
            Row(f"Lorenz-96 ms of an update, {name}", float(one["seconds"]) * 1e3, method=name)
            for name, one in results.items()
        ),
    ]
    count, length, numbers = plan.volatility
    observations = simulate_volatility(seed, count, length)
    exact = exact_volatility_scores(observations)
    rows.append(Row("volatility log score, exact", *mean_se(exact.mean(axis=1)), note="by quadrature"))
    for place, number in enumerate(numbers):
        trial = Trial("pfbr-volatility", volatility_problem(), observations, None, blank, {}, seed)
        part = portion(progress, 0.8 + 0.2 * place / len(numbers), 0.8 + 0.2 * (place + 1) / len(numbers))
        score = trial.scores([METHODS[_BOOT]], number, cells, part)[_BOOT]["forecast"]
        gap = (score - exact).mean(axis=1)
        rows.append(Row(f"volatility log score above exact, {_BOOT} {number:,}", *mean_se(gap)))
    series: Arrays = {"t": np.arange(1, plan.length + 1)}
    for name, scores in results.items():
        series[name] = scores["forecast"].mean(axis=0)
    settings: dict[str, Json] = {
        "sequences": plan.sequences,
        "observations": plan.length,
        "Lorenz-96": "d = 10, F = 8, a step of .1, noise .3, observations with noise .3 t(3), x_0 ~ N(m, I)",
        "volatility": "h = .98 h + N(0, .2^2), y ~ N(0, exp(h - 1))",
        "log score": "log of the forecast density before the observation, mean over steps",
        "log evidence": "what an update reports, with its own proposal",
    }
    seeds: dict[str, Json] = {"sequences": f"keys split from fold_in(key({seed}), 0)", "methods": seed}
    return Outcome(tuple(rows), settings, seeds, series, {}, functools.partial(draw, series, list(results)))


def blank(particles: WeightedSet, truth: PyTree, key: Array) -> Mapping[str, Array]:
    """No score: only forecasts are compared."""
    return {}


def judge(particles: WeightedSet, truth: Array, key: Array) -> Mapping[str, Array]:
    """The root mean squared error of a set's mean against the state."""
    gap = jnp.exp(particles.log_weights) @ particles.values - truth
    return {"rmse": jnp.sqrt(jnp.mean(gap**2))}


def _lorenz(plan: LorenzPlan, seed: int, cells: Cells | None, progress: Progress) -> dict[str, Arrays]:
    start, states, observations = simulate_lorenz(seed, plan.sequences, plan.length)
    problem = lorenz_problem()
    flows = simulated(problem, 256, 25, plan.steps)
    problem, _ = train_methods("pfbr-lorenz", problem, flows, seed, cells, portion(progress, 0.0, 0.4))
    trial = Trial("pfbr-lorenz", problem, observations, states, judge, {}, seed, None, start)
    results = {}
    for place, (name, number) in enumerate(plan.methods):
        first, last = (0.4 + 0.6 * (place + k) / len(plan.methods) for k in (0, 1))
        part = portion(progress, first, last)
        one = trial.scores([METHODS[name]], number, cells, part, timed=True)
        results[f"{name} {number:,}"] = one[name]
    return results


def draw(series: Mapping[str, np.ndarray], names: Sequence[str]) -> Figure:
    """Draw the log score of every method by time.

    Arguments:
        series: as in the outcome.
        names: the names of the methods, with their particles.
    """
    figure = new_figure()
    figure.suptitle("Lorenz-96 through heavy-tailed noise: log score of the next observation")
    axes = figure.subplots()
    running = {name: np.cumsum(series[name]) / series["t"] for name in names}
    for name in sorted(names, key=lambda name: -running[name][-1]):
        method, number = name.rsplit(" ", 1)
        style = style_of(method)
        if number in _MANY:
            style = LineStyle(color=PALETTE["ink"], linestyle=_MANY[number], linewidth=1.5)
        axes.plot(series["t"], running[name], **style, label=f"{name} ({running[name][-1]:.2f})")
    last = [curve[-1] for curve in running.values()]
    # a few methods are far below the others at first, or always
    axes.set(
        xlabel="observations t",
        ylabel="mean log score so far, nats",
        ylim=(np.median(last) - 3.0, np.max(last) + 0.5),
    )
    axes.legend(fontsize=8, ncols=2, loc="lower right", title="method, particles (mean log score)")
    return figure


_MANY = {"4,096": "--", "65,536": "-"}
"""Lines of bootstrap filters with many particles, which are black."""
