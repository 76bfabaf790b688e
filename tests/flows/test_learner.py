"""credo.pfbr: particles under an operator, their density and their guard."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from tests.tiers import few

import credo
from credo.core.errors import CredoError
from credo.core.types import Array, PyTree
from credo.flows import FlowFilter, Guard, Operator, pfbr
from credo.flows.guard import Chosen
from credo.flows.learner import weightless

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


@pytest.mark.slow
def test_the_base_with_matched_noise_is_the_kalman_filter() -> None:
    learner = pfbr(MODEL, OPERATOR, 20, WALK, density="normal", fallback=False)
    belief, trace = credo.run(learner, learner.init(jnp.zeros(2), key=3), None, YS)
    exact, truth = kalman()
    unbiased = belief.cov * 20 / 19
    assert jnp.max(jnp.abs(belief.mean - exact.mean)) < 1e-10
    assert jnp.max(jnp.abs(unbiased - exact.cov.dense())) < 1e-10
    assert trace.ok.tolist() == truth.ok.tolist()
    # the weights are equal where map and prior are exact, whatever the particles
    assert jnp.max(jnp.abs(trace.log_evidence - truth.log_evidence)) < 1e-10


@pytest.mark.slow
def test_a_normal_density_forecasts_with_more_points_than_particles() -> None:
    learner = pfbr(MODEL, OPERATOR, 20, WALK, density="normal")
    exact, _ = kalman()
    belief, _ = credo.run(learner, learner.init(jnp.zeros(2), key=3), None, YS)
    truth = credo.extended_kalman(MODEL, dynamics=WALK).forecast(exact, None).log_prob(YS[0])
    assert abs(learner.forecast(belief, None).log_prob(YS[0]) - truth) < 0.05
    many = learner.forecast(belief, None, samples=2000).log_prob(YS[0])
    assert abs(many - truth) < 0.01
    assert learner.forecast(belief, None, method="linearized").log_prob(YS[0]) != many


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings", few([{}, {"density": "normal"}, {"guard": True}, {"fallback": False}], {"guard": True})
)
def test_a_set_with_one_weight_or_with_half_of_it_lost_goes_on_as_in_a_bootstrap_filter(
    settings: dict[str, Any],
) -> None:
    learner = pfbr(MODEL, OPERATOR, 20, WALK, **settings)
    plain = credo.particle_filter(MODEL, 20, WALK, threshold=1.0)
    start = learner.predict(learner.init(jnp.zeros(2), key=3))
    alone = credo.replace(start, log_weights=jnp.where(jnp.arange(20) == 4, 0.0, -jnp.inf))
    lost = credo.replace(start, values=start.values.at[::2].set(jnp.nan))
    update, bootstrap = jax.jit(learner.update), jax.jit(plain.update)
    for belief in (alone, lost):
        after, info = update(belief, None, jnp.array([0.4]))
        same, known = bootstrap(belief, None, jnp.array([0.4]))
        assert info.ok and known.ok
        assert jnp.all(jnp.isfinite(after.values)) and jnp.all(jnp.isfinite(after.mean))
        if belief is alone:
            assert jnp.allclose(after.mean, same.mean, atol=1e-6)
            assert jnp.allclose(info.log_evidence, known.log_evidence, atol=1e-6)
        # and on: no later step remembers it
        later, _ = credo.run(learner, after, None, YS[:6])
        assert jnp.all(jnp.isfinite(later.values)) and later.ess > 2


@pytest.mark.slow
def test_lost_particles_stand_at_the_mean_of_the_others_which_stay() -> None:
    belief = pfbr(MODEL, OPERATOR, 6, WALK).init(jnp.zeros(2), key=3)
    weights = jnp.array([0.3, 0.1, 0.2, 0.1, 0.2, 0.1])
    parents = belief.values + 1.0
    whole = credo.replace(belief, log_weights=jnp.log(weights), parents=parents)
    assert weightless(whole) == whole
    gone = jnp.array([False, True, False, False, True, False])
    lost = credo.replace(
        whole,
        values=whole.values.at[1, 0].set(jnp.nan).at[4].set(jnp.inf),
        parents=parents.at[4, 1].set(jnp.nan),
    )
    mended = weightless(lost)
    assert jnp.array_equal(mended.values[~gone], whole.values[~gone])
    mean = weights[~gone] @ whole.values[~gone] / 0.7
    assert jnp.allclose(mended.values[gone], mean[None, :], atol=1e-12)
    assert jnp.allclose(jnp.exp(mended.log_weights), jnp.where(gone, 0.0, weights / 0.7), atol=1e-12)
    assert mended.parents is not None
    assert jnp.array_equal(mended.parents[:4], parents[:4]) and jnp.array_equal(mended.parents[5], parents[5])
    assert jnp.array_equal(mended.parents[4], mended.values[4])


@pytest.mark.slow
def test_an_update_takes_the_map_with_the_tighter_bound_and_none_without_one() -> None:
    idle = Operator(dim=2, base=None, width=2, hidden=4, embedding=0).begin()
    start = pfbr(MODEL, idle, 20, WALK).predict(pfbr(MODEL, idle, 20, WALK).init(jnp.zeros(2), key=3))

    def after(operator: Operator, **settings: Any) -> tuple[Any, Any]:
        return pfbr(MODEL, operator, 20, WALK, **settings).update(start, None, jnp.array([0.4]))

    base, alone = after(OPERATOR, fallback=False)[0], after(idle, fallback=False)[0]
    assert jnp.allclose(after(idle)[0].values, base.values, atol=1e-12)
    assert jnp.allclose(after(OPERATOR, fallback=idle)[0].values, base.values, atol=1e-12)
    assert jnp.allclose(alone.values, start.values, atol=1e-12)
    broken = credo.replace(idle, params=jax.tree.map(lambda leaf: leaf * jnp.nan, idle.params))
    assert jnp.allclose(after(broken)[0].values, base.values, atol=1e-12)
    belief, info = after(broken, fallback=broken)
    assert not info.ok and belief == start


@pytest.mark.slow
def test_of_several_maps_the_first_with_the_largest_bound_is_chosen_and_none_without_one() -> None:
    points = jax.random.normal(jax.random.key(1), (20, 2))
    logs = jnp.full(20, -jnp.log(20.0))

    def bayes(steepness: float) -> Any:
        def seen(value: Array) -> Array:
            return -steepness * jnp.sum(value**2)

        return OPERATOR.transport(OPERATOR.params, points, logs, seen, None, None)

    maps = [bayes(1.0), bayes(5.0)]
    for bounds, which in (((0.5, 0.5), 0), ((-jnp.inf, -3.0), 1), ((-jnp.inf, -jnp.inf), 2)):
        chosen = Chosen.of(maps, [jnp.asarray(bound) for bound in bounds])
        there, log_det = chosen.forward_density(points)
        back, same = chosen.backward(there)
        wanted = (points, jnp.zeros(20)) if which == 2 else maps[which].forward_density(points)
        assert jnp.allclose(there, wanted[0], atol=1e-12) and jnp.allclose(log_det, wanted[1], atol=1e-12)
        assert jnp.allclose(back, points, atol=1e-10) and jnp.allclose(same, log_det, atol=1e-10)


@pytest.mark.slow
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
    with pytest.raises(CredoError, match="fallback must be a trained operator"):
        pfbr(MODEL, OPERATOR, fallback=Operator(dim=2))
    with pytest.raises(CredoError, match="dimension of the parameters, 3; it has 2"):
        pfbr(MODEL, OPERATOR).init(jnp.zeros(3))
    with pytest.raises(CredoError, match="density must be 'transitions', 'kernel' or 'normal' where"):
        pfbr(MODEL, OPERATOR, dynamics=WALK, density="flow")
    with pytest.raises(CredoError, match="for a guard"):
        FlowFilter(MODEL, OPERATOR, guard=Guard())
    with pytest.raises(CredoError, match="threshold must be in"):
        Guard(1.5)
