"""A posterior with two modes, and particles that must keep both (Fig. 3).

The publication shows pictures only. Here the posterior is known on a grid, so that sets have numbers: the
divergence KL(p || kernel density estimate), and the error of the mass of a mode.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.types import Array
from credo.flows import Operator, Plan, StaticTasks, pfbr
from credo.particles import resample
from credo_papers.engine.cell_folder import Cells
from credo_papers.engine.experiment import Outcome, Size
from credo_papers.engine.plain_data import Arrays, Json
from credo_papers.engine.portions import Progress, portion
from credo_papers.engine.quantities import Row, mean_se
from credo_papers.pfbr.pfbr_methods import NONLINEAR_STATIC, select
from credo_papers.pfbr.pfbr_mixture_figure import SHOWN, draw
from credo_papers.pfbr.pfbr_mixture_world import (
    LATENT,
    LENGTH,
    GridTruth,
    grid_density,
    grid_posteriors,
    mixture_problem,
    mixture_tasks,
    simulate_mixtures,
)
from credo_papers.pfbr.pfbr_problem import Problem, in_default_precision
from credo_papers.pfbr.pfbr_scores import WeightedSet, score_draws
from credo_papers.pfbr.pfbr_training import Flows, train_methods
from credo_papers.pfbr.pfbr_trials import Trial, rows_of

__all__ = ["run"]

# Plan


@dataclass(frozen=True)
class MixturePlan:
    """The plan of a run: sequences, particles, draws, methods, and the steps of their training.

    `few` is the number of sequences of methods that are too slow for all.
    """

    sequences: int
    particles: int
    draws: int
    methods: tuple[str, ...]
    steps: Mapping[str, int]
    few: Mapping[str, int] = field(default_factory=dict)


PLANS: dict[Size, MixturePlan] = {
    "quick": MixturePlan(2, 512, 500, ("PFBR, shipped", "one-pass SMC", "bootstrap, systematic"), {}),
    "full": MixturePlan(
        25,
        512,
        2000,
        NONLINEAR_STATIC,
        {"PFBR, ours, no base": 6000},
        {"SVGD": 2, "Fokker-Planck flow": 2},
    ),
}
OPERATOR: dict[str, Json] = {"steps": 3, "gradients": "along", "reweighted": True, "residual": "convex"}
TRAINING = Plan(loss="likelihood", matching=10.0, pool=128, every=500, sequences=8, stages=LENGTH)
"""The operator, and how it is trained."""

STAGES = (1, 10, 30)
SCORES = {"mass": "error of a mode's mass", "MMD2": "MMD2", "W2": "sliced W2"}
EXACT = "exact draws"

# Run


def run(size: Size, seed: int, progress: Progress, cells: Cells | None = None) -> Outcome:
    """Score every method after every observation, on the published latent and on latents of the prior."""
    plan = PLANS[size]
    rows: list[Row] = []
    series: Arrays = {"stage": np.arange(1, LENGTH + 1)}
    arrays: Arrays = {}
    problem = mixture_problem()

    def tasks(operator: Operator) -> StaticTasks:
        return mixture_tasks(pfbr(mixture_problem().model, operator, plan.particles))

    flows = Flows(tasks, plan.steps, OPERATOR, plan=TRAINING)
    training = portion(progress, 0.0, 0.2)
    problem, seconds = train_methods("pfbr-mixture", problem, flows, seed, cells, training)
    rows += [Row(f"s of training, {name}", value) for name, value in seconds.items()]
    for number, (unseen, words) in enumerate(((False, "published latent"), (True, "latents of the prior"))):
        trial = make_trial(unseen, seed, plan, problem)
        part = portion(progress, 0.2 + 0.4 * number, 0.6 + 0.4 * number)
        exact = _score_floor(in_default_precision(trial.truth))
        results = {EXACT: {name: np.asarray(values) for name, values in exact.items()}} | trial.scores(
            select(*plan.methods), plan.particles, cells, part, timed=not unseen
        )
        more, curves = _table(words, results, trial.truth)
        rows += more
        series |= curves
        if not unseen:
            arrays["density"] = grid_density(trial.observations[0])[np.array(SHOWN) - 1]
            for name, scores in results.items():
                arrays[f"particles, {name}"] = scores["values"][0, np.array(SHOWN) - 1]
    settings: dict[str, Json] = {
        "sequences": plan.sequences,
        "observations": LENGTH,
        "particles": plan.particles,
        "draws of a cross-entropy": plan.draws,
        "published latent": list(LATENT),
        "KL": "of the posterior on a grid to the kernel density estimate of the particles",
    }
    seeds: dict[str, Json] = {"sequences": f"numpy.random.default_rng([{seed}, 0, unseen])", "methods": seed}
    figure = functools.partial(draw, series, arrays, (EXACT, *plan.methods))
    return Outcome(tuple(rows), settings, seeds, series, arrays, figure)


def _table(
    words: str, results: Mapping[str, Arrays], truth: GridTruth
) -> tuple[list[Row], dict[str, np.ndarray]]:
    """The rows and the curves of a kind of sequences."""
    surprise = np.asarray(truth.surprise)
    rows: list[Row] = []
    series: dict[str, np.ndarray] = {
        f"entropy, {words}": np.asarray(truth.entropy).mean(axis=0),
        f"best normal distribution, {words}": np.asarray(truth.normal).mean(axis=0),
    }
    for name, scores in results.items():
        for score, label in (("KDE", "KL"), ("half KDE", "half-width KL")):
            divergence = scores[score] - surprise[: len(scores[score])]
            curve = divergence.mean(axis=0)
            series[f"{label}, {words}, {name}"] = curve
            rows += [
                Row(f"{words}: {label} at t={stage}, {name}", *mean_se(divergence[:, stage - 1]), method=name)
                for stage in STAGES
            ]
            worst = int(curve.argmax())
            note = f"t = {worst + 1}"
            rows.append(
                Row(
                    f"{words}: {label} at the worst stage, {name}",
                    *mean_se(divergence[:, worst]),
                    note=note,
                    method=name,
                )
            )
        series[f"mass, {words}, {name}"] = scores["mass"].mean(axis=0)
    for score, label in SCORES.items():
        rows += rows_of(f"{words}: {label}", score, results)
    rows += [
        Row(f"{words}: ms of an update, {name}", float(scores["seconds"]) * 1000, method=name)
        for name, scores in results.items()
        if "seconds" in scores
    ]
    return rows, series


def judge(particles: WeightedSet, truth: GridTruth, key: Array) -> Mapping[str, Array]:
    """The scores of a set against the grid, and equally weighted particles for the pictures."""
    values, log_weights = particles
    upper = jnp.exp(log_weights) @ (values[:, 1] > 0).astype(values.dtype)
    return score_draws(truth.draws, particles) | {
        "mass": jnp.abs(upper - truth.upper),
        "values": values[resample(key, log_weights, values.shape[0])],
    }


def _score_exact(truth: GridTruth) -> dict[str, Array]:
    """The scores of draws from the grid, as many as there are particles."""
    count = truth.exact.shape[0]
    equal = WeightedSet(truth.exact, jnp.full(count, -jnp.log(float(count)), truth.exact.dtype))
    return dict(judge(equal, truth, jax.random.key(0)))


@jax.jit
def _score_floor(truth: GridTruth) -> dict[str, Array]:
    """The scores of draws from the grid at every step of every sequence, one after the other."""
    scores: dict[str, Array] = jax.lax.map(lambda row: jax.lax.map(_score_exact, row), truth)
    return scores


def make_trial(unseen: bool, seed: int, plan: MixturePlan, problem: Problem) -> Trial:
    """Return the trial on the published latent, or on latents of the prior."""
    observations = simulate_mixtures(seed, plan.sequences, unseen)
    truth = grid_posteriors(observations, seed, plan.draws, plan.particles)
    context: dict[str, Json] = {"unseen": unseen, "draws": plan.draws}
    name = f"pfbr-mixture {'unseen' if unseen else 'published'}"
    return Trial(name, problem, observations, truth, judge, context, seed, few=plan.few)
