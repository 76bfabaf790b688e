"""The learners of `lofi-uci`: a network with one hidden layer, tuned and tested on one division."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypedDict

import jax
import jax.numpy as jnp
import numpy as np

import credo
from credo.core.types import Array, ArrayLike
from credo.covariances import Diagonal, Family, Full, LowRank
from credo.learners import GradientLearner, bong, replay
from credo_papers.engine.any_learner import AnyBelief, AnyLearner
from credo_papers.engine.sweep import One
from credo_papers.lofi.lofi_uci_plan import (
    FILTER_SEARCH,
    REPLAY_SEARCH,
    TUNING_ROWS,
    MethodName,
    Search,
)
from credo_papers.lofi.lofi_uci_world import Split

__all__ = ["ACTIVATION", "HIDDEN", "build", "make_learner", "make_prior", "make_program"]

HIDDEN = 50
ACTIVATION: Literal["tanh"] = "tanh"


class UCIProgram(TypedDict):
    """The settings that the compiled program of a learner depends on."""

    method: MethodName
    rank: int
    tuning_rows: int
    search: Search


def search_of(method: MethodName) -> Search:
    """Return the search of a method."""
    if method == "replay":
        return REPLAY_SEARCH
    return FILTER_SEARCH


def make_program(method: MethodName, rank: int) -> UCIProgram:
    """Return all that the compiled program of a learner depends on.

    Arguments:
        method: one of `MethodName`.
        rank: for replay the size of the buffer.
    """
    return {"method": method, "rank": rank, "tuning_rows": TUNING_ROWS, "search": search_of(method)}


def make_learner(method: MethodName, rank: int, setting: Mapping[str, Array]) -> AnyLearner:
    """Return a learner of one network by its name and hyper-parameters, which may be traced.

    Arguments:
        method: one of `MethodName`.
        rank: for replay the size of the buffer.
        setting: `learning_rate` for replay, `noise_var` for the others.
    """
    net = credo.MLP(outputs=1, hidden=(HIDDEN,), activation=ACTIVATION)
    if method == "replay":
        return replay(credo.Model(net, credo.Normal(1.0)), setting["learning_rate"], capacity=rank)
    return bong(credo.Model(net, credo.Normal(setting["noise_var"])), _family(method, rank))


def _family(method: MethodName, rank: int) -> Family:
    """The family of a filter, by the name of the filter."""
    if method == "full":
        return Full()
    if method in ("fd-ekf", "vd-ekf"):
        return Diagonal("covariance" if method == "fd-ekf" else "precision")
    if method == "spherical":
        return LowRank(rank, base="spherical")
    if method == "lrvga":
        return LowRank(rank, projection="factor-analysis")
    return LowRank(rank)


def make_prior(learner: AnyLearner, setting: Mapping[str, Array], split: Split) -> AnyBelief:
    """Return the belief before any data, of one division.

    Hidden weights have a random mean, drawn from N(0, init_var / D), and that prior variance; their biases
    likewise with init_var. The output layer has mean 0 and prior variance prior_var / 50, its bias prior_var.

    Arguments:
        learner: as `make_learner` gives it.
        setting: `init_var`, and for filters `prior_var`.
        split: one division.
    """
    first, second = jax.random.split(split.key)
    width = split.x.shape[-1]
    dtype = split.x.dtype
    spread = jnp.sqrt(setting["init_var"]).astype(dtype)
    params = [
        {
            "w": spread / np.sqrt(width).astype(dtype) * jax.random.normal(first, (width, HIDDEN), dtype),
            "b": spread * jax.random.normal(second, (HIDDEN,), dtype),
        },
        {"w": jnp.zeros((HIDDEN, 1), dtype), "b": jnp.zeros(1, dtype)},
    ]
    if isinstance(learner, GradientLearner):
        return learner.init(params, example=(split.x[0], split.y[0]))
    init = setting["init_var"]
    prior = setting["prior_var"]
    var = [{"w": init / width, "b": init}, {"w": prior / HIDDEN, "b": prior}]
    return learner.init(params, var=jax.tree.map(lambda v, leaf: jnp.full(leaf.shape, v), var, params))


def build(program: UCIProgram) -> One[Split, None]:
    """Return the function of one division: choose a setting on its first rows, learn all rows, and test.

    Arguments:
        program: see `make_program`.
    """
    method = program["method"]
    rank = program["rank"]

    def one(values: Mapping[str, Array], split: Split, shared: None) -> dict[str, Array]:
        count = min(program["tuning_rows"], split.x.shape[0])

        def log_evidence(setting: dict[str, Array]) -> Array:
            learner = make_learner(method, rank, setting)
            belief = make_prior(learner, setting, split)
            trace = credo.run(learner, belief, split.x[:count], split.y[:count])[1]
            total = jnp.mean(trace.log_evidence[count // 2 :])
            return jnp.where(jnp.all(trace.ok) & jnp.isfinite(total), total, -jnp.inf)

        def arrays(stage: Mapping[str, ArrayLike | list[float]]) -> dict[str, Array]:
            return {key: jnp.asarray(value, split.x.dtype) for key, value in stage.items()}

        setting = arrays(program["search"]["start"])
        tuning = []
        for lists in program["search"]["stages"]:
            stage = arrays(lists)
            scores = jax.lax.map(lambda candidate, base=setting: log_evidence(base | candidate), stage)
            setting |= {key: column[jnp.argmax(scores)] for key, column in stage.items()}
            tuning.append(scores)
        learner = make_learner(method, rank, setting)
        belief, trace = credo.run(learner, make_prior(learner, setting, split), split.x, split.y)
        forecast = learner.forecast_rows(belief, split.x_test)
        unit = jnp.asarray(split.unit)
        rmse = unit * jnp.sqrt(jnp.mean((forecast.mean - split.y_test) ** 2))
        nll = jnp.log(unit) - jnp.mean(forecast.log_prob(split.y_test))
        return {
            "rmse": rmse,
            "nll": jnp.asarray(jnp.nan) if method == "replay" else nll,
            "refused": jnp.sum(~trace.ok),
            "tuning": jnp.concatenate(tuning),
            **{f"chosen_{name}": value for name, value in setting.items()},
        }

    return one
