"""credo.pfbr: particles under an operator, their density and their guard."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import credo
from credo.core.errors import CredoError
from credo.core.types import Array, PyTree
from credo.flows import FlowFilter, Guard, Operator, pfbr

MOVE = jnp.array([[0.9, 0.2], [0.0, 0.7]])
LOOK = jnp.array([[1.0, 0.5]])


def look(z: Array, x: PyTree) -> Array:
    return LOOK.astype(z.dtype) @ z


MODEL = credo.Model(look, credo.Normal(0.3))
OPERATOR = Operator(dim=2, width=2, hidden=4, embedding=0).begin()
WALK = credo.LinearGaussian(MOVE, cov=0.5)
YS = jax.random.normal(jax.random.key(5), (12, 1)).at[4].set(jnp.nan)


def kalman() -> tuple[Any, Any]:
    exact = credo.extended_kalman(MODEL, dynamics=WALK)
    return credo.run(exact, exact.init(jnp.zeros(2)), None, YS)


def test_the_base_with_matched_noise_is_the_kalman_filter() -> None:
    learner = pfbr(MODEL, OPERATOR, 20, WALK, density="normal")
    belief, trace = credo.run(learner, learner.init(jnp.zeros(2), key=3), None, YS)
    exact, truth = kalman()
    unbiased = belief.cov * 20 / 19
    assert jnp.max(jnp.abs(belief.mean - exact.mean)) < 1e-10
    assert jnp.max(jnp.abs(unbiased - exact.cov.dense())) < 1e-10
    assert trace.ok.tolist() == truth.ok.tolist()
    # the weights are equal where map and prior are exact, whatever the particles
    assert jnp.max(jnp.abs(trace.log_evidence - truth.log_evidence)) < 1e-10


def test_a_guard_mends_an_operator_that_does_nothing() -> None:
    idle = Operator(dim=2, base=None, width=2, hidden=4, embedding=0).begin()
    learner = pfbr(MODEL, idle, 200, WALK, guard=Guard(0.7))
    belief, trace = credo.run(learner, learner.init(jnp.zeros(2), key=1), None, YS)
    exact, truth = kalman()
    # 200 particles of which about half count: four standard errors
    assert jnp.max(jnp.abs(belief.mean - exact.mean) / jnp.sqrt(jnp.diag(exact.cov.dense()))) < 0.4
    assert abs(trace.log_evidence.sum() - truth.log_evidence.sum()) < 1.0
    assert belief.log_density is not None and jnp.isfinite(belief.log_density).all()


def test_a_guard_goes_by_temperatures_where_the_operator_is_far_from_the_target() -> None:
    idle = Operator(dim=2, base=None, width=2, hidden=4, embedding=0).begin()
    precise = credo.Model(lambda z, x: z, credo.Normal(1e-4))
    learner = pfbr(precise, idle, 200, density="normal", guard=True)
    start = learner.init(jnp.zeros(2), key=1)
    belief, info = learner.update(start, None, jnp.full(2, 2.0))
    exact = -4.0 / 1.0001 - jnp.log(2 * jnp.pi * 1.0001)
    # one importance step would have a few particles near (2, 2), and none within .01
    assert jnp.max(jnp.abs(belief.mean - 2.0)) < 4 * 0.01 / jnp.sqrt(200.0)
    assert jnp.all((belief.sd > 0.008) & (belief.sd < 0.012))
    assert abs(info.log_evidence - exact) < 1.0


def test_a_guard_knows_the_constant_of_a_target_whatever_the_points_come_from() -> None:
    count = 4000
    points = jax.random.uniform(jax.random.key(2), (count, 1), minval=-5.0, maxval=5.0)
    equal, uniform = jnp.full(count, -jnp.log(count)), jnp.full(count, -jnp.log(10.0))

    def target(rows: Array) -> Array:
        return jnp.log(3.0) - 0.5 * (rows[:, 0] / 0.3) ** 2 - jnp.log(0.3 * jnp.sqrt(2 * jnp.pi))

    guard = Guard(threshold=0.9, move=None)
    after = guard.weigh_or_move(jax.random.key(3), points, equal, uniform, target)
    # the weights of uniform points have a mean square of 9.4
    assert abs(after.log_evidence - jnp.log(3.0)) < 4 * jnp.sqrt(8.4 / count)
    assert abs(jnp.std(after.values) - 0.3) < 0.03 and jnp.all(after.log_weights == equal)


def test_a_normal_density_forecasts_with_more_points_than_particles() -> None:
    learner = pfbr(MODEL, OPERATOR, 20, WALK, density="normal")
    exact, _ = kalman()
    belief, _ = credo.run(learner, learner.init(jnp.zeros(2), key=3), None, YS)
    truth = credo.extended_kalman(MODEL, dynamics=WALK).forecast(exact, None).log_prob(YS[0])
    assert abs(learner.forecast(belief, None).log_prob(YS[0]) - truth) < 0.05
    many = learner.forecast(belief, None, samples=2000).log_prob(YS[0])
    assert abs(many - truth) < 0.01
    assert learner.forecast(belief, None, method="linearized").log_prob(YS[0]) != many


def test_a_density_is_carried_along_exactly_while_parameters_stand_still() -> None:
    learner = pfbr(MODEL, OPERATOR, 20, density="flow", noise="free")
    belief, _ = credo.run(learner, learner.init(jnp.zeros(2), key=2), None, YS[:4])
    # all maps are affine, so the density is still that of the prior's draws, and those are normal
    start = learner.init(jnp.zeros(2), key=2)
    ratio = jnp.linalg.slogdet(jnp.cov(belief.values.T))[1] - jnp.linalg.slogdet(jnp.cov(start.values.T))[1]
    assert belief.log_density is not None and start.log_density is not None
    assert jnp.allclose(belief.log_density, start.log_density - ratio / 2, atol=1e-9)


@pytest.mark.optimised
def test_steps_runs_and_files_give_the_same_bits(tmp_path: Path) -> None:
    learner = pfbr(MODEL, OPERATOR, 20, WALK, guard=True)
    belief = learner.init(jnp.zeros(2), key=3)
    half, _ = credo.run(learner, belief, None, YS[:6])
    again, half = credo.load(credo.save(tmp_path / "flow.credo", learner, half), learner)
    whole, _ = credo.run(again, half, None, YS[6:])
    for y in YS:
        belief, _ = learner.step(belief, None, y)
    assert belief == whole


def test_what_cannot_be_weighed_is_refused_and_nothing_is_lost() -> None:
    learner = pfbr(MODEL, OPERATOR, 20, WALK, guard=True)
    start = learner.predict(learner.init(jnp.zeros(2), key=3))
    after, info = learner.update(start, None, jnp.array([1e200]))
    assert not info.ok and after == start
    steep = credo.Model(look, credo.Likelihood(lambda eta, y: jnp.log(eta - 1e9)))
    broken = credo.replace(learner, model=steep)
    after, info = broken.update(start, None, jnp.array([1.0]))
    assert not info.ok and after == start


def test_settings_that_do_not_fit_are_refused() -> None:
    with pytest.raises(CredoError, match="operator must be a trained operator"):
        pfbr(MODEL, Operator(dim=2))
    with pytest.raises(CredoError, match="dimension of the parameters, 3; it has 2"):
        pfbr(MODEL, OPERATOR).init(jnp.zeros(3))
    with pytest.raises(CredoError, match="density must be 'transitions', 'kernel' or 'normal' where"):
        pfbr(MODEL, OPERATOR, dynamics=WALK, density="flow")
    with pytest.raises(CredoError, match="for a guard"):
        FlowFilter(MODEL, OPERATOR, guard=Guard())
    with pytest.raises(CredoError, match="threshold must be in"):
        Guard(1.5)
