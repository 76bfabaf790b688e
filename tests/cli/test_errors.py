"""Bad input: one sentence on standard error that names the thing, exit status 2, nothing half-written."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest
from tests.cli.conftest import Command, labels, numbers, write

import credo as library
from credo.sessions import Session

TARGET = ("--target", "y", "--model", "linear")


Refused: TypeAlias = Callable[..., str]
"""Runs a command that must be refused, and returns its sentence."""


@pytest.fixture
def refused(credo: Command, tmp_path: Path) -> Refused:
    def run(*words: object) -> str:
        before = {path for path in tmp_path.rglob("*")}
        outcome = credo(*words)
        assert outcome.status == 2, (outcome.status, outcome.out, outcome.err)
        last = outcome.err.strip().splitlines()[-1]
        assert (
            last.startswith("credo: error: ") and last.endswith((".", "?")) and "Traceback" not in outcome.err
        )
        assert {path for path in tmp_path.rglob("*")} == before
        return last

    return run


@pytest.mark.table
@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("mnits",), "there is no data set 'mnits': did you mean 'mnist'?"),
        (("qqq",), "there is no data set 'qqq', and no such file"),
        (("none.csv", *TARGET), "none.csv does not exist"),
        (
            ("wine", "--model", "resnet"),
            "--model must be linear, mlp:WIDTH,WIDTH,..., cnn, features:NUMBER, bank or wide-bank; got",
        ),
        (("wine", "--model", "mlp:five"), "--model must be"),
        (("wine", "--model", "mlp:0"), "every width of --model mlp must be a whole number at least 1"),
        (("wine", "--model", "cnn"), "--model cnn needs images"),
        (("wine", "--method", "magic"), "--method must be one of bong, blr, bog, bbb, sgd"),
        (
            ("wine", "--curvature", "x"),
            "--curvature must be one of lin-hess, lin-ef, mc-hess, mc-ef; got 'x'",
        ),
        (("wine", "--curvature", "mc-ef", "--method", "sgd"), "--curvature mc-ef does not fit --method sgd"),
        (("wine", "--method", "bogg"), "got 'bogg' (did you mean 'bog'?)"),
        (("wine", "--iterations", "0"), "--iterations must be a whole number at least 1; got 0"),
        (
            ("wine", "--iterations", "3", "--method", "bog"),
            "--iterations is for --method bong, blr or bbb; bog",
        ),
        (("wine", "--iterations", "3", "--method", "adam"), "adam takes one step for each row"),
        (
            ("wine", "--learning-rate", "1.5", "--method", "blr"),
            "must be at most 1 with --method blr; got 1.5",
        ),
        (
            ("wine", "--posterior", "low-rank:0"),
            "the rank of --posterior low-rank must be a whole number at least 1; got 0",
        ),
        (("wine", "--posterior", "low-rank:9999"), "must be at most the number of parameters"),
        (
            ("wine", "--posterior", "huge"),
            "--posterior must be full, diagonal, low-rank:RANK or particles:NUMBER; got 'huge'",
        ),
        (("wine", "--posterior", "full", "--method", "adam"), "--posterior full does not fit --method adam"),
        (("wine", "--drift", "walk:-1"), "--drift walk needs at least 0"),
        (("wine", "--drift", "ou:2"), "--drift ou needs in [0, 1]"),
        (("wine", "--drift", "shrink-perturb:0.9"), "--drift shrink-perturb takes 2 numbers"),
        (("wine", "--prior-var", "-1"), "--prior-var must be finite and above 0; got -1.0"),
        (("diabetes", "--noise-var", "-0.5"), "--noise-var must be finite and above 0; got -0.5"),
        (("wine", "--noise-var", "1"), "--noise-var is for regression"),
        (
            ("wine", "--learning-rate", "1"),
            "--learning-rate is for blr, bog, bbb, sgd, momentum, adam, replay; --method bong",
        ),
        (("wine", "--learning-rate", "0", "--method", "sgd"), "--learning-rate must be finite and above 0"),
        (("wine", "--limit", "-3"), "--limit must be a whole number at least 0; got -3"),
        (("wine", "--chunk", "0"), "--chunk must be a whole number in 1..65536; got 0"),
        (("wine", "--chunk", "1e8"), "--chunk must be a whole number in 1..65536; got 100000000"),
        (("wine", "--iterations", "1.5"), "--iterations must be a whole number; got '1.5'"),
        (("wine", "--seed", "1e20"), "--seed must be a whole number in 0..4294967295; got 1000000"),
        (("wine", "--prior-var", "1e40"), "--prior-var must be in 1e-18..1e+18; got 1e+40"),
        (("diabetes", "--noise-var", "inputs"), "--noise-var must be a number, or input; got 'inputs'"),
        (("wine", "--prior-var", "wide"), "--prior-var must be a number; got 'wide'"),
        (
            ("wine", "--model", "mlp:1e8"),
            "has 1,800,000,003 parameters, for which --posterior low-rank:20 would need",
        ),
        (("wine", "--model", "mlp:1e8", "--method", "adam"), "for which --method adam would need"),
        (("wine", "--target", "y"), "--target is for files"),
        (("wine", "--resume", "no.credo"), "no saved learner at no.credo"),
        (("wine", "--test", "no.csv"), "--test no.csv does not exist"),
        (("wine", "--save", "no/such/b.credo"), "--save no/such/b.credo cannot be written"),
        (("wine", "--seed", "x"), "--seed"),
        (("wine", "--frobnicate"), "--frobnicate"),
    ],
)
def test_options(refused: Refused, words: tuple[str, ...], says: str) -> None:
    assert says in refused("learn", *words)


def test_no_source_and_no_such_command(refused: Refused) -> None:
    assert "SOURCE" in refused("learn").upper()
    assert "lern" in refused("lern", "mnist")
    assert "--level must be between 0 and 1" in refused("predict", "a", "b", "--level", "90")
    assert "exclude each other" in refused("reproduce", "moons", "--quick", "--full")
    assert "experiment must be one of" in refused("reproduce", "moon")


def test_columns(refused: Refused, tmp_path: Path) -> None:
    path = numbers(tmp_path / "t.csv", 40)
    assert "--target is missing: name the column of " in refused("learn", path)
    assert "one of a, b, y" in refused("learn", path)
    assert "target 'z' is no column" in refused("learn", path, "--target", "z")
    assert "drop 'z' is no column" in refused("learn", path, *TARGET, "--drop", "z")
    assert "task must be one of classification, regression" in refused(
        "learn", path, *TARGET, "--task", "rank"
    )
    assert "--shuffle is for named data sets" in refused("learn", path, *TARGET, "--shuffle")


@pytest.mark.table
@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("t.csv", b"", "is empty"),
        ("t.csv", b"a,y\n", "column names but no rows"),
        ("t.csv", b"a,y\n" + b"1,5\n" * 30, "target 'y' is always '5'"),
        ("t.csv", b"a,y\n" + b"1,\n" * 30, "target 'y' is missing in all"),
        ("t.csv", b"PAR1" + bytes(40), "holds parquet data"),
        ("t.parquet", b"a,y\n1,2\n", "does not begin with PAR1"),
        ("t.jsonl", b"a,y\n1,2\n", "is not a JSON object"),
        ("t.csv", b'{"a": 1, "y": 2}\n', "holds JSON lines"),
        ("t.txtx", b"a,y\n1,2\n", "unknown suffix"),
        (
            "t.csv.gz",
            gzip.compress(b"a,y\n" + b"1,2\n3,4.5\n" * 5000, mtime=0)[:60],
            "in the middle of its gzip data",
        ),
        ("t.csv", b"a,y\n" + b"1,2\n3,4.5\n" * 15 + b"7", "is cut: its last line, 32, has 1 of the 2 cells"),
        (
            "t.csv",
            b"a,y\n" + b"".join(b"%d,%d\n" % (i, i % 9 * i) for i in range(30)) + b"p,q,r\n" * 60,
            "changes at line",
        ),
    ],
)
def test_files(refused: Refused, tmp_path: Path, name: str, content: bytes, says: str) -> None:
    (tmp_path / name).write_bytes(content)
    assert says in refused("learn", tmp_path / name, *TARGET)


def test_columns_that_change_after_learning_began_write_nothing(refused: Refused, tmp_path: Path) -> None:
    path = numbers(tmp_path / "t.csv", 1200)
    with path.open("a") as file:
        file.write("x,y,z,w\n" * 80)
    assert "changes at line 1202" in refused("learn", path, *TARGET)


def test_classes_that_never_come(refused: Refused, tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", ["a", "y"], [["1", "2.5"], ["2", "3.5"]] * 5)
    assert "holds none of the classes 7, 8" in refused("learn", path, "--target", "y", "--classes", "7,8")


@pytest.mark.slow
def test_a_new_class_is_learned_unless_the_classes_were_given(credo: Command, tmp_path: Path) -> None:
    words = ("--target", "level", "--model", "linear", "-q")
    path = labels(tmp_path / "u.csv", 60)
    (tmp_path / "new.csv").write_text("a,city,member,level\n1.0,Oslo,yes,medium\n0.5,Paris,no,low\n")
    assert credo("learn", path, *words, "--save", "open").status == 0
    outcome = credo("learn", "new.csv", "--resume", "open", "--save", "s")
    assert outcome.status == 0 and "line 2 has the new class 'medium'" in outcome.err
    assert credo("predict", "s", "new.csv").out.startswith("row,prediction,p(high),p(low),p(medium)")
    assert credo("learn", path, *words, "--save", "closed", "--classes", "high,low").status == 0
    outcome = credo("learn", "new.csv", "--resume", "closed")
    assert "has the target 'medium'" in outcome.err and "--classes" in outcome.err


def test_saved_beliefs(refused: Refused, credo: Command, tmp_path: Path) -> None:
    path = numbers(tmp_path / "t.csv", 40)
    assert credo("learn", path, *TARGET, "--out", "o", "-q").status == 0
    saved = tmp_path / "o" / "belief.credo"
    sentence = refused("learn", path, "--resume", saved, "--model", "mlp:50")
    assert "was saved with --model linear, which cannot be changed to mlp:50" in sentence
    assert "this data is images" in refused("learn", "digits", "--resume", saved)
    other = write(tmp_path / "u.csv", ["q", "y"], [[i, i * 1.5] for i in range(20)])
    assert "column 'a' is not in the table" in refused("learn", other, "--resume", saved)
    data = saved.read_bytes()
    (tmp_path / "cut").write_bytes(data[: len(data) // 2])
    assert "cut is no saved learner, or is cut short" in refused("predict", "cut", path)
    (tmp_path / "bent").write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    assert "bent is damaged" in refused("predict", "bent", path)
    coin = library.BetaBernoulli()
    library.save(tmp_path / "coin", coin, coin.init())
    assert "was saved by a program" in refused("predict", "coin", path)
    session = Session.load(saved)
    from credo.streams import checkpoint

    outcome = checkpoint.read(saved)
    checkpoint.save(
        tmp_path / "old",
        session.learner,
        session.belief,
        meta=outcome.meta | {"session": 0},
        arrays=outcome.arrays,
    )
    assert "saved by another version of credo" in refused("predict", "old", path)
    assert "no saved learner at nothing" in refused("predict", "nothing", path)


def test_folders(refused: Refused, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = numbers(tmp_path / "t.csv", 40)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").touch()
    assert "--out full holds other files (thesis.tex" in refused("learn", path, *TARGET, "--out", "full")
    assert "is a file" in refused("learn", path, *TARGET, "--out", path)
    assert "is a folder" in refused("learn", path, *TARGET, "--save", "full")


@pytest.mark.skipif(os.name != "posix", reason="needs a folder that nobody can write to")
def test_no_write_permission(refused: Refused, tmp_path: Path) -> None:
    path = numbers(tmp_path / "t.csv", 40)
    (tmp_path / "locked").mkdir(mode=0o500)
    place = Path("/proc/nothing") if os.geteuid() == 0 else tmp_path / "locked" / "o"
    assert f"cannot write to {place}" in refused("learn", path, *TARGET, "--out", place)


def test_an_internal_error_is_one_line_and_exit_status_1(
    credo: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("credo.cli.app.run_words", lambda words: json.loads("{"))
    outcome = credo("datasets")
    assert outcome.status == 1 and outcome.err.startswith("credo: internal error: JSONDecodeError")
    assert "Traceback" in credo("datasets", "--debug").err
