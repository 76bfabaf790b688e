"""The learners of `lofi-fashion`: filters and gradient descent along a stream of images."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

import jax
import jax.numpy as jnp
import numpy as np

import credo
from credo.core.trees import ravel
from credo.core.types import Array
from credo.covariances import Diagonal, Family, LowRank
from credo.dynamics import RandomWalk, Static
from credo.learners import bong, replay
from credo.streams import score_chunk
from credo_papers.engine.any_learner import AnyBelief, AnyLearner
from credo_papers.engine.sweep import One
from credo_papers.lofi.lofi_fashion_plan import MethodName
from credo_papers.lofi.lofi_fashion_world import Stream

__all__ = ["FashionProgram", "Seed", "Shared", "build", "make_learner", "split_stream"]


class FashionProgram(TypedDict):
    """The settings that the compiled program of a learner depends on.

    Attributes:
        method: see `MethodName`.
        rank: for replay the size of the buffer.
        drifts: whether the parameters of filters follow a random walk.
        hidden, outputs: the widths of the hidden layers and of the output of the network.
    """

    method: MethodName
    rank: int
    drifts: bool
    hidden: list[int]
    outputs: int


class Seed(TypedDict):
    """The data that differ between streams, with a leading axis of streams; see `Stream`."""

    x: np.ndarray
    y: np.ndarray
    pixels: np.ndarray
    key: Array


class Shared(TypedDict):
    """The data that streams share; see `Stream`."""

    x_test: np.ndarray
    y_test: np.ndarray
    which: np.ndarray


def make_learner(
    program: FashionProgram, values: Mapping[str, Array], key: Array
) -> tuple[AnyLearner, AnyBelief, credo.MLP]:
    """Return a learner by its name and hyper-parameters (which may be traced), its belief, and its network.

    Arguments:
        program: see `FashionProgram`.
        values: `learning_rate` of gradient learners, `scale` and `drift` of filters.
        key: draws the initial weights.
    """
    net = credo.MLP(outputs=program["outputs"], hidden=tuple(program["hidden"]), activation="relu")
    model = credo.Model(net, credo.Categorical(program["outputs"]))
    params = net.init(key, (784,))
    params[-1]["w"] = jnp.zeros_like(params[-1]["w"])
    method = program["method"]
    rank = program["rank"]
    if method in ("sgd", "adam"):
        descent = replay(model, values["learning_rate"], optimizer=method, capacity=rank)
        example = (jnp.zeros(784, jnp.float32), jnp.zeros((), jnp.int32))
        return descent, descent.init(params, example=example), net
    scale, drift = (jnp.asarray(values[name], jnp.float32) for name in ("scale", "drift"))
    shares = net.prior_var(params)
    var = jax.tree.map(lambda share, leaf: jnp.full(leaf.shape, share * scale), shares, params)
    dynamics = RandomWalk(drift * ravel(var)[0]) if program["drifts"] else Static()
    learner = bong(model, _family(method, rank), dynamics=dynamics)
    return learner, learner.init(params, var=var), net


def _family(method: MethodName, rank: int) -> Family:
    if method == "lofi":
        return LowRank(rank)
    return Diagonal("precision" if method == "vd-ekf" else "covariance")


def build(program: FashionProgram) -> One[Seed, Shared]:
    """Return the function of one stream: learn it chunk by chunk, and test after each.

    Arguments:
        program: see `FashionProgram`.
    """

    def one(values: Mapping[str, Array], stream: Seed, shared: Shared) -> dict[str, Array]:
        learner, prior, net = make_learner(program, values, stream["key"])
        x_tests = jnp.asarray(shared["x_test"])
        y_tests = jnp.asarray(shared["y_test"])

        def chunk(
            belief: AnyBelief, rows: tuple[Array, Array, Array, Array]
        ) -> tuple[AnyBelief, dict[str, Array]]:
            x, y, pixels, which = rows
            belief, forecasts, info = score_chunk(learner, belief, x, y, method="plugin")
            params = belief.params
            x_test = jnp.take(x_tests[which], pixels, axis=1)
            logits = jax.nn.log_softmax(jax.vmap(lambda row: net(params, row))(x_test))
            y_test = y_tests[which]
            assert forecasts.probs is not None  # those of a classifier
            label = jnp.take_along_axis(logits, y_test[:, None], axis=1)
            return belief, {
                "error": jnp.mean(forecasts.probs.argmax(axis=1).astype(y.dtype) != y),
                "nll": -jnp.mean(forecasts.log_prob),
                "test_error": jnp.mean(logits.argmax(axis=1).astype(y.dtype) != y_test),
                "test_nll": -jnp.mean(label),
                "refused": jnp.sum(~info.ok),
            }

        count = shared["which"].shape[0]
        x, y = (jnp.reshape(leaf, (count, -1, *leaf.shape[1:])) for leaf in (stream["x"], stream["y"]))
        rows = (x, y, jnp.asarray(stream["pixels"]), jnp.asarray(shared["which"]))
        results: dict[str, Array] = jax.lax.scan(chunk, prior, rows)[1]
        return results

    return one


def split_stream(stream: Stream, seed: int, purpose: int) -> tuple[Seed, Shared]:
    """Return what differs between several streams, and what they share.

    Arguments:
        stream: several streams.
        seed, purpose: draw the initial weights.
    """
    keys = jax.random.split(jax.random.fold_in(jax.random.key(seed), purpose), len(stream.x))
    labels = stream.y.astype(np.int32)
    pixels = stream.pixels.astype(np.int32)
    seeds: Seed = {"x": stream.x, "y": labels, "pixels": pixels, "key": keys}
    return seeds, {"x_test": stream.x_test, "y_test": stream.y_test.astype(np.int32), "which": stream.which}
