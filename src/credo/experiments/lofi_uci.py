"""Regressions of UCI in one pass: low-rank filters between the diagonal and the full extended Kalman filter.

A network with one hidden layer of 50 units learns each training set row by row, every row once, and is
scored on the test rows. 20 random divisions, 90% for training; inputs and targets are standardised by the
training rows; errors are in the target's unit.

The hyper-parameters are chosen anew for each division and learner, from the division's own training rows
alone: settings learn the first 1,000 training rows, and the one with the highest log evidence on the second
half of them learns the whole training set, from the start. Test rows take no part. The noise variance is
chosen first, then the variances of the prior.

Published numbers: Chang et al. 2023 (LOFI, arXiv 2305.19535).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import credo
from credo.datasets import Dataset, load
from credo.experiments.cells import Arrays, Cells
from credo.experiments.lofi_uci_figure import draw
from credo.experiments.lofi_uci_published import LEARNERS, PUBLISHED
from credo.experiments.records import Outcome, Progress, Row, Size, mean_se
from credo.experiments.sweep import Setting, portion, sweep

__all__ = ["FILE_NAMES", "Split", "make_learner", "make_splits", "run"]

VERSION = 1
HIDDEN, ACTIVATION = 50, "tanh"
TUNING_ROWS = 1000
FILE_NAMES = {"power": "power-plant", "wine": "wine-quality-red"}
SIZES: dict[Size, dict[str, Any]] = {
    "quick": {
        "sets": ("yacht",),
        "splits": 4,
        "learners": ("full EKF", "fd-ekf", "vd-ekf", "LOFI-1", "LOFI-10", "replay SGD-10"),
    },
    "full": {"sets": tuple(PUBLISHED), "splits": 20, "learners": tuple(LEARNERS)},
}
FILTER_SEARCH: dict[str, Any] = {
    "start": {"init_var": 1.0, "prior_var": 3.0},
    "stages": [
        {"noise_var": [0.002, 0.008, 0.03, 0.12, 0.5]},
        {"init_var": [0.3, 1.0, 3.0] * 3, "prior_var": [1.0] * 3 + [3.0] * 3 + [10.0] * 3},
    ],
}
REPLAY_SEARCH: dict[str, Any] = {
    "start": {"init_var": 1.0},
    "stages": [
        {"learning_rate": [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0]},
        {"init_var": [0.3, 1.0, 3.0]},
    ],
}


class Split(NamedTuple):
    """Divisions of a data set, with a leading axis of divisions everywhere.

    Training rows x (S, N, D) and y (S, N) in their random order, test rows, all standardised by the training
    rows; `unit` (S,) is the standard deviation of the training targets; `key` (S,) draws the initial weights.
    """

    x: Any
    y: Any
    x_test: Any
    y_test: Any
    unit: Any
    key: Any


def make_splits(data: Dataset, seed: int, count: int) -> Split:
    """`count` random divisions of a data set, round(0.9 N) rows for training.

    Args:
        data: A regression with N rows.
        seed: Division i is drawn by `numpy.random.default_rng([seed, i])`.
        count: How many.
    """
    x, y = data.x.astype(np.float64), data.y.astype(np.float64)
    border = round(0.9 * len(y))
    made = []
    for i in range(count):
        order = np.random.default_rng([seed, i]).permutation(len(y))
        train, test = order[:border], order[border:]
        center, scale = x[train].mean(axis=0), x[train].std(axis=0)
        scale[scale == 0] = 1.0
        level, unit = y[train].mean(), y[train].std()
        rows = [((x[some] - center) / scale, (y[some] - level) / unit) for some in (train, test)]
        made.append((*rows[0], *rows[1], unit))
    parts = [np.stack(part).astype(np.float32) for part in zip(*made, strict=True)]
    x_train, y_train, x_test, y_test, unit = parts
    return Split(x_train, y_train, x_test, y_test, unit, jax.random.split(jax.random.key(seed), count))


def search_of(method: str) -> dict[str, Any]:
    """Where a learner's search starts, and its stages: parallel lists of values; the best is kept."""
    return REPLAY_SEARCH if method == "replay" else FILTER_SEARCH


