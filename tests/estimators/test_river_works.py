"""The estimators inside River's own machinery, and what a stream may do to them."""

from __future__ import annotations

import copy
import math
import pickle
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pandas as pd
import pytest
from river import (
    compose,
    ensemble,
    evaluate,
    feature_extraction,
    metrics,
    model_selection,
    multiclass,
    preprocessing,
    stream,
)
from river.datasets import ImageSegments, Phishing, TrumpApproval
from tests.tiers import few

from credo.beliefs import Gaussian
from credo.core.errors import CredoError
from credo.estimators import RiverClassifier, RiverRegressor
from credo.recipes.assembly import build
from credo.recipes.networks import Origin
from credo.recipes.options import Options
from credo.recipes.resolution import resolve

Row = dict[Any, Any]
Estimator = RiverClassifier | RiverRegressor
RNG = np.random.default_rng(0)


def bits(model: Estimator) -> bytes:
    """The belief, bit by bit."""
    assert model._live is not None
    return b"".join(np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(model._live.belief))


def rows_with_gaps(count: int, label: Callable[[float], Any]) -> list[tuple[Row, Any]]:
    """Rows whose features come in any order, appear late and vanish."""
    rows = []
    for at in range(count):
        values = RNG.normal(size=5)
        row: Row = {name: float(value) for name, value in zip("abcde", values, strict=True)}
        row |= {"flag": bool(values[0] > 0.3), "color": ["red", "blue", "green"][at % 3]}
        absent = ["e"] if at < count // 3 else []
        absent += ["b"] if at > count // 2 else []
        absent += [name for name in ("c", "color") if RNG.uniform() < 0.2]
        names = [name for name in row if name not in absent]
        RNG.shuffle(names)
        rows.append(({name: row[name] for name in names}, label(float(values[0] - values[1]))))
    return rows


def learned(model: Any, rows: list[tuple[Row, Any]]) -> Any:
    for row, target in rows:
        model.learn_one(row, target)
    return model


LABELLED = rows_with_gaps(90, lambda value: "up" if value > 0 else "down")
MEASURED = rows_with_gaps(90, lambda value: 300.0 + 5.0 * value)
CASES = [
    pytest.param(RiverClassifier("linear"), LABELLED, id="classifier"),
    pytest.param(RiverRegressor("linear"), MEASURED, id="regressor"),
]


def frames(rows: list[tuple[Row, Any]], size: int) -> list[tuple[pd.DataFrame, pd.Series]]:
    batches = [rows[start : start + size] for start in range(0, len(rows), size)]
    return [
        (pd.DataFrame([row for row, _ in batch]), pd.Series([target for _, target in batch]))
        for batch in batches
    ]


