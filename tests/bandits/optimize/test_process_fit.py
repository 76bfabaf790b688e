"""The numbers of a process that fit trials, the units of bent values, and what policies make of a belief."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from tests.tiers import few

import credo
from credo import bandits
from credo.bandits import optimize
from credo.bandits.optimize.process_fit import climb_in_box, fit_process, log_marginal
from credo.bandits.optimize.promises import feasible_log_prob, improvement, knowledge

SPACE = bandits.Space.read([[0.0, 1.0], [0.0, 1.0]])
PROCESS = credo.GaussianProcess(2, size=1)
STUDENT: Any = stats.multivariate_t


def _trials(count: int = 12, pending: int = 0, room: int = 16) -> optimize.Trials:
    """Trials of a smooth function with far values on the bad side, to be maximised."""
    rng = np.random.default_rng(0)
    trials = optimize.Trials.start(jax.random.key(0), room, 2)
    for row in rng.uniform(-1, 1, (count + pending, 2)):
        value = -np.exp(2.0 * row[0] + 0.3 * row[1] ** 2)
        trials = trials.tell(jnp.asarray(row), value)
    return credo.replace(trials, believed=jnp.asarray(pending, jnp.int32))


def test_the_marginal_density_is_that_of_a_student_t_and_so_is_its_slope() -> None:
    rng = np.random.default_rng(1)
    root, values = rng.normal(size=(5, 5)), jnp.asarray(rng.normal(size=5))
    matrix = jnp.asarray(root @ root.T + 0.3 * np.eye(5))
    count = jnp.asarray(5.0)
    # v ~ InverseGamma(2, 1): a Student-t with 4 degrees of freedom and the scale matrix C / 2
    distribution = [
        STUDENT(np.zeros(5), 0.5 * scale * np.asarray(matrix), df=4).logpdf(values) for scale in (1.0, 3.0)
    ]
    mine = [log_marginal(scale * matrix, values, count) for scale in (1.0, 3.0)]
    assert abs(float(mine[1] - mine[0]) - (distribution[1] - distribution[0])) < 1e-10
    slopes: Any = jax.grad(log_marginal, argnums=(0, 1))(matrix, values, count)
    step = 1e-6
    for direction in range(3):
        half = rng.normal(size=(5, 5)) if direction else np.eye(5)
        move = jnp.asarray(half + half.T)
        ends = [log_marginal(matrix + sign * step * move, values, count) for sign in (1.0, -1.0)]
        assert abs(float(jnp.sum(slopes[0] * move)) - float(ends[0] - ends[1]) / (2 * step)) < 1e-6
        ends = [log_marginal(matrix, values + sign * step * move[0], count) for sign in (1.0, -1.0)]
        assert abs(float(slopes[1] @ move[0]) - float(ends[0] - ends[1]) / (2 * step)) < 1e-6


def test_ascent_finds_a_bent_valley_and_the_end_of_a_box() -> None:
    def valley(x: Any) -> Any:
        return -100.0 * (x[1] - x[0] ** 2) ** 2 - (1.0 - x[0]) ** 2

    low, high = jnp.asarray([-2.0, -2.0]), jnp.asarray([2.0, 2.0])
    point, value = climb_in_box(valley, jnp.asarray([-1.2, 1.0]), low, high, 100)
    np.testing.assert_allclose(point, [1.0, 1.0], atol=1e-6)
    assert abs(float(value - valley(point))) < 1e-12
    point, _ = climb_in_box(lambda x: x[0] - (x[1] - 0.5) ** 2, jnp.zeros(2), low, high, 30)
    np.testing.assert_allclose(point, [2.0, 0.5], atol=1e-6)
    start = jnp.asarray([0.1, 0.2])
    point, value = climb_in_box(lambda x: jnp.where(x[0] == 0.1, 3.0, jnp.nan), start, low, high, 5)
    assert float(value) == 3.0 and float(point[0]) == 0.1


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_bent_units_go_back_and_have_the_moments_of_their_integral(sign: float) -> None:
    centre, spread, best = (jnp.asarray(number) for number in (0.8, 0.5, 2.0))
    units = optimize.Units(centre, spread, best, jnp.asarray(0.7), sign=sign)
    values = 2.0 - sign * jnp.asarray([0.0, 0.3, 5.0, 400.0])
    np.testing.assert_allclose(units.back(units.into(values)), values, rtol=1e-12)
    assert bool(jnp.all(jnp.diff(sign * units.into(values)) < 0))  # order stays
    mean, sd = units.moments(jnp.asarray(0.4), jnp.asarray(0.6))
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    back = np.asarray(units.back(jnp.asarray(0.4 + 0.6 * nodes)))
    exact = weights @ back / weights.sum()
    assert abs(float(mean) - exact) < 1e-10
    assert abs(float(sd) - np.sqrt(weights @ (back - exact) ** 2 / weights.sum())) < 1e-10
    # a large bend is none
    straight = optimize.Units(centre, spread, best, jnp.asarray(1e7), sign=sign)
    np.testing.assert_allclose(straight.into(values), -sign * (sign * (2.0 - values) - 0.8) / 0.5, rtol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("bends", few([True, False], True))
def test_the_numbers_of_a_fit_are_more_probable_than_others(bends: bool) -> None:
    trials = _trials()
    belief, units = fit_process(PROCESS, SPACE, trials, 1.0, bends)
    assert (units.bend is not None) == bends

    def evidence(**numbers: Any) -> float:
        learner = credo.replace(PROCESS, size=16)
        return float(learner.log_evidence(learner.condition(credo.replace(belief, **numbers))))

    top = evidence()
    # the distributions of the numbers are wide, so that half or twice of each is worse by the values alone
    for factor in (0.4, 2.5):
        assert evidence(length=belief.length * factor) < top
        assert evidence(signal_var=belief.signal_var * factor, offset_var=belief.offset_var * factor) < top
    assert evidence(noise_var=belief.noise_var + 0.1) < top
    # the first variable matters more, and the exponential is nearly straight in bent units
    assert float(belief.length[0]) < 3.0 * float(belief.length[1])
    mean, _ = optimize.Search(PROCESS, PROCESS.init(), SPACE, fitted=True, scaled=bends).expect(
        belief, trials.rows[:12]
    )
    np.testing.assert_allclose(units.back(mean), trials.values[:12], rtol=0.02, atol=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("double", few([True, False], True))
def test_what_is_noise_to_others_is_shape_to_a_deterministic_function(double: bool) -> None:
    with jax.enable_x64(double):
        rng, kind = np.random.default_rng(2), jnp.result_type(float)
        trials = optimize.Trials.start(jax.random.key(0), 16, 2)
        for row in rng.uniform(-1, 1, (14, 2)):
            trials = trials.tell(jnp.asarray(row, kind), row[0] + 0.5 * rng.normal())
        learner = credo.GaussianProcess(2, size=16)
        noisy, _ = fit_process(learner, SPACE, trials, 1.0, False)
        exact, units = fit_process(learner, SPACE, trials, 1.0, False, deterministic=True)
        assert float(noisy.noise_var / noisy.signal_var) > 0.01
        assert float(exact.noise_var / exact.signal_var) < (1.01e-6 if double else 1.01e-5)
        mean, _ = optimize.Search(learner, learner.init(), SPACE, fitted=True, deterministic=True).expect(
            exact, trials.rows[:14]
        )
        np.testing.assert_allclose(units.back(mean), trials.values[:14], atol=2e-4 if double else 5e-2)
        # not even two values of one point are noise
        again = trials.tell(trials.rows[0], trials.values[0] + 1.0)
        exact, _ = fit_process(learner, SPACE, again, 1.0, False, deterministic=True)
        assert float(exact.noise_var / exact.signal_var) < (1.01e-6 if double else 1.01e-5)


@pytest.mark.slow
def test_rows_that_are_believed_move_no_mean_and_no_number() -> None:
    alone, units = fit_process(PROCESS, SPACE, _trials(12), 1.0, True)
    belief, same = fit_process(PROCESS, SPACE, _trials(12, pending=3), 1.0, True)
    for name in ("length", "signal_var", "noise_var"):
        np.testing.assert_array_equal(getattr(belief, name), getattr(alone, name))
    assert units == same
    at = jnp.concatenate([_trials(12, pending=3).rows[12:15], jnp.zeros((1, 2))])
    (mean, cov), (known, wide) = PROCESS.joint(belief, at), PROCESS.joint(alone, at)
    np.testing.assert_allclose(mean, known, atol=1e-5)
    assert np.all(np.diag(cov)[:3] <= np.diag(wide)[:3]) and np.diag(cov)[3] <= np.diag(wide)[3] + 1e-9
    assert np.all(np.diag(cov)[:3] <= 1.01 * float(belief.noise_var))


def _known(**numbers: Any) -> tuple[credo.GaussianProcess, Any]:
    learner = credo.GaussianProcess(2, 0.8, noise_var=0.1, size=8, **numbers)
    rng = np.random.default_rng(3)
    xs = jnp.asarray(rng.uniform(-1, 1, (6, 2)))
    return learner, credo.run(learner, learner.init(), xs, jnp.asarray(rng.normal(size=6)))[0]


@pytest.mark.slow
@pytest.mark.parametrize("sign", few([1.0, -1.0], -1.0))
def test_the_knowledge_gradient_is_what_observations_at_a_point_add(sign: float) -> None:
    learner, belief = _known()
    rows, row = belief.rows[:6], jnp.asarray([0.2, -0.4])
    every = jnp.concatenate([row[None], rows])
    distribution = learner.forecast(belief, row)

    def best(y: Any) -> Any:
        return jnp.max(sign * learner.joint(learner.update(belief, row, y)[0], every)[0])

    z = (jnp.arange(8000.0) + 0.5) / 500.0 - 8.0  # midpoints: kinks leave errors near the squared width
    tops = jax.lax.map(best, distribution.mean + jnp.sqrt(distribution.var) * z, batch_size=500)
    weights = jnp.exp(-0.5 * z * z) / np.sqrt(2 * np.pi) / 500.0
    gain = float(weights @ (tops - jnp.max(sign * learner.joint(belief, every)[0])))
    promise = knowledge(learner, belief, rows, sign)
    assert abs(float(jnp.exp(promise(row))) - gain) < 1e-4 * gain + 1e-8
    assert np.isfinite(np.asarray(jax.grad(promise)(rows[0]))).all()  # at a row that was tried


@pytest.mark.slow
def test_the_improvement_of_a_bank_is_that_of_its_experts_averaged() -> None:
    learner, _ = _known()
    bank: Any = credo.Experts([learner, credo.replace(learner, noise_var=1.0)], switching=0.0)
    xs = jnp.asarray(np.random.default_rng(5).uniform(-1, 1, (6, 2)))
    belief, _ = credo.run(bank, bank.init(), xs, xs[:, 0])
    row, best = jnp.asarray([0.3, 0.9]), jnp.asarray(0.2)
    parts: list[float] = []
    for one in (learner, credo.replace(learner, noise_var=1.0)):
        alone, _ = credo.run(one, one.init(), xs, xs[:, 0])
        parts.append(float(jnp.exp(improvement(one, alone, best, 1.0)(row))))
    expected = float(jnp.exp(belief.log_weights) @ jnp.asarray(parts))
    assert abs(float(jnp.exp(improvement(bank, belief, best, 1.0)(row))) - expected) < 1e-10


def test_points_near_failures_are_thought_to_fail() -> None:
    trials = optimize.Trials.start(jax.random.key(0), 16, 2)
    for row in np.random.default_rng(0).uniform(-1, 1, (14, 2)):
        trials = trials.tell(jnp.asarray(row), 1.0 if row[0] < 0.2 else -1.0)
    belief, _ = fit_process(PROCESS, SPACE, trials, 1.0, False, centred=False)
    good, bad = (float(feasible_log_prob(PROCESS, belief, jnp.asarray([x, 0.0]))) for x in (-0.6, 0.9))
    assert np.exp(good) > 0.8 and np.exp(bad) < 0.2
