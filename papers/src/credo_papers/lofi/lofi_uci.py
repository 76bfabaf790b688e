"""Regressions of UCI in one pass: low-rank filters between the diagonal and the full extended Kalman filter.

A network with one hidden layer of 50 units learns each training set row by row, every row once, and is
scored on the test rows. There are 20 random divisions, with 90% for training. Inputs and targets are
standardised by the training rows; errors are in the unit of the target.

The hyper-parameters are chosen again for each division and learner, from the training rows of the division
alone. Each setting learns the first 1,000 training rows, and the one with the highest log evidence on the
second half of them learns the whole training set, from the start. Test rows take no part. The noise variance
is chosen first, then the variances of the prior.

Published numbers: Chang et al. 2023 (LOFI, arXiv 2305.19535).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from credo_papers.engine.cell_folder import Cells
from credo_papers.engine.experiment import Outcome, Size
from credo_papers.engine.plain_data import Arrays, Json
from credo_papers.engine.portions import Progress, portion
from credo_papers.engine.quantities import Row, mean_se
from credo_papers.engine.sweep import Setting, sweep
from credo_papers.lofi.lofi_uci_figure import draw
from credo_papers.lofi.lofi_uci_learner import ACTIVATION, HIDDEN, build, make_program
from credo_papers.lofi.lofi_uci_plan import (
    FILTER_SEARCH,
    FILTERS,
    LEARNERS,
    PLANS,
    PUBLISHED,
    REPLAY_SEARCH,
    TUNING_ROWS,
    UCIPlan,
)
from credo_papers.lofi.lofi_uci_world import load_set, make_splits

__all__ = ["run", "run_set"]

VERSION = 1


def run_set(
    name: str, plan: UCIPlan, seed: int, cells: Cells | None, progress: Progress
) -> dict[str, Arrays]:
    """Return the test errors and choices of all learners on one data set, one number for each division.

    Arguments:
        name: the name of the data set.
        plan: what to run.
        seed: the seed of the divisions.
        cells, progress: as for every experiment.
    """
    data = load_set(name)
    settings = [
        Setting(f"{name} {label}", make_program(method, rank))
        for label, (method, rank) in LEARNERS.items()
        if label in plan.learners
    ]
    context: dict[str, Json] = {
        "version": VERSION,
        "set": name,
        "rows": len(data),
        "seed": seed,
        "network": [HIDDEN, ACTIVATION],
    }
    chunk = 20 if len(data) < 1100 else 5  # so that a piece takes some minutes
    splits = make_splits(data, seed, plan.splits)
    return sweep(
        "lofi-uci",
        settings,
        build,
        splits,
        None,
        context=context,
        chunk=chunk,
        cells=cells,
        progress=progress,
    )


def run(size: Size, seed: int, progress: Progress, cells: Cells | None = None) -> Outcome:
    """Every learner on every data set of the size, division by division."""
    plan = PLANS[size]
    sets = plan.sets
    cells = Cells() if cells is None else cells

    def each_set(i: int) -> dict[str, Arrays]:
        return run_set(sets[i], plan, seed, cells, portion(progress, i / len(sets), (i + 1) / len(sets)))

    found = cells.each(each_set, range(len(sets)))
    results = {name: arrays for part in found for name, arrays in part.items()}
    rows = [row for name in sets for row in _rows(name, results)]
    labels = [label for label in LEARNERS if label in plan.learners]
    table = np.array([[mean_se(results[f"{s} {label}"]["rmse"]) for label in labels] for s in sets])
    published = np.array([[PUBLISHED[s]["rmse"].get(label, np.nan) for label in labels] for s in sets])
    series = {"set": np.repeat(np.arange(len(sets)), len(labels))}
    series |= {"learner": np.tile(np.arange(len(labels)), len(sets)), "published": published.ravel()}
    series |= {"rmse": table[..., 0].ravel(), "rmse_se": table[..., 1].ravel()}
    arrays = {"sets": np.array(sets), "learners": np.array(labels)}
    for key, result in results.items():
        arrays |= {f"{key} {name}": array for name, array in result.items()}
    settings: dict[str, Json] = {
        "network": f"one hidden layer of {HIDDEN}, {ACTIVATION}",
        "splits": plan.splits,
        "tuning_rows": TUNING_ROWS,
        "search": {
            name: {"start": search["start"], "stages": search["stages"]}
            for name, search in (("filters", FILTER_SEARCH), ("replay", REPLAY_SEARCH))
        },
        "hidden_prior": "mean drawn from N(0, init_var / D), variance init_var / D; biases init_var",
        "output_prior": f"mean 0, variance prior_var / {HIDDEN}; bias prior_var",
        "dtype": "float32",
    }
    seeds = {
        "divisions": f"numpy.random.default_rng([{seed}, i]), i = 0..{plan.splits - 1}",
        "initial weights": f"jax.random.split(jax.random.key({seed}), divisions)",
    }
    return Outcome(tuple(rows), settings, seeds, series, arrays, lambda: draw(sets, labels, table, published))


def _rows(name: str, results: Mapping[str, Arrays]) -> list[Row]:
    """The table of one data set: each learner, then the best filter beside the best published one."""
    published = PUBLISHED[name]["rmse"]
    rows: list[Row] = []
    filters: dict[str, tuple[float, float]] = {}
    for label in LEARNERS:
        result = results.get(f"{name} {label}")
        if result is None:
            continue
        mean, se = mean_se(result["rmse"])
        nll = "" if label.startswith("replay") else f"NLL {mean_se(result['nll'])[0]:.3f}"
        rows.append(Row(f"{name}, {label}", mean, se, published.get(label), note=nll))
        if label == "full EKF" or label.startswith("LOFI"):
            filters[label] = (mean, se)
    best = min(filters, key=lambda label: filters[label][0])
    theirs = min((value, label) for label, value in published.items() if label in FILTERS)
    note = f"ours: {best}; published: {theirs[1]}"
    return [*rows, Row(f"{name}, best of full EKF and LOFI", *filters[best], theirs[0], note=note)]
