"""Fashion-MNIST row by row, standing still and drifting: low-rank filters against gradient descent.

A multi-layer perceptron (relu) learns each row once and is tested along the way on test images of the task
at hand, with its mean parameters. Filters start from He's weights with an output layer of zeros, prior
variances scale / fan-in, and on streams that drift their parameters follow a random walk whose variance a
row is `drift` times the prior's. Learning rates, scales and drifts are those of the lowest average
log loss before learning, on other streams of other images than those that are scored.

Published numbers: Chang et al. 2023 (LOFI, arXiv 2305.19535), network 784-500-500-10.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import credo
from credo.core.trees import ravel
from credo.datasets import load
from credo.experiments.cells import Arrays, Cells
from credo.experiments.lofi_fashion_figure import draw
from credo.experiments.lofi_fashion_plan import LEARNERS, NETWORKS, PLANS, PUBLISHED, Part, grid_of
from credo.experiments.lofi_fashion_streams import SCORED, TUNING, Pool, Stream, make_pool, make_stream
from credo.experiments.records import Outcome, Progress, Row, Size, mean_se
from credo.experiments.sweep import Setting, portion, sweep
from credo.streams import score_chunk

__all__ = ["build", "make_learner", "run", "run_part"]

VERSION = 1


def make_learner(program: Mapping[str, Any], values: Mapping[str, jax.Array], key: jax.Array) -> Any:
    """A learner by its name and hyper-parameters (which may be traced), its belief, and its network."""
    net = credo.MLP(outputs=program["outputs"], hidden=tuple(program["hidden"]), activation="relu")
    model = credo.Model(net, credo.Categorical(program["outputs"]))
    params = net.init(key, (784,))
    params[-1]["w"] = jnp.zeros_like(params[-1]["w"])
    method, rank = program["method"], program["rank"]
    if method in ("sgd", "adam"):
        learner = credo.replay(model, values["learning_rate"], optimizer=method, capacity=rank)
        example = (jnp.zeros(784, jnp.float32), jnp.zeros((), jnp.int32))
        return learner, learner.init(params, example=example), net
    families: dict[str, Any] = {
        "lofi": lambda: credo.LowRank(rank),
        "vd-ekf": lambda: credo.Diagonal("precision"),
        "fd-ekf": lambda: credo.Diagonal("covariance"),
    }
    scale, drift = (jnp.asarray(values[name], jnp.float32) for name in ("scale", "drift"))
    shares = net.prior_var(params)
    var = jax.tree.map(lambda share, leaf: jnp.full(leaf.shape, share * scale), shares, params)
    dynamics = credo.RandomWalk(drift * ravel(var)[0]) if program["drifts"] else credo.Static()
    learner = credo.bong(model, families[method](), dynamics=dynamics)
    return learner, learner.init(params, var=var), net


def build(program: Mapping[str, Any]) -> Any:
    """The function of one stream: learn it chunk by chunk, test after each."""

    def one(values: Any, seed: Any, shared: Any) -> dict[str, Any]:
        learner, belief, net = make_learner(program, values, seed["key"])

        def chunk(belief: Any, rows: Any) -> tuple[Any, dict[str, Any]]:
            x, y, pixels, which = rows
            belief, said, info = score_chunk(learner, belief, x, y, method="plugin")
            params = belief.params
            test_x = jnp.take(shared["x_test"][which], pixels, axis=1)
            logits = jax.nn.log_softmax(jax.vmap(lambda row: net(params, row))(test_x))
            test_y = shared["y_test"][which]
            chosen = jnp.take_along_axis(logits, test_y[:, None], axis=1)
            return belief, {
                "error": jnp.mean(said.probs.argmax(axis=1).astype(y.dtype) != y),
                "nll": -jnp.mean(said.log_prob),
                "test_error": jnp.mean(logits.argmax(axis=1).astype(y.dtype) != test_y),
                "test_nll": -jnp.mean(chosen),
                "refused": jnp.sum(~info.ok),
            }

        count = shared["which"].shape[0]
        cut = [seed[name].reshape(count, -1, *seed[name].shape[1:]) for name in ("x", "y")]
        return jax.lax.scan(chunk, belief, (*cut, seed["pixels"], shared["which"]))[1]

    return one


def _data(stream: Stream, seed: int, purpose: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """A stream as what differs between seeds and what they share."""
    keys = jax.random.split(jax.random.fold_in(jax.random.key(seed), purpose), len(stream.x))
    each = {"x": stream.x, "y": stream.y.astype(np.int32), "pixels": stream.pixels.astype(np.int32)}
    shared = {"x_test": stream.x_test, "y_test": stream.y_test.astype(np.int32), "which": stream.which}
    return each | {"key": keys}, shared


def run_part(
    part: Part,
    size: Size,
    seed: int,
    pools: Mapping[int, Pool],
    cells: Cells | None = None,
    progress: Progress = lambda done, text: None,
) -> dict[str, Arrays]:
    """Tune every learner of a part on its own streams, then score it.

    Returns:
        For each learner the arrays (seeds, chunks) of `build`, the chosen setting (`chosen_*`) and the mean
        log loss of every setting tried (`tuning`).
    """
    drifts = part.stream != "stationary"
    common: dict[str, Any] = {
        "hidden": NETWORKS[part.network],
        "outputs": 2 if part.stream == "split" else 10,
    }
    programs: dict[str, dict[str, Any]] = {
        label: {"method": LEARNERS[label][0], "rank": LEARNERS[label][1], "drifts": drifts, **common}
        for label in part.learners
    }
    plan = {key: value for key, value in asdict(part).items() if key not in ("learners", "seeds")}
    given = {
        "version": VERSION,
        "seed": seed,
        "part": plan,
        "pools": [len(pool.y) for pool in pools.values()],
    }

    def streams(purpose: int, rows: int, count: int) -> tuple[dict[str, Any], dict[str, Any]]:
        lengths = {"rows": rows, "task": part.task, "every": part.every, "test_rows": part.test_rows}
        return _data(
            make_stream(part.stream, pools[purpose], [seed, purpose], count, **lengths), seed, purpose
        )

    grid = [
        Setting(f"{part.name} tuning {label} {i}", program, values)
        for label, program in programs.items()
        for i, values in enumerate(grid_of(program["method"], part.stream, size))
    ]
    progress(0.0, f"making {part.stream} streams")
    each, shared = streams(TUNING, part.tuning_rows, part.tuning_seeds)
    rules: dict[str, Any] = {"chunk": part.chunk, "cells": cells}
    tuned = sweep(
        "lofi-fashion", grid, build, each, shared, given=given, progress=portion(progress, 0.0, 0.4), **rules
    )
    best: dict[str, Any] = {}
    losses: dict[str, np.ndarray] = {}
    for label in programs:
        tried = [setting for setting in grid if setting.name.startswith(f"{part.name} tuning {label} ")]
        loss = np.array([np.mean(tuned[setting.name]["nll"]) for setting in tried], np.float64)
        losses[label] = np.where(np.isfinite(loss), loss, np.inf)
        best[label] = tried[int(np.argmin(losses[label]))].values
    each, shared = streams(SCORED, part.rows, part.seeds)
    scored = sweep(
        "lofi-fashion",
        [Setting(f"{part.name} {label}", programs[label], best[label]) for label in programs],
        build,
        each,
        shared,
        given=given,
        progress=portion(progress, 0.4, 1.0),
        **rules,
    )
    return {
        label: {
            **scored[f"{part.name} {label}"],
            "tuning": losses[label],
            **{f"chosen_{key}": np.asarray(value) for key, value in best[label].items()},
        }
        for label in programs
    }


def run(size: Size, seed: int, progress: Progress, cells: Cells | None = None) -> Outcome:
    """Every learner on every stream of the size."""
    progress(0.0, "reading Fashion-MNIST")
    train, test = load("fashion-mnist"), load("fashion-mnist", split="test")
    pools = {purpose: make_pool(train, test, purpose) for purpose in (SCORED, TUNING)}
    plan = PLANS[size]
    found = {}
    for i, part in enumerate(plan):
        told = portion(progress, i / len(plan), (i + 1) / len(plan), f"{part.stream}: ")
        found[part.name] = run_part(part, size, seed, pools, cells, told)
    rows = [row for part in plan for row in make_rows(part, found[part.name])]
    arrays = {
        f"{name} {label} {key}": array
        for name, results in found.items()
        for label, result in results.items()
        for key, array in result.items()
    }
    first = plan[0]
    series: dict[str, np.ndarray] = {"t": np.arange(first.every, first.rows + 1, first.every)}
    for label, result in found[first.name].items():
        for key in ("test_error", "test_nll"):
            series[f"{key} {label}"] = result[key].mean(axis=0)
    settings = {
        "parts": [asdict(part) for part in plan],
        "grids": {
            f"{method}, {stream}": grid_of(method, stream, size)
            for method in ("sgd", "adam", "lofi")
            for stream in ("stationary", "others")
        },
        "chosen": {
            name: {
                label: {key[7:]: float(value) for key, value in result.items() if key.startswith("chosen_")}
                for label, result in results.items()
            }
            for name, results in found.items()
        },
        "dtype": "float32",
    }
    seeds = {
        "scored": f"numpy.random.default_rng([{seed}, {SCORED}, i]), of the first five sixths of the images",
        "tuning": f"numpy.random.default_rng([{seed}, {TUNING}, i]), of the last sixth; not scored",
        "initial weights": f"jax.random.fold_in(jax.random.key({seed}), purpose), split over streams",
    }
    return Outcome(tuple(rows), settings, seeds, series, arrays, lambda: draw(plan, found))


def make_rows(part: Part, results: Mapping[str, Arrays]) -> list[Row]:
    """The table of a part: test error and NLL at the end where the stream stands still, else on average."""
    rows = []
    for label, result in results.items():
        chosen = [f"{key[7:]} {float(value):g}" for key, value in result.items() if key.startswith("chosen_")]
        note = ", ".join(chosen)
        if part.stream == "stationary":
            comparable = part.rows == 2000
            error, nll = PUBLISHED.get(label, (None, None)) if comparable else (None, None)
            at = f"{part.network}, T = {part.rows:,}, {label}"
            rows.append(Row(f"error, {at}", *mean_se(result["test_error"][:, -1]), error, note=note))
            rows.append(Row(f"NLL, {at}", *mean_se(result["test_nll"][:, -1]), nll))
        else:
            average = mean_se(result["test_error"].mean(axis=1))
            rows.append(Row(f"{part.stream}, mean test error, {label}", *average, note=note))
            before = mean_se(result["error"].mean(axis=1))
            rows.append(Row(f"{part.stream}, error before learning, {label}", *before))
    return rows
