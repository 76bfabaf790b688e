"""Sessions and the estimators forecast alike, and grouping rows into calls changes no bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pandas as pd
import pytest
from tests.tiers import few

import credo
from credo.bandits import Features
from credo.bandits.service.inputs import FeatureEncoder
from credo.estimators import RiverClassifier, RiverRegressor
from credo.live.intake import blocks_of
from credo.sessions import Session

COUNT, FIRST = 90, 30
Rows = list[dict[str, Any]]


def numbers(rng: np.random.Generator) -> Rows:
    x = rng.normal(size=(COUNT, 2)) * [1.0, 50.0]
    return [{"a": a, "b": b, "y": 3.0 + 2.0 * a - 0.1 * b} for a, b in x.tolist()]


def gaps(rng: np.random.Generator) -> Rows:
    """No cell of the first rows is missing: where one is, a session gives its column a feature of its own."""
    return [
        {**row, "b": None} if place >= FIRST and place % 7 == 3 else row
        for place, row in enumerate(numbers(rng))
    ]


def outliers(rng: np.random.Generator) -> Rows:
    rows = numbers(rng)
    rows[50]["a"], rows[60]["y"], rows[70]["b"] = 1e6, 1e9, -1e300
    return rows


def units(rng: np.random.Generator) -> Rows:
    return [{**row, "b": 1e3 * row["b"]} if place >= 45 else row for place, row in enumerate(numbers(rng))]


def constant(rng: np.random.Generator) -> Rows:
    """The first 15 targets are all the same, so that the units of the others take longer to be known."""
    return [{**row, "y": 5.0} if place < 15 else row for place, row in enumerate(numbers(rng))]


def categories(rng: np.random.Generator) -> Rows:
    rows = numbers(rng)
    return [{**row, "c": "uvw"[place % 3] if place < 60 else "new"} for place, row in enumerate(rows)]


def dates(rng: np.random.Generator) -> Rows:
    times = pd.date_range("2024-01-01", periods=COUNT, freq="7h").strftime("%Y-%m-%d %H:%M")
    return [{**row, "t": time} for row, time in zip(numbers(rng), times, strict=True)]


def text(rng: np.random.Generator) -> Rows:
    words = np.array(["red", "green", "old", "new", "big", "small"])
    return [{**row, "w": " ".join(rng.choice(words, 4)) + f" {row['a']:.3f}"} for row in numbers(rng)]


def waking(rng: np.random.Generator) -> Rows:
    return [{**row, "late": row["b"] if place >= 40 else None} for place, row in enumerate(numbers(rng))]


def vanishing(rng: np.random.Generator) -> Rows:
    return [{**row, "b": row["b"] if place < 50 else None} for place, row in enumerate(numbers(rng))]


def counts(rng: np.random.Generator) -> Rows:
    return [{**row, "y": float(rng.poisson(np.exp(0.5 + 0.4 * row["a"])))} for row in numbers(rng)]


def sides(rng: np.random.Generator) -> Rows:
    return [{**row, "y": "lr"[int(row["a"] > 0)]} for row in numbers(rng)]


def classes(rng: np.random.Generator) -> Rows:
    return [{**row, "y": "lmh"[int(np.digitize(row["a"], [-0.5, 0.5]))]} for row in numbers(rng)]


def truths(rng: np.random.Generator) -> Rows:
    return [{**row, "f": bool(place % 2)} for place, row in enumerate(numbers(rng))]


WORLDS: list[Callable[[np.random.Generator], Rows]] = [
    numbers,
    gaps,
    outliers,
    units,
    constant,
    categories,
    dates,
    text,
    waking,
    vanishing,
    counts,
    sides,
    classes,
    truths,
]


def world(make: Callable[[np.random.Generator], Rows]) -> Rows:
    return make(np.random.default_rng(3))


def in_session(rows: Rows, sizes: list[int]) -> Session:
    session = Session.from_rows(rows[:FIRST], "y", model="linear", ordered=False)
    start = 0
    for size in sizes:
        session.learn(rows[start : start + size])
        start += size
    return session


def in_estimator(rows: Rows, sizes: list[int]) -> Any:
    frame = pd.DataFrame(rows).astype({"late": object} if "late" in rows[0] else {})
    y = frame.pop("y").to_numpy()
    if y.dtype == object:
        model, more = credo.OnlineClassifier("linear", drift="none"), {"classes": sorted(set(y))}
    else:
        model, more = credo.OnlineRegressor("linear", drift="none"), {}
    start = 0
    for size in sizes:
        part = slice(start, start + size)
        model.partial_fit(frame[part], y[part], **more)
        start, more = start + size, {}
    return model


def in_river(rows: Rows, sizes: list[int]) -> Any:
    river: Any = RiverRegressor if isinstance(rows[0]["y"], float) else RiverClassifier
    model = river("linear", drift="none")
    start = 0
    for size in sizes:
        frame = pd.DataFrame(rows[start : start + size])
        y = frame.pop("y").to_numpy()
        if size == 1:
            model.learn_one(frame.to_dict("records")[0], y[0])
        else:
            model.learn_many(frame, y)
        start += size
    return model


GROUPS = [[FIRST, COUNT - FIRST], [FIRST, *[1] * (COUNT - FIRST)], [FIRST, 7, 19, COUNT - FIRST - 26]]


@pytest.mark.slow
@pytest.mark.table
@pytest.mark.parametrize("make", few(WORLDS, *WORLDS[::2]), ids=lambda make: make.__name__)
def test_one_forecast_and_one_state(make: Callable[[np.random.Generator], Rows]) -> None:
    rows = world(make)
    asked = [{name: cell for name, cell in row.items() if name != "y"} for row in rows[-5:]]
    sessions, models = zip(
        *[(in_session(rows, sizes), in_estimator(rows, sizes)) for sizes in GROUPS], strict=True
    )
    first = sessions[0].predict(asked)
    frame = pd.DataFrame(asked)
    if first.probs is None:
        mean, sd = models[0].predict(frame, return_std=True)
        np.testing.assert_allclose(first.mean, mean, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(first.sd, sd, rtol=1e-4, atol=1e-6)
    else:
        np.testing.assert_allclose(first.probs, models[0].predict_proba(frame), atol=1e-5)
    states = [[one.belief for one in sessions], [one._trainer.belief for one in models]]
    for beliefs in states:
        whole, *others = [jax.tree.leaves(belief) for belief in beliefs]
        for other in others:
            for mine, theirs in zip(whole, other, strict=True):
                np.testing.assert_array_equal(mine, theirs)


@pytest.mark.table
@pytest.mark.parametrize(
    "make",
    [make for make in WORLDS if make not in (classes, categories)],
    ids=lambda make: make.__name__,
)
def test_river_forecasts_what_a_session_does(make: Callable[[np.random.Generator], Rows]) -> None:
    """Not where features or classes come late: River's prior is that of the first row."""
    rows = world(make)
    asked = [{name: cell for name, cell in row.items() if name != "y"} for row in rows[-5:]]
    expected = in_session(rows, GROUPS[0]).predict(asked)
    models = [in_river(rows, sizes) for sizes in GROUPS]
    if expected.mean is not None and expected.sd is not None:
        answers = [models[0].predict_one(row, with_dist=True) for row in asked]
        np.testing.assert_allclose([one.mean for one in answers], expected.mean, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose([one.sd for one in answers], expected.sd, rtol=1e-4, atol=1e-6)
    else:
        assert expected.probs is not None
        probs = [[models[0].predict_proba_one(row)[label] for label in "lr"] for row in asked]
        np.testing.assert_allclose(probs, expected.probs, atol=1e-5)
    whole, by_row, groups = [jax.tree.leaves(model._live.belief) for model in models]
    for mine, alone, together in zip(whole, by_row, groups, strict=True):
        np.testing.assert_array_equal(mine, together)
        np.testing.assert_allclose(alone, mine, rtol=1e-4, atol=1e-6)  # another program, of one row


@pytest.mark.parametrize(
    "make", [numbers, gaps, outliers, units, waking, vanishing], ids=lambda make: make.__name__
)
def test_a_bandit_standardises_contexts_as_a_session_does(
    make: Callable[[np.random.Generator], Rows],
) -> None:
    rows = world(make)
    session, encoder = in_session(rows, GROUPS[0]), FeatureEncoder(Features(slots=8))
    contexts = [{name: cell for name, cell in row.items() if name != "y"} for row in rows]
    for context in contexts:
        encoder.encode({name: cell for name, cell in context.items() if cell is not None})
    places = {name: place for place, name in enumerate(encoder.names)}
    block = next(blocks_of(contexts[-8:], session.encoding, learn=False, need_target=False))
    for context, row in zip(contexts[-8:], block.x, strict=True):
        vector = encoder.encode({k: v for k, v in context.items() if v is not None}, learn=False)
        own = dict(zip(session.encoding.features, row.tolist(), strict=True))
        for name in context:
            assert own[name] == pytest.approx(vector[places[name]], abs=1e-6)
        assert own["(a value is missing)"] == vector[places["missing"]]