def make_program(method: str, rank: int) -> dict[str, Any]:
    """All that the compiled program of a learner depends on."""
    return {"method": method, "rank": rank, "tuning_rows": TUNING_ROWS, "search": search_of(method)}


def make_learner(program: Mapping[str, Any], setting: Mapping[str, Any]) -> Any:
    """A learner of one network by its name and hyper-parameters (which may be traced)."""
    net = credo.MLP(outputs=1, hidden=(HIDDEN,), activation=ACTIVATION)
    method, rank = program["method"], program["rank"]
    if method == "replay":
        return credo.replay(credo.Model(net, credo.Normal(1.0)), setting["learning_rate"], capacity=rank)
    families: dict[str, Any] = {
        "full": lambda: credo.Full(),
        "fd-ekf": lambda: credo.Diagonal("covariance"),
        "vd-ekf": lambda: credo.Diagonal("precision"),
        "lofi": lambda: credo.LowRank(rank),
        "spherical": lambda: credo.LowRank(rank, base="spherical"),
        "lrvga": lambda: credo.LowRank(rank, projection="factor-analysis"),
    }
    return credo.bong(credo.Model(net, credo.Normal(setting["noise_var"])), families[method]())


def make_prior(learner: Any, setting: Mapping[str, Any], split: Split) -> Any:
    """The belief before any data, of one division.

    Hidden weights have a random mean, drawn from N(0, init_var / D), and that prior variance; their biases
    likewise with init_var. The output layer has mean 0 and prior variance prior_var / 50, its bias prior_var.
    """
    first, second = jax.random.split(split.key)
    width, dtype = split.x.shape[-1], split.x.dtype
    spread = jnp.sqrt(setting["init_var"]).astype(dtype)
    params = [
        {
            "w": spread / np.sqrt(width).astype(dtype) * jax.random.normal(first, (width, HIDDEN), dtype),
            "b": spread * jax.random.normal(second, (HIDDEN,), dtype),
        },
        {"w": jnp.zeros((HIDDEN, 1), dtype), "b": jnp.zeros(1, dtype)},
    ]
    if isinstance(learner, credo.GradientLearner):
        return learner.init(params, example=(split.x[0], split.y[0]))
    init, prior = setting["init_var"], setting["prior_var"]
    var = [{"w": init / width, "b": init}, {"w": prior / HIDDEN, "b": prior}]
    return learner.init(params, var=jax.tree.map(lambda v, leaf: jnp.full(leaf.shape, v), var, params))


