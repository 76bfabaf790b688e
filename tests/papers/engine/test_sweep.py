"""The shared sweep: its grid, its pieces, and that an interrupted run goes on with the same numbers."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from credo.core.errors import CredoError
from credo.plots import figures
from credo_papers import Experiment, Outcome, Row
from credo_papers.engine import runner
from credo_papers.engine.cell_folder import Cells
from credo_papers.engine.portions import portion
from credo_papers.engine.sweep import Setting, sweep

GRID = [
    Setting("one", {"power": 1}, {"scale": 2.0}),
    Setting("two", {"power": 2}, {"scale": 2.0}),
    Setting("two again", {"power": 2}, {"scale": 3.0}),
]
SEEDS = {"x": np.linspace(0.1, 1.7, 7)}
TRACED: list[int] = []


def build(program: Mapping[str, Any]) -> Any:
    def one(values: Any, seed: Any, shared: Any) -> dict[str, Any]:
        TRACED.append(program["power"])
        value = values["scale"] * jnp.sin(seed["x"]) ** program["power"] + shared
        return {"value": value, "pair": jnp.stack([value, value])}

    return one


def run(
    cells: Cells | None = None, grid: list[Setting[dict[str, int]]] = GRID, **changes: Any
) -> dict[str, Any]:
    arguments: dict[str, Any] = {"context": {"version": 1}, "chunk": 3, "cells": cells} | changes
    return sweep("test", grid, build, SEEDS, np.array(0.5), **arguments)


@pytest.mark.parametrize("chunk", [1, 3, 7, 20])
def test_every_seed_of_every_setting_is_computed(chunk: int) -> None:
    results = run(chunk=chunk)
    for setting in GRID:
        expected = setting.values["scale"] * np.sin(SEEDS["x"]) ** setting.program["power"] + 0.5
        np.testing.assert_allclose(results[setting.name]["value"], expected, rtol=1e-12)
        assert results[setting.name]["pair"].shape == (7, 2)


def test_settings_with_one_program_are_compiled_once() -> None:
    TRACED.clear()
    run(grid=[Setting(f"{i}", {"power": 5}, {"scale": float(i)}) for i in range(4)])
    assert TRACED == [5]


def test_an_interrupted_run_goes_on_with_the_same_numbers(tmp_path: Path) -> None:
    whole = run()

    def interrupt(done: float, text: str) -> None:
        if done > 0.5:
            raise KeyboardInterrupt

    first = Cells(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        run(first, progress=interrupt)
    assert first.computed == len(list(tmp_path.iterdir())) == 5
    second = Cells(tmp_path)
    resumed = run(second)
    assert (second.reused, second.computed) == (5, 4)
    third = Cells(tmp_path)
    again = run(third)
    assert (third.reused, third.computed) == (9, 0) and "9 of 9 parts" in str(third.message)
    for name, arrays in whole.items():
        for key, array in arrays.items():
            np.testing.assert_array_equal(resumed[name][key], array)
            np.testing.assert_array_equal(again[name][key], array)


@pytest.mark.parametrize("damage", [b"", b"no archive", None], ids=["empty", "text", "cut"])
def test_a_damaged_cell_is_computed_anew(tmp_path: Path, damage: bytes | None) -> None:
    whole = run(Cells(tmp_path))
    victim = sorted(tmp_path.iterdir())[0]
    content = victim.read_bytes()
    victim.write_bytes(content[: len(content) // 2] if damage is None else damage)
    cells = Cells(tmp_path)
    again = run(cells)
    assert (cells.reused, cells.computed) == (8, 1)
    np.testing.assert_array_equal(again["one"]["value"], whole["one"]["value"])
    assert victim.read_bytes() != damage


def test_bits_that_rotted_give_no_wrong_numbers(tmp_path: Path) -> None:
    value = np.random.default_rng(0).normal(size=20)
    Cells(tmp_path).get("a", {}, lambda: {"value": value})
    (victim,) = tmp_path.iterdir()
    sound = victim.read_bytes()
    reused = 0
    for place in range(0, len(sound), 7):
        flipped = bytes([255 - sound[place]])
        victim.write_bytes(sound[:place] + flipped + sound[place + 1 :])
        cells = Cells(tmp_path)
        np.testing.assert_array_equal(cells.get("a", {}, lambda: {"value": value})["value"], value)
        reused += cells.reused
    assert reused < len(sound) / 14  # some bytes, such as the date, do not matter


@pytest.mark.parametrize(
    "changes",
    [
        {"context": {"version": 2}},
        {"chunk": 7},
        {"grid": [Setting(s.name, s.program, {"scale": 9.0}) for s in GRID]},
        {"grid": [Setting(s.name, {"power": 7}, s.values) for s in GRID]},
    ],
    ids=["version", "chunk", "values", "program"],
)
def test_other_settings_share_no_cell(tmp_path: Path, changes: dict[str, Any]) -> None:
    run(Cells(tmp_path))
    cells = Cells(tmp_path)
    run(cells, **changes)
    assert cells.reused == 0


def test_a_cell_of_other_settings_under_the_same_name_is_not_believed(tmp_path: Path) -> None:
    cells = Cells(tmp_path)
    cells.get("a", {"k": 1}, lambda: {"v": 1})
    cells.get("a", {"k": 2}, lambda: {"v": 2})
    first, second = sorted(tmp_path.iterdir())
    first.write_bytes(second.read_bytes())
    fresh = Cells(tmp_path)
    values = [fresh.get("a", {"k": k}, lambda k=k: {"v": 10 * k})["v"].item() for k in (1, 2)]  # type: ignore[misc]
    assert sorted(values) in ([1, 20], [2, 10]) and fresh.computed == 1


def test_the_runner_hands_a_folder_to_those_that_want_it(tmp_path: Path, monkeypatch: Any) -> None:
    computed: list[int] = []

    def experiment(size: Any, seed: int, progress: Any, cells: Cells | None = None) -> Outcome:
        assert cells is not None

        def compute() -> dict[str, Any]:
            computed.append(seed)
            return {"v": np.arange(3.0) + seed}

        arrays = cells.get("v", {"seed": seed}, compute)
        return Outcome((Row("v", float(arrays["v"].sum())),), {}, {}, arrays, {}, None)  # type: ignore[arg-type]

    monkeypatch.setattr(runner, "find", lambda name: Experiment(name, "title", "source", experiment))
    monkeypatch.setattr(figures, "available", lambda: False)
    first = runner.reproduce("long", out=tmp_path, seed=3, progress=False)
    second = runner.reproduce("long", out=tmp_path, seed=3, progress=False)
    assert computed == [3] and first.rows == second.rows
    assert not any("earlier run" in message for message in first.messages)
    assert any("1 of 1 parts" in message for message in second.messages)
    runner.reproduce("long", out=tmp_path, seed=4, progress=False)
    assert computed == [3, 4]


def test_refusals(tmp_path: Path) -> None:
    with pytest.raises(CredoError, match="different names; got 'one' more than once"):
        run(grid=[GRID[0], GRID[0]])
    with pytest.raises(CredoError, match="chunk must be a whole number"):
        run(chunk=0)
    with pytest.raises(CredoError, match="streams must have one common leading axis"):
        sweep("test", GRID, build, {"x": np.zeros(3), "y": np.zeros(4)}, None, context={})
    with pytest.raises(CredoError, match="plain JSON values"):
        Cells(tmp_path).get("a", {"k": np.arange(2)}, lambda: {})
    with pytest.raises(CredoError, match="may not be named"):
        Cells(tmp_path).get("a", {}, lambda: {"seconds of the cell": 1})


def test_a_portion_of_the_progress() -> None:
    steps: list[tuple[float, str]] = []
    run(progress=portion(lambda done, text: steps.append((done, text)), 0.5, 1.0, "part: "))
    assert steps[0] == (0.5, "part: one (1 of 3)") and steps[-1][0] == 1.0
    assert [done for done, _ in steps] == sorted(done for done, _ in steps)


def _grown(size: Any, seed: int, progress: Any, cells: Cells | None = None) -> Outcome:
    """Two sweeps, one after the other for each of two parts, in double precision; seed 1 breaks a cell."""
    assert cells is not None

    def part(number: int) -> dict[str, Any]:
        first = run(cells, [Setting(f"part {number}", {"power": number}, {"scale": 2.0})], progress=progress)
        streams = {"x": first[f"part {number}"]["value"]}
        return sweep("then", GRID[:1], build, streams, np.array(0.5), context={"part": number}, cells=cells)

    def fail() -> dict[str, Any]:
        if seed:
            os.kill(os.getpid(), signal.SIGKILL) if seed == 2 else np.linalg.inv(np.zeros((2, 2)))
        return {"v": np.arange(3)}

    with jax.enable_x64(True):
        arrays = {
            f"{k} {key}": v for k, one in enumerate(cells.each(part, [2, 3])) for key, v in one["one"].items()
        }
    cells.each(lambda name: cells.get(name, {"seed": seed}, fail if name == "odd" else dict), ["odd", "even"])
    return Outcome((Row("v", 1.0),), {}, {}, {}, arrays, None)  # type: ignore[arg-type]


@pytest.mark.slow
def test_cells_side_by_side_are_those_of_one_process(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(runner, "find", lambda name: Experiment(name, "title", "source", _grown))
    monkeypatch.setattr(figures, "available", lambda: False)
    one = runner.reproduce("one", out=tmp_path, progress=False)
    two = runner.reproduce("two", out=tmp_path, progress=False, jobs=2)
    arrays, others = (np.load(each.folder / "data.npz") for each in (one, two))
    assert len(arrays.files) == 4 and arrays["0 value"].dtype == np.float64
    for name in arrays.files:
        np.testing.assert_array_equal(arrays[name], others[name])
    cells = [{path.name for path in (each.folder / "cells").iterdir()} for each in (one, two)]
    assert cells[0] == cells[1]
    again = runner.reproduce("two", out=tmp_path, progress=False, jobs=2)
    assert any(f"{len(cells[0])} of {len(cells[0])} parts" in message for message in again.messages)
    for seed, why in ((1, "odd: LinAlgError: Singular matrix"), (2, "odd: its process ended 2 times")):
        with pytest.raises(CredoError, match=rf"1 parts of two failed: {why}.*are kept in"):
            runner.reproduce("two", out=tmp_path, progress=False, jobs=2, seed=seed)
        kept = {path.name for path in (two.folder / "cells").iterdir()} - cells[0]
        assert len(kept) == seed and all(name.startswith("even") for name in kept)
    with pytest.raises(CredoError, match=r"1 parts of one failed: odd: LinAlgError"):
        runner.reproduce("one", out=tmp_path, progress=False, seed=1)
    with pytest.raises(CredoError, match="ray needs `jobs`"):
        runner.reproduce("one", out=tmp_path, progress=False, ray="local")


def test_an_experiment_of_one_piece_says_that_jobs_changed_nothing(tmp_path: Path, monkeypatch: Any) -> None:
    outcome = Outcome((Row("v", 1.0),), {}, {}, {}, {}, None)  # type: ignore[arg-type]
    single = Experiment("one", "title", "source", lambda *arguments, **options: outcome)
    monkeypatch.setattr(runner, "find", lambda name: single)
    monkeypatch.setattr(figures, "available", lambda: False)
    result = runner.reproduce("one", out=tmp_path, progress=False, jobs=2)
    assert "one piece" in result.messages[0]
