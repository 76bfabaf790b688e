"""A posterior over 50 weights from one pass over labels: test error by labels seen (Fig. 6).

The published error is the mean over particles of the error of each particle, which punishes a posterior for
being wide. The error of the mean forecast, which is what one would use, stands beside it.
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
from credo.plots import new_figure
from credo_papers.engine.cell_folder import Cells
from credo_papers.engine.experiment import Outcome, Size
from credo_papers.engine.plain_data import Arrays, Json
from credo_papers.engine.portions import Progress, portion
from credo_papers.engine.purposes import TEST
from credo_papers.engine.quantities import Row, mean_se
from credo_papers.pfbr.pfbr_figure import style_of
from credo_papers.pfbr.pfbr_logistic_methods import LOGISTIC, logistic_methods
from credo_papers.pfbr.pfbr_logistic_oracle import static_weights
from credo_papers.pfbr.pfbr_logistic_training import train_logistic
from credo_papers.pfbr.pfbr_logistic_world import FEATURES, Digits, digits
from credo_papers.pfbr.pfbr_scores import WeightedSet
from credo_papers.pfbr.pfbr_trials import Trial

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["run"]

# Plan

BATCH = 50
TICKS = (0.02, 0.05, 0.1, 0.2, 0.5)
COUNTS = (50, 100, 200, 500, 1000, 2000, 5000)


@dataclass(frozen=True)
class VariationalPlan:
    """The plan of a run: splits, batches, copies of each digit, particles, methods and steps of training."""

    splits: int
    batches: int
    copies: int
    particles: int
    methods: tuple[str, ...]
    steps: Mapping[str, int]


PLANS: dict[Size, VariationalPlan] = {
    "quick": VariationalPlan(2, 8, 1, 256, ("PFBR, our base", "EKF"), {}),
    "full": VariationalPlan(10, 100, 10, 256, LOGISTIC, {"PFBR, ours": 500}),
}
BATCH_FIT = "fit of all labels"

# Run


def run(size: Size, seed: int, progress: Progress, cells: Cells | None = None) -> Outcome:
    """Learn each split batch by batch, and classify all test digits after every batch."""
    plan = PLANS[size]
    data = digits(plan.copies)
    x, y, order = _streams(data, seed, plan)
    test = (jnp.asarray(data.test_x, float), jnp.asarray(data.test_y, float))
    context: dict[str, Json] = {"copies": plan.copies}
    judge = functools.partial(_errors, test)
    part = portion(progress, 0.0, 0.2)
    problem, _ = train_logistic(data, plan.particles, plan.steps, BATCH, seed, cells, part)
    trial = Trial("pfbr-logistic-vi", problem, y, None, judge, context, seed, x)
    methods = logistic_methods(plan.batches * BATCH, *plan.methods)
    results = trial.scores(methods, plan.particles, cells, portion(progress, 0.2, 1.0), timed=True)
    fits = [static_weights(data.train_x[rows], data.train_y[rows]) for rows in order]
    errors = [float(np.mean((data.test_x @ w > 0) != (data.test_y > 0.5))) for w in fits]
    rows = [Row(f"test error, {BATCH_FIT}", *mean_se(errors), note="the mode of the posterior, at once")]
    series: Arrays = {"labels": BATCH * np.arange(1, plan.batches + 1)}
    series[BATCH_FIT] = np.full(plan.batches, np.mean(errors))
    for name, scores in results.items():
        rows.append(
            Row(
                f"test error, mean of particles, {name}",
                *mean_se(scores["each"][:, -1]),
                note="published way",
            )
        )
    for name, scores in results.items():
        rows.append(Row(f"test error, mean forecast, {name}", *mean_se(scores["together"][:, -1])))
        series[f"each, {name}"] = scores["each"].mean(axis=0)
        series[f"together, {name}"] = scores["together"].mean(axis=0)
    rows += [Row(f"log loss, {name}", *mean_se(scores["loss"][:, -1])) for name, scores in results.items()]
    rows += [
        Row(f"ms of an update, {name}", float(scores["seconds"]) * 1e3) for name, scores in results.items()
    ]
    settings: dict[str, Json] = {
        "splits": plan.splits,
        "batches": plan.batches,
        "batch": BATCH,
        "particles": plan.particles,
        "digits": f"1,000 real digits 6 and 8, {plan.copies} deformed copies of each; MNIST8M is not at hand",
    }
    seeds: dict[str, Json] = {"splits": f"numpy.random.default_rng([{seed}, 2, split])", "methods": seed}
    figure = functools.partial(draw, series, plan.methods)
    return Outcome(tuple(rows), settings, seeds, series, {}, figure)


def _streams(data: Digits, seed: int, plan: VariationalPlan) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Batches x (n, T, 50, 50) and labels y (n, T, 50), and the rows of each split."""
    count = plan.batches * BATCH
    generators = (np.random.default_rng([seed, TEST, split]) for split in range(plan.splits))
    order = np.stack([rng.permutation(len(data.train_x))[:count] for rng in generators])
    shape = (plan.splits, plan.batches, BATCH)
    return data.train_x[order].reshape(*shape, FEATURES), data.train_y[order].reshape(shape), order


def _errors(
    test: tuple[Array, Array], particles: WeightedSet, truth: PyTree, key: Array
) -> Mapping[str, Array]:
    """Test errors of each particle and of the mean forecast, and the log loss of the latter."""
    x, y = test
    share = jnp.exp(particles.log_weights)
    logits = particles.values @ x.T
    chance = share @ jax.nn.sigmoid(logits)
    safe = jnp.clip(chance, 1e-6, 1.0 - 1e-6)
    return {
        "each": share @ jnp.mean((logits > 0) != (y > 0.5)[None, :], axis=1, dtype=share.dtype),
        "together": jnp.mean((chance > 0.5) != (y > 0.5), dtype=share.dtype),
        "loss": -jnp.mean(jnp.where(y > 0.5, jnp.log(safe), jnp.log1p(-safe))),
    }


def draw(series: Mapping[str, np.ndarray], names: Sequence[str]) -> Figure:
    """Draw both test errors by labels seen.

    Arguments:
        series: as in the outcome.
        names: the names of the methods.
    """
    figure = new_figure()
    figure.suptitle("Digits 6 and 8: test error by labels seen")
    panels = figure.subplots(1, 2, sharey=True)
    titles = {"each": "mean of the particles, as published", "together": "mean forecast"}
    for axes, (score, title) in zip(panels, titles.items(), strict=True):
        for name in names:
            axes.plot(series["labels"], series[f"{score}, {name}"], **style_of(name, LOGISTIC), label=name)
        axes.plot(series["labels"], series[BATCH_FIT], "k:", lw=1, label=BATCH_FIT)
        axes.set(title=title, xlabel="labels seen", xscale="log", yscale="log", ylim=(0.015, 0.6))
        for axis, ticks in ((axes.yaxis, TICKS), (axes.xaxis, COUNTS)):
            axis.set_ticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.minorticks_off()
    panels[0].set_ylabel("test error")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=10)
    return figure
