"""The peers of the default: what they are shown of a table, and that none sees a row before its forecast."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(autouse=True)
def benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))


def module(name: str) -> Any:
    return importlib.import_module(name)


class Spy:
    """A batch model that notes the rows of each fit, which are numbered by their first column."""

    fits: list[list[int]]
    asked: list[list[int]]

    def __init__(self, classes: int) -> None:
        self.classes = classes

    def fit(self, x: np.ndarray, y: np.ndarray) -> Spy:
        self.count = len(np.unique(y))
        Spy.fits.append(x[:, 0].astype(int).tolist())
        return self

    def predict(self, x: np.ndarray) -> np.ndarray:
        Spy.asked.append(x[:, 0].astype(int).tolist())
        return np.full(len(x), float(len(Spy.fits[-1])))

    def predict_proba(self, x: np.ndarray) -> np.ndarray:
        self.predict(x)
        return np.full((len(x), self.count), 1.0 / self.count)


@pytest.mark.parametrize("classes", [0, 3])
def test_a_refitted_peer_never_sees_a_row_before_its_forecast(classes: int) -> None:
    Spy.fits, Spy.asked = [], []
    rows = 1234
    x = np.stack([np.arange(rows), np.zeros(rows)], axis=1)
    y = np.arange(rows) % 3 if classes else np.arange(rows) / rows
    answers = module("default_refits").Refitted(lambda: Spy(classes), classes).forecasts(x, y)
    assert [len(fit) for fit in Spy.fits] == [50, 100, 200, 500, 1000]
    assert all(fit == list(range(len(fit))) for fit in Spy.fits)
    assert [row for asked in Spy.asked for row in asked] == list(range(50, rows))
    for fit, asked in zip(Spy.fits, Spy.asked, strict=True):
        assert max(fit) < min(asked)
    assert np.isnan(answers[:50]).all()
    if not classes:
        np.testing.assert_array_equal(answers[[50, 499, 500, 1233], 0], [50, 200, 500, 1000])


def test_a_refitted_peer_is_the_same_before_a_row_whatever_comes_later() -> None:
    refits = module("default_refits").refits_of(2)
    random = np.random.default_rng(0)
    x, y = random.normal(size=(560, 2)), (random.uniform(size=560) < 0.4).astype(float)
    later = y.copy()
    later[500:] = 1.0 - later[500:]
    one, two = (refits["forest, refitted"]().forecasts(x, target) for target in (y, later))
    np.testing.assert_array_equal(one, two)
    np.testing.assert_allclose(one[50:].sum(axis=1), 1.0)


def test_a_class_that_no_fit_has_seen_has_probability_zero() -> None:
    Spy.fits, Spy.asked = [], []
    x, y = np.zeros((300, 1)), np.repeat([2.0, 2.0, 0.0], 100)
    answers = module("default_refits").Refitted(lambda: Spy(3), 3).forecasts(x, y)
    np.testing.assert_array_equal(answers[50:200], np.tile([0.0, 0.0, 1.0], (150, 1)))
    assert not Spy.fits  # one class needs no model
    y[150] = 1.0
    answers = module("default_refits").Refitted(lambda: Spy(3), 3).forecasts(x, y)
    np.testing.assert_array_equal(answers[299], [0.0, 0.5, 0.5])


def test_text_is_one_hot_and_a_missing_number_is_the_mean_before_it() -> None:
    columns = {
        "word": np.array(["b", "", "a", "b"]),
        "holes": np.array([np.nan, 2.0, 4.0, np.nan]),
        "truth": np.array([True, False, True, True]),
    }
    wanted = [[0, 0, 1, 0, 1, 1], [1, 0, 0, 2, 0, 0], [0, 1, 0, 4, 0, 1], [0, 0, 1, 3, 1, 1]]
    np.testing.assert_array_equal(module("default_peers").numbers_of(columns), wanted)


def test_an_online_peer_is_asked_about_a_row_before_it_learns_it(monkeypatch: pytest.MonkeyPatch) -> None:
    defaults = module("defaults")
    told: list[tuple[str, float]] = []

    class Noted:
        def predict(self, x: np.ndarray) -> None:
            told.append(("asked", x[0]))

        def learn(self, x: np.ndarray, y: float) -> None:
            told.append(("learned", x[0]))

    monkeypatch.setattr(defaults, "peers_of", lambda classes: {"noted": Noted})
    rows = module("default_streams").Stream({"x": np.arange(3.0)}, np.ones(3), "regression")
    answers, _ = defaults.answers_of(rows, "noted")
    assert told == [(word, row) for row in (0.0, 1.0, 2.0) for word in ("asked", "learned")]
    assert answers.shape == (3, 2) and np.isnan(answers).all()


def test_capymoa_is_told_a_target_only_when_it_learns(monkeypatch: pytest.MonkeyPatch) -> None:
    capymoa = module("default_capymoa")
    told: list[tuple[str, float]] = []

    class Instance:
        @staticmethod
        def from_array(schema: Any, x: np.ndarray, y: float) -> float:
            return float(y)

    class Schema:
        @staticmethod
        def from_custom(names: list[str], target: str, categories: Any) -> None:
            assert names == ["x0", "x1", "y"] and categories == {"y": ["0", "1", "2"]}

    class Model:
        def __init__(self, schema: Any, random_seed: int) -> None: ...

        def predict_proba(self, y: float) -> list[float]:
            told.append(("asked", y))
            return [0.25, 0.75]

        def train(self, y: float) -> None:
            told.append(("learned", y))

    class Parts:
        LabeledInstance, Forest = Instance, Model
        Schema: Any

    Parts.Schema = Schema
    monkeypatch.setattr(capymoa, "_part", lambda name: Parts)
    peer = capymoa.CapyMOA("Forest", 3)
    assert peer.predict(np.ones(2)) is None
    peer.learn(np.ones(2), 2.0)
    np.testing.assert_array_equal(peer.predict(np.ones(2)), [0.25, 0.75, 0.0])
    assert told == [("learned", 2.0), ("asked", 0.0)]


def test_a_machine_without_capymoa_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "capymoa", None)
    with pytest.raises(ImportError, match="needs Java 17 and pip install capymoa"):
        module("default_capymoa").capymoa_of(2)["CapyMOA ARF"]()
