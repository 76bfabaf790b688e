"""The file of results: what is kept of a run, what replaces what, and what the pages make of it."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(autouse=True)
def benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))


def module(name: str) -> Any:
    return importlib.import_module(name)


def result(stream: str, method: str, log_loss: float, date: str = "2026-11-02", **more: float) -> Any:
    scores = {"rows": 3000, "log_loss": log_loss, "error": 0.1, "ece": 0.01, "ece_settled": 0.02}
    return module("default_results").Result(stream, method, date, "river 1.0", scores | more)


def evidence(*results: Any) -> Any:
    shapes = {name: module("default_results").Shape("classification", 3000, 5, 2) for name in ("phoneme",)}
    return module("result_evidence").Evidence(results, shapes)


def cells(text: str) -> list[list[str]]:
    """The cells of a table's lines, without its head."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_a_file_gives_back_what_was_written_in_the_order_of_the_streams(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    results = [result("churn", "River AMF, scaled", 0.25, worst=13.82), result("phoneme", "credo", 1e5)]
    module("default_results").write(results, file)
    assert module("default_results").read(file) == results[::-1]
    assert len(json.loads(file.read_text())["scores"]["rows"]) == 2


def test_a_folder_is_collected_with_four_digits_and_without_variations_of_ours(tmp_path: Path) -> None:
    scores = {"rows": 12345, "log_loss": 0.123456, "rmse": 98765.4, "coverage_settled": None}
    for peer in ("credo", "credo, no tails"):
        saved = {"stream": "rain", "peer": peer, "scores": scores, "date": "2026-11-03"}
        (tmp_path / f"{peer}.json").write_text(json.dumps(saved))
    (one,) = module("default_results").collected(tmp_path, "credo")
    assert one.scores == {"rows": 12345, "log_loss": 0.1235, "rmse": 98770.0}
    assert (one.date, one.task) == ("2026-11-03", "regression")


def test_a_later_run_replaces_an_earlier_one_and_an_earlier_none() -> None:
    merged = module("default_results").merged
    old, same, later = (result("churn", "credo", loss, date) for loss, date in
                        ((1.0, "2026-11-02"), (2.0, "2026-11-02"), (3.0, "2026-11-03")))  # fmt: skip
    assert merged([old], [same]) == [same]
    assert merged([old], [later]) == [later]
    assert merged([later], [old]) == [later]
    assert len(merged([old], [result("churn", "VW plain", 1.0)])) == 2


def test_a_batch_model_is_not_the_best_online_peer_and_a_peer_that_did_not_run_is_none() -> None:
    page = module("default_page")
    text = page.REGIONS["unseen"](
        evidence(
            result("phoneme", "credo", 0.30, error=0.1),
            result("phoneme", "River HAT", 0.40, error=0.2),
            result("phoneme", "VW plain", 0.50, error=0.15),
            result("phoneme", "LightGBM, refitted", 0.25, error=0.05),
        )
    )
    assert cells(text) == [
        ["phoneme", "0.300", "0.400", "River HAT", "**0.250**", "0.100, 0.150, 0.0500", "0.010"]
    ]
    assert "online peer that has run on 1 of 1 streams" in text
    assert "Beside LightGBM, refitted, its log loss is smaller on 0 of 1" in text


def test_what_is_lost_names_the_best_of_all_and_the_best_online_peer_and_calibration() -> None:
    text = module("default_page").REGIONS["lost"](
        evidence(
            result("phoneme", "credo", 0.30, error=0.1, ece_settled=0.031),
            result("phoneme", "River HAT", 0.29, error=0.0985),
            result("phoneme", "LightGBM, refitted", 0.25, error=0.2),
            result("phoneme~units", "credo", 0.36),
            result("phoneme~units", "River HAT", 0.4),
            result("phoneme~shift", "credo", 0.34),
            result("churn", "River HAT", 0.4),
        )
    )
    assert cells(text) == [
        ["phoneme", "unseen table", "log loss", "0.300", "0.250", "LightGBM, refitted"],
        ["phoneme", "unseen table", "log loss", "0.300", "0.290", "River HAT"],
        ["phoneme", "unseen table", "ECE", "0.0310", "at most 0.03", ""],
        ["phoneme~units", "copy of an unseen table", "log loss", "0.360", "0.300", "credo, clean"],
    ]


