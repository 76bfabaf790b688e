"""Faults that others reported of particle filters."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.tiers import few

import credo

WALK = credo.LinearGaussian(jnp.asarray([[0.9]]), 0.0, jnp.asarray([[0.3]]))


def seen(z: jax.Array, x: jax.Array | None) -> jax.Array:
    """What an observation is about: the state; or NaN (1) or infinity (2) where the state is at most x[0]."""
    if x is None:
        return z[0]
    odd = jnp.where(x[1] == 1, jnp.nan, jnp.where(x[1] == 2, jnp.inf, z[0]))
    return jnp.where(z[0] <= x[0], odd, z[0])


def swarm(particles: int = 60, **options: Any) -> Any:
    return credo.particle_filter(credo.Model(seen, credo.Normal(0.5)), particles, WALK, **options)


SMALL = swarm()
BEGUN = SMALL.init(jnp.zeros(1), key=0)
STEP = jax.jit(SMALL.step)


def steps(ys: list[float], odd: tuple[float, float]) -> tuple[Any, list[Any]]:
    """The belief after some observations; `odd` is the input `x` of each."""
    belief, infos = BEGUN, []
    for y in ys:
        belief, info = STEP(belief, jnp.asarray(odd), jnp.asarray(y))
        infos.append(info)
    return belief, infos


def weights(belief: Any) -> np.ndarray:
    chances: np.ndarray = np.exp(np.asarray(belief.log_weights))
    return chances


def test_an_observation_that_no_particle_explains_leaves_weights_that_sum_to_one() -> None:
    """AtsushiSakai/PythonRobotics#200: far from all particles every weight is 0, and so is their sum."""
    belief, infos = steps([0.1, 1e6, 0.2, 0.1], (0.0, 0.0))
    assert all(bool(info.ok) and np.isfinite(info.log_evidence) for info in infos)
    assert weights(belief).sum() == pytest.approx(1.0, abs=1e-10)
    assert abs(float(belief.mean[0])) < 3.0 and len(np.unique(np.asarray(belief.values))) > 20


def test_a_particle_whose_likelihood_is_not_a_number_has_no_weight() -> None:
    """pymc-devs/pymc#7292: one likelihood that is NaN makes all weights NaN, and one particle survives."""
    belief, infos = steps([0.3, 0.4, 0.3], (0.0, 1.0))
    assert all(bool(info.ok) and np.isfinite(info.log_evidence) for info in infos)
    values, chances = np.asarray(belief.values)[:, 0], weights(belief)
    assert chances.sum() == pytest.approx(1.0, abs=1e-10)
    assert (values > 0).sum() > 5 and float(belief.mean[0]) > 0.0


def test_where_no_particle_has_a_likelihood_the_belief_stays_and_says_so() -> None:
    """probcomp/Gen.jl#117: weights that are all minus infinity become NaN, and resampling fails."""
    for odd in (1.0, 2.0):
        belief, infos = steps([0.3, 0.4], (1e9, odd))
        assert [bool(info.ok) for info in infos] == [False, False]
        assert np.isfinite(np.asarray(belief.values)).all()
        assert weights(belief).sum() == pytest.approx(1.0, abs=1e-10)


def test_a_particle_whose_weight_vanished_can_come_back() -> None:
    """kmolan/multicalc-rust#205: a weight that underflows to zero stays zero, whatever comes later."""
    two = credo.particle_filter(credo.Model(seen, credo.Normal(0.1)), 2, threshold=0.0)
    belief = two.init(jnp.zeros(1), values=jnp.array([[0.0], [20.0]]), key=0)
    step = jax.jit(two.step)
    belief, _ = step(belief, None, jnp.asarray(0.0))
    assert float(belief.mean[0]) < 1e-300  # exp(-2000) is 0 in double precision
    for _ in range(2):
        belief, _ = step(belief, None, jnp.asarray(20.0))
    assert float(belief.mean[0]) == pytest.approx(20.0, abs=1e-10)


@pytest.mark.parametrize("threshold", few([0.0, 0.5, 1.0], 0.5))
def test_the_evidence_is_right_whether_or_not_particles_are_resampled(threshold: float) -> None:
    """baggepinnen/LowLevelParticleFilters.jl#134: the evidence is wrong unless each step is resampled."""
    many = swarm(4000, threshold=threshold)
    ys = jnp.asarray(np.random.default_rng(1).normal(size=12))
    run = jax.jit(
        lambda key: credo.run(many, many.init(jnp.zeros(1), key=key), None, ys)[1].log_evidence.sum()
    )
    found = np.array([float(run(jax.random.key(seed))) for seed in range(6)])
    exact = credo.extended_kalman(credo.Model(lambda z, x: z[0], credo.Normal(0.5)), dynamics=WALK)
    _, trace = credo.run(exact, exact.init(jnp.zeros(1)), None, ys)
    error = found.std(ddof=1) / np.sqrt(6)
    assert error < 0.1 and abs(found.mean() - float(trace.log_evidence.sum())) < 5 * error + 0.01
