"""Every learner of particles is a learner: the verbs and their promises."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.particles.setups import LEARNERS, XS, YS, N, P, T
from tests.streams.setups import bitwise

import credo


@pytest.mark.optimised
@pytest.mark.parametrize("name", LEARNERS)
def test_a_loop_and_a_run_that_goes_on_from_a_file_give_the_same_bits(name: str, tmp_path: Path) -> None:
    learner = LEARNERS[name]
    start, half = learner.init(jnp.zeros(P)), T // 2
    first, _ = credo.run(learner, start, XS[:half], YS[:half])
    credo.save(tmp_path / "half.credo", learner, first)
    again, resumed = credo.load(tmp_path / "half.credo", learner)
    bitwise((learner, first), (again, resumed))
    whole, _ = credo.run(again, resumed, XS[half:], YS[half:])
    belief = start
    for x, y in zip(XS, YS, strict=True):
        belief, _ = learner.step(belief, x, y)
    bitwise(belief, whole)


@pytest.mark.parametrize("name", LEARNERS)
def test_particles_keep_the_promises_of_a_learner(name: str) -> None:
    learner = LEARNERS[name]
    predicted, (updated, infos), draws = _probe(learner, learner.init(jnp.zeros(P)))
    normal, missing, weightless, infinite, outlying, doubled = (
        jax.tree.map(lambda leaf, i=i: leaf[i], (updated, infos)) for i in range(len(CASES))
    )
    assert draws.shape == (3, P)
    for left, report in (normal, doubled):
        assert bool(report.ok) and left.values.shape == (N, P) and bool(jnp.all(jnp.isfinite(left.values)))
        np.testing.assert_allclose(jax.nn.logsumexp(left.log_weights), 0.0, atol=1e-9)
    # a missing or weightless observation leaves the predicted belief, bit by bit
    for (left, report), ok in ((missing, False), (weightless, True), (infinite, False)):
        bitwise(left, predicted)
        assert bool(report.ok) == ok and float(report.log_evidence) == 0
    # an outlier leaves everything sound
    assert all(bool(jnp.all(~jnp.isnan(leaf))) for leaf in jax.tree.leaves(outlying))


CASES = jnp.asarray(
    [[float(YS[0]), 1.0], [jnp.nan, 1.0], [1.0, 0.0], [jnp.inf, 1.0], [1e6, 1.0], [float(YS[0]), 2.0]]
)
"""Observations, and their weights."""


@jax.jit
def _probe(learner: Any, belief: Any) -> Any:
    """The other verbs, in one program."""
    predicted = learner.predict(belief)
    updates = jax.vmap(lambda case: learner.update(predicted, XS[0], case[0], weight=case[1]))(CASES)
    return predicted, updates, learner.sample(predicted, jax.random.key(1), (3,))