@pytest.mark.table
@pytest.mark.parametrize("size", [1, 7, 64, 90])
@pytest.mark.parametrize(("model", "rows"), CASES)
def test_batches_learn_what_a_loop_learns(model: Estimator, rows: list[tuple[Row, Any]], size: int) -> None:
    loop, batches = learned(model.clone(), rows), model.clone()
    for batch in frames(rows, size):
        batches.learn_many(*batch)
    assert batches.n_seen == loop.n_seen == 90
    frame = pd.DataFrame([row for row, _ in rows])
    for answer in ("predict_many", "predict_proba_many"):
        if hasattr(model, answer):
            few, many = (getattr(each, answer)(frame) for each in (loop, batches))
            if few.to_numpy().dtype.kind == "f":
                np.testing.assert_allclose(many.to_numpy(), few.to_numpy(), rtol=1e-6, atol=1e-6)
            else:
                assert few.tolist() == many.tolist()
    one = [loop.predict_one(row) for row, _ in rows]
    many = batches.predict_many(frame).tolist()
    assert many == one if isinstance(model, RiverClassifier) else np.allclose(many, one, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("size", few([10, 35, 60], 35))  # with 35, in the second row of a batch
def test_classes_that_appear_inside_a_batch(size: int) -> None:
    rows = [
        (row, "new" if at > 35 and at % 4 == 0 else label) for at, (row, label) in enumerate(LABELLED[:60])
    ]
    loop, batches = learned(RiverClassifier("linear"), rows), RiverClassifier("linear")
    for batch in frames(rows, size):
        batches.learn_many(*batch)
    assert batches.classes == loop.classes
    assert set(loop.classes) == {"up", "down", "new"}
    # in double precision, while they were computed in single precision
    assert all(abs(sum(loop.predict_proba_one(row).values()) - 1.0) < 1e-12 for row, _ in rows)
    for row, _ in rows:
        few, many = loop.predict_proba_one(row), batches.predict_proba_one(row)
        assert list(few) == list(many)
        assert few == pytest.approx(many, abs=1e-6)


@pytest.mark.parametrize(("model", "rows"), CASES)
def test_the_order_of_keys_changes_no_bit(model: Estimator, rows: list[tuple[Row, Any]]) -> None:
    chance = random.Random(0)
    shuffled = [(dict(chance.sample(sorted(row.items()), len(row))), target) for row, target in rows]
    assert bits(learned(model.clone(), rows)) == bits(learned(model.clone(), shuffled))


@pytest.mark.slow
@pytest.mark.parametrize(("model", "rows"), CASES)
def test_copies_continue_bit_by_bit(model: Estimator, rows: list[tuple[Row, Any]], tmp_path: Path) -> None:
    start = learned(model.clone(), rows[:40])
    copies = {
        "pickle": pickle.loads(pickle.dumps(start)),
        "pickle of a pickle": pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(start)))),
        "deepcopy": copy.deepcopy(start),
        "clone with its state": start.clone(include_attributes=True),
        "file": type(model).load(start.save(tmp_path / "model.credo")),
        "clone": learned(start.clone(), rows[:40]),
    }
    for each in copies.values():
        assert each.predict_one(rows[40][0]) == start.predict_one(rows[40][0])
    whole = bits(learned(start, rows[40:60]))
    for name, each in copies.items():
        assert bits(learned(each, rows[40:60])) == whole, name
        assert each.debug_one(rows[0][0]) == start.debug_one(rows[0][0])
        assert each.n_seen == 60
    assert model.clone().n_seen == 0


@pytest.mark.parametrize(("model", "rows"), CASES)
def test_a_row_of_weight_0_is_left_out(model: Estimator, rows: list[tuple[Row, Any]]) -> None:
    start = learned(model.clone(), rows[:12])
    before = bits(start), start.n_seen, start.feature_names
    start.learn_one({"a": 1.0, "never": 2.0}, rows[0][1], w=0.0)
    assert (bits(start), start.n_seen, start.feature_names) == before
    twice = learned(model.clone(), rows[:12])
    twice.learn_one(*rows[12], w=2.0)
    start.learn_one(*rows[12])
    assert bits(start) != bits(twice)


