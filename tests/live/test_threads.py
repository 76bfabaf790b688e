"""Threads may share whatever learns rows: none is lost, none is learned twice, and forecasts mix no rows."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import credo
from credo import bandits
from credo.sessions import Session

THREADS = 8
RNG = np.random.default_rng(0)


def in_threads(work: Callable[[int], None]) -> None:
    """Run a function of the thread's number in all threads at once, and raise what one of them raised."""
    errors: list[BaseException] = []
    start = threading.Barrier(THREADS)

    def one(number: int) -> None:
        start.wait()
        try:
            work(number)
        except BaseException as error:  # pragma: no cover
            errors.append(error)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def rows(count: int) -> list[dict[str, float]]:
    x = RNG.normal(size=(count, 2))
    return [{"a": a, "b": b, "y": 2.0 * a - b} for a, b in x.tolist()]


def features(row: dict[str, float]) -> dict[str, float]:
    return {"a": row["a"], "b": row["b"]}


@pytest.mark.parametrize("count", [400, pytest.param(10_000, marks=pytest.mark.thorough)])
def test_a_session_loses_no_row(count: int) -> None:
    data = rows(count)
    session = Session.from_rows(data[:50], "y", model="linear", task="regression")

    def work(number: int) -> None:
        for start in range(number * 5, count, THREADS * 5):
            session.learn(data[start : start + 5])
            session.predict(data[:1])

    in_threads(work)
    assert session.rows_read == session.rows_used == count and int(session.belief.t) >= count
    assert session.tally.scored == count - 10
    y = np.array([row["y"] for row in data])
    np.testing.assert_allclose(session.scaler.mean()[0], y.mean(), atol=1e-9)
    np.testing.assert_allclose(session.scaler.sd()[0], y.std(ddof=1), rtol=1e-9)


def test_a_forecast_of_a_session_does_not_wait_for_another_thread_that_learns() -> None:
    data = rows(60)
    session = Session.from_rows(data[:50], "y", model="linear", task="regression")
    session.learn(data[:50])
    learning, seen = threading.Event(), threading.Event()

    class Slow(list[dict[str, float]]):
        """Rows of which the last one comes once a forecast was made."""

        def __iter__(self) -> Iterator[dict[str, float]]:
            learning.set()
            assert seen.wait(60)
            return super().__iter__()

    before = session.predict(data[50:]).mean
    thread = threading.Thread(target=session.learn, args=(Slow(data[50:]),))
    thread.start()
    assert learning.wait(60)
    np.testing.assert_array_equal(session.predict(data[50:]).mean, before)  # this would wait for ever
    seen.set()
    thread.join()
    after = session.predict(data[50:]).mean
    assert session.rows_used == 60 and after is not None and before is not None and (after != before).all()


@pytest.mark.parametrize("count", [400, pytest.param(10_000, marks=pytest.mark.thorough)])
def test_an_estimator_of_scikit_learn_loses_no_row(count: int) -> None:
    data = rows(count)
    x, y = np.array([[row["a"], row["b"]] for row in data]), np.array([row["y"] for row in data])
    model = credo.OnlineRegressor("linear").partial_fit(x[:8], y[:8])

    def work(number: int) -> None:
        for start in range(8 + number * 8, count, THREADS * 8):
            model.partial_fit(x[start : start + 8], y[start : start + 8])
            assert model.predict(x[:3]).shape == (3,)

    in_threads(work)
    assert model.n_seen_ == count
    np.testing.assert_allclose(model._trainer.scaler.mean()[0], y.mean(), atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("count", [2_000, pytest.param(10_000, marks=pytest.mark.thorough)])
def test_an_estimator_of_river_loses_no_row_and_forecasts_the_row_that_it_is_asked_about(count: int) -> None:
    data = rows(count)
    model = credo.RiverRegressor("linear")
    for row in data[:200]:
        model.learn_one(features(row), row["y"])

    def work(number: int) -> None:
        sign = 1.0 if number % 2 else -1.0
        for place in range(200 + number, count, THREADS):
            model.learn_one(features(data[place]), data[place]["y"])
            # the forecasts of two threads differ by 40, and neither ever gets the other's
            assert sign * float(model.predict_one({"a": 10.0 * sign, "b": 0.0})) > 4.0

    in_threads(work)
    assert model.n_seen == count
    scaling = model._live.belief  # type: ignore[union-attr]
    assert int(scaling.target.count) == count


@pytest.mark.parametrize("count", [400, pytest.param(10_000, marks=pytest.mark.thorough)])
def test_a_bandit_issues_no_id_twice_and_learns_each_reward_once(count: int) -> None:
    agent = bandits.Agent(credo.BetaBernoulli(), arms=3, design="arms")
    bandit = bandits.Bandit(agent, window=2 * count)
    ids: list[list[str]] = [[] for _ in range(THREADS)]

    def work(number: int) -> None:
        for _ in range(count // THREADS):
            decision = bandit.decide()
            ids[number].append(decision.id)
            assert bandit.reward(decision.id, 1.0)
            assert not bandit.reward(decision.id, 1.0)

    in_threads(work)
    every = [id for own in ids for id in own]
    assert len(set(every)) == len(every) == count
    assert bandit.counts.decisions == count and bandit.version == count
