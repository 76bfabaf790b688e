"""Particles in linear dynamical systems, where a Kalman filter knows the posterior (Fig. 4 and Table 1).

The published numbers were taken against a filter that is not set back to the prior between sequences, so
its posterior is wrong at the start of each. Both truths are scored: the exact one first, the "un-reset" one
beside the published numbers.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.records import replace
from credo.core.types import Array
from credo.datasets import linear_system
from credo.flows import LinearGaussianTasks
from credo_papers.engine.cell_folder import Cells
from credo_papers.engine.experiment import Outcome, Size
from credo_papers.engine.particle_scores import gaussian_entropy
from credo_papers.engine.plain_data import Arrays, Json
from credo_papers.engine.portions import Progress, portion
from credo_papers.engine.quantities import Row
from credo_papers.pfbr.pfbr_following import Judge
from credo_papers.pfbr.pfbr_lds_figure import draw
from credo_papers.pfbr.pfbr_lds_plan import PLANS, PUBLISHED, PUBLISHED_SECONDS, SCORES, LinearPlan
from credo_papers.pfbr.pfbr_lds_world import (
    LENGTH,
    LinearTruth,
    exact_posteriors,
    linear_problem,
    simulate_systems,
)
from credo_papers.pfbr.pfbr_methods import select
from credo_papers.pfbr.pfbr_problem import Problem
from credo_papers.pfbr.pfbr_scores import WeightedSet, score_normal
from credo_papers.pfbr.pfbr_training import Flows, train_methods
from credo_papers.pfbr.pfbr_trials import Trial, rows_of
from credo_papers.published_flow import LinearSequences

__all__ = ["run"]


def run(size: Size, seed: int, progress: Progress, cells: Cells | None = None) -> Outcome:
    """Score every method by stage, and the methods of the curve by the number of particles."""
    plan = PLANS[size]
    trials: dict[int, Trial] = {}
    rows: list[Row] = []
    tables: dict[int, dict[str, Arrays]] = {}
    series: Arrays = {"stage": np.arange(1, LENGTH + 1)}
    arrays: Arrays = {}
    share = 0.8 / len(plan.dims)
    for number, dim in enumerate(plan.dims):
        first, middle, last = (share * (number + k) for k in (0.0, 0.5, 1.0))
        problem, seconds = train_methods(
            f"pfbr-lds d={dim}",
            linear_problem(dim),
            flows(dim, plan),
            seed,
            cells,
            portion(progress, first, middle),
        )
        rows += [Row(f"d={dim} s of training, {name}", value) for name, value in seconds.items()]
        trial = trials[dim] = make_trial(dim, seed, plan, problem)
        part = portion(progress, middle, last)
        results = trial.scores(select(*plan.names(dim)), plan.particles, cells, part, timed=not plan.brief)
        rows += _table(dim, trial, results)
        tables[dim] = results
        for name, scores in results.items():
            for score in ("KDE", "old KDE", "Gaussian", "MMD2", "W2"):
                series[f"{score}, d={dim}, {name}"] = scores[score].mean(axis=0)
        series[f"entropy, d={dim}"] = _entropies(trial.truth).mean(axis=0)
    dim = min(plan.dims)
    for number, count in enumerate(plan.numbers):
        first, last = (0.8 + 0.2 * (number + k) / len(plan.numbers) for k in (0, 1))
        part = portion(progress, first, last)
        if count == plan.particles:
            known = tables[dim]
        else:
            known = trials[dim].scores(select(*plan.curve), count, cells, part)
        for name in plan.curve:
            curve = arrays.setdefault(f"KDE by particles, {name}", np.zeros(len(plan.numbers)))
            curve[number] = known[name]["KDE"].mean()
    arrays["particles"] = np.array(plan.numbers)
    settings: dict[str, Json] = {
        "dims": list(plan.dims),
        "sequences": plan.sequences,
        "observations": LENGTH,
        "particles": plan.particles,
        "draws of a cross-entropy": plan.draws,
        "steps of training": dict(plan.steps),
        "un-reset": "the posterior of a filter that goes on from the sequence before, as published",
    }
    seeds: dict[str, Json] = {"sequences": f"numpy.random.default_rng([{seed}, 0, dim])", "methods": seed}
    figure = functools.partial(draw, series, arrays, plan)
    return Outcome(tuple(rows), settings, seeds, series, arrays, figure)


def judge(draws: int) -> Judge:
    """Return the judge of a set, against both truths.

    Arguments:
        draws: for a cross-entropy.
    """

    def scores(particles: WeightedSet, truth: LinearTruth, key: Array) -> Mapping[str, Array]:
        exact = score_normal(truth.mean, truth.cov, particles, key, draws)
        old = score_normal(truth.old_mean, truth.old_cov, particles, key, draws, few=True)
        return exact | {f"old {name}": value for name, value in old.items()}

    return scores


def flows(dim: int, plan: LinearPlan) -> Flows:
    """Return what is trained for a dimension."""
    transition, observation = (jnp.asarray(matrix) for matrix in linear_system(dim))
    tasks = LinearGaussianTasks(transition, 1.0, observation, 1.0, length=LENGTH, particles=plan.particles)
    # Algorithm 1 with segments of one observation (Eq 19): first from exact priors, where an operator that
    # has learned nothing yet cannot lose its way, then from the particles that it made itself
    exact = LinearSequences(
        observation,
        1.0,
        transition,
        particles=plan.particles,
        length=LENGTH,
        segment=1,
        restart="exact",
        scored=16,
    )
    own = replace(exact, restart="particles")
    return Flows(lambda operator: tasks, plan.steps, {}, (exact, own))


def make_trial(dim: int, seed: int, plan: LinearPlan, problem: Problem) -> Trial:
    """Return the trial of a dimension."""
    observations = simulate_systems(dim, seed, plan.sequences).observations
    truth = exact_posteriors(dim, observations)
    context: dict[str, Json] = {"dim": dim, "draws": plan.draws}
    name = f"pfbr-lds d={dim}"
    return Trial(name, problem, observations, truth, judge(plan.draws), context, seed, haste=plan.brief)


def _entropies(truth: LinearTruth) -> np.ndarray:
    return np.asarray(jax.vmap(jax.vmap(gaussian_entropy))(truth.cov))


def _table(dim: int, trial: Trial, results: Mapping[str, Arrays]) -> list[Row]:
    published = PUBLISHED if dim == 10 else {}
    entropy = float(_entropies(trial.truth).mean())
    rows = [Row(f"d={dim} entropy", entropy, note="nats; no cross-entropy is lower on average")]
    for score, words in SCORES.items():
        rows += rows_of(f"d={dim} {words}", score, results, published if score == "old KDE" else None)
    for name, scores in results.items():
        if "seconds" not in scores:
            continue
        paper = None
        note = ""
        if dim == 10 and name in PUBLISHED_SECONDS:
            paper = f"{PUBLISHED_SECONDS[name] * 1000:g}"
            note = "published: by the code, of 25 observations"
        rows.append(
            Row(f"d={dim} ms, {name}", float(scores["seconds"]) * 1000, None, paper, None, note, name)
        )
    return rows
