"""`credo flow`: training with its report, going on bit by bit, evaluation, and refusals."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.conftest import Command

from credo import flows
from credo.cli import flow_runs

CONFIG = """
[tasks]
kind = "linear-gaussian"
transition = [[0.9, 0.2], [0.0, 0.8]]
transition_cov = 0.3
observation = "system.npz:B"
observation_cov = 0.5
length = 4
particles = 16
targets = 8

[operator]
base = "none"
width = 2
hidden = 8
embedding = 0

[training]
steps = 12
every = 4
batch = 2
pool = 4
sequences = 2
stages = 2
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A small training, whose matrix comes from a file."""
    np.savez(tmp_path / "system.npz", B=np.array([[1.0, 0.0]]))
    path = tmp_path / "flow.toml"
    path.write_text(CONFIG)
    return path


@pytest.mark.slow
def test_a_training_is_reported_evaluated_and_goes_on_bit_by_bit(
    credo: Command, config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome = credo("flow", "train", "flow.toml")
    assert outcome.status == 0, outcome.err
    assert "above its exact floor" in " ".join(outcome.out.split()) and "12/12" in outcome.err
    folder = tmp_path / "runs" / "flow-flow"
    names = {path.name for path in folder.iterdir()}
    assert names == {
        *("operator.flow", "training.safetensors", "settings.json"),
        *("report.json", "report.html", "plots"),
    }
    page = (folder / "report.html").read_text()
    assert page.count("data:image/svg+xml") == 4 and "credo flow train" in page

    scored = credo("flow", "evaluate", folder, "--sequences", "2", "--stages", "2", "--out", "scores.json")
    assert scored.status == 0, scored.err
    found = json.loads((tmp_path / "scores.json").read_text())
    assert found["scores"].keys() == {"loss", "floor", "kde", "gaussian"}
    assert len(found["stages"]["kde"]) == 2 and found["milliseconds"]["update"] > 0

    # Ctrl-C lets the chunk end, which is saved after eight steps; without validation there is less to compile
    (tmp_path / "flow.toml").write_text(CONFIG.replace("sequences = 2\nstages = 2", "sequences = 0"))
    tell = flow_runs.FlowWatch.tell

    def interrupted(self: Any, history: flows.History) -> None:
        tell(self, history)
        if history.steps == 4:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(flow_runs.FlowWatch, "tell", interrupted)
    stopped = credo("flow", "train", "flow.toml", "--out", "parts")
    assert stopped.status == 130
    assert "continue with: credo flow train flow.toml --resume parts" in stopped.err
    monkeypatch.setattr(flow_runs.FlowWatch, "tell", tell)
    again = credo("flow", "train", "flow.toml", "--out", "parts")
    assert again.status == 2 and "--resume parts" in again.err
    other = credo("flow", "train", "flow.toml", "--resume", "parts", "--seed", "3")
    assert other.status == 2 and "another seed of training" in other.err
    rest = credo("flow", "train", "flow.toml", "--resume", "parts")
    assert rest.status == 0, rest.err
    assert flows.load_operator(Path("parts/operator.flow")) == flows.load_operator(folder / "operator.flow")
    done = credo("flow", "train", "flow.toml", "--resume", "parts")
    assert done.status == 2 and "is complete" in done.err


def test_the_file_of_an_operator_runs_no_code(credo: Command, tmp_path: Path) -> None:
    (tmp_path / "tasks.py").write_text("open('ran', 'w')\n\ndef tasks():\n    return None\n")
    settings = {"tasks": {"kind": "python", "file": str(tmp_path / "tasks.py"), "function": "tasks"}}
    operator = flows.Operator(dim=1, width=2, hidden=4, embedding=0).begin()
    flows.save_operator(tmp_path / "one.flow", operator, notes={"settings": settings})
    outcome = credo("flow", "evaluate", "one.flow")
    assert outcome.status == 2 and "name the tasks by --tasks" in " ".join(outcome.err.split())
    assert not (tmp_path / "ran").exists()


@pytest.mark.thorough
def test_training_stops_early_where_validation_becomes_no_better_and_says_so(
    credo: Command, config: Path, tmp_path: Path
) -> None:
    config.write_text(CONFIG.replace("steps = 12", "steps = 12\npatience = 1\nlearning_rate = 1e-30"))
    outcome = credo("flow", "train", "flow.toml", "--quiet")
    assert outcome.status == 0, outcome.err
    assert "stopped early, after 8 steps" in " ".join(outcome.out.split())
    report = json.loads((tmp_path / "runs" / "flow-flow" / "report.json").read_text())
    assert report["early"] and report["steps"] == 8
    assert "stopped early" in (tmp_path / "runs" / "flow-flow" / "report.html").read_text()


@pytest.mark.table
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("steps = 12", "stepps = 12"), "stepps is no setting of training"),
        (("particles = 16", "particles = 1"), "particles must be"),
        (("system.npz:B", "system.npz:C"), "observation must be numbers, or FILE.npz:NAME"),
        (("[operator]", "[operators]"), "operators is no table"),
        (('base = "none"', 'kind = "deep"'), "kind must be"),
        (("[tasks]", "[tasks"), "is no TOML file"),
    ],
)
def test_settings_that_are_not_allowed_are_named(
    credo: Command, config: Path, tmp_path: Path, change: tuple[str, str], words: str
) -> None:
    config.write_text(CONFIG.replace(*change))
    outcome = credo("flow", "train", "flow.toml")
    assert outcome.status == 2 and words in outcome.err
    assert not (tmp_path / "runs").exists()
