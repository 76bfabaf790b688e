"""Digits 6 and 8 online, and tasks that differ (Fig. 5): does a learner learn, or does it know already?

A batch of 32 digits is classified, and then its labels are learned. In the published tasks the first two
components are turned by up to 15 degrees, and a classifier that never learns is as good as one that is fitted
to all labels so far. Other kinds of tasks need learning.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.types import Array, PyTree
from credo.experiments.engine.cell_folder import Cells
from credo.experiments.engine.experiment import Outcome, Size
from credo.experiments.engine.plain_data import Arrays, Json
from credo.experiments.engine.portions import Progress, portion
from credo.experiments.engine.quantities import Row, mean_se
from credo.experiments.pfbr.pfbr_figure import style_of
from credo.experiments.pfbr.pfbr_logistic_oracle import refits, static_right, static_weights
from credo.experiments.pfbr.pfbr_logistic_training import train_logistic
from credo.experiments.pfbr.pfbr_logistic_world import (
    BATCH,
    KINDS,
    OBSERVATIONS,
    Kind,
    digits,
    make_tasks,
)
from credo.experiments.pfbr.pfbr_methods import LOGISTIC, select
from credo.experiments.pfbr.pfbr_scores import WeightedSet
from credo.experiments.pfbr.pfbr_trials import Trial
from credo.plots import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["run"]

# Plan


@dataclass(frozen=True)
class MetaPlan:
    """What to run: tasks of each kind, rows of a task, copies of each digit, particles, kinds of tasks,
    methods, and the steps of their training."""

    tasks: int
    rows: int
    copies: int
    particles: int
    kinds: tuple[Kind, ...]
    methods: tuple[str, ...]
    steps: Mapping[str, int]


PLANS: dict[Size, MetaPlan] = {
    "quick": MetaPlan(2, 320, 2, 256, ("published", "turned"), LOGISTIC[:1], {}),
    "full": MetaPlan(
        10,
        OBSERVATIONS,
        10,
        256,
        ("published", "turned", "flipped", "zeroed"),
        LOGISTIC,
        {"PFBR, ours": 2000},
    ),
}
REFIT, STATIC = "Laplace, refitted", "static classifier"

# Run


def run(size: Size, seed: int, progress: Progress, cells: Cells | None = None) -> Outcome:
    """Classify online, with every method and on every kind of tasks."""
    plan = PLANS[size]
    data = digits(plan.copies)
    fixed = static_weights(data.train_x, data.train_y)
    rows: list[Row] = []
    series: Arrays = {}
    problem, _ = train_logistic(
        data, plan.particles, plan.steps, BATCH, seed, cells, portion(progress, 0.0, 0.2)
    )
    for number, kind in enumerate(plan.kinds):
        tasks = make_tasks(data, kind, seed, plan.tasks, limit=plan.rows)
        weights = np.sum(~np.isnan(tasks.y), axis=2)
        series["observations"] = np.cumsum(weights[0])
        truth = (jnp.asarray(tasks.x), jnp.asarray(tasks.y))
        context: dict[str, Json] = {"kind": kind, "copies": plan.copies, "rows": plan.rows}
        trial = Trial(
            f"pfbr-logistic-meta {kind}", problem, tasks.y, truth, blank, context, seed, tasks.x,
            before=foresee,
        )  # fmt: skip
        first, last = (0.2 + 0.8 * (number + k) / len(plan.kinds) for k in (0, 1))
        part = portion(progress, first, last)
        scores = trial.scores(select(*plan.methods), plan.particles, cells, part, timed=number == 0)
        right = {STATIC: static_right(fixed, tasks), REFIT: refits(tasks)}
        right |= {name: one["right"] for name, one in scores.items()}
        for name, values in right.items():
            online = np.cumsum(values * weights, axis=1) / np.cumsum(weights, axis=1)
            rows.append(Row(f"{KINDS[kind]}: accuracy, {name}", *mean_se(online[:, -1])))
            series[f"{kind}, {name}"] = online.mean(axis=0)
        for name, one in scores.items():
            loss = (one["loss"] * weights).sum(axis=1) / weights.sum(axis=1)
            rows.append(Row(f"{KINDS[kind]}: log loss, {name}", *mean_se(loss)))
            if number == 0:
                rows.append(Row(f"ms of an update with {BATCH} labels, {name}", float(one["seconds"]) * 1000))
    settings: dict[str, Json] = {
        "tasks": plan.tasks,
        "rows of a task": plan.rows,
        "batch": BATCH,
        "particles": plan.particles,
        "digits": f"1,000 real digits 6 and 8, {plan.copies} deformed copies of each; MNIST8M is not at hand",
        STATIC: "fitted once to the first part of the digits, of which none is turned",
        REFIT: "the mode of the posterior of all labels before each batch",
    }
    seeds: dict[str, Json] = {"tasks": f"numpy.random.default_rng([{seed}, 0, kind, task])", "methods": seed}
    figure = functools.partial(draw, series, plan.kinds, (STATIC, REFIT, *plan.methods))
    return Outcome(tuple(rows), settings, seeds, series, {}, figure)


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


def draw(series: Mapping[str, np.ndarray], kinds: Sequence[Kind], names: Sequence[str]) -> Figure:
    """Draw the accuracy so far, with a panel for each kind of tasks.

    Arguments:
        series: as in the outcome.
        kinds: of tasks.
        names: of the methods.
    """
    figure = new_figure()
    figure.suptitle("Digits 6 and 8 online: accuracy so far")
    panels = figure.subplots(1, len(kinds), squeeze=False)[0]
    for axes, kind in zip(panels, kinds, strict=True):
        for name in names:
            axes.plot(series["observations"], series[f"{kind}, {name}"], **style_of(name), label=name)
        axes.set_title(KINDS[kind], fontsize=11)
        axes.set(xlabel="labels seen", ylim=(0.4, 1.0))
    panels[0].set_ylabel("accuracy so far")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=10)
    return figure
