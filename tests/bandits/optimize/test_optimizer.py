"""Optimisers: ask and tell, refusals, saving, and that they beat a search at random."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo import bandits
from credo.bandits import optimize

BOUNDS = {"x": (-4.0, 4.0), "n": (1, 4, "whole"), "kind": ["a", "b"]}
NET = credo.models.RandomFeatures.draw(0, inputs=4, features=30, length=0.7)
LEARNER = credo.extended_kalman(credo.Model(NET, credo.Normal(1e-3)))
PRIOR = LEARNER.init(NET.init())
LINE = bandits.Space.read([[-4.0, 4.0]])


def _value(point: Any) -> float:
    return float(-((point["x"] - 1.0) ** 2) - (point["n"] - 3) ** 2 + (point["kind"] == "b"))


def _optimizer(**options: Any) -> bandits.Optimizer:
    return bandits.Optimizer(LEARNER, BOUNDS, prior=PRIOR, **options)


def _told(count: int = 7, **options: Any) -> bandits.Optimizer:
    best = _optimizer(**options)
    for _ in range(count):
        point = best.ask()
        best.tell(point, _value(point))
    return best


@pytest.mark.slow
@pytest.mark.table
@pytest.mark.parametrize("acquisition", ["thompson", "ucb"])
def test_a_saved_optimizer_asks_the_same_next(tmp_path: Path, acquisition: Any) -> None:
    best = _told(acquisition=acquisition, seed=3)
    again = bandits.Optimizer.load(best.save(tmp_path / "best.credo"))
    assert again.history == best.history and again.best == best.best
    batches: list[Any] = [best.ask(batch=2), again.ask(batch=2)]
    assert batches[0] == batches[1]
    for batch in batches:
        assert len(batch) == 2
        for point in batch:
            assert -4.0 <= point["x"] <= 4.0 and point["n"] in (1, 2, 3, 4) and point["kind"] in ("a", "b")
    assert best.ask() == again.ask()


def test_a_batch_of_ucb_is_of_unlike_points() -> None:
    best = _told(acquisition="ucb")
    batch: list[Any] = list(best.ask(batch=3))
    assert len({(round(p["x"], 2), p["n"], p["kind"]) for p in batch}) == 3
    assert len(best.history) == 7


def test_points_that_are_waited_for_count(tmp_path: Path) -> None:
    best = _told(acquisition="ucb", seed=3)
    first: Any = best.ask()
    second: Any = best.ask()
    assert first != second and best.pending == [first, second]
    again = bandits.Optimizer.load(best.save(tmp_path / "best.credo"))
    assert again.pending == best.pending and again.ask() == best.ask()
    best.drop(first)
    best.tell({**second, "x": second["x"] + 1e-8}, _value(second))  # a point that was written down
    assert len(best.pending) == 1
    with pytest.raises(credo.CredoError, match=r"one of the 1 that are pending; got \{'x'"):
        best.drop(first)
    best.pending.clear()  # a copy
    best.drop(best.pending[0])
    # where none is pending, the next question is that of an optimiser that never asked
    fresh = _optimizer(acquisition="ucb", seed=3)
    for point, value in best.history:
        fresh.tell(point, value)
    fresh._asked = best._asked
    assert fresh.ask() == best.ask()


@pytest.mark.table
@pytest.mark.parametrize("acquisition", ["thompson", "ucb"])
def test_a_question_is_answered_as_if_pending_points_had_come_out_as_expected(acquisition: Any) -> None:
    best, believer = (_told(acquisition=acquisition, seed=5) for _ in range(2))
    asked = [best.ask() for _ in range(3)]
    for step in range(3):
        points = asked[:step]
        means = best.expect(points)[0].tolist() if points else []
        trials = believer._trials([believer.search.space.encode(one) for one in points], means)
        _, row = believer.search.ask(trials)
        believer._asked += 1
        assert believer.search.space.decode(np.asarray(row)) == asked[step]


def test_a_gaussian_belief_expects_what_it_did_and_is_surer_where_trials_run() -> None:
    best = _told(acquisition="ucb", scale=None)
    points = [best.ask() for _ in range(3)]
    (mean, sd), rows = best.expect(points), [jnp.asarray(best.search.space.encode(one)) for one in points]
    belief, _ = best.search.belief(best._trials(best._pending.rows, mean.tolist()))
    distributions = [LEARNER.expect(belief, row) for row in rows]
    np.testing.assert_allclose(
        [float(distribution.mean[0]) for distribution in distributions], mean, rtol=1e-7, atol=1e-7
    )
    assert all(
        float(distribution.sd[0]) < 0.1 * before
        for distribution, before in zip(distributions, sd, strict=True)
    )


@pytest.mark.parametrize(
    ("point", "value", "words"),
    [
        ({"x": 0.0, "n": 2, "kind": "a"}, float("nan"), "value must be a finite number; got nan"),
        ({"x": 0.0, "n": 2, "kind": "a"}, float("inf"), "value must be"),
        ({"x": 0.0, "n": 2, "kind": "a"}, "3", "value must be"),
        ({"x": 5.0, "n": 2, "kind": "a"}, 1.0, "x must be a number from -4 to 4; got 5.0"),
        ({"x": 0.0, "n": 2.5, "kind": "a"}, 1.0, "n must be a whole number"),
        ({"x": 0.0, "n": 2, "kind": "c"}, 1.0, "kind must be one of 'a', 'b'; got 'c'"),
        ({"x": 0.0, "n": 2}, 1.0, "must have a value for kind"),
        ({"x": 0.0, "n": 2, "kid": "a"}, 1.0, "unknown name 'kid'.*did you mean 'kind'"),
        ([0.0, 2.0], 1.0, "point must be a dict"),
    ],
)
def test_what_cannot_be_told_is_refused_and_changes_nothing(point: Any, value: Any, words: str) -> None:
    best = _optimizer()
    best.tell({"x": 0.0, "n": 2, "kind": "a"}, 1.0)
    before = (best.history, repr(best))
    with pytest.raises(credo.CredoError, match=words):
        best.tell(point, value)
    assert (best.history, repr(best)) == before


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"goal": "most"}, "goal must be one of"),
        ({"acquisition": "pi"}, "acquisition must be one of"),
        ({"width": 2.0, "acquisition": "thompson"}, 'width is of the acquisition "ucb" alone'),
        ({"scale": "offline"}, "scale must be"),
        ({"initial": 0}, "initial must be"),
        ({"seed": -1}, "seed must be"),
        ({"deterministic": True}, "deterministic is of the process that is fitted"),
    ],
)
def test_settings_that_cannot_be_are_refused(options: Any, words: str) -> None:
    with pytest.raises(credo.CredoError, match=words):
        _optimizer(**options)


def test_learners_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    with pytest.raises(credo.CredoError, match="prior is missing"):
        bandits.Optimizer(LEARNER, BOUNDS)
    with pytest.raises(credo.CredoError, match="prior must come with"):
        bandits.Optimizer(None, BOUNDS, prior=PRIOR)
    two = credo.extended_kalman(credo.Model(credo.MLP(2, (3,)), credo.Normal(0.1)))
    with pytest.raises(credo.CredoError, match="one number"):
        bandits.Optimizer(two, BOUNDS, prior=two.init(credo.MLP(2, (3,)).init(0, (4,))))
    with pytest.raises(credo.CredoError, match="no best point"):
        _ = _optimizer().best
    path = credo.save(tmp_path / "coin.credo", credo.BetaBernoulli(), credo.BetaBernoulli().init())
    with pytest.raises(credo.FormatError, match="no optimizer"):
        bandits.Optimizer.load(path)


@pytest.mark.slow
def test_goals_mirror_each_other_and_units_do_not_matter() -> None:
    up, down = _optimizer(seed=1), _optimizer(seed=1, goal="min")
    for _ in range(6):
        one, other = up.ask(), down.ask()
        up.tell(one, _value(one))
        down.tell(other, 1e100 * _value(other))
    # the same design; and from there both learn, in units of their own
    assert [p for p, _ in up.history[:5]] == [p for p, _ in down.history[:5]]
    mean, sd = down.expect([point for point, _ in down.history])
    values = np.array([value for _, value in down.history])
    assert np.all(np.abs(mean - values) < 0.2 * values.std()) and np.all(sd < 0.2 * values.std())
    assert down.best[1] == values.min() and up.best[1] == max(v for _, v in up.history if v is not None)


NET_LINE = credo.models.RandomFeatures.draw(1, inputs=1, features=40, length=0.3)
SEARCH = optimize.Search(
    credo.extended_kalman(credo.Model(NET_LINE, credo.Normal(1e-3))),
    credo.extended_kalman(credo.Model(NET_LINE, credo.Normal(1e-3))).init(NET_LINE.init()),
    LINE,
    acquisition="thompson",
)


def _curve(x: Any) -> Any:
    return 0.5 * jnp.cos(1.5 * x) - 0.25 * (x - 1.3) ** 2


def _trial(trials: optimize.Trials, _: None) -> tuple[optimize.Trials, tuple[jax.Array, jax.Array]]:
    trials, row = SEARCH.ask(trials)
    value = _curve(LINE.values(row)[0])
    return SEARCH.tell(trials, row, value), (row, value)


@pytest.mark.optimised
def test_a_loop_of_ask_and_tell_is_a_scan() -> None:
    trials = SEARCH.start(5, capacity=7)
    _, (rows, values) = jax.lax.scan(_trial, trials, length=7)
    ask, looped = jax.jit(lambda one: _trial(one, None)), []
    for _ in range(7):
        trials, (row, _) = ask(trials)
        looped.append(row)
    np.testing.assert_array_equal(rows, jnp.stack(looped))
    # and the object asks for the same points
    best = bandits.Optimizer(
        SEARCH.learner, [[-4.0, 4.0]], prior=SEARCH.prior, acquisition="thompson", seed=5
    )
    for row, value in zip(rows, values, strict=True):
        point: Any = best.ask()
        place: Any = LINE.decode(row)
        np.testing.assert_allclose(point, place, atol=1e-5)
        best.tell(point, float(value))


def test_a_value_that_is_not_finite_changes_no_trials() -> None:
    trials = SEARCH.start(0, capacity=2).tell(jnp.zeros(1), 1.0)
    assert SEARCH.tell(trials, jnp.zeros(1), jnp.nan) == trials
    full = SEARCH.tell(trials, jnp.ones(1), 2.0)
    assert SEARCH.tell(full, jnp.ones(1), 3.0) == full  # there is no room


@pytest.mark.slow
def test_a_search_beats_points_at_random() -> None:
    seeds, length = 24, 8
    keys = jax.random.split(jax.random.key(11), seeds)

    @jax.jit
    @jax.vmap
    def found(key: Any) -> Any:
        return jax.lax.scan(_trial, SEARCH.start(key, capacity=length), length=length)[1][1]

    values = found(keys)
    grid = jnp.linspace(-4.0, 4.0, 4001)
    top = float(_curve(grid).max())
    ours = top - np.asarray(values).max(axis=1)
    places = jax.random.uniform(jax.random.key(1), (400, length), minval=-4.0, maxval=4.0)
    random = top - np.asarray(_curve(places)).max(axis=1)
    gap = random.mean() - ours.mean()
    se = np.hypot(random.std() / 20.0, ours.std() / np.sqrt(seeds))
    assert gap > 4.0 * se and ours.mean() < 0.3 * random.mean()


def test_the_default_learner_is_uncertain_before_any_trial() -> None:
    best = bandits.Optimizer(None, [[0.0, 1.0]], initial=1)
    point: Any = best.ask()
    assert point.shape == (1,) and 0.0 <= point[0] <= 1.0
    mean, sd = best.expect([point])
    # the variance is 1/2, that of an inverse gamma at its start, and that of the level is the same
    assert abs(mean[0]) < 1e-5 and abs(sd[0] - 1.0) < 1e-4


@pytest.mark.parametrize(
    "value", [np.array([1.0]), np.array([[1.0]]), np.float32(1.0), jnp.ones(()), 1, True]
)
def test_a_value_may_be_whatever_holds_one_number(value: Any) -> None:
    search = optimize.Optimizer(None, {"x": (0.0, 1.0)})
    search.tell({"x": 0.5}, value)
    assert search.best == ({"x": 0.5}, 1.0)


def test_parameters_of_one_value_stand_beside_others_and_alone() -> None:
    bounds: Any = {"x": (0.0, 1.0), "fixed": (0.3, 0.3), "log": (1e-3, 1e-3, "log"), "n": (4, 4, "whole")}
    bounds |= {"kind": ["only"]}
    search = optimize.Optimizer(None, bounds, goal="min", seed=0)
    for _ in range(9):
        point: Any = search.ask()
        assert (point["fixed"], point["log"], point["n"], point["kind"]) == (0.3, 1e-3, 4, "only")
        search.tell(point, (point["x"] - 0.2) ** 2)
    best: Any = search.best[0]
    assert abs(best["x"] - 0.2) < 0.1
    alone = optimize.Optimizer(None, {"fixed": (0.3, 0.3), "kind": ["only"]})
    for _ in range(3):
        point = alone.ask()
        assert point == {"fixed": 0.3, "kind": "only"}
        alone.tell(point, 1.0)


def test_an_end_of_a_range_in_single_precision_is_the_end() -> None:
    search = optimize.Optimizer(None, {"rate": (1e-4, 0.1, "log")})
    for end in (1e-4, 0.1):
        search.tell({"rate": np.float32(end)}, 1.0)
    with pytest.raises(credo.CredoError, match=r"rate must be a number from 0\.0001 to 0\.1"):
        search.tell({"rate": 0.99e-4}, 1.0)
