"""Counts, and noise that follows the inputs, through a session."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from credo.core.errors import CredoError, DataError
from credo.live.targets import count_baseline
from credo.sessions import Options, Session, resolve

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 2))
Rows = list[dict[str, object]]


def rows_of(y: np.ndarray) -> Rows:
    return [{"a": a, "b": b, "y": value} for (a, b), value in zip(X, y.tolist(), strict=True)]


COUNTS = rows_of(RNG.poisson(20 * np.exp(0.5 * X[:, 0])))


@pytest.mark.slow
def test_counts_are_forecast_in_their_own_units(tmp_path: Path) -> None:
    session, parts = (
        Session.from_rows(COUNTS, "y", task="count", model="linear", chunk=50) for _ in range(2)
    )
    session.learn(COUNTS)
    for start in range(0, 400, 7):
        parts.learn(COUNTS[start : start + 7])
    np.testing.assert_allclose(parts.belief.mean, session.belief.mean, rtol=1e-4)
    assert session.tally.scored == 390 and session.rows_refused == 0
    ours, base = session.metrics(), session.tally.baseline()
    assert ours["nlpd"] < base["nlpd"] - 0.2 and ours["rmse"] < base["rmse"]
    assert ours["coverage_90"] == pytest.approx(0.9, abs=0.06)  # 4 standard errors of 390 rows
    forecasts = Session.load(session.save(tmp_path / "s")).predict([{"a": 1.0, "b": 0.0}], (0.05, 0.95))
    assert forecasts.mean is not None and forecasts.quantiles is not None
    assert forecasts.mean[0] == pytest.approx(20 * np.exp(0.5), rel=0.15)
    assert (forecasts.quantiles == np.round(forecasts.quantiles)).all()
    assert session.test(COUNTS[:60]).metrics()["nlpd"] < base["nlpd"]


def test_the_baseline_of_counts_is_a_distribution() -> None:
    for mean, sd in ((3.0, 1.0), (3.0, 4.0), (0.0, 1.0)):
        y = np.arange(2000.0)
        log_prob, _ = count_baseline(y, np.full(2000, mean), np.full(2000, sd), np.full(2000, 50))
        assert np.exp(log_prob).sum() == pytest.approx(1.0, abs=1e-9)


def test_targets_that_are_no_counts_are_named() -> None:
    with pytest.raises(DataError, match="which are no counts"):
        Session.from_rows(rows_of(X[:, 0]), "y", task="count")
    session = Session.from_rows(COUNTS, "y", task="count", model="linear")
    block = session.encoding.encode  # a row that is no count is bad, and the others are used
    from credo.tables import Chunk

    bad = block(Chunk({"a": [1.0], "b": [1.0], "y": [-3]}, np.array([7])), learn=False).bad
    assert [str(row) for row in bad] == ["line 7 holds -3 in the target 'y', which is no count"]


@pytest.mark.slow
def test_noise_that_follows_the_inputs_is_learned() -> None:
    rows = rows_of(X[:, 0] + np.exp(1.2 * X[:, 1]) * RNG.normal(size=400))
    ours, plain = (
        Session.from_rows(rows, "y", model="linear", noise_var=choice, chunk=50) for choice in ("input", None)
    )
    for session in (ours, plain):
        session.learn(rows)
    assert ours.metrics()["nlpd"] < plain.metrics()["nlpd"] - 0.05 and ours.rows_refused == 0
    sd = ours.predict([{"a": 0.0, "b": -1.5}, {"a": 0.0, "b": 1.5}]).sd
    assert sd is not None and sd[1] > 5 * sd[0]


@pytest.mark.slow
def test_particles_learn_a_table_and_their_noise(tmp_path: Path) -> None:
    rows = rows_of(X[:, 0] + 0.3 * RNG.normal(size=400))
    session = Session.from_rows(rows, "y", model="linear", posterior="particles:200", chunk=50)
    session.learn(rows[:300])
    session.save(tmp_path / "session.credo")
    again = Session.load(tmp_path / "session.credo")
    again.learn(rows[300:])
    sd = again.predict([{"a": 0.0, "b": 0.0}]).sd
    assert again.rows_refused == 0 and sd is not None and 0.2 < float(sd[0]) < 0.5
    assert again.metrics()["rmse"] < 0.45


@pytest.mark.parametrize(("task", "choice"), [("regression", "inputs"), ("count", "input"), ("count", 0.3)])
def test_noise_that_does_not_fit_is_refused(task: str, choice: object) -> None:
    with pytest.raises(CredoError, match="noise_var"):
        resolve(Options(noise_var=choice), task, (2,), 0)  # type: ignore[arg-type]
