"""`credo bandit`: playing, deciding line by line, and what logs say."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from tests.cli.conftest import Command

from credo import bandits
from credo.cli import main
from credo.cli.bandit_decisions import _waiting_lines

ARMS = ("--arms", "red,blue", "--agent", "beta")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """400 decisions among two arms, which earn 0.3 and 0.6; every tenth has no reward."""
    rng = np.random.default_rng(0)
    chosen = (rng.random(400) < 0.4).astype(int)
    rewards = (rng.random(400) < np.array([0.3, 0.6])[chosen]).astype(float)
    rewards[::10] = np.nan
    pmfs = np.tile([0.6, 0.4], (400, 1))
    path = tmp_path / "log.jsonl"
    bandits.Log(
        ("red", "blue"), chosen, rewards, pmfs[np.arange(400), chosen], {"age": rng.normal(size=400)}, pmfs
    ).write(path)
    return path


@pytest.mark.slow
def test_a_play_is_reported_and_repeated_bit_by_bit(credo: Command, tmp_path: Path) -> None:
    words = ("bandit", "run", "bernoulli", "--steps", "200", "--seeds", "3")
    outcome = credo(*words)
    assert outcome.status == 0, outcome.err
    assert "total regret" in outcome.out and "Beta distribution" in outcome.err
    folder = tmp_path / "runs" / "bandit-bernoulli"
    data = json.loads((folder / "report.json").read_text())
    assert np.sum(data["pulls"], axis=1).tolist() == [200] * 3
    assert 90 < data["scores"]["total_reward"]["mean"] <= 200
    assert sum(data["propensities"]["counts"]) == 600
    assert {path.name for path in (folder / "plots").iterdir()} == {
        *("regret.svg", "pulls.svg", "calibration.svg", "propensities.svg")
    }
    page = (folder / "report.html").read_text()
    assert page.count("data:image/svg+xml") == 4 and "credo bandit run" in page and data["verdict"] in page
    again = credo(*words, "--out", "again")
    assert again.status == 0, again.err
    other = json.loads((tmp_path / "again" / "report.json").read_text())
    assert other["totals"] == data["totals"] and other["curves"] == data["curves"]


def test_a_log_says_what_others_would_have_earned(credo: Command, log: Path, tmp_path: Path) -> None:
    outcome = credo("bandit", "evaluate", log, "--estimator", "dr", "--estimator", "ips", "--out", "e.json")
    assert outcome.status == 0, outcome.err
    assert "40 of 400 decisions have no reward" in " ".join(outcome.out.split())
    found = {
        (one["policy"], one["estimator"]): one for one in json.loads(Path("e.json").read_text())["estimates"]
    }
    assert {policy for policy, _ in found} == {"uniform", "greedy", "red", "blue"}
    for policy, truth in (("red", 0.3), ("blue", 0.6), ("uniform", 0.45)):
        assert found[policy, "dr"]["low"] < truth < found[policy, "dr"]["high"]
    exact = bandits.evaluate_policy(bandits.Log.read(log), "blue", estimator="ips")
    assert found["blue", "ips"]["value"] == exact.value


def test_an_evaluation_is_reported_over_time(credo: Command, log: Path, tmp_path: Path) -> None:
    words = ("bandit", "evaluate", log, "--policy", "blue", "--policy", "uniform", "--estimator", "dr")
    outcome = credo(*words, "--report", "seen")
    assert outcome.status == 0, outcome.err
    assert "report: seen/report.html" in outcome.err
    data = json.loads((tmp_path / "seen" / "report.json").read_text())
    course = bandits.evaluation.evaluate_over_time(bandits.Log.read(log), "blue", parts=9)
    assert [row["value"] for row in data["over_time"]["blue"]] == [row["value"] for row in course.table()]
    assert data["support"]["blue"]["ess"] == course.support.ess
    assert [one["policy"] for one in data["estimates"]] == ["blue", "uniform"]
    assert {path.name for path in (tmp_path / "seen" / "plots").iterdir()} == {
        *("policies.svg", "over-time-1.svg", "over-time-2.svg")
    }
    page = (tmp_path / "seen" / "report.html").read_text()
    assert page.count("data:image/svg+xml") == 3 and "The log earned" in page and "40 of 400" in page
    assert credo(*words, "--report", "seen").status == 0
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("mine")
    refused = credo(*words, "--report", "full")
    assert refused.status != 0 and "--report full holds other files (letter.txt" in refused.err


def test_control_characters_of_arms_are_spelled(credo: Command, tmp_path: Path) -> None:
    chosen = np.arange(40) % 2
    odd = bandits.Log(("\x1b[31mred", "blue"), chosen, chosen.astype(float), np.full(40, 0.5), {})
    odd.write(tmp_path / "odd.jsonl")
    outcome = credo("bandit", "evaluate", "odd.jsonl", "--estimator", "ips")
    assert outcome.status == 0, outcome.err
    assert "\\x1b[31mred" in outcome.out and "\x1b" not in outcome.out


@pytest.mark.slow
def test_an_agent_is_replayed_on_a_log(credo: Command, log: Path) -> None:
    outcome = credo("bandit", "replay", log, "--agent", "beta", "--seeds", "2")
    assert outcome.status == 0, outcome.err
    said = " ".join(outcome.out.split())
    assert "360 rows replayed" in said and "40 decisions without a reward" in said
    line = next(line for line in outcome.out.splitlines() if "the agent " in line)
    assert 0.35 < float(line.split()[2]) < 0.75


def answers(
    credo: Command, monkeypatch: pytest.MonkeyPatch, lines: Any, *words: object
) -> list[dict[str, Any]]:
    """What is answered to lines from standard input."""
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
    outcome = credo("bandit", "decide", "a.credo", "-", *words)
    assert outcome.status == 0, outcome.err
    return [json.loads(line) for line in outcome.out.splitlines()]


def test_decisions_go_on_as_if_they_had_never_stopped(
    credo: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    lines = [
        '{"context": null}',
        '{"id": "0-0", "reward": 1}',
        '{"context": null, "id": 7, "arms": ["blue"]}',
        '{"id": 7, "reward": 0}',
        '{"context": null}',
    ]
    whole = answers(credo, monkeypatch, lines, *ARMS, "--log", "log.jsonl")
    assert [one.get("status", one.get("arm")) for one in whole[1:4]] == ["learned", "blue", "learned"]
    assert whole[2]["id"] == "7" and whole[2]["pmf"] == {"red": 0.0, "blue": 1.0}
    assert sum(whole[4]["pmf"].values()) == pytest.approx(1.0)
    assert len(bandits.Log.read(tmp_path / "log.jsonl")) == 3
    Path("a.credo").unlink()
    parts = answers(credo, monkeypatch, lines[:3], *ARMS) + answers(credo, monkeypatch, lines[3:])
    assert parts[:4] == whole[:4] and parts[4]["id"].startswith("0.")  # no log says what came after the save
    assert {**parts[4], "id": "0-2"} == whole[4]
    Path("a.credo").unlink()
    logged = ("--log", "other.jsonl")
    parts = answers(credo, monkeypatch, lines[:3], *ARMS, *logged)
    assert parts + answers(credo, monkeypatch, lines[3:], *logged) == whole
    assert not list(tmp_path.glob(".*"))  # no lock is left


def test_bad_lines_are_answered_and_change_nothing(credo: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    answers(credo, monkeypatch, ['{"context": null}'], *ARMS)
    before = Path("a.credo").read_bytes()
    bad = {
        "nonsense": "JSON object",
        '{"contxt": 1}': "'contxt'",
        '{"id": "0-0", "reward": NaN}': "finite number",
        '{"reward": 1}': "the id of its decision",
        '{"context": null, "arms": ["green"]}': "'green'",
        '{"context": {"age": 3}}': "context must have",
    }
    said = answers(credo, monkeypatch, bad)
    assert [one["line"] for one in said] == [1, 2, 3, 4, 5, 6]
    for one, words in zip(said, bad.values(), strict=True):
        assert words in one["error"]
    assert Path("a.credo").read_bytes() == before
    monkeypatch.setattr("sys.stdin", io.StringIO("nonsense\n"))
    outcome = credo("bandit", "decide", "a.credo", "--strict")
    assert outcome.status == 2 and "line 1 of -" in outcome.err


def test_choices_of_others_and_parts_of_rewards_are_learned(
    credo: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = '{"context": null, "arm": "red", "reward": 1, "propensity": 0.2, "id": "x"}'
    lines = [seen, seen, seen.replace('1, "prop', '0, "prop'), '{"context": null, "arm": "blue"}']
    parts = [
        '{"id": "0-1", "reward": 1, "part": "a"}',
        '{"id": "0-1", "reward": 0}',
        '{"arm": "red", "part": 1}',
    ]
    said = answers(credo, monkeypatch, [*lines, *parts], *ARMS)
    assert [one.get("status") for one in said] == (
        ["learned", "duplicate", "conflict", "pending", "added", "learned", None]
    )
    assert "got 'part' beside an arm" in said[-1]["error"]
    means = bandits.Bandit.load("a.credo").decide().mean
    assert means == pytest.approx({"red": 2 / 3, "blue": 2 / 3}, rel=1e-6)


def test_slates_are_decided_and_rewarded_by_their_places(
    credo: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [
        '{"id": "s", "rewards": [1, 0]}',
        '{"context": null, "size": 2, "id": "s"}',
        '{"id": "s", "rewards": [0]}',
        '{"id": "s", "rewards": 1}',
        '{"id": "s", "rewards": [0, 1]}',
        '{"id": "s", "rewards": [1, 1], "seen": "all"}',
        '{"context": null, "size": 2, "id": "t"}',
        '{"id": "t", "rewards": [1, 0]}',
        '{"context": null, "size": 3}',
    ]
    early, slate, short, no_list, learned, other, _, upper, large = answers(credo, monkeypatch, lines, *ARMS)
    assert early["statuses"] == ["unknown", "unknown"]
    assert [one["arm"] for one in slate["places"]] == slate["arms"] and set(slate["arms"]) == {"red", "blue"}
    assert slate["propensity"] == slate["places"][0]["propensity"] and slate["places"][1]["propensity"] == 1.0
    assert "values must be as many as the places" in short["error"]
    assert "rewards must be a list" in no_list["error"]
    assert learned["statuses"] == ["learned", "learned"] and upper["statuses"] == ["learned", None]
    assert other["statuses"] == ["conflict", "duplicate"] and "which stays" in other["error"]
    assert "size must be at most" in large["error"]


def test_requests_that_wait_together_are_answered_after_one_flush(
    credo: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers(credo, monkeypatch, ['{"context": null}'], *ARMS, "--log", "log.jsonl")
    happened: list[Any] = []
    real, path = os.fsync, Path("log.jsonl")
    before = path.stat().st_size

    def flush(file: int) -> None:
        happened.append(path.stat().st_size)
        real(file)

    class Out(io.StringIO):
        def write(self, text: str) -> int:
            happened.append(text)
            return len(text)

    asked = [f'{{"context": null, "id": "r{number}"}}' for number in range(3)]
    lines = [*asked, '{"id": "r1", "reward": 1}', '{"id": "r1", "reward": 0}', "x"]
    monkeypatch.setattr(os, "fsync", flush)
    monkeypatch.setattr("sys.stdout", Out())
    monkeypatch.setattr(
        "sys.stdin", io.TextIOWrapper(io.BytesIO("".join(f"{one}\n" for one in lines).encode()))
    )
    assert main(["bandit", "decide", "a.credo", "-", "--log", "log.jsonl"]) == 0
    place, said = next((place, what) for place, what in enumerate(happened) if isinstance(what, str))
    new = [size for size in happened[:place] if size > before]
    assert new == [path.stat().st_size]  # all was on the disk, by one flush
    found = [json.loads(line) for line in said.splitlines()]
    assert [one["id"] for one in found[:3]] == ["r0", "r1", "r2"] and found[3]["status"] == "learned"
    assert found[4]["status"] == "conflict" and "must be the one that was learned" in found[4]["error"]
    assert found[5]["line"] == 6


def test_lines_are_grouped_as_they_come() -> None:
    class Slow(io.RawIOBase):
        pieces: ClassVar[list[bytes]] = [b"one\ntwo\nth", b"re", b"e\n", b"\xff\n", b"last"]

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: Any) -> int:
            piece = self.pieces.pop(0) if self.pieces else b""
            buffer[: len(piece)] = piece
            return len(piece)

    groups = list(_waiting_lines(io.BufferedReader(Slow())))
    assert groups == [["one", "two"], ["three"], ["\ufffd"], ["last"]]


def test_an_agent_is_saved_before_its_first_answer(credo: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def lines() -> Iterator[str]:
        yield '{"context": null, "arms": ["green"]}\n'
        assert not Path("a.credo").exists()
        yield '{"context": null}\n'
        shutil.copy("a.credo", "left.credo")  # what a kill leaves
        yield '{"id": "0-0", "reward": 1}\n'
        shutil.copy("log.jsonl", "left.jsonl")

    monkeypatch.setattr("sys.stdin", lines())
    outcome = credo("bandit", "decide", "a.credo", *ARMS, "--log", "log.jsonl")
    assert outcome.status == 0, outcome.err
    bandit = bandits.Bandit.load("left.credo", log="left.jsonl")
    assert bandit.counts.learned == 1 and bandit.reward("0-0", 1) == "duplicate"


def test_a_request_to_stop_saves_the_agent(credo: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def lines() -> Iterator[str]:
        yield '{"context": null}\n'
        os.kill(os.getpid(), signal.SIGTERM)
        raise AssertionError("it went on")

    monkeypatch.setattr("sys.stdin", lines())
    outcome = credo("bandit", "decide", "a.credo", *ARMS)
    assert outcome.status == 128 + signal.SIGTERM, outcome.err
    assert json.loads(outcome.out)["id"] == "0-0"
    assert bandits.Bandit.load("a.credo").counts.pending == 1


@pytest.mark.table
@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("run", "bernolli"), "there is no environment 'bernolli'; did you mean 'bernoulli'?"),
        (("run", "bernoulli", "--agent", "bet"), "--agent must be one of default, linear, network, beta"),
        (("run", "bernoulli", "--policy", "ucb:x"), "--policy must have a number behind the colon"),
        (("run", "bernoulli", "--policy", "ucb:-1"), "--policy ucb:-1 is not allowed"),
        (("run", "bernoulli", "--seeds", "0"), "--seeds must be a whole number at least 1; got 0"),
        (("run", "bernoulli", "--delay", "-1"), "--delay must be a whole number at least 0"),
        (("run", "wheel", "--divisor", "0"), "--divisor must be finite and above 0"),
        (("run", "gaussian", "--agent", "network"), "--agent network needs contexts"),
        (("run", "gaussian", "--agent", "beta"), "--agent beta is for rewards of 0 and 1"),
        (("evaluate", "none.jsonl"), "none.jsonl does not exist"),
        (
            ("evaluate", "log.jsonl", "--policy", "green"),
            "--policy must be uniform, greedy, or an arm of the log",
        ),
        (("evaluate", "log.jsonl", "--estimator", "drr"), "--estimator must be one of"),
        (("evaluate", "log.jsonl", "--reward-range", "0"), "--reward-range must be two numbers"),
        (("evaluate", "log.jsonl", "--out", "no/e.json"), "--out no/e.json cannot be written"),
        (("replay", "log.jsonl", "--policy", "luck"), "--policy must be thompson, ucb"),
        (("decide", "a.credo"), "a.credo does not exist; give the names of the arms"),
        (("decide", "a.credo", "--arms", "red"), "--arms must be two or more different names"),
        (("decide", "log.jsonl"), "log.jsonl"),
        (("decide", "a.credo", "none", *ARMS), "cannot read none"),
    ],
)
def test_bad_requests_are_refused_in_a_sentence(
    words: tuple[str, ...], says: str, credo: Command, log: Path, tmp_path: Path
) -> None:
    outcome = credo("bandit", *words)
    assert outcome.status == 2, (outcome.out, outcome.err)
    assert says in outcome.err and outcome.err.startswith("credo: error: ")
    assert [path.name for path in tmp_path.iterdir()] == ["log.jsonl"]
