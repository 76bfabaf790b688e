"""Compiled passes of a trainer: learn rows without scoring them, forecast few rows at the cost of few."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.records import replace
from credo.core.types import Array, PyTree
from credo.core.verbs import verb
from credo.learners import Info
from credo.likelihoods import Predictive
from credo.live.packed import Form
from credo.live.passes import EncodedRows
from credo.streams.first_rows import each_row, first_rows
from credo.streams.words import Parts

__all__ = [
    "CHUNK",
    "TILE",
    "Ask",
    "forecast_tiles",
    "learn_chunk",
    "log_prob",
    "moments",
    "probs",
    "quantiles",
    "whole",
]

CHUNK, TILE = 256, 16
"""The most rows of a compiled call, and the rows of a tile. Forecasts are computed a whole tile at a time:
the bits of a row in single precision depend on how many rows are computed together."""

Ask: TypeAlias = Callable[[Predictive, Array, Array], PyTree]
"""What is asked of the forecast of a row: a function of the forecast, of the row's own number, and of the
probabilities of quantiles. It is part of the compiled program, so define it once."""


def probs(predictive: Predictive, y: Array, levels: Array) -> PyTree:
    """The class probabilities (C,)."""
    return predictive.probs


def moments(predictive: Predictive, y: Array, levels: Array) -> PyTree:
    """The mean and the standard deviation."""
    return predictive.mean, predictive.sd


def quantiles(predictive: Predictive, y: Array, levels: Array) -> PyTree:
    """The quantiles (L,)."""
    return predictive.quantile(levels)


def log_prob(predictive: Predictive, y: Array, levels: Array) -> PyTree:
    """The log probability of the row's own number, a target or the number of a class."""
    return predictive.log_prob(y)


def whole(predictive: Predictive, y: Array, levels: Array) -> PyTree:
    """The forecast itself."""
    return predictive


@verb(static=("form", "collect"), kept=True)
def learn_chunk(
    form: Form,
    setting: Parts,
    state: Parts,
    rows: EncodedRows,
    count: np.int32,
    key: Array | None,
    collect: Callable[[Any, Info], PyTree] | None,
) -> tuple[Parts, Info]:
    """Learn the first `count` rows of a chunk (N, ...), in order: the belief, and the infos of the N rows.
    `collect` makes what takes the place of the `extras` of an `Info`, of the belief and the `Info`. The bits
    do not depend on how rows are cut into chunks.
    """
    learner, start = form.open(setting, state)
    columns = rows.x, rows.y, rows.weights

    def one(belief: Any, index: Array) -> tuple[Any, Info]:
        x, y, weight = (jnp.asarray(column)[index] for column in columns)
        new, info = learner.step(belief, x, y, weight=weight, key=key)
        return new, replace(info, extras=None if collect is None else collect(new, info))

    belief, info = first_rows(one, start, len(rows.x), count)
    return form.close(belief), info


@verb(static=("form", "ask"), kept=True)
def forecast_tiles(
    form: Form, setting: Parts, state: Parts, rows: EncodedRows, count: np.int32, ask: Ask
) -> PyTree:
    """What is asked of the forecasts of the first `count` rows (N, ...) of a chunk, with a leading axis N, a
    multiple of `TILE`; as many tiles are computed as they take. `y` (N,) are the rows' own numbers. The bits
    of a row do not depend on the number of rows.
    """
    learner, belief = form.open(setting, state)

    def tile(index: Array) -> PyTree:
        part = (jax.lax.dynamic_slice_in_dim(jnp.asarray(one), index * TILE, TILE) for one in rows[:2])
        return jax.vmap(lambda x, y: ask(learner.forecast(belief, x), y, jnp.asarray(rows.levels)))(*part)

    tiles = (jnp.asarray(count, jnp.int32) + (TILE - 1)) // TILE
    answers = each_row(tile, len(rows.x) // TILE, tiles)
    return jax.tree.map(lambda leaf: leaf.reshape(len(rows.x), *leaf.shape[2:]), answers)
