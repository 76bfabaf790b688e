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

SAMPLE = ("guided", "tempered", "map")
"""Learners whose bits are compared every time; together they go through most of what is compiled."""


@pytest.mark.optimised
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.thorough] * (name not in SAMPLE)) for name in LEARNERS]
)
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


@pytest.mark.table
@pytest.mark.parametrize("name", LEARNERS)
def test_particles_keep_the_promises_of_a_learner(name: str) -> None:
    learner = LEARNERS[name]
    belief = learner.init(jnp.zeros(P))
    equal = jnp.full_like(belief.values, 0.3)
    one = jnp.where(jnp.arange(N) == 0, 0.0, -jnp.inf)
    sets = [belief, credo.replace(belief, values=equal), credo.replace(belief, log_weights=one)]
    everything = _probe(learner, jax.tree.map(lambda *leaves: jnp.stack(leaves), *sets))
    assert everything[3].shape == (len(CASES), 3, P)
    for k, (y, weight) in enumerate(CASES):
        before, after, info = (jax.tree.map(lambda leaf, k=k: leaf[k], tree) for tree in everything[:3])
        taken = bool(jnp.isfinite(y)) and float(jnp.abs(y)) < 1e100
        if not taken or weight == 0:
            # the predicted belief comes back, bit by bit
            bitwise(after, before)
            assert bool(info.ok) == taken and float(info.log_evidence) == 0
            continue
        assert bool(info.ok) and bool(jnp.isfinite(info.log_evidence))
        assert after.values.shape == (N, P) and bool(jnp.all(jnp.isfinite(after.values)))
        np.testing.assert_allclose(jax.nn.logsumexp(after.log_weights), 0.0, atol=1e-9)


CASES = jnp.asarray(
    [[YS[0], 1.0], [jnp.nan, 1.0], [1.0, 0.0], [jnp.inf, 1.0], [1e200, 1.0], [YS[0], 2.0]]
    + [[YS[0], 1.0]] * 2
)
"""Observations, and their weights: of 1e200 the density is 0."""

SETS = (0, 1, 2, 0, 0, 0, 0, 0)
"""Which set learns: one as drawn, one that is all equal, one in which a particle has all the weight."""


@jax.jit
def _probe(learner: Any, beliefs: Any) -> Any:
    """The other verbs for every case, in one program."""

    def one(which: jax.Array, case: jax.Array) -> Any:
        belief = jax.tree.map(lambda leaf: leaf[which], beliefs)
        predicted = learner.predict(belief)
        after, info = learner.update(predicted, XS[0], case[0], weight=case[1])
        return predicted, after, info, learner.sample(after, jax.random.key(1), (3,))

    return jax.vmap(one)(jnp.asarray(SETS), CASES)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["map", "tempered", "LEDH, weighted"])
def test_two_particles_are_enough(name: str) -> None:
    learner = credo.replace(LEARNERS[name], particles=2)
    start = learner.init(jnp.zeros(P, jnp.float32))
    belief, trace = credo.run(learner, start, XS.astype(jnp.float32), YS.astype(jnp.float32))
    assert bool(trace.ok.all()) and bool(jnp.all(jnp.isfinite(belief.values)))
    assert {leaf.dtype for leaf in jax.tree.leaves(belief)} <= {jnp.dtype(d) for d in ("f4", "i4", "u4")}
