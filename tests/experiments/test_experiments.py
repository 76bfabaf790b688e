"""The first experiments, at the quick size: their numbers, their files, and what they refuse."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import jax
import numpy as np
import pytest
from rich.console import Console

from credo.core.errors import CredoError, DataError
from credo.experiments import Result, Row, kf_linreg, kf_tracking, moons, names, reproduce
from credo.experiments.catalogue import find
from credo.experiments.records import mean_se, rms_se
from credo.plots import figures

NAMES = ["kf-tracking", "kf-linreg", "moons"]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Result]:
    out = tmp_path_factory.mktemp("reproduce")
    return {name: reproduce(name, out=out, progress=False) for name in NAMES}


def row(result: Result, quantity: str) -> Row:
    return next(row for row in result.rows if row.quantity == quantity)


def agrees(row: Row, published_se: float) -> bool:
    """Whether ours is within three standard errors of the difference from the published number."""
    assert row.se is not None and isinstance(row.published, float)
    return abs(row.ours - row.published) < 3.0 * float(np.hypot(row.se, published_se))


def test_tracking_agrees_with_the_published_errors(results: dict[str, Result]) -> None:
    result = results["kf-tracking"]
    filtered, raw = row(result, "position rms, filtered"), row(result, "position rms, raw observations")
    assert agrees(filtered, filtered.se or 0.0)  # also over 500 tracks, so with the same error
    assert agrees(raw, raw.se or 0.0)
    claimed = row(result, "position rms, claimed by the filter")
    assert filtered.se is not None and abs(filtered.ours - claimed.ours) < 3 * filtered.se
    inside = row(result, "truth inside the 90% ellipse")
    assert inside.se is not None and abs(inside.ours - 0.9) < 3 * inside.se
    assert round(row(result, "sd of a coordinate, first step").ours, 2) == 0.30
    assert round(row(result, "sd of a coordinate, last step").ours, 2) == 0.49


def test_tracking_is_the_textbook_filter() -> None:
    _, seen = kf_tracking.simulate(3, 1)
    f, h = kf_tracking.TRANSITION.astype(np.float64), kf_tracking.OBSERVATION.astype(np.float64)
    mean, cov = kf_tracking.START.astype(np.float64), 0.1 * np.eye(4)
    expected = []
    for t, y in enumerate(seen[0]):
        if t:
            mean, cov = f @ mean, f @ cov @ f.T + 1e-3 * np.eye(4)
        gain = cov @ h.T @ np.linalg.inv(h @ cov @ h.T + np.eye(2))
        mean, cov = mean + gain @ (y - h @ mean), cov - gain @ h @ cov
        expected.append(mean)
    learner = kf_tracking.make_learner()
    means, covs = kf_tracking.track(learner, learner.init(kf_tracking.START, var=0.1), seen)
    np.testing.assert_allclose(means[0], expected, atol=2e-5)
    np.testing.assert_allclose(covs[0, -1], cov, atol=1e-5)


def test_linear_regression_meets_ridge_to_rounding(results: dict[str, Result]) -> None:
    result = results["kf-linreg"]
    assert row(result, "|mean - ridge| at T, median").ours < 2e-15
    assert row(result, "|mean - ridge| at any t, largest").ours < 1e-14
    assert row(result, "|log evidence - batch|, largest").ours < 1e-11
    error = row(result, "test RMSE at T")
    assert error.se is not None
    one_set = error.se * np.sqrt(kf_linreg.SETS["quick"])
    assert agrees(error, one_set)


def test_ridge_solves_the_normal_equations() -> None:
    data = kf_linreg.simulate(1, 0)
    x, y = data["x"][:30], data["y"][:30]
    np.testing.assert_allclose(kf_linreg.ridge(x, y)[-1], np.linalg.solve(x.T @ x + np.eye(2), x.T @ y))


def test_linear_regression_leaves_the_global_precision_alone() -> None:
    before = jax.config.jax_enable_x64
    try:
        jax.config.update("jax_enable_x64", False)
        outcome = find("kf-linreg").run("quick", 1, lambda done, text: None)
        assert not jax.config.jax_enable_x64
        assert outcome.rows[0].ours < 2e-15
    finally:
        jax.config.update("jax_enable_x64", before)


def test_moons_agrees_with_a_correct_filter(results: dict[str, Result]) -> None:
    result = results["moons"]
    accuracy = row(result, "accuracy, before learning")
    assert agrees(accuracy, 0.007)
    tuned = row(result, "NLL in nats, before learning, tuned")
    untuned = row(result, "NLL in nats, before learning")
    assert tuned.se is not None and tuned.ours < untuned.ours + 2 * tuned.se
    assert row(result, "test accuracy at T, tuned").ours > 0.9


def test_moons_never_scores_what_it_tuned_on() -> None:
    tuning, scored = (moons.make_streams(0, purpose, 3) for purpose in (moons.TUNING, moons.SCORED))
    rows = np.concatenate([tuning.x.reshape(-1, 2), scored.x.reshape(-1, 2)])
    assert len(np.unique(rows, axis=0)) == len(rows)


def test_make_moons_has_two_equal_halves_in_random_order() -> None:
    x, y = moons.make_moons(np.random.default_rng(0), 101, noise=0.0)
    assert x.shape == (101, 2) and y.sum() == 51
    np.testing.assert_allclose(np.hypot(*x[y == 0].T), 1.0, rtol=1e-6)
    np.testing.assert_allclose(np.hypot(*(x[y == 1] - [1.0, 0.5]).T), 1.0, rtol=1e-6)
    assert 0.2 < y[:50].mean() < 0.8


@pytest.mark.parametrize("name", NAMES)
def test_files_are_written(results: dict[str, Result], name: str) -> None:
    result = results[name]
    assert set(result.files) == {"data.csv", "data.npz", f"{name}.png", "results.json"}
    assert {path.name for path in result.folder.iterdir()} == set(result.files)
    assert (result.folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    stored = json.loads((result.folder / "results.json").read_text())
    assert stored["name"] == name and stored["size"] == "quick" and stored["seed"] == 0
    assert set(stored["versions"]) >= {"credo", "jax", "numpy"}
    assert [entry["ours"] for entry in stored["rows"]] == [row.ours for row in result.rows]
    assert stored["seconds"] > 0 and stored["settings"] and stored["seeds"]
    columns = list(csv.DictReader((result.folder / "data.csv").open()))
    arrays = np.load(result.folder / "data.npz")
    for column, text in columns[-1].items():
        np.testing.assert_allclose(float(text), arrays[column][-1], rtol=1e-8)


@pytest.mark.parametrize("name", NAMES)
def test_the_table_is_printed(results: dict[str, Result], name: str) -> None:
    console = Console(file=io.StringIO(), width=120)
    results[name].show(console)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert results[name].title in text and "published" in text and "results.json" in text
    assert all(row.quantity in text for row in results[name].rows)


def test_the_same_seed_gives_the_same_numbers_and_another_gives_others(results: dict[str, Result]) -> None:
    def again(seed: int) -> list[float]:
        return [row.ours for row in find("kf-tracking").run("quick", seed, lambda done, text: None).rows]

    first = [row.ours for row in results["kf-tracking"].rows]
    assert again(0) == first
    assert again(1)[0] != first[0]


def test_without_matplotlib_the_numbers_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "available", lambda: False)
    result = reproduce("kf-tracking", out=tmp_path, progress=False)
    assert result.messages == (figures.MISSING,) and "pip install credo[plot]" in figures.MISSING
    assert {path.name for path in result.folder.iterdir()} == {"data.csv", "data.npz", "results.json"}


def test_refusals(tmp_path: Path) -> None:
    with pytest.raises(CredoError, match="did you mean 'moons'"):
        reproduce("moon", out=tmp_path)
    with pytest.raises(CredoError, match="size must be one of quick, full"):
        reproduce("moons", size="huge", out=tmp_path)  # type: ignore[arg-type]
    with pytest.raises(CredoError, match="seed must be a whole number"):
        reproduce("moons", seed=-1, out=tmp_path)
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(DataError, match="cannot write to"):
        reproduce("moons", out=blocked)


def test_names_describe_every_experiment() -> None:
    assert list(names())[: len(NAMES)] == NAMES
    assert all(find(name).title == line for name, line in names().items())


def test_standard_errors() -> None:
    values = np.random.default_rng(0).normal(size=(100_000, 4)) ** 2
    mean, se = mean_se(values[:, 0])
    assert abs(mean - 1) < 4 * se and abs(se - np.sqrt(2 / 100_000)) < 1e-4
    root, root_se = rms_se(values.mean(axis=1))
    assert abs(root - 1) < 4 * root_se


def test_rows_are_rounded_to_their_error() -> None:
    assert Row("a", 0.77896, 0.0094).texts()[1] == "0.7790 ± 0.0094"
    assert Row("a", 4.44e-16).texts()[1] == "4.4e-16"
    assert Row("a", 1.0, 0.0).texts()[1] == "1"
    assert Row("a", 12.0, 3.0, "~10").texts()[1:3] == ("12.0 ± 3.0", "~10")