REFUSALS: dict[str, tuple[Callable[[Any], object], str]] = {
    "text": (
        lambda m: m.learn_one({"a": "warm"}, m.target),
        "feature 'a' holds numbers; got the text 'warm'",
    ),
    "text to forecast": (lambda m: m.predict_one({"a": "warm"}), "feature 'a' holds numbers; got the text"),
    "text in a batch": (
        lambda m: m.learn_many(pd.DataFrame({"a": [1.0, "warm"]}), [m.target, m.target]),
        "feature 'a' holds numbers; got the text 'warm'",
    ),
    "truth value": (
        lambda m: m.learn_one({"flag": 0.5}, m.target),
        "feature 'flag' holds truth values; got 0.5",
    ),
    "list": (
        lambda m: m.learn_one({"z": [1]}, m.target),
        "feature 'z' must hold numbers, truth values, times or texts; got list",
    ),
    "span": (
        lambda m: m.learn_many(pd.DataFrame({"day": np.array([1], "m8[s]")}), [m.target]),
        "feature 'day' must hold numbers, truth values, times or texts; got timedelta",
    ),
    "no dict": (lambda m: m.learn_one([1.0], m.target), "x must be a dict of features; got list"),
    "no dict to forecast": (lambda m: m.predict_one(None), "x must be a dict of features; got NoneType"),
    "no frame": (lambda m: m.learn_many([1.0], [m.target]), "X must be a data frame; got list"),
    "fewer targets": (
        lambda m: m.learn_many(pd.DataFrame({"a": [1.0, 2.0]}), [m.target]),
        r"y must hold one value for each of 2 rows; got shape \(1,\)",
    ),
    "weight below 0": (
        lambda m: m.learn_one({"a": 1.0}, m.target, -1.0),
        "w must be finite and at least 0; got -1.0",
    ),
    "infinite weight": (lambda m: m.learn_one({"new": 1.0}, m.target, math.inf), "w must be finite"),
    "weight": (lambda m: m.learn_one({"a": 1.0}, m.target, None), "w must be a number; got None"),
    "missing target": (
        lambda m: m.learn_one({"new": 1.0}, None),
        "y must be a (class label|finite number).*; got None",
    ),
    "missing in a batch": (
        lambda m: m.learn_many(pd.DataFrame({"new": [1.0, 2.0]}), pd.Series([m.target, None], dtype=object)),
        "y must be a (class label|finite number).*; got None",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
@pytest.mark.parametrize(("model", "rows"), CASES)
def test_what_is_refused_changes_nothing(
    model: Estimator, rows: list[tuple[Row, Any]], case: str, tmp_path: Path
) -> None:
    call, sentence = REFUSALS[case]
    start = learned(model.clone(), rows[:12])
    before = start.save(tmp_path / "before").read_bytes()
    start.target = rows[0][1]
    with pytest.raises(CredoError, match=sentence):
        call(start)
    assert start.save(tmp_path / "after").read_bytes() == before


def test_a_target_that_is_infinite_is_refused() -> None:
    model = RiverRegressor("linear")
    for target in (math.inf, -math.inf, math.nan, 10**400, "warm"):
        with pytest.raises(CredoError, match="y must be a finite number of at most 1e\\+30; got"):
            model.learn_one({"a": 1.0}, target)  # type: ignore[arg-type]
    with pytest.raises(CredoError, match="y must be a finite number of at most 1e\\+30; got inf"):
        model.learn_many(pd.DataFrame({"a": [1.0, 2.0]}), pd.Series([1.0, np.inf]))
    unknown = model.predict_one({"a": 1.0}, with_dist=True)
    assert (unknown.mean, unknown.sd, round(unknown.cdf(0.0), 6)) == (0.0, 1.0, 0.5)
    with pytest.raises(CredoError, match="can be saved once it has learned a row"):
        model.save("nowhere.credo")
    assert (model.n_seen, model.feature_names, model.predict_one({"a": 1.0})) == (0, (), 0.0)


def test_a_first_value_that_is_out_of_range_spoils_no_feature() -> None:
    model, spoiled = RiverRegressor("linear"), RiverRegressor("linear")
    rows = [({"a": float(at % 5)}, 10.0 * (at % 5)) for at in range(60)]
    spoiled.learn_one({"a": math.inf}, 1e20)
    learned(model, rows)
    learned(spoiled, rows)
    assert spoiled.predict_one({"a": 3.0}) == pytest.approx(model.predict_one({"a": 3.0}), abs=1.0)
    assert model.predict_one({"a": 3.0}) == pytest.approx(30.0, abs=3.0)


def test_scaling_by_river_and_by_credo() -> None:
    own = RiverClassifier("linear")
    behind = preprocessing.StandardScaler() | RiverClassifier("linear", scale=False)
    rows = list(Phishing().take(400))
    scores = [evaluate.progressive_val_score(rows, each, metrics.LogLoss()).get() for each in (own, behind)]
    assert max(scores) < 0.4
    assert abs(scores[0] - scores[1]) < 0.02


def test_numbers_pass_as_they_come_without_scaling() -> None:
    model = RiverClassifier("linear", scale=False)
    learned(model, [({"a": 5.0, "b": 1}, True), ({"a": 7.0}, False)])
    assert model._live is not None
    seen = model._live.inputs_of(model._slots.row({"a": 7.0, "b": None}))
    assert seen[:3].tolist() == [1.0, 7.0, 0.0]
    pipeline: Any = feature_extraction.BagOfWords() | RiverClassifier("linear", scale=False)
    for text, label in [("a fine day", True), ("a grim day", False)] * 20:
        pipeline.learn_one(text, label)
    assert pipeline.predict_one("such a fine thing") is True
    assert pipeline.predict_one("grim") is False


def test_a_dict_of_another_kind_is_read_and_left_as_it_is() -> None:
    model, plain = RiverClassifier("linear"), RiverClassifier("linear")
    for at in range(30):
        words = Counter({"a": 1 + at % 3, "b": 1 + at % 2} if at % 4 else {"a": 2})
        model.learn_one(words, at % 3 == 0)
        plain.learn_one(dict(words), at % 3 == 0)
        assert at % 4 or "b" not in words
    assert bits(model) == bits(plain)


def test_unions_of_transformers() -> None:
    numbers = compose.SelectType(float) | preprocessing.StandardScaler()
    model = (numbers + compose.SelectType(str)) | RiverClassifier("linear", scale=False)
    for row, label in LABELLED:
        model.learn_one(row, label)
    assert sum(model.predict_one(row) == label for row, label in LABELLED) > 70


def test_progressive_validation_with_moments_and_delays() -> None:
    rows = list(TrumpApproval().take(150))
    at_once = evaluate.progressive_val_score(rows, RiverRegressor("linear"), metrics.MAE())
    late = evaluate.progressive_val_score(
        rows, RiverRegressor("linear"), metrics.MAE(), moment="ordinal_date", delay=10
    )
    by_row = evaluate.progressive_val_score(
        stream.iter_array(RNG.normal(size=(60, 2)), RNG.normal(size=60)),
        RiverRegressor("linear"), metrics.RMSE(), delay=lambda x, y: 3,
    )  # fmt: skip
    assert at_once.get() < late.get() < 6.0
    assert by_row.get() < 2.0


@pytest.mark.slow
def test_models_of_river_around_the_estimators() -> None:
    rows = list(ImageSegments().take(120))
    rest = multiclass.OneVsRestClassifier(RiverClassifier("linear"))
    assert evaluate.progressive_val_score(rows, rest, metrics.Accuracy()).get() > 0.6
    bag = ensemble.ADWINBaggingClassifier(RiverClassifier("linear"), n_models=3, seed=1)
    assert evaluate.progressive_val_score(list(Phishing().take(150)), bag, metrics.Accuracy()).get() > 0.75
    choice: Any = model_selection.GreedyRegressor(
        [RiverRegressor("linear"), RiverRegressor("linear", prior_var=1e-4)], metrics.MAE()
    )
    for row, target in MEASURED:
        choice.learn_one(row, target)
    assert choice.best_model.prior_var is None
    halving: Any = model_selection.SuccessiveHalvingClassifier(
        [RiverClassifier("linear", prior_var=var) for var in (1e-6, 1.0)],
        metric=metrics.Accuracy(), budget=60, eta=2,
    )  # fmt: skip
    for row, label in LABELLED:
        halving.learn_one(row, label)
    assert halving.best_model.prior_var == 1.0


def test_texts_beyond_sixteen_share_one_input() -> None:
    model = RiverClassifier("linear")
    for at in range(60):
        model.learn_one({"word": f"w{at % 20:02}"}, at % 20 < 8)
    texts = [str(slot) for slot in model._slots.slots]
    assert texts == ["(a value is missing)", *[f"word=w{at:02}" for at in range(16)], "word=(other)"]
    assert model.predict_one({"word": "w03"}) is True
    others = [model.predict_proba_one({"word": word})[True] for word in ("w16", "w19", "never met")]
    assert len(set(others)) == 1
    assert others[0] < 0.5


@pytest.mark.slow
def test_a_drift_reports_its_alarms() -> None:
    model = RiverRegressor("linear", drift="run-length:0.01,2")
    for at in range(120):
        x = float(RNG.normal())
        model.learn_one({"a": x}, (3.0 if at < 60 else -3.0) * x + float(RNG.normal(scale=0.1)))
    assert model._live is not None
    assert model._live.alarms > 0
    words = model.debug_one({"a": 1.0})
    assert f"Changes: {model._live.alarms} alarm" in words
    assert any(60 < row < 75 for row in model._live.latest)


def test_an_account_of_a_row_has_its_forecast() -> None:
    x, classifier, regressor = {"a": 0.5}, RiverClassifier("linear"), RiverRegressor("linear")
    assert "none yet" in classifier.debug_one(x) and "none yet" in regressor.debug_one(x)
    for at in range(12):
        classifier.learn_one({"a": float(at)}, "even" if at % 2 == 0 else "odd")
        regressor.learn_one({"a": float(at)}, 2.0 * at)
    shares = sorted(classifier.predict_proba_one(x).items(), key=lambda pair: -pair[1])
    assert ", ".join(f"{label} {share:.3f}" for label, share in shares) in classifier.debug_one(x)
    forecast = regressor.predict_one(x, with_dist=True)
    assert f"{forecast.mean:.6g} ± {forecast.sd:.3g}" in regressor.debug_one(x)


@pytest.mark.table
@pytest.mark.parametrize("name", ["linear", "mlp:3", "features:6"])
def test_the_prior_of_a_feature_is_the_same_among_any_number_of_inputs(name: str) -> None:
    settings = resolve(Options(model=name), "regression", (8,), 0)
    narrow, wide = (build(settings, (inputs,), 0, origin=Origin(8, 3)) for inputs in (8, 32))
    if name == "linear":
        assert isinstance(wide[1], Gaussian)
        np.testing.assert_allclose(wide[1].var[1:], settings.prior_var / 3, rtol=1e-6)
    row = np.r_[1.0, -2.0, np.zeros(30)].astype(np.float32)
    forecasts = [one.forecast(prior, row[:inputs]) for (one, prior), inputs in ((narrow, 8), (wide, 32))]
    assert float(forecasts[0].mean) == pytest.approx(float(forecasts[1].mean), rel=1e-5)
    assert float(forecasts[0].sd) == pytest.approx(float(forecasts[1].sd), rel=1e-5)


def test_truth_values_are_signs_and_texts_are_ones_that_pass_unscaled() -> None:
    model = RiverClassifier("linear")
    learned(model, [({"a": float(at)}, at > 4) for at in range(9)])
    learned(model, [({"a": 1.0, "flag": at % 3 == 0, "word": "xy"[at % 2]}, at > 4) for at in range(9)])
    assert model._live is not None
    rows: list[Row] = [{"flag": True, "word": "x"}, {"flag": 0}, {"word": "z"}]
    seen = [model._live.inputs_of(model._slots.row(row))[2:5].tolist() for row in rows]
    assert seen == [[1.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]


@pytest.mark.slow
@pytest.mark.parametrize("size", few([1, 7, 40], 7))
def test_times_and_texts_of_several_words_are_learned_from(size: int) -> None:
    """A time has an input for itself and four for its cycles, a text of several words sixteen."""
    days = pd.date_range("2026-01-01 06:00", periods=80, freq="9h")
    words = ["a warm day", "a cold day", "rain and wind"]
    rows = [({"day": day, "said": words[at % 3]}, float(day.hour + at % 3)) for at, day in enumerate(days)]
    loop, batches = learned(RiverRegressor("linear"), rows), RiverRegressor("linear")
    for batch in frames(rows, size):
        batches.learn_many(*batch)
    assert bits(loop) == bits(batches)
    assert loop._slots.kinds == {"day": "time", "said": "words"}
    errors = [abs(loop.predict_one(row) - target) for row, target in rows[40:]]
    assert np.mean(errors) < 0.5 * np.std([target for _, target in rows])
    with pytest.raises(CredoError, match="feature 'day' holds times; got the text 'noon'"):
        loop.learn_one({"day": "noon"}, 1.0)


def test_a_missing_value_has_an_input_of_its_own() -> None:
    model = RiverClassifier("linear")
    for at in range(60):
        model.learn_one({"a": float(RNG.normal())} | ({"b": 1.0} if at % 2 == 0 else {}), at % 2 == 0)
    assert model.predict_one({"a": 0.0}) is False
    assert model.predict_one({"a": 0.0, "b": 1.0}) is True
    assert "(a value is missing)" in model.debug_one({"a": 0.0})
    assert "(a value is missing)" not in model.debug_one({"a": 0.0, "b": 1.0})
