"""`credo reproduce`, with and without the distribution of the experiments."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import Command

from credo.core import extensions

INSTALL = "pip install -e papers in a checkout of credo"

PUBLISHED = """
[tasks]
kind = "sequences"
transition = [[0.9]]
observation = [[1.0]]
observation_cov = 0.5
length = 2
particles = 8
targets = 4

[tasks.priors]
components = 2

[operator]
kind = "published"
hidden = 4
layers = 1

[training]
steps = 2
every = 2
batch = 1
pool = 1
sequences = 0
leap = 1e6
"""


def test_an_experiment_runs_and_shows_its_table(credo: Command, tmp_path: Path) -> None:
    outcome = credo("reproduce", "kf-tracking", "--out", "out")
    assert outcome.status == 0, outcome.err
    assert "published" in outcome.out and (tmp_path / "out" / "kf-tracking" / "results.json").exists()


def test_without_the_experiments_one_sentence_says_what_to_install(
    credo: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extensions, "entry_points", lambda group: ())
    for words in ((), ("moons",)):
        outcome = credo("reproduce", *words)
        assert outcome.status == 2 and not outcome.out
        assert outcome.err.count("\n") == 1 and outcome.err.endswith(f": {INSTALL}.\n")


def test_without_the_published_flow_its_kinds_say_what_to_install(
    credo: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(extensions, "entry_points", lambda group: ())
    tasks = "[tasks]\nobservation = [[1.0]]\nobservation_cov = 1.0\ntransition = [[0.9]]\ntransition_cov = 1"
    kinds = {"sequences": '\nkind = "sequences"\n', "published": '\n[operator]\nkind = "published"\n'}
    for kind, line in kinds.items():
        (tmp_path / "flow.toml").write_text(tasks + line)
        outcome = credo("flow", "train", "flow.toml")
        assert outcome.status == 2 and outcome.err.count("\n") == 1
        assert f"got {kind!r}" in outcome.err and outcome.err.endswith(f": {INSTALL}.\n")


@pytest.mark.slow
def test_the_published_flow_is_trained_by_the_kinds_that_it_brings(credo: Command, tmp_path: Path) -> None:
    (tmp_path / "flow.toml").write_text(PUBLISHED)
    outcome = credo("flow", "train", "flow.toml", "--quiet")
    assert outcome.status == 0, outcome.err
    scored = credo("flow", "evaluate", "runs/flow-flow", "--sequences", "2", "--stages", "2")
    assert scored.status == 0, scored.err
