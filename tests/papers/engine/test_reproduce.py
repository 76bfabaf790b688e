"""The engine: the files that an experiment writes, the table that it prints, and what it refuses."""

from __future__ import annotations

import csv
import importlib
import io
import json
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from credo.core.errors import CredoError, DataError
from credo.plots import figures
from credo_papers import Result, Row, find, names, reproduce
from credo_papers.engine.quantities import mean_se, rms_se


@pytest.mark.slow
@pytest.mark.parametrize("name", ["kf-tracking", "kf-linreg", "moons"])
def test_files_are_written(results: dict[str, Result], name: str) -> None:
    result = results[name]
    moving = {"moons.gif"} if name == "moons" else set()
    assert set(result.files) == {"data.csv", "data.npz", f"{name}.png", "results.json"} | moving
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


@pytest.mark.parametrize("name", ["kf-tracking", "kf-linreg", "moons"])
def test_the_table_is_printed(results: dict[str, Result], name: str) -> None:
    page = io.StringIO()
    results[name].show(Console(file=page, width=120))
    text = page.getvalue()
    assert results[name].title in text and "published" in text and "results.json" in text
    assert all(row.quantity in text for row in results[name].rows)


def test_without_matplotlib_the_numbers_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "available", lambda: False)
    result = reproduce("kf-tracking", out=tmp_path, progress=False)
    assert result.messages == (figures.MISSING,) and "pip install -e '.[plot]'" in figures.MISSING
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
    assert list(names())[:3] == ["kf-tracking", "kf-linreg", "moons"]
    assert all(find(name).title == title for name, title in names().items())


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


@pytest.mark.parametrize("name", list(names()))
def test_an_experiment_is_the_module_of_its_name_with_its_figure_beside_it(name: str) -> None:
    run = find(name).run
    for room in ("kalman", "lofi", "bong", "bone", "bandits", "pfbr"):
        path = Path(importlib.import_module(f"credo_papers.{room}").__file__ or "").parent
        if (path / f"{name.replace('-', '_')}.py").exists():
            module = importlib.import_module(f"credo_papers.{room}.{name.replace('-', '_')}")
            assert module.run is run
            return
    raise AssertionError(f"there is no module of the name {name}.")
