"""One pass over a stream of labelled rows with any cell of the grid, scored on held-out rows along the way.

This is the program of one seed that `sweep` compiles. Beliefs are scored at `marks` by the plug-in and the
linearised forecast, and at the end by the Monte Carlo ones: of the linearised outputs, and of networks drawn
from the belief.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import credo
from credo.core.verbs import verb
from credo.experiments.bong_grid import GridCell, make_learner
from credo.experiments.sweep import One
from credo.metrics import ece

__all__ = ["FORECASTS", "begin", "build", "network", "numbers", "timed"]

FORECASTS = ("plugin", "linearized", "linearized-mc", "mc")
"""Forecasts that are scored; those by Monte Carlo at the last mark only."""

ROWS_AT_ONCE = 16


def network(described: Mapping[str, Any]) -> Any:
    """The network of a program: {"kind": "cnn" or "mlp", ...}."""
    options = {key: tuple(value) if isinstance(value, list) else value for key, value in described.items()}
    kind = options.pop("kind")
    return credo.CNN(**options) if kind == "cnn" else credo.MLP(**options)


def begin(program: Mapping[str, Any], values: Mapping[str, Any], key: jax.Array, shape: Any) -> Any:
    """The learner of a program and its belief before any data, from random initial parameters.

    Args:
        program, values: See `build`.
        key: Draws the initial parameters.
        shape: Of one row of inputs.
    """
    cell = GridCell(program["rule"], program["curvature"], program["start"])
    net = network(program["network"])
    params = net.init(key, shape)
    size = sum(leaf.size for leaf in jax.tree.leaves(params))
    # Each random direction of W gets the precision of the diagonal: much more, such as a tenth of the trace,
    # and the steps of BBB towards the prior diverge.
    random = program["rank"] / size if cell.plain and cell.start == "random" else 0.0
    # Plain gradients grow with the weight, natural ones do not.
    share = values["weight"] if cell.plain else 1.0
    learner = make_learner(
        cell,
        credo.Model(net, credo.Categorical(net.outputs)),
        credo.LowRank(program["rank"], random=random),
        learning_rate=values["learning_rate"] / share,
        iterations=program["iterations"],
        samples=program["samples"],
    )
    return learner, learner.init(params, var=values["reach"] / values["weight"])


def build(program: Mapping[str, Any]) -> One:
    """The function of one seed.

    Args:
        program: `rule`, `curvature`, `iterations`, `samples`, `rank` and `start` (see `GridCell`); `network`;
            `every`, a number of steps, and `marks`, multiples of it, at which to score; `draws` of the Monte
            Carlo forecasts (0: none of those).

    Returns:
        `one(values, seed, shared)`. `values`: `reach`, `weight` and `learning_rate`; the prior variance is
        reach / weight, and the rate of plain gradients learning_rate / weight. `seed`: `x` (T, ...), `y`
        (T,) and `key`. `shared`: x (N, ...) and y (N,), to be scored. It gives for each forecast the
        label's log probability, the confidence and whether the most probable class came, each (marks, N),
        and the Brier score (marks,).
    """
    every, marks, draws = program["every"], tuple(program["marks"]), program["draws"]

    def one(values: dict[str, jax.Array], seed: Any, shared: Any) -> dict[str, jax.Array]:
        first, second, third = jax.random.split(seed["key"], 3)
        learner, prior = begin(program, values, first, seed["x"].shape[1:])

        def step(belief: Any, row: Any) -> tuple[Any, Any]:
            return learner.step(belief, *row, weight=values["weight"], key=second)

        def score(belief: Any, methods: tuple[str, ...] = FORECASTS[:2]) -> dict[str, jax.Array]:
            def of(x: jax.Array) -> dict[str, jax.Array]:
                options = {"samples": draws, "key": third}
                return {
                    method: learner.forecast(
                        belief, x, method=method, **(options if method.endswith("mc") else {})
                    ).probs
                    for method in methods
                }

            probs = jax.lax.map(of, shared[0], batch_size=ROWS_AT_ONCE)
            return _judged(probs, shared[1])

        blank = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), jax.eval_shape(score, prior))

        def block(belief: Any, given: Any) -> tuple[Any, Any]:
            rows, wanted = given
            belief, trace = jax.lax.scan(step, belief, rows)
            scores = jax.lax.cond(wanted, score, lambda belief: blank, belief)
            return belief, (scores, trace.log_evidence, trace.ok)

        blocks = marks[-1] // every
        rows = tuple(seed[name][: blocks * every] for name in ("x", "y"))
        rows = jax.tree.map(lambda leaf: leaf.reshape(blocks, every, *leaf.shape[1:]), rows)
        ends = np.arange(1, blocks + 1) * every
        belief, (scores, evidence, ok) = jax.lax.scan(block, prior, (rows, jnp.asarray(np.isin(ends, marks))))
        made = {name: leaf[np.array(marks) // every - 1] for name, leaf in scores.items()}
        if draws:
            made |= {name: leaf[None] for name, leaf in score(belief, FORECASTS[2:]).items()}
        return made | {"log_evidence": jnp.sum(evidence), "ok": jnp.mean(ok)}

    return one


def timed(program: Mapping[str, Any], steps: int) -> Callable[[Mapping[str, Any], Any], Any]:
    """A newly compiled function of (values, stream) that takes `steps` steps of one stream, to be timed."""

    def run(values: Mapping[str, Any], stream: Any) -> Any:
        learner, belief = begin(program, values, stream["key"], stream["x"].shape[1:])

        def step(belief: Any, row: Any) -> tuple[Any, None]:
            return learner.step(belief, *row, weight=values["weight"], key=stream["key"])[0], None

        return jax.lax.scan(step, belief, (stream["x"][:steps], stream["y"][:steps]))[0]

    return verb(run)


def _judged(probs: dict[str, jax.Array], y: jax.Array) -> dict[str, jax.Array]:
    """What is kept of class probabilities (N, C) by several methods."""
    made = {}
    for method, each in probs.items():
        onehot = jax.nn.one_hot(y, each.shape[1], dtype=each.dtype)
        made[f"{method} log_prob"] = jnp.log(jnp.maximum(jnp.sum(each * onehot, axis=1), 1e-30))
        made[f"{method} confidence"] = jnp.max(each, axis=1)
        made[f"{method} correct"] = jnp.argmax(each, axis=1).astype(y.dtype) == y
        made[f"{method} brier"] = jnp.sum((each - onehot) ** 2) / y.shape[0]
    return made


def numbers(made: Mapping[str, np.ndarray], method: str) -> dict[str, np.ndarray]:
    """Error, NLPD, ECE and Brier score (seeds, marks) of a forecast, from what the sweep gave.

    A seed whose forecasts are not finite has NLPD infinity.
    """
    log_prob, confidence, correct = (
        np.asarray(made[f"{method} {name}"]) for name in ("log_prob", "confidence", "correct")
    )
    with np.errstate(invalid="ignore"):
        nlpd = -log_prob.mean(axis=-1, dtype=np.float64)
        eces = [
            [ece(np.nan_to_num(c), k) for c, k in zip(cs, ks, strict=True)]
            for cs, ks in zip(confidence, correct, strict=True)
        ]
    return {
        "error": 1.0 - correct.mean(axis=-1, dtype=np.float64),
        "nlpd": np.where(np.isfinite(nlpd), nlpd, np.inf),
        "ece": np.array(eces),
        "brier": np.asarray(made[f"{method} brier"], np.float64),
    }
