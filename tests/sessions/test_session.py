"""A session from Python: frames, dicts, columns and arrays in; forecasts, scores and files out."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from tests.needed import needs

import credo
from credo.core.errors import CredoError, DataError, FormatError
from credo.live.intake import chunks_of
from credo.metrics import Scores, summarize
from credo.sessions import Block, Images, Options, Session, Tally, open_dataset

RNG = np.random.default_rng(0)


def table(count: int) -> dict[str, list[object]]:
    """A regression on two numbers and a city, as columns."""
    a, b = RNG.normal(size=(2, count))
    city = RNG.choice(["Oslo", "Rome"], count)
    y = 5.0 + 3.0 * a - 2.0 * b + (city == "Rome") + 0.1 * RNG.normal(size=count)
    return {"a": a.tolist(), "b": b.tolist(), "city": city.tolist(), "y": y.tolist()}


def rows_of(columns: dict[str, list[object]]) -> list[dict[str, object]]:
    return [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]


def test_frames_dicts_and_columns_are_the_same_rows() -> None:
    pandas, polars = pytest.importorskip("pandas"), needs("polars")
    columns = table(40)
    beliefs = []
    for rows in (columns, rows_of(columns), pandas.DataFrame(columns), polars.DataFrame(columns)):
        session = Session.from_rows(rows, "y", model="linear")
        session.learn(rows)
        beliefs.append(session.belief)
        assert session.rows_used == 40 and session.tally.scored == 30
    assert all(belief == beliefs[0] for belief in beliefs)


def test_rows_may_come_one_by_one_or_all_at_once() -> None:
    columns = table(30)
    whole = Session.from_rows(columns, "y", model="linear", posterior="diagonal")
    parts = Session.from_rows(columns, "y", model="linear", posterior="diagonal")
    whole.learn(columns)
    for row in rows_of(columns):
        parts.learn([row])
    assert whole.belief == parts.belief
    assert whole.metrics() == pytest.approx(parts.metrics())


def test_the_weights_are_noted_after_the_same_rows_however_these_are_grouped() -> None:
    columns = table(100)
    rows = rows_of(columns)
    notes = []
    for size in (100, 1, 7):
        session = Session.from_rows(columns, "y", model="linear", posterior="diagonal")
        for start in range(0, 100, size):
            session.learn(rows[start : start + size])
        notes.append(session.tally.trace.tolist())
    assert notes[0] == notes[1] == notes[2]
    assert [note[0] for note in notes[0]] == [32, 64, 96]


def test_a_pass_that_fails_leaves_the_belief_and_the_count_of_rows_seen() -> None:
    columns = table(30)
    rows = rows_of(columns)
    session = Session.from_rows(columns, "y", model="linear", posterior="diagonal")
    session.learn(rows[:20])
    belief = session.belief
    with patch.object(Session, "_pass", side_effect=RuntimeError("no memory")), pytest.raises(RuntimeError):
        session.learn(rows[20:])
    assert session.belief is belief and session.recovery.seen == 20 and session.tally.scored == 10
    session.recovery.streak = 9
    session.learn(rows[20:])
    assert session.recovery.seen == 30 and session.recovery.streak == 0 and session.tally.scored == 20


def test_forecasts_need_no_target_and_say_which_rows_they_are_of() -> None:
    columns = table(120)
    session = Session.from_rows(columns, "y", model="linear")
    session.learn(columns)
    before = session.belief
    forecasts = session.predict(
        [{"a": 1.0, "b": 0.0, "city": "Rome"}, {"a": "text"}, {"a": 0.0}], levels=(0.05, 0.5, 0.95)
    )
    assert forecasts.lines.tolist() == [1, 3] and forecasts.labels == []
    assert forecasts.mean is not None and forecasts.quantiles is not None
    assert forecasts.mean[0] == pytest.approx(9.0, abs=0.5)
    assert (np.diff(forecasts.quantiles, axis=1) > 0).all()
    assert session.belief == before and session.rows_used == 120
    again = session.predict([{"a": 1.0, "b": 0.0, "city": "Rome"}])
    assert again.quantiles is None and again.mean is not None
    assert again.mean[0] == pytest.approx(forecasts.mean[0])


def test_no_rows_give_no_forecasts_and_teach_nothing() -> None:
    columns = table(20)
    session = Session.from_rows(columns, "y", model="linear")
    assert session.learn([]) is None and session.rows_used == 0
    assert session.predict([]).mean is None


def test_classes_have_labels_and_held_out_scores() -> None:
    x = RNG.normal(size=200)
    rows: list[dict[str, object]] = [{"x": value, "y": "up" if value > 0 else "down"} for value in x]
    session = Session.from_rows(rows, "y", model="linear")
    session.learn(rows[:150])
    assert session.predict([{"x": 3.0}, {"x": -3.0}]).labels == ["up", "down"]
    held_out = session.test(rows[150:])
    assert held_out.scored == 50 and held_out.metrics()["error"] < 0.1
    forecasts = session.predict(rows[150:])
    assert forecasts.probs is not None
    places = [session.encoding.classes.index(str(row["y"])) for row in rows[150:]]
    exact = -np.log(forecasts.probs[np.arange(50), places]).mean()
    assert held_out.metrics()["nlpd"] == pytest.approx(exact, rel=1e-5)  # single precision
    # beside the classes' frequencies in what was learned, of which each counts one more
    learned, tested = ([row["y"] for row in part] for part in (rows[:150], rows[150:]))
    shares = {label: (learned.count(label) + 1) / 152 for label in ("down", "up")}
    most = max(shares, key=lambda label: shares[label])
    assert held_out.baseline()["nlpd"] == pytest.approx(-np.mean([np.log(shares[str(y)]) for y in tested]))
    assert held_out.baseline()["error"] == pytest.approx(np.mean([y != most for y in tested]))
    assert session.rows_used == 150 and session.metrics()["nlpd"] < session.tally.baseline()["nlpd"]


@pytest.mark.slow
def test_a_drift_that_is_a_wrapper_reports_changes() -> None:
    columns = table(30)
    session = Session.from_rows(columns, "y", model="linear", drift="run-length:0.01,3")
    steps = session.learn(columns)
    assert steps is not None and steps.size == 30 and session.changes is not None
    assert session.changes.rows == 30


def test_a_saved_session_goes_on_as_if_it_had_never_stopped(tmp_path: Path) -> None:
    first, second = table(40), table(20)
    session = Session.from_rows(first, "y", model="linear")
    session.learn(first)
    again = Session.load(session.save(tmp_path / "s.credo"))
    for one in (session, again):
        one.learn(second)
    assert again.belief == session.belief and again.metrics() == session.metrics()
    assert again.settings == session.settings and again.rows_used == 60


def test_files_without_a_session_are_refused(tmp_path: Path) -> None:
    coin = credo.BetaBernoulli()
    with pytest.raises(FormatError, match="only a session of this version"):
        Session.load(credo.save(tmp_path / "coin.credo", coin, coin.init()))


def test_what_is_no_row_is_refused() -> None:
    with pytest.raises(DataError, match="row 2 is 3"):
        list(chunks_of([{"a": 1}, 3]))  # type: ignore[list-item]  # the mistake under test
    with pytest.raises(DataError, match="a has 1, b has 2"):
        list(chunks_of({"a": [1], "b": [1, 2]}))
    with pytest.raises(DataError, match="must be a DataFrame"):
        list(chunks_of(3))  # type: ignore[arg-type]  # the mistake under test
    with pytest.raises(DataError, match="got images"):
        Session.from_rows(Images(np.zeros((1, 2, 2)), np.zeros(1, int), np.ones(1)), "y")
    with pytest.raises(DataError, match="encoded already"):
        list(chunks_of(Block(np.zeros((1, 2)), np.zeros(1), np.ones(1), 1)))


def test_options_are_refused_in_the_words_of_the_library() -> None:
    with pytest.raises(CredoError, match=r"^noise_var must be finite and above 0; got -1[.]0") as caught:
        Session.from_rows(table(20), "y", noise_var=-1.0)
    assert caught.value.field == "noise_var"
    with pytest.raises(CredoError, match=r"^`curvature='mc-ef'` does not fit `method='sgd'`"):
        Session.from_rows(table(20), "y", method="sgd", curvature="mc-ef")


def test_a_named_data_set_is_a_source_of_rows() -> None:
    source = open_dataset("wine", limit=60, test_rows=-1)
    session = Session.create(source.encoding, Options(model="linear"), ordered=source.ordered)
    for rows in source.rows:
        session.learn(rows)
    assert session.rows_used == 60 == source.total and str(session.settings.drift) == "none"
    rest = list(open_dataset("wine", limit=30, test_rows=-1, after=20, chunk=8).rows)
    assert [line for rows in rest for line in rows.lines.tolist()] == list(range(21, 51))


def test_the_calibration_error_of_a_session_is_that_of_the_library() -> None:
    probs = RNG.dirichlet(np.ones(3), 500)
    y = np.array([RNG.choice(3, p=p) for p in probs])
    log_prob = np.log(probs[np.arange(500), y])
    scores = Scores(y, None, None, log_prob, None, probs, {}, log_prob, np.ones(500, bool))
    tally = Tally("classification", 3)
    for start in range(0, 500, 70):
        part = scores.rows(slice(start, start + 70))
        tally.add(part, np.zeros(len(part)), np.zeros(len(part)))
    wanted, metrics = summarize(scores), tally.metrics()
    for name in ("ece", "error", "brier", "nlpd"):
        assert metrics[name] == pytest.approx(wanted[name], rel=1e-12), name


def test_a_curve_over_the_latest_rows_is_their_mean() -> None:
    tally, n = Tally("regression"), 40
    y, one = np.arange(1.0, n + 1), np.ones(n)
    scores = Scores(y, 0 * y, one, -y, one / 2, None, {}, one, one > 0)
    tally.add(scores, -one, one)
    rows, mean = tally.curve("nlpd", window=8)
    assert tally.size == 1
    np.testing.assert_allclose(mean, [y[max(0, int(row) - 8) : int(row)].mean() for row in rows])
    np.testing.assert_allclose(tally.curve("nlpd")[1], [y[: int(row)].mean() for row in rows])


def test_the_rows_that_say_the_units_are_learned_once_these_are_known(tmp_path: Path) -> None:
    a = np.random.default_rng(3).normal(size=12)
    rows: list[dict[str, object]] = [{"a": x, "y": 50.0 + 30.0 * x} for x in a]
    whole = Session.from_rows(rows, "y", model="linear", drift="none")
    whole.learn(rows[:10])
    saved = Session.load(whole.save(tmp_path / "early.credo"))
    for session in (whole, saved):
        session.learn(rows[10:])
    assert whole.belief == saved.belief and whole.tally.scored == 2
    # two rows alone leave the slope at a tenth of its value
    ends = whole.predict([{"a": -1.0}, {"a": 1.0}]).mean
    assert ends is not None and 36.0 < ends[1] - ends[0] < 70.0


@pytest.mark.optimised
@pytest.mark.parametrize("target", ["number", "class"])
def test_equal_rows_give_equal_files_however_they_were_grouped(tmp_path: Path, target: str) -> None:
    rng = np.random.default_rng(0)
    rows = [
        {"a": float(a), "b": "uvw"[k % 3] if k % 9 else None, "y": f"{a > b}" if target == "class" else a - b}
        for k, (a, b) in enumerate(rng.normal(size=(150, 2)).tolist())
    ]
    files: list[bytes] = []
    forecasts: Any = []
    for size in (1, 37, 150):
        session = Session.from_rows(rows[:50], "y", model="linear", chunk=40)
        session.prepare()
        frozen = session.freeze()
        for start in range(0, len(rows), size):
            forecasts, _ = session.forecast_then_learn(rows[start : start + size])
        files.append(session.save(tmp_path / f"{size}.credo").read_bytes())
        session.learn(rows)
        fresh = Session.load(frozen.save(tmp_path / "frozen.credo"), chunk=40)
        fresh.learn(rows)
        assert fresh.save(tmp_path / "again.credo").read_bytes() == files[-1]
    assert files[0] == files[1] == files[2]
    nlpd = np.concatenate([one.nlpd for one in forecasts if one.nlpd is not None])
    scored = nlpd[~np.isnan(nlpd)]
    assert len(scored) == fresh.tally.scored == len(rows) - 10 * (target == "number")
    np.testing.assert_allclose(scored.mean(), fresh.metrics()["nlpd"], rtol=1e-12)
