"""Digits 6 and 8 online, and tasks that differ (Fig. 5): does a learner learn, or does it know already?

A batch of 32 digits is classified, and then its labels are learned. In the published tasks the first two
components are turned by up to 15 degrees, and a classifier that never learns is as good as one that is fitted
to all labels so far. Other kinds of tasks need learning.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.types import Array, PyTree
from credo.plots import new_figure
from credo_papers.engine.cell_folder import Cells
from credo_papers.engine.experiment import Outcome, Size
from credo_papers.engine.plain_data import Arrays, Json
from credo_papers.engine.portions import Progress, portion
from credo_papers.engine.quantities import Row, mean_se
from credo_papers.pfbr.pfbr_figure import style_of
from credo_papers.pfbr.pfbr_logistic_exact import sample_posterior
from credo_papers.pfbr.pfbr_logistic_methods import LOGISTIC, logistic_methods
from credo_papers.pfbr.pfbr_logistic_oracle import STANDARD, judge_static, refits, static_weights
from credo_papers.pfbr.pfbr_logistic_prior import TASKS, fit_prior
from credo_papers.pfbr.pfbr_logistic_training import train_logistic
from credo_papers.pfbr.pfbr_logistic_world import (
    BATCH,
    KINDS,
    OBSERVATIONS,
    Kind,
    digits,
    make_tasks,
)
from credo_papers.pfbr.pfbr_scores import WeightedSet
from credo_papers.pfbr.pfbr_trials import Trial

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["run"]

# Plan


@dataclass(frozen=True)
class Case:
    """Tasks of a kind, and the prior that methods begin with.

    Arguments:
        kind: the kind of the tasks.
        empirical: whether the prior is fitted to training tasks; otherwise it is N(0, I), as published.
    """

    kind: Kind
    empirical: bool = False

    @property
    def words(self) -> str:
        """The name of the case, in words."""
        return KINDS[self.kind] + (", fitted prior" if self.empirical else "")


@dataclass(frozen=True)
class MetaPlan:
    """The plan of a run: tasks of each kind, rows of a task, copies of each digit, particles, cases, methods,
    the steps of their training, and the kinds whose exact posterior is sampled."""

    tasks: int
    rows: int
    copies: int
    particles: int
    cases: tuple[Case, ...]
    methods: tuple[str, ...]
    steps: Mapping[str, int]
    exact: tuple[Kind, ...] = ()


CASES = (*(Case(kind) for kind in KINDS), Case("turned", empirical=True))
"""The kinds of tasks with the prior of the publication, and the one that needs learning with a fitted one."""

PLANS: dict[Size, MetaPlan] = {
    "quick": MetaPlan(2, 320, 2, 256, CASES[:2], ("PFBR, our base", "EKF"), {}),
    "full": MetaPlan(10, OBSERVATIONS, 10, 256, CASES, LOGISTIC, {"PFBR, ours": 500}, ("turned",)),
}
REFIT = "Laplace, refitted"
STATIC = "static classifier"
OURS = "PFBR, our base"
EXACT = "exact posterior"
TICKS = (0.02, 0.05, 0.1, 0.2, 0.5)

# Run


def run(size: Size, seed: int, progress: Progress, cells: Cells | None = None) -> Outcome:
    """Classify online, with every method and in every case."""
    plan = PLANS[size]
    data = digits(plan.copies)
    fixed = static_weights(data.train_x, data.train_y)
    rows: list[Row] = []
    series: Arrays = {}
    problem, _ = train_logistic(
        data, plan.particles, plan.steps, BATCH, seed, cells, portion(progress, 0.0, 0.2)
    )
    for number, case in enumerate(plan.cases):
        tasks = make_tasks(data, case.kind, seed, plan.tasks, limit=plan.rows)
        truth = (jnp.asarray(tasks.x), jnp.asarray(tasks.y))
        context: dict[str, Json] = {"case": case.words, "copies": plan.copies, "rows": plan.rows}
        prior = fit_prior(data, case.kind, seed, plan.copies) if case.empirical else STANDARD
        own = replace(problem, mean=jnp.asarray(prior.mean, float), var=jnp.asarray(prior.var, float))
        trial = Trial(
            f"pfbr-logistic-meta {case.words}", own, tasks.y, truth, blank, context, seed, tasks.x,
            before=foresee,
        )  # fmt: skip
        first, last = (0.2 + 0.8 * (number + k) / len(plan.cases) for k in (0, 1))
        part = portion(progress, first, last)
        methods = logistic_methods(plan.rows, *plan.methods)
        scores = trial.scores(methods, plan.particles, cells, part, timed=number == 0)
        results = {
            STATIC: judge_static(fixed, tasks)._asdict(),
            REFIT: refits(tasks, prior)._asdict(),
        } | scores
        if case.kind in plan.exact:
            keep = Cells() if cells is None else cells
            sample = functools.partial(sample_posterior, tasks, prior, seed)
            results[EXACT] = keep.get(
                f"{trial.name}-{EXACT}",
                context | {"seed": seed, "tasks": plan.tasks},
                sample,
            )
        weights = np.sum(~np.isnan(tasks.y), axis=2)
        rows += _compare(case.words, results, weights, {method.name: method.note for method in methods})
        series["observations"] = np.cumsum(weights[0])
        for name, one in results.items():
            online = np.cumsum(one["right"] * weights, axis=1) / np.cumsum(weights, axis=1)
            series[f"{case.words}, {name}"] = online.mean(axis=0)
        rows += [
            Row(f"ms of an update with {BATCH} labels, {name}", float(one["seconds"]) * 1000)
            for name, one in scores.items()
            if number == 0
        ]
    settings: dict[str, Json] = {
        "tasks": plan.tasks,
        "rows of a task": plan.rows,
        "batch": BATCH,
        "particles": plan.particles,
        "digits": f"1,000 real digits 6 and 8, {plan.copies} deformed copies of each; MNIST8M is not at hand",
        "fitted prior": f"the moments of the weights that fit {TASKS} tasks of the training digits",
        STATIC: "fitted once to the first part of the digits, of which none is turned",
        REFIT: "the mode of the posterior of all labels before each batch",
        EXACT: "draws of that posterior, by Hamiltonian Monte Carlo",
    }
    seeds: dict[str, Json] = {
        "tasks": f"numpy.random.default_rng([{seed}, 0, kind, task])",
        "tasks of a fitted prior": f"numpy.random.default_rng([{seed}, 1, task])",
        "methods": seed,
    }
    words = tuple(case.words for case in plan.cases)
    figure = functools.partial(draw, series, words, (STATIC, REFIT, *plan.methods))
    return Outcome(tuple(rows), settings, seeds, series, {}, figure)


def _compare(
    words: str, results: Mapping[str, Arrays], weights: np.ndarray, notes: Mapping[str, str]
) -> list[Row]:
    """Accuracy and log loss over all labels of a task, and accuracies without the first batch, which a prior
    that does not know the task can but guess: by how much the refit and our base are ahead there."""
    later = weights * (np.arange(weights.shape[1]) > 0)[None, :]

    def means(score: str, counts: np.ndarray) -> dict[str, np.ndarray]:
        total = counts.sum(axis=1)
        return {name: (one[score] * counts).sum(axis=1) / total for name, one in results.items()}

    right = means("right", weights)
    after = means("right", later)
    rows = [
        Row(f"{words}: accuracy, {name}", *mean_se(values), note=notes.get(name, ""))
        for name, values in right.items()
    ]
    rows += [Row(f"{words}: after a batch, {name}", *mean_se(values)) for name, values in after.items()]
    rows += [
        Row(f"{words}: after a batch, {one} less {other}", *mean_se(after[one] - values))
        for one in (REFIT, OURS)
        for other, values in after.items()
        if one in after and one != other
    ]
    loss = means("loss", weights)
    return rows + [Row(f"{words}: log loss, {name}", *mean_se(values)) for name, values in loss.items()]


def foresee(particles: WeightedSet, truth: tuple[Array, Array], key: Array) -> Mapping[str, Array]:
    """The share of a batch that the mean of the particles' forecasts gets right, and its log loss."""
    x, y = truth
    chance = jnp.exp(particles.log_weights) @ jax.nn.sigmoid(particles.values @ x.T)
    there = ~jnp.isnan(y)
    safe = jnp.clip(chance, 1e-6, 1.0 - 1e-6)
    loss = -jnp.where(y > 0.5, jnp.log(safe), jnp.log1p(-safe))
    count = jnp.sum(there, dtype=x.dtype)
    return {
        "right": jnp.sum(there & ((chance > 0.5) == (y > 0.5)), dtype=x.dtype) / count,
        "loss": jnp.sum(jnp.where(there, loss, 0.0)) / count,
    }


