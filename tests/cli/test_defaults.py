"""The default at every door: a bank that nobody chose, in other processes, a second time and after a restart.

All doors get the same columns, so that most of them share the few programs that these tests compile.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import write
from tests.serve.conftest import hosting, ready

import credo
from credo.bandits import Bandit
from credo.sessions import Session

ROWS, NAMES = 60, ("a", "b", "c")


def cells(count: int) -> list[dict[str, float]]:
    """The first rows of an endless table: y = 50 + 20 a - 10 b + noise."""
    draws = np.random.default_rng(0).normal(size=(count, 4)).round(4)
    y = 50 + 20 * draws[:, 0] - 10 * draws[:, 1] + draws[:, 3]
    return [dict(zip((*NAMES, "y"), row, strict=True)) for row in np.c_[draws[:, :3], y.round(4)].tolist()]


def process(folder: Path, *words: str) -> str:
    """What a command prints that is a process of its own, as a user starts it."""
    run = subprocess.run(
        [sys.executable, "-m", "credo", *words], cwd=folder, env=os.environ, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with tables, one of which `credo learn` has learned, and gone on with its rows to come."""
    folder = tmp_path_factory.mktemp("learned")
    rows = [list(row.values()) for row in cells(ROWS + 5)]
    for name, part in (("first", rows[:40]), ("whole", rows[:ROWS]), ("new", rows[ROWS:])):
        write(folder / f"{name}.csv", [*NAMES, "y"], part)
    process(folder, "learn", "first.csv", "--target", "y", "--out", "run")
    process(folder, "learn", "whole.csv", "--resume", "run", "--out", "run")
    process(folder, "predict", "run/belief.credo", "new.csv", "--out", "predictions.csv")
    return folder


def forecasts(folder: Path) -> list[dict[str, float]]:
    """The predictions that the command wrote."""
    with (folder / "predictions.csv").open(newline="") as file:
        return [{name: float(cell) for name, cell in row.items()} for row in csv.DictReader(file)]


def test_the_command_learns_goes_on_and_predicts_in_processes_of_their_own(learned: Path) -> None:
    data = json.loads((learned / "run/metrics.json").read_text())
    assert len(data["bank"]["members"]) > 5
    assert data["rows"]["learned"] == ROWS
    predicted = [row["mean"] for row in forecasts(learned)]
    np.testing.assert_allclose(predicted, [row["y"] for row in cells(ROWS + 5)[ROWS:]], atol=8.0)


@pytest.mark.usefixtures("as_users")
def test_a_session_of_a_file_of_the_command_forecasts_what_the_command_does(learned: Path) -> None:
    session = Session.load(learned / "run/belief.credo")
    assert str(session.settings.model) == "bank"
    rows: list[dict[str, object]] = [dict(row) for row in cells(ROWS + 5)[ROWS:]]
    ours = session.predict(rows)
    theirs = [row["mean"] for row in forecasts(learned)]
    assert ours.mean is not None
    np.testing.assert_allclose(ours.mean, theirs, rtol=1e-5)


@pytest.mark.usefixtures("as_users")
def test_a_service_learns_and_answers_alike_after_a_restart(tmp_path: Path) -> None:
    asked = {"x": {name: 0.5 for name in NAMES}}
    answers: list[dict[str, float]] = []
    with hosting(tmp_path / "service") as host:
        assert host.put("/v1/models/m", json={"target": "y", "first": 40}).status_code == 202
        for number, row in enumerate(cells(ROWS)):
            body = {"id": str(number), "x": {name: row[name] for name in NAMES}, "y": row["y"]}
            assert host.post("/v1/models/m/learn", json=body).status_code in (200, 202)
            if number == 39:
                ready(host)
        answers.append(host.post("/v1/models/m/predict", json={"id": "first", **asked}).json()["forecast"])
    with hosting(tmp_path / "service") as host:
        ready(host)
        answers.append(host.post("/v1/models/m/predict", json={"id": "second", **asked}).json()["forecast"])
    assert answers[0] == answers[1] and abs(answers[0]["mean"] - 55.0) < 8.0, answers


def test_keys_are_learned_and_gone_on_with(tmp_path: Path) -> None:
    rows = [[f"u{number % 3}", *row.values()] for number, row in enumerate(cells(ROWS))]
    write(tmp_path / "t.csv", ["user", *NAMES, "y"], rows)
    process(tmp_path, "keyed", "t.csv", "--key", "user", "--target", "y", "--out", "run")
    write(tmp_path / "t.csv", ["user", *NAMES, "y"], [*rows, *rows[:3]])
    process(tmp_path, "keyed", "t.csv", "--out", "run", "--resume")
    keyed = credo.Keyed.load(tmp_path / "run/shard-000")
    assert len(keyed) == 3


def test_a_bandit_decides_and_goes_on_in_processes_of_their_own(tmp_path: Path) -> None:
    words = ("bandit", "decide", "shop.credo", "lines.jsonl", "--log", "log.jsonl")
    lines = [{"id": f"d{number}", "context": {"age": float(number)}} for number in range(3)]
    (tmp_path / "lines.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    process(tmp_path, *words, "--arms", "red,blue,green")
    rewards = [{"id": f"d{number}", "reward": 1.0} for number in range(3)]
    (tmp_path / "lines.jsonl").write_text("".join(json.dumps(line) + "\n" for line in rewards))
    answers = [json.loads(line) for line in process(tmp_path, *words).splitlines()]
    assert [answer["status"] for answer in answers] == ["learned"] * 3
    bandit = Bandit.load(tmp_path / "shop.credo")
    assert (bandit.counts.decisions, bandit.counts.learned) == (3, 3)


@pytest.mark.usefixtures("as_users")
def test_a_bandit_of_a_service_decides_alike_after_a_restart(tmp_path: Path) -> None:
    with hosting(tmp_path / "service") as host:
        spec = {"kind": "bandit", "arms": ["red", "blue"], "features": 4}
        assert host.put("/v1/models/shop", json=spec).status_code == 202
        ready(host)
        first = host.post("/v1/models/shop/decide", json={"id": "d", "context": {"age": 3.0}}).json()
    with hosting(tmp_path / "service") as host:
        ready(host)
        again = host.post("/v1/models/shop/decide", json={"id": "d", "context": {"age": 3.0}}).json()
        assert again["pmf"] == first["pmf"]
        said = host.post("/v1/models/shop/reward", json={"id": "d", "value": 1.0})
        assert said.json()["status"] == "learned"
    with hosting(tmp_path / "service") as host:
        ready(host)
        (shop,) = host.get("/v1/models").json()["models"]
        assert shop["learned"] == 1


@pytest.mark.usefixtures("as_users")
def test_estimators_learn_batches_and_rows() -> None:
    rows = cells(ROWS + 5)
    x = np.asarray([[row[name] for name in NAMES] for row in rows])
    y = np.asarray([row["y"] for row in rows])
    regressor = credo.OnlineRegressor().fit(x[:ROWS], y[:ROWS])
    mean, sd = regressor.predict(x[ROWS:], return_std=True)
    assert np.abs(mean - y[ROWS:]).max() < 8.0 and (sd > 0).all()
    river = credo.RiverRegressor()
    for row in rows[:ROWS]:
        river.learn_one({name: row[name] for name in NAMES}, row["y"])
    told = [river.predict_one({name: row[name] for name in NAMES}) for row in rows[ROWS:]]
    assert np.abs(np.asarray(told) - y[ROWS:]).max() < 8.0
