"""Wrapped learners that the tests of this folder share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from tests.streams.setups import bitwise

import credo
from credo.adapt import (
    ChangeProbability,
    ChangeTimes,
    Experts,
    RunLength,
    SoftReset,
    StudentTNoise,
    WeightedPast,
)

P, T = 2, 10
RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(T, P))
MEANS = np.where(np.arange(T) < 5, ROWS @ [1.0, -1.0], ROWS @ [-1.0, 2.0])
XS, YS = jnp.asarray(ROWS), jnp.asarray(MEANS + 0.3 * RNG.normal(size=T))


def linear(w: Any, x: Any) -> Any:
    return x @ w


MODEL = credo.Model(linear, credo.Normal(0.2))
INNER = credo.RecursiveLearner(MODEL, credo.Full("dense"))
WALKS = [credo.RecursiveLearner(MODEL, credo.Full("dense"), dynamics=credo.RandomWalk(q)) for q in (0.0, 0.1)]
UNLIKE: list[credo.Learner[Any]] = [WALKS[1], credo.vd_ekf(MODEL), RunLength(INNER, 0.1, 2), WALKS[0]]

WRAPPED: dict[str, Any] = {
    "run length": RunLength(INNER, 0.1, 3),
    "learned hazard": RunLength(INNER, credo.adapt.LearnedHazard(1.0, 9.0), 3),
    "moments": RunLength(INNER, 0.1, 3, credo.RandomWalk(1.0)),
    "merge": RunLength(INNER, 0.1, 3, overflow="merge"),
    "resample": RunLength(INNER, 0.1, 3, overflow="resample"),
    "times": ChangeTimes(INNER, 0.1, 3, credo.Inflation(1.0, "simple")),
    "soft reset": SoftReset(INNER, 0.1),
    "experts": Experts(WALKS),
    "interacting": Experts(WALKS, mixing=True),
    "marginal": ChangeProbability(INNER, (1.0, 0.7, 0.0), (0.0, -2.0, -3.0)),
    "map": ChangeProbability(INNER, (1.0, 0.7, 0.0), (0.0, -2.0, -3.0), method="map"),
    "gradient": ChangeProbability(INNER, 0.0, kind="inflation", method="gradient", learning_rate=0.1),
    "memory": WeightedPast(INNER, 4, iterations=1),
    "experts in run length": RunLength(Experts(WALKS), 0.1, 2),
    "unlike experts in run length": RunLength(Experts(UNLIKE, 0.1), 0.1, 2),
    "robust in run length in experts": Experts(
        [RunLength(StudentTNoise(INNER, 4.0, 1), h, 2) for h in (0.01, 0.2)]
    ),
}


def begin(learner: Any) -> Any:
    """The first belief over two parameters."""
    more = {"example": (XS[0], YS[0])} if isinstance(learner, WeightedPast) else {}
    return learner.init(jnp.zeros(P), var=1.5, **more)


def same_bits(learner: Any, folder: Path) -> None:
    """A loop, and a run that is cut and goes on from a file, give the same belief and evidence bit by bit."""
    half = T // 2
    first, early = credo.run(learner, begin(learner), XS[:half], YS[:half])
    again, belief = credo.load(credo.save(folder / "half.credo", learner, first), learner)
    bitwise((learner, first), (again, belief))
    last, late = credo.run(again, belief, XS[half:], YS[half:])
    belief, logs = begin(learner), []
    for x, y in zip(XS, YS, strict=True):
        belief, info = learner.step(belief, x, y)
        logs.append(info.log_evidence)
    bitwise(last, belief)
    bitwise(jnp.concatenate([early.log_evidence, late.log_evidence]), jnp.stack(logs))
    assert bool(jnp.all(jnp.isfinite(jnp.stack(logs))))


def bad_rows_leave(learner: Any, predicted: Any) -> None:
    """A missing, an infinite and a weightless observation leave a belief; an absurd one leaves it sound."""
    update = jax.jit(lambda y, weight: learner.update(predicted, XS[0], y, weight=weight))
    for y, weight in ((jnp.nan, 1.0), (jnp.inf, 1.0), (1.0, 0.0)):
        after, info = update(y, weight)
        bitwise(after, predicted)
        assert float(info.log_evidence) == 0.0 and bool(info.ok) == (weight == 0.0)
    after, _ = update(1e30, 1.0)
    assert all(bool(jnp.all(~jnp.isnan(leaf))) for leaf in jax.tree.leaves(after))
