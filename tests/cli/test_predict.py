"""`credo predict`, and the commands that list."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.conftest import Command, labels, numbers

ROOT = Path(__file__).resolve().parents[2]


def table(text: str) -> list[dict[str, str]]:
    """The rows of a CSV."""
    return list(csv.DictReader(io.StringIO(text)))


def test_numbers_round_trip_with_intervals(credo: Command, tmp_path: Path) -> None:
    learn = numbers(tmp_path / "a.csv", 200)
    assert credo("learn", learn, "--target", "y", "--model", "linear", "--out", "o", "-q").status == 0
    new = numbers(tmp_path / "b.csv", 60, start=200)
    outcome = credo("predict", "o/belief.credo", new)
    assert outcome.status == 0, outcome.err
    rows = table(outcome.out)
    assert list(rows[0]) == ["row", "mean", "sd", "lower", "upper"] and rows[0]["row"] == "2"
    truth = np.array([float(row["y"]) for row in table(new.read_text())])
    columns = {
        name: np.array([float(row[name]) for row in rows]) for name in ("mean", "sd", "lower", "upper")
    }
    assert np.sqrt(np.mean((columns["mean"] - truth) ** 2)) < 6
    assert 0.75 <= np.mean((columns["lower"] <= truth) & (truth <= columns["upper"])) <= 1
    narrow = table(credo("predict", "o/belief.credo", new, "--level", 0.5).out)
    assert float(narrow[0]["upper"]) - float(narrow[0]["lower"]) < columns["upper"][0] - columns["lower"][0]


def test_classes_without_the_target_column_and_with_bad_rows(credo: Command, tmp_path: Path) -> None:
    learn = labels(tmp_path / "a.csv", 200)
    assert credo("learn", learn, "--target", "level", "--model", "linear", "--save", "s", "-q").status == 0
    (tmp_path / "b.csv").write_text("city,a,member\nRome,2.0,yes\nParis,,no\nOslo,text,no\nOslo,-2.0,no\n")
    outcome = credo("predict", "s", "b.csv", "--out", "p.csv")
    assert (
        outcome.status == 0 and "1 bad row skipped: line 4 holds 'text'" in outcome.err and outcome.out == ""
    )
    rows = table((tmp_path / "p.csv").read_text())
    assert [row["row"] for row in rows] == ["2", "3", "5"]
    assert rows[0]["prediction"] == "high" and rows[2]["prediction"] == "low"
    assert abs(float(rows[0]["p(high)"]) + float(rows[0]["p(low)"]) - 1) < 1e-5
    assert (
        credo("predict", "s", "b.csv", "--strict", "--out", "q.csv").status == 2
        and not (tmp_path / "q.csv").exists()
    )


def test_columns_are_kept_beside_the_predictions_of_the_run_in_a_folder(
    credo: Command, tmp_path: Path
) -> None:
    learn = labels(tmp_path / "a.csv", 200)
    assert credo("learn", learn, "--target", "level", "--model", "linear", "--out", "o", "-q").status == 0
    (tmp_path / "b.csv").write_text(
        'id,city,a,member\n"7,x",Rome,2.0,yes\n8,Paris,text,no\n=9,Oslo,-2.0,no\n'
    )
    rows = table(credo("predict", "o", "b.csv", "--keep", "id, city", "--spreadsheet").out)
    assert list(rows[0])[:4] == ["row", "id", "city", "prediction"]
    assert [(row["id"], row["city"]) for row in rows] == [("7,x", "Rome"), ("'=9", "Oslo")]
    assert credo("predict", "o", "b.csv", "--keep", "id", "--out", "p.jsonl").status == 0
    assert json.loads((tmp_path / "p.jsonl").read_text().splitlines()[1])["id"] == "=9"
    assert credo("predict", "o", "b.csv", "--keep", "id", "--out", "p.parquet").status == 0
    for words, said in [
        (("o", "--keep", "cty"), "--keep must name columns of b.csv; got 'cty': did you mean 'city'?"),
        (("o", "--keep", "row"), "--keep must name columns that the predictions do not have; got 'row'"),
        ((".",), ". has no belief.credo: it must be the folder of a run that has ended."),
    ]:
        outcome = credo("predict", words[0], "b.csv", *words[1:])
        assert outcome.status == 2 and said in " ".join(outcome.err.split())


def test_the_command_is_a_module() -> None:
    said = subprocess.run(
        [sys.executable, "-m", "credo", "--version"], capture_output=True, text=True, check=True
    )
    assert said.stdout.startswith("credo 0.")


@pytest.mark.slow
def test_no_control_character_of_a_cell_is_printed_or_reported(credo: Command, tmp_path: Path) -> None:
    odd, lines = "\x1b[31mred", ["\x1b[7ma\x07,level"]
    lines += [f"{i % 7},{odd if i % 7 > 3 else '=low'}" for i in range(60)]
    (tmp_path / "a.csv").write_text("\n".join([*lines, "\x1b[2J,=low", ""]))
    learned = credo("learn", "a.csv", "--target", "level", "--model", "linear", "--out", "o")
    refused = credo("learn", "a.csv", "--target", "\x1b[31m")
    assert (learned.status, refused.status) == (0, 2)
    shown = learned.out + learned.err + refused.err + (tmp_path / "o" / "report.html").read_text()
    assert "\\x1b[31mred" in shown and "\x1b" not in shown
    (tmp_path / "b.csv").write_text("\x1b[7ma\x07\n1\n6\n")
    words = ("predict", "o/belief.credo", "b.csv", "--out")
    assert credo(*words, "plain.csv").status == credo(*words, "safe.csv", "--spreadsheet").status == 0
    labels = [
        [row["prediction"] for row in table((tmp_path / f"{name}.csv").read_text())]
        for name in ("plain", "safe")
    ]
    assert labels == [["=low", odd], ["'=low", odd]]
    for out in ("p.jsonl", "p.parquet"):
        assert "--spreadsheet is for CSV" in credo(*words, out, "--spreadsheet").err
    assert "--spreadsheet is for CSV" in credo("learn", "a.csv", "--target", "level", "--spreadsheet").err


def test_listings_and_version(credo: Command) -> None:
    listed = credo("datasets")
    assert listed.status == 0 and "electricity" in listed.out and "yacht" in listed.out
    assert "kf-tracking" in credo("reproduce").out
    assert credo("--version").out.startswith("credo 0")
    shown = credo("learn", "--help")
    assert shown.status == 0 and "--posterior" in shown.out and "--resume" in shown.out


def run(*words: str, **streams: Any) -> subprocess.Popen[str]:
    code = "import sys; from credo.cli import main; sys.exit(main())"
    env = os.environ | {"PYTHONPATH": str(ROOT / "src"), "JAX_PLATFORMS": "cpu"}
    return subprocess.Popen([sys.executable, "-c", code, *words], env=env, text=True, **streams)


def test_help_imports_no_jax() -> None:
    code = "import sys; from credo.cli import main; main(['--help']); main(['learn', '--help']);"
    code += "sys.exit('jax' in sys.modules)"
    env = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "credo learn mnist" in done.stdout


@pytest.mark.slow
def test_a_closed_pipe_is_quiet(tmp_path: Path) -> None:
    outcome = run("datasets", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert outcome.stdout is not None and outcome.stderr is not None
    outcome.stdout.close()
    err = outcome.stderr.read()
    assert outcome.wait(60) in (0, 1) and "Traceback" not in err