def build(program: Mapping[str, Any]) -> Any:
    """The function of one division: choose a setting on its first rows, learn all rows, score the test."""

    def one(values: Any, split: Split, shared: None) -> dict[str, Any]:
        tuned = min(program["tuning_rows"], split.x.shape[0])

        def log_evidence(setting: Any) -> jax.Array:
            learner = make_learner(program, setting)
            belief = make_prior(learner, setting, split)
            trace = credo.run(learner, belief, split.x[:tuned], split.y[:tuned])[1]
            total = jnp.mean(trace.log_evidence[tuned // 2 :])
            return jnp.where(jnp.all(trace.ok) & jnp.isfinite(total), total, -jnp.inf)

        def floats(stage: Any) -> Any:
            return {key: jnp.asarray(value, split.x.dtype) for key, value in stage.items()}

        setting, tuning = floats(program["search"]["start"]), []
        for stage in map(floats, program["search"]["stages"]):
            tried = jax.lax.map(lambda tried, base=setting: log_evidence(base | tried), stage)
            setting |= {key: column[jnp.argmax(tried)] for key, column in stage.items()}
            tuning.append(tried)
        learner = make_learner(program, setting)
        belief, trace = credo.run(learner, make_prior(learner, setting, split), split.x, split.y)
        forecast = learner.forecast_rows(belief, split.x_test)
        rmse = split.unit * jnp.sqrt(jnp.mean((forecast.mean - split.y_test) ** 2))
        nll = jnp.log(split.unit) - jnp.mean(forecast.log_prob(split.y_test))
        return {
            "rmse": rmse,
            "nll": jnp.nan if program["method"] == "replay" else nll,
            "refused": jnp.sum(~trace.ok),
            "tuning": jnp.concatenate(tuning),
            **{f"chosen_{name}": value for name, value in setting.items()},
        }

    return one


def run_set(name: str, size: Size, seed: int, cells: Cells | None, progress: Progress) -> dict[str, Arrays]:
    """All learners on one data set: their test errors and choices, one number a division."""
    plan = SIZES[size]
    data = load(FILE_NAMES.get(name, name), split="all")
    splits = make_splits(data, seed, plan["splits"])
    settings = [
        Setting(f"{name} {label}", make_program(method, rank))
        for label, (method, rank) in LEARNERS.items()
        if label in plan["learners"]
    ]
    given = {
        "version": VERSION,
        "set": name,
        "rows": len(data),
        "seed": seed,
        "network": [HIDDEN, ACTIVATION],
    }
    chunk = 20 if len(data) < 1100 else 5  # parts of some minutes
    return sweep(
        "lofi-uci", settings, build, splits, given=given, chunk=chunk, cells=cells, progress=progress
    )


def run(size: Size, seed: int, progress: Progress, cells: Cells | None = None) -> Outcome:
    """Every learner on every data set of the size, division by division."""
    sets = SIZES[size]["sets"]
    results: dict[str, Arrays] = {}
    for i, name in enumerate(sets):
        part = portion(progress, i / len(sets), (i + 1) / len(sets))
        results |= run_set(name, size, seed, cells, part)
    rows = [row for name in sets for row in _rows(name, results)]
    labels = [label for label in LEARNERS if label in SIZES[size]["learners"]]
    table = np.array([[mean_se(results[f"{s} {label}"]["rmse"]) for label in labels] for s in sets])
    published = np.array([[PUBLISHED[s]["rmse"].get(label, np.nan) for label in labels] for s in sets])
    series = {"set": np.repeat(np.arange(len(sets)), len(labels))}
    series |= {"learner": np.tile(np.arange(len(labels)), len(sets)), "published": published.ravel()}
    series |= {"rmse": table[..., 0].ravel(), "rmse_se": table[..., 1].ravel()}
    arrays = {"sets": np.array(sets), "learners": np.array(labels)}
    for key, found in results.items():
        arrays |= {f"{key} {name}": array for name, array in found.items()}
    settings = {
        "network": f"one hidden layer of {HIDDEN}, {ACTIVATION}",
        "splits": SIZES[size]["splits"],
        "tuning_rows": TUNING_ROWS,
        "search": {"filters": FILTER_SEARCH, "replay": REPLAY_SEARCH},
        "hidden_prior": "mean drawn from N(0, init_var / D), variance init_var / D; biases init_var",
        "output_prior": f"mean 0, variance prior_var / {HIDDEN}; bias prior_var",
        "dtype": "float32",
    }
    seeds = {
        "divisions": f"numpy.random.default_rng([{seed}, i]), i = 0..{SIZES[size]['splits'] - 1}",
        "initial weights": f"jax.random.split(jax.random.key({seed}), divisions)",
    }
    return Outcome(tuple(rows), settings, seeds, series, arrays, lambda: draw(sets, labels, table, published))


def _rows(name: str, results: dict[str, Arrays]) -> list[Row]:
    """The table of one data set: each learner, then the best filter beside the best published one."""
    published = PUBLISHED[name]["rmse"]
    rows, filters = [], {}
    for label in LEARNERS:
        found = results.get(f"{name} {label}")
        if found is None:
            continue
        mean, se = mean_se(found["rmse"])
        nll = "" if label.startswith("replay") else f"NLL {mean_se(found['nll'])[0]:.3f}"
        rows.append(Row(f"{name}, {label}", mean, se, published.get(label), note=nll))
        if label == "full EKF" or label.startswith("LOFI"):
            filters[label] = (mean, se)
    best = min(filters, key=lambda label: filters[label][0])
    theirs = min((value, label) for label, value in published.items() if label in _FILTERS)
    note = f"ours: {best}; published: {theirs[1]}"
    return [*rows, Row(f"{name}, best of full EKF and LOFI", *filters[best], theirs[0], note=note)]


_FILTERS = [label for label, (method, _) in LEARNERS.items() if method in ("full", "lofi", "spherical")]
