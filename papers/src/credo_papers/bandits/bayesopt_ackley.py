"""Bayesian optimisation of an Ackley-like function with ten evaluations, around features and networks.

Each method starts from three points that are spread evenly, and then asks its learner where to look. A seed
counts as found where the best of ten values lies within 2% of the range from the top. The publication (a
talk) shows plots only.
"""

from __future__ import annotations

import functools
from importlib.util import find_spec

import jax
import numpy as np

from credo_papers.bandits.bayesopt_ackley_figure import draw
from credo_papers.bandits.bayesopt_ackley_learner import beliefs, encode, play
from credo_papers.bandits.bayesopt_ackley_peer import gaussian_process
from credo_papers.bandits.bayesopt_ackley_plan import (
    EVALUATIONS,
    FEATURE_NOISE,
    FEATURES,
    INITIAL,
    INPUT_VAR,
    LENGTHS,
    METHODS,
    NETWORK_LENGTHS,
    NETWORK_NOISE,
    PANELS,
    RANK,
    SEEDS,
    WIDTH,
)
from credo_papers.bandits.bayesopt_ackley_world import HIGH, LOW, NEAR, TOP, ackley, within
from credo_papers.engine.cell_folder import Cells
from credo_papers.engine.experiment import Outcome, Size
from credo_papers.engine.plain_data import Arrays, Json
from credo_papers.engine.portions import Progress
from credo_papers.engine.purposes import SCORED
from credo_papers.engine.quantities import Row, mean_se

__all__ = ["run"]


def run(size: Size, seed: int, progress: Progress, cells: Cells | None = None) -> Outcome:
    """Search with every method from the same keys, beside points at random and a Gaussian process."""
    count = SEEDS[size]
    methods = [method for method in METHODS if size == "full" or method.quick]
    keys = jax.random.split(jax.random.fold_in(jax.random.key(seed), SCORED), count)
    rng = np.random.default_rng([seed, SCORED])
    values = {"points at random": np.asarray(ackley(rng.uniform(LOW, HIGH, (count, EVALUATIONS))))}
    notes = {"points at random": ""}
    grid = np.linspace(LOW, HIGH, 401)
    arrays: Arrays = {"grid": grid, "truth": np.asarray(ackley(grid)), "panels": np.array(PANELS)}
    for number, method in enumerate(methods):
        progress(number / (len(methods) + 1), method.label)
        points, found = play(method, keys)
        mean, sd = beliefs(method, keys[0], points[0], found[0], np.array(PANELS, np.int32), encode(grid))
        values[method.label] = np.asarray(found)
        notes[method.label] = method.note
        arrays[f"x {method.label}"] = LOW + (HIGH - LOW) * (np.asarray(points) + 1.0) / 2.0
        arrays[f"mean {method.label}"] = np.asarray(mean)
        arrays[f"sd {method.label}"] = np.asarray(sd)
    if find_spec("sklearn") is not None:
        progress(len(methods) / (len(methods) + 1), "a Gaussian process")
        name = "Gaussian process, UCB"
        values[name] = np.stack([gaussian_process(np.random.default_rng([seed, i])) for i in range(count)])
        notes[name] = "the peer: scikit-learn, length and noise by evidence"
    series: Arrays = {"evaluation": np.arange(1, EVALUATIONS + 1)}
    rows = []
    for label, found in values.items():
        arrays[f"values {label}"] = found
        series[label] = within(found).mean(axis=0)
        rows.append(Row(f"found, of {count}: {label}", int(within(found)[:, -1].sum()), note=notes[label]))
    for label, found in values.items():
        gap = 100.0 * (TOP - found.max(axis=1)) / TOP
        note = f"worst {gap.max():.1f}"
        rows.append(Row(f"gap to the top in % of the range: {label}", *mean_se(gap), None, None, note))
    settings: dict[str, Json] = {
        "function": "Ackley's function of two variables along the line where the second is 0, on [-4, 4]",
        "top": TOP,
        "evaluations": EVALUATIONS,
        "initial": INITIAL,
        "found": f"within {NEAR:g} of the range",
        "random features": {"lengths": list(LENGTHS), "noise": FEATURE_NOISE, "features": FEATURES},
        "sine networks": {
            "lengths": list(NETWORK_LENGTHS),
            "noise": NETWORK_NOISE,
            "width": WIDTH,
            "rank": RANK,
            "input_var": INPUT_VAR,
        },
    }
    seeds: dict[str, Json] = {
        "scored": f"jax.random.split(jax.random.fold_in(jax.random.key({seed}), {SCORED}), {count})",
        "tuning": "jax.random.key(1000) to jax.random.key(1059), by hand; not scored",
        "figure": "the first scored key",
    }
    labels = tuple(method.label for method in methods)
    return Outcome(
        tuple(rows), settings, seeds, series, arrays, functools.partial(draw, series, arrays, labels)
    )
