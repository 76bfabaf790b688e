"""What `credo learn` says and shows of a bank."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import Command, write

from credo.cli.learn_report import bank_sections, draw_weights, legend_entries
from credo.recipes.language import Network
from credo.recipes.members import LINEAR, Member, members_of
from credo.sessions import ChangeTally, Session, Steps

MEMBERS = (Member(LINEAR, 0.0, 1.0), Member(LINEAR, 1e-2, 16.0))


@pytest.mark.slow
def test_a_bank_is_explained_in_words_in_metrics_and_in_the_report(
    credo: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("credo.recipes.assembly.members_of", lambda *_: MEMBERS)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 7))
    heads = [f"c{place}" for place in range(7)]
    labels = np.where(2 * x[:, 0] - x[:, 1] + 0.5 * rng.normal(size=80) > 0, "yes", "no")
    rows = [[*(f"{value:.4f}" for value in row), label] for row, label in zip(x, labels, strict=True)]
    path = write(tmp_path / "t.csv", [*heads, "y"], rows)
    outcome = credo("learn", path, "--target", "y", "--save", "saved")
    assert outcome.status == 0, outcome.err
    said = " ".join(outcome.out.split())
    assert "leads with" in said and "relation of columns and target" in said and "Forecasts use " in said
    data = json.loads((tmp_path / "runs/t/metrics.json").read_text())
    bank = data["bank"]
    assert "changes" not in data and [one["name"] for one in bank["members"]] == [str(one) for one in MEMBERS]
    for shares in (bank["walks"], bank["scales"], bank["sharpness"], bank["switching"]):
        assert sum(shares.values()) == pytest.approx(1.0, abs=1e-5)
    assert bank["heavy_tails"] == 0.0
    assert sum(one["weight"] for one in bank["members"]) == pytest.approx(1.0, abs=1e-5)
    assert bank["linear_weight"] == pytest.approx(1.0, abs=1e-5) and len(bank["short"]) == 3
    first = bank["effects"][0]
    assert first["feature"] == "c0" and first["mean"] > 2 * first["sd"] > 0
    assert bank["effects_of"] == "the log odds of 'yes' against 'no'"
    metrics = data["metrics"]
    assert metrics["nlpd_unscaled"] != metrics["nlpd"] and 0 < metrics["ece_unscaled"] < 1
    page = (tmp_path / "runs/t/report.html").read_text()
    for words in (*bank["sentences"], "Effects of the columns", "before their widths are weighted"):
        assert words.replace("'", "&#x27;") in page
    for name in ("weights", "effects", "reliability"):
        assert (tmp_path / f"runs/t/plots/{name}.svg").read_bytes()[:4] == b"<svg"
    session = Session.load("saved")
    assert session.metrics()["ece_unscaled"] == metrics["ece_unscaled"]


def test_a_legend_names_those_members_that_matter() -> None:
    members = members_of("regression", 4, 1, "wide")
    tally = ChangeTally("none", [str(member) for member in members])
    probs = np.full((300, len(members)), 0.01)
    probs[:, 3] = 1.0 - 0.01 * (len(members) - 1)
    zeros = np.zeros(300)
    tally.add(Steps(probs, np.tile(np.arange(len(members)), (300, 1)), zeros, zeros > 0, zeros))
    named, rest = legend_entries(tally, members)
    assert named == [3] and rest == len(members) - 1
    assert "one hue a kind" in draw_weights(tally, members).caption.lower()


def test_effects_of_members_without_weight_are_said_to_say_nothing() -> None:
    effect = {"feature": "a", "output": "cat", "mean": 1.0, "sd": 0.25}
    bank = {
        "members": [{"name": str(Network("linear")), "weight": 0.002, "mean_weight": 0.1, "failures": 3}],
        "walks": {"0": 1.0},
        "walks_over_rows": 10,
        "scales": {"1": 1.0},
        "sharpness": {},
        "switching": {"0.01": 1.0},
        "linear_weight": 0.002,
        "linear_mean_weight": 0.1,
        "effects_of": "y",
        "effects": [effect],
        "sentences": ["One."],
    }
    (members,) = bank_sections(bank)  # type: ignore[arg-type]
    assert members.table is not None
    assert members.table.heads[-1] == "failures" and members.table.lines[0].cells[-1] == "3"
    assert "would say almost nothing" in members.sentences[1]
    bank["linear_weight"] = 0.2
    members, effects = bank_sections(bank)  # type: ignore[arg-type]
    assert effects.table is not None
    assert "Effects are mixed" in effects.sentences[1] and effects.table.lines[0].name == "a → cat"
    assert not any("almost nothing" in sentence for sentence in members.sentences)
