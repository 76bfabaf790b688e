"""The learners of `bong-mnist`: one pass over a stream of labelled rows with any cell of the grid.

This is the program of one stream that `sweep` compiles. Beliefs are scored on other rows along the way: at
`marks` by the plug-in and the linearised forecast, and at the end by the two Monte Carlo forecasts, of the
linearised outputs and of networks drawn from the belief.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias, TypedDict

import jax
import jax.numpy as jnp
import numpy as np

import credo
from credo.beliefs import Gaussian
from credo.core.names import CurvatureName, ForecastName, RuleName
from credo.core.types import Array
from credo.core.verbs import verb
from credo.covariances import Family
from credo.learners import Info, RecursiveLearner
from credo_papers.bong.bong_grid import (
    FamilyName,
    GridCell,
    StartName,
    make_curvature,
    make_family,
    make_learner,
)
from credo_papers.bong.bong_mnist_plan import NetworkPlan
from credo_papers.bong.bong_mnist_world import Streams
from credo_papers.engine.plain_data import Values
from credo_papers.engine.sweep import One

__all__ = ["AT_END", "AT_MARKS", "MnistProgram", "begin", "build", "network", "stopwatch"]

AT_MARKS: tuple[ForecastName, ...] = ("plugin", "linearized")
"""The forecasts that are scored at every mark."""

AT_END: tuple[ForecastName, ...] = ("linearized-mc", "mc")
"""The forecasts that are scored at the last mark only."""

ROWS_AT_ONCE = 16

Rows: TypeAlias = tuple[Array, Array]
"""Inputs and labels, with a leading axis."""

Scores: TypeAlias = dict[str, Array]
"""The scores of forecasts, by the method and the kind of score."""


class MnistProgram(TypedDict):
    """The settings that the compiled program of a cell depends on.

    Attributes:
        rule, curvature, start: the cell; see `GridCell`.
        iterations: of BLR and BBB.
        samples: of MC-EF.
        rank, family: of the belief.
        network: see `NetworkPlan`.
        every: a number of steps.
        marks: multiples of `every`, at which to score.
        draws: how many draws a Monte Carlo forecast takes; 0 leaves those out.
    """

    rule: RuleName
    curvature: CurvatureName
    iterations: int
    samples: int
    rank: int
    family: FamilyName
    start: StartName
    network: NetworkPlan
    every: int
    marks: list[int]
    draws: int


def network(plan: NetworkPlan) -> credo.MLP | credo.CNN:
    """Return a network from its plan."""
    if plan["kind"] == "cnn":
        first, second = plan["channels"]
        return credo.CNN(plan["outputs"], (first, second), plan["dense"], plan["activation"])
    return credo.MLP(plan["outputs"], tuple(plan["hidden"]), plan["activation"])


def begin(
    program: MnistProgram, values: Mapping[str, Array | float], key: Array, shape: tuple[int, ...]
) -> tuple[RecursiveLearner, Gaussian]:
    """Return the learner of a program and its belief before any data, from random initial parameters.

    Arguments:
        program, values: see `build`.
        key: draws the initial parameters.
        shape: of one row of inputs.
    """
    cell = GridCell(program["rule"], program["curvature"], program["start"], program["family"])
    net = network(program["network"])
    params = net.init(key, shape)
    size = sum(leaf.size for leaf in jax.tree.leaves(params))
    # Each random direction of W gets the precision of the diagonal: much more, such as a tenth of the trace,
    # and the steps of BBB towards the prior diverge.
    random = program["rank"] / size if cell.plain and cell.start == "random" else 0.0
    # Plain gradients grow with the weight, natural ones do not.
    share = values["weight"] if cell.plain else 1.0
    learner = make_learner(
        cell.rule,
        credo.Model(net, credo.Categorical(net.outputs)),
        _family(program, random),
        make_curvature(cell.curvature, program["samples"]),
        learning_rate=values["learning_rate"] / share,
        iterations=program["iterations"],
    )
    return learner, learner.init(params, var=values["reach"] / values["weight"])


def _family(program: MnistProgram, random: float) -> Family:
    """The family of a program, whose random directions have some precision where it has directions."""
    if program["family"] == "low-rank":
        return credo.LowRank(program["rank"], random=random)
    return make_family(program["family"], program["rank"])


def build(program: MnistProgram) -> One[Streams, tuple[np.ndarray, np.ndarray]]:
    """Return the function of one stream, `one(values, stream, shared)`.

    Its `values` are `reach`, `weight` and `learning_rate`: the prior variance is reach / weight, and the rate
    of plain gradients is learning_rate / weight. `shared` are rows x (N, ...) and labels y (N,) to be scored.
    It gives for each forecast the log probability of the label, the confidence, and whether the most probable
    class came, each (marks, N), and the Brier score (marks,).

    Arguments:
        program: see `MnistProgram`.
    """
    every = program["every"]
    marks = tuple(program["marks"])
    draws = program["draws"]

    def one(values: Mapping[str, Array], stream: Streams, shared: tuple[np.ndarray, np.ndarray]) -> Scores:
        images = jnp.asarray(shared[0])
        labels = jnp.asarray(shared[1])
        first, second, third = jax.random.split(stream["key"], 3)
        learner, prior = begin(program, values, first, stream["x"].shape[1:])

        def step(belief: Gaussian, row: Rows) -> tuple[Gaussian, Info]:
            return learner.step(belief, *row, weight=values["weight"], key=second)

        def probs(belief: Gaussian, x: Array, method: ForecastName) -> Array:
            if method.endswith("mc"):
                return learner.forecast(belief, x, method=method, samples=draws, key=third).probs
            return learner.forecast(belief, x, method=method).probs

        def score(belief: Gaussian, methods: tuple[ForecastName, ...] = AT_MARKS) -> Scores:
            def of(x: Array) -> dict[str, Array]:
                return {method: probs(belief, x, method) for method in methods}

            return _scores(jax.lax.map(of, images, batch_size=ROWS_AT_ONCE), labels)

        blank = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), jax.eval_shape(score, prior))

        def block(
            belief: Gaussian, chunk: tuple[Rows, Array]
        ) -> tuple[Gaussian, tuple[Scores, Array, Array]]:
            rows, at_mark = chunk
            belief, trace = jax.lax.scan(step, belief, rows)
            scores = jax.lax.cond(at_mark, score, lambda belief: blank, belief)
            return belief, (scores, trace.log_evidence, trace.ok)

        blocks = marks[-1] // every
        rows = (stream["x"][: blocks * every], stream["y"][: blocks * every])
        rows = jax.tree.map(lambda leaf: leaf.reshape(blocks, every, *leaf.shape[1:]), rows)
        at_marks = jnp.asarray(np.isin(np.arange(1, blocks + 1) * every, marks))
        belief, (scores, evidence, ok) = jax.lax.scan(block, prior, (rows, at_marks))
        results = {name: leaf[np.array(marks) // every - 1] for name, leaf in scores.items()}
        if draws:
            results |= {name: leaf[None] for name, leaf in score(belief, AT_END).items()}
        return results | {"log_evidence": jnp.sum(evidence), "ok": jnp.mean(ok)}

    return one


def stopwatch(program: MnistProgram, steps: int) -> Callable[[Values, Streams], Gaussian]:
    """Return a newly compiled function of (values, stream) that takes some steps of one stream, to be timed.

    Arguments:
        program: see `MnistProgram`.
        steps: how many.
    """

    def run(values: Values, stream: Streams) -> Gaussian:
        learner, belief = begin(program, values, stream["key"], stream["x"].shape[1:])

        def step(belief: Gaussian, row: Rows) -> tuple[Gaussian, None]:
            return learner.step(belief, *row, weight=values["weight"], key=stream["key"])[0], None

        rows = (jnp.asarray(stream["x"][:steps]), jnp.asarray(stream["y"][:steps]))
        return jax.lax.scan(step, belief, rows)[0]

    return verb(run)


def _scores(probs: dict[str, Array], y: Array) -> Scores:
    """The scores of class probabilities (N, C) by several methods."""
    scores = {}
    for method, each in probs.items():
        onehot = jax.nn.one_hot(y, each.shape[1], dtype=each.dtype)
        scores[f"{method} log_prob"] = jnp.log(jnp.maximum(jnp.sum(each * onehot, axis=1), 1e-30))
        scores[f"{method} confidence"] = jnp.max(each, axis=1)
        scores[f"{method} correct"] = jnp.argmax(each, axis=1).astype(y.dtype) == y
        scores[f"{method} brier"] = jnp.sum((each - onehot) ** 2) / y.shape[0]
    return scores