def blank(particles: WeightedSet, truth: PyTree, key: Array) -> Mapping[str, Array]:
    """No score after the update: a batch is classified before."""
    return {}


def draw(series: Mapping[str, np.ndarray], cases: Sequence[str], names: Sequence[str]) -> Figure:
    """Draw the share of errors so far, with a panel for each case.

    Arguments:
        series: as in the outcome.
        cases: in words.
        names: the names of the methods.
    """
    figure = new_figure(12.0, 5.0 if len(cases) <= 2 else 9.0)
    figure.suptitle("Digits 6 and 8 online: share of errors so far")
    columns = min(3, len(cases) + 1)
    grid = figure.subplots(-(-(len(cases) + 1) // columns), columns, squeeze=False, sharex=True, sharey=True)
    panels = grid.reshape(-1)
    ends = {name: 1.0 - series[f"{cases[-1]}, {name}"][-1] for name in names}
    # in the order of the last panel, with its numbers: many lines lie on top of each other
    order = sorted(names, key=lambda name: ends[name])
    for axes, case in zip(panels, cases, strict=False):
        for name in order:
            style = style_of(name, LOGISTIC)
            if name == OURS:
                style["linewidth"] = 2.5
            label = f"{ends[name]:.4f}  {name}"
            axes.plot(series["observations"], 1.0 - series[f"{case}, {name}"], **style, label=label)
        axes.set_title(case, fontsize=11)
        axes.set(yscale="log", ylim=(0.012, 0.7))
        axes.set_yticks(TICKS, [f"{tick:g}" for tick in TICKS])
        axes.minorticks_off()
        axes.tick_params(labelbottom=True)
        axes.set_xlabel("labels seen")
    for axes in panels[len(cases) :]:
        axes.set_axis_off()
    handles = panels[0].get_legend_handles_labels()
    title = f"share of errors at the end,\n{cases[-1]}"
    panels[len(cases)].legend(*handles, loc="center", fontsize=10, title=title, title_fontsize=10)
    for row in grid:
        row[0].set_ylabel("share of errors so far")
    return figure
