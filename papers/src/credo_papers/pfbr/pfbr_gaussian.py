"""Particles learn the mean of a normal distribution from 100 observations (Fig. 2).

Nothing moves, so a set that is only weighed and resampled degenerates, and one that is redrawn from a kernel
density estimate grows too wide. The posterior has a closed form at every stage.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from credo.core.types import Array
from credo.flows import Plan
from credo.plots import new_figure
from credo_papers.engine.cell_folder import Cells
from credo_papers.engine.experiment import Outcome, Size
from credo_papers.engine.plain_data import Arrays, Json
from credo_papers.engine.portions import Progress, portion
from credo_papers.engine.quantities import Row, mean_se
from credo_papers.pfbr.pfbr_figure import style_of
from credo_papers.pfbr.pfbr_gaussian_world import (
    LENGTH,
    NormalTruth,
    gaussian_problem,
    later_tasks,
    mean_posteriors,
    simulate_means,
)
from credo_papers.pfbr.pfbr_methods import STATIC, select
from credo_papers.pfbr.pfbr_problem import Problem
from credo_papers.pfbr.pfbr_scores import WeightedSet, score_normal
from credo_papers.pfbr.pfbr_training import Flows, train_methods
from credo_papers.pfbr.pfbr_trials import Trial, rows_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["run"]

# Plan

STAGES = (1, 2, 5, 10, 20, 30, 50, 75, 100)
"""The stages that the table averages over."""

SCORES = {
    "KDE": "KDE",
    "Gaussian": "Gaussian",
    "MMD2": "MMD2",
    "mean": "error of the mean",
    "covariance": "error of the covariance",
    "x'AAx": "error of x'AAx",
    "product": "error of (Ax+a)'(Bx+b)",
    "W2": "sliced W2",
}


@dataclass(frozen=True)
class GaussianPlan:
    """The plan of a run: dimensions, sequences, particles, draws, methods, and the steps of their training.

    `few` is the number of sequences of methods that are too slow for all.
    """

    dims: tuple[int, ...]
    sequences: int
    particles: int
    draws: int
    methods: tuple[str, ...]
    steps: Mapping[str, int]
    few: Mapping[str, int] = field(default_factory=dict)


PLANS: dict[Size, GaussianPlan] = {
    "quick": GaussianPlan((2,), 2, 256, 500, ("exact draws", "affine map", "bootstrap"), {}),
    "full": GaussianPlan(
        (2, 3, 5, 8, 10),
        25,
        256,
        5000,
        STATIC,
        {"PFBR, ours": 3000, "PFBR, ours, no base": 3000},
        {"SVGD": 2, "Fokker-Planck flow": 2},
    ),
}
OPERATOR: dict[str, Json] = {"embedding": 0, "width": 4, "proportionate": True}
TRAINING = Plan(batch=32, every=500, stages=10)
"""The operators, and how they are trained. The set matters by its moments only: there is no embedding."""

SHOWN = (
    "exact draws",
    "PFBR, our base",
    "PFBR, ours",
    "PFBR, ours, no base",
    "stochastic EnKF",
    "tempered SMC",
    "one-pass SMC",
    "bootstrap",
    "KBR",
    "PMD",
    "SVI",
)
"""The methods of the figure, where the plan has them."""

# Run


def run(size: Size, seed: int, progress: Progress, cells: Cells | None = None) -> Outcome:
    """Score every method after every observation."""
    plan = PLANS[size]
    rows: list[Row] = []
    series: Arrays = {"stage": np.arange(1, LENGTH + 1)}
    for number, dim in enumerate(plan.dims):
        part = portion(progress, number / len(plan.dims), (number + 1) / len(plan.dims))
        problem, seconds = train_methods(
            f"pfbr-gaussian d={dim}", gaussian_problem(dim), make_flows(dim, plan), seed, cells, part
        )
        rows += [Row(f"d={dim} s of training, {name}", value) for name, value in seconds.items()]
        results = make_trial(dim, seed, plan, problem).scores(
            select(*plan.methods), plan.particles, cells, part, timed=True
        )
        picked = {name: _at_stages(scores) for name, scores in results.items()}
        entropy = 0.5 * dim * np.log(2.0 * np.pi * np.e * 9.0 / (9.0 + np.arange(1, LENGTH + 1)))
        series[f"entropy, d={dim}"] = entropy
        mean = float(entropy[np.array(STAGES) - 1].mean())
        rows.append(Row(f"d={dim} entropy", mean, note="nats, exact; mean over 9 stages, as all below"))
        for score, words in SCORES.items():
            rows += rows_of(f"d={dim} {words}", score, picked)
            for name, scores in results.items():
                series[f"{score}, d={dim}, {name}"] = scores[score].mean(axis=0)
        for score in ("KDE", "MMD2"):
            exact = results["exact draws"][score]
            for name, scores in results.items():
                # on the same sequences
                gaps = scores[score] - exact[: len(scores[score])]
                stage = int(gaps.mean(axis=0).argmax())
                words = f"d={dim} {SCORES[score]} above exact draws at the worst stage, {name}"
                rows.append(Row(words, *mean_se(gaps[:, stage]), note=f"t = {stage + 1}", method=name))
        for name, scores in results.items():
            rows.append(Row(f"d={dim} ms of an update, {name}", float(scores["seconds"]) * 1000, method=name))
    settings: dict[str, Json] = {
        "dims": list(plan.dims),
        "sequences": plan.sequences,
        "observations": LENGTH,
        "particles": plan.particles,
        "draws of a cross-entropy": plan.draws,
        "stages of the table": list(STAGES),
        "sequences of slow methods": dict(plan.few),
        "noise variance": "9; the paper prints 3, its code and data have a standard deviation of 3",
    }
    seeds: dict[str, Json] = {"sequences": f"numpy.random.default_rng([{seed}, 0, dim])", "methods": seed}
    return Outcome(tuple(rows), settings, seeds, series, {}, functools.partial(draw, series, plan))


def judge(draws: int) -> functools.partial[dict[str, Array]]:
    """Return the judge of a set, with this many draws for a cross-entropy."""
    return functools.partial(_scores, draws)


def _scores(draws: int, particles: WeightedSet, truth: NormalTruth, key: Array) -> dict[str, Array]:
    return score_normal(truth.mean, truth.cov, particles, key, draws)


def make_flows(dim: int, plan: GaussianPlan) -> Flows:
    """Return what is trained in a dimension."""
    tasks = later_tasks(dim, plan.particles)
    return Flows(lambda operator: tasks, plan.steps, OPERATOR, plan=TRAINING)


def make_trial(dim: int, seed: int, plan: GaussianPlan, problem: Problem) -> Trial:
    """Return the trial of a dimension."""
    observations = simulate_means(dim, seed, plan.sequences)
    context: dict[str, Json] = {"dim": dim, "draws": plan.draws}
    truth = mean_posteriors(observations)
    name = f"pfbr-gaussian d={dim}"
    return Trial(name, problem, observations, truth, judge(plan.draws), context, seed, few=plan.few)


def _at_stages(scores: Arrays) -> Arrays:
    places = np.array(STAGES) - 1
    return {name: values[:, places] for name, values in scores.items() if values.ndim == 2}


def draw(series: Mapping[str, np.ndarray], plan: GaussianPlan) -> Figure:
    """Draw a row of panels for each score, with a panel for each dimension.

    Arguments:
        series: as in the outcome.
        plan: what was run.
    """
    figure = new_figure()
    figure.suptitle("The mean of a normal distribution: particles against the exact posterior")
    panels = figure.subplots(3, len(plan.dims), squeeze=False, sharex=True)
    words = {"KDE": "KDE above entropy, nats", "MMD2": "squared MMD", "x'AAx": "error of x'AAx"}
    for line, (score, label) in zip(panels, words.items(), strict=True):
        for axes, dim in zip(line, plan.dims, strict=True):
            for name in (name for name in SHOWN if name in plan.methods):
                floor = series[f"entropy, d={dim}"] if score == "KDE" else 0.0
                # sets that have collapsed to copies of one particle are off the picture
                curve = np.clip(series[f"{score}, d={dim}, {name}"] - floor, 1e-4, 1e3)
                axes.plot(series["stage"], curve, **style_of(name), label=name)
            axes.set(yscale="log")
        line[0].set_ylabel(label, fontsize=9)
    for axes, dim in zip(panels[0], plan.dims, strict=True):
        axes.set_title(f"d = {dim}")
    for axes in panels[-1]:
        axes.set_xlabel("observations t")
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=9)
    return figure
