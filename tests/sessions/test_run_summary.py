"""What a person reads: the verdict, and how much of a file is left."""

from __future__ import annotations

import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from credo.cli import progress
from credo.sessions import ColumnOptions, Session, Tally, open_file
from credo.sessions.run_summary import Results, summarize_run, verdict


def judged(nlpd: float, base_nlpd: float, loss: float, base_loss: float, last: float = 0.0) -> str:
    tally = Tally("regression")
    tally.scored = 10
    tally.sums = 10 * np.array([[1.0, nlpd, loss**2, nlpd, loss, base_nlpd, base_loss**2, last**2]])
    settings = types.SimpleNamespace(learning_rate=None)
    session = types.SimpleNamespace(tally=tally, settings=settings)
    results: Any = types.SimpleNamespace(session=session, baseline_name="running mean", ordered=last > 0)
    return verdict(results)


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        (
            (1.0, 1.5, 0.2, 0.4),
            "beats the running mean by 0.500 nats a row (NLPD 1.000 against 1.500); its RMSE",
        ),
        (
            (1.0, 1.5, 0.5, 0.4),
            "beats the running mean by 0.500 nats a row (NLPD 1.000 against 1.500), although",
        ),
        (
            (1.5, 1.0, 0.5, 0.4),
            "loses to the running mean by 0.500 nats a row (NLPD 1.500 against 1.000); its",
        ),
        (
            (1.5, 1.0, 0.2, 0.4),
            "loses to the running mean by 0.500 nats a row (NLPD 1.500 against 1.000), although",
        ),
        ((1.0, 1.0, 0.4, 0.4), "draws level with the running mean (NLPD 1.000 against 1.000)"),
        ((200.0, 1.0, 0.4, 0.4), "has diverged"),
    ],
)
def test_the_verdict_is_by_the_log_score(numbers: tuple[float, float, float, float], words: str) -> None:
    assert words in judged(*numbers)


def test_the_verdict_names_the_last_value_if_it_is_the_strongest_baseline() -> None:
    assert judged(1.0, 1.5, 0.2, 0.4, 0.1).endswith(
        "although its RMSE is 0.2 against 0.4, and repeating the last value has 0.1, less than both"
    )
    assert judged(1.0, 1.5, 0.2, 0.4, 0.3).endswith("; its RMSE is 0.2 against 0.4")


def test_the_rows_of_a_parquet_file_are_counted_by_its_metadata(tmp_path: Path) -> None:
    pandas, path = pytest.importorskip("pandas"), str(tmp_path / "t.parquet")
    pandas.DataFrame({"a": np.arange(50.0), "y": np.arange(50.0)}).to_parquet(path)
    totals = [open_file(path, ColumnOptions("y"), limit=limit, after=10).total for limit in (None, 15, 90)]
    assert totals == [40, 15, 40]


def test_the_time_left_of_a_file_comes_from_its_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,y\n" + "".join(f"{i / 7:.6f},{i / 3:.6f}\n" for i in range(20000)))
    source = open_file(str(path), ColumnOptions("y"))
    shares = [source.share() for rows in source.rows if len(rows)]
    known = [share for share in shares if share is not None]
    assert len(known) == len(shares) and known == sorted(known)
    assert known[0] < 0.15 and known[-1] == 1.0 and source.share() == 1.0
    assert open_file(str(path), ColumnOptions("y"), limit=100).share() is None
    monkeypatch.setattr(progress, "PLAIN_SECONDS", 0.0)
    shares = [0.1, 0.4]
    with progress.Watch(None, False, lambda: shares[0]) as watch:
        watch.tell(200, Tally("regression"), 0)
        first = capsys.readouterr().err.splitlines()
        del shares[0]
        assert watch.compiled is not None
        watch.compiled = watch.compiled[0] - 30.0, *watch.compiled[1:]
        watch.tell(500, Tally("regression"), 0)
    assert first == ["compiling", "200 rows  10%"]  # how long that took says nothing about the rest
    line = capsys.readouterr().err
    assert "500 rows  40%  10 rows/s" in line and "60 s left" in line


def test_the_numbers_of_a_run_are_of_the_classes_only_where_there_are_classes() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=30)
    for targets, kind in ((x + 1.0, "regression"), (np.where(x > 0, "up", "down"), "classification")):
        rows: list[dict[str, object]] = [
            {"x": one, "y": y} for one, y in zip(x.tolist(), targets.tolist(), strict=True)
        ]
        session = Session.from_rows(rows, "y", model="linear")
        blank = summarize_run(Results("rows", session, ("a note",), [], None, 2.0, 0, False, False))
        assert "by_class" not in blank and "last_value_baseline" not in blank
        session.learn(rows)
        full: dict[str, Any] = {
            **summarize_run(Results("rows", session, (), ["line 7"], session.tally, 2.0, 30, True, True))
        }
        assert full["task"] == kind and full["interrupted"] and full["rows_per_second"] == 15.0
        assert full["rows"]["read"] == full["rows"]["learned"] == 30 and full["rows"]["bad"] == ["line 7"]
        assert full["metrics"] == session.metrics() and full["test"]["rows"] == session.tally.scored
        word = "rmse" if kind == "regression" else "error"
        assert full["last_value_baseline"] == {word: session.tally.latest("last_loss")}
        if kind == "regression":
            assert "by_class" not in full
        else:
            rows_of = [full["by_class"][name]["rows"] for name in ("down", "up")]
            assert rows_of == session.tally.counts.tolist()