def test_dirt_is_counted_by_its_cost_and_by_who_is_ahead_on_the_copy() -> None:
    dirty = evidence(
        result("phoneme", "credo", 0.30),
        result("phoneme~units", "credo", 0.36),
        result("phoneme~units", "River HAT", 0.35),
        result("phoneme~shift", "credo", 0.34),
        result("phoneme~shift", "LightGBM, refitted", 0.1),
    )
    regions = module("default_page").REGIONS
    assert "On 1 of the 2 copies" in regions["dirt"](dirty)
    assert "`phoneme~units`, +0.060" in regions["dirt"](dirty)
    assert "on 0 of 1." in regions["dirt"](dirty)
    (line,) = cells(regions["dirty"](dirty))
    assert line == ["phoneme", "0.300", "", "", "**+0.060**, 0.360, 0.350", "+0.040, 0.340, -"]


def test_who_has_not_run_is_named() -> None:
    text = module("default_page").REGIONS["absent"](evidence(result("phoneme", "credo", 0.3)))
    assert "every method" in text and "credo (" not in text.split("Streams that")[1]


def test_only_regions_of_a_page_are_written() -> None:
    filled = module("result_pages").filled
    text = "before\n<!-- generated: dirt -->\nold\n<!-- end -->\nafter <!-- end -->\n"
    now = filled(text, evidence(result("phoneme", "credo", 0.3)))
    assert now.startswith("before\n<!-- generated: dirt -->\n\ncredo has not run")
    assert now.endswith("\n<!-- end -->\nafter <!-- end -->\n")
    assert filled(now, evidence(result("phoneme", "credo", 0.3))) == now


def test_first_rows_that_a_session_does_not_score_are_forecast_as_those_of_a_silent_peer() -> None:
    ours, scores = module("default_ours"), module("default_scores")
    random = np.random.default_rng(3)
    y = random.normal(size=60)
    mean, sd = np.full(60, 0.2), np.full(60, 1.5)
    mean[:12] = np.nan  # as a peer that says nothing up to row 12
    z = (y - 0.2) / 1.5
    norm = importlib.import_module("scipy.stats").norm
    quantiles = 0.2 + 1.5 * norm.ppf(scores.LEVELS) + np.zeros((60, 1))
    quantiles[:12] = np.nan
    filled = ours.with_first_rows(mean, norm.logpdf(z[12:]) - np.log(1.5), norm.cdf(z[12:]), quantiles, y)
    assert scores.number_scores(*filled) == pytest.approx(scores.normal_scores(mean, sd, y))


def test_the_methods_that_may_run_are_those_of_the_benchmark() -> None:
    pytest.importorskip("river")
    methods, peers_of = module("default_page").METHODS, module("default_peers").peers_of
    assert set(methods["regression"]) == {"credo", *peers_of(0)}
    assert set(methods["classification"]) == {"credo", *peers_of(3)}


def test_the_days_name_the_streams_of_every_version_but_the_most_frequent() -> None:
    results = [
        result("churn", "credo", 0.2)._replace(version="credo 0.1.0+abc"),
        result("phoneme", "credo", 0.3)._replace(version="credo 0.1.0+def"),
        result("credit", "credo", 0.3)._replace(version="credo 0.1.0+def"),
        result("credit", "VW plain", 0.3),
    ]
    (line,) = cells(module("default_page").REGIONS["days"](evidence(*results)).split("\n\n")[0])
    assert line[1] == "2026-11-02, 0.1.0+abc (1: churn); 2026-11-02, 0.1.0+def (2)"
    assert line[2] == "2026-11-02 (1)"


def test_a_version_is_that_of_the_package_and_ours_has_a_commit() -> None:
    version_of = module("default_results").version_of
    assert version_of("credo").startswith(f"credo {importlib.import_module('credo').__version__}")
    assert version_of("sklearn SGD") == f"scikit-learn {importlib.import_module('sklearn').__version__}"
    assert version_of("nobody") == ""
