"""Compiled programs that are kept: found again, the same bits, and never one that is wrong."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from credo.core import caches, fingerprints, kept_programs, program_folder
from credo.core.kept_programs import Kept, program

traces: list[str] = []


def double(x: Any, times: int) -> Any:
    """A function whose traces are counted."""
    traces.append("double")
    return {"a": 2.0 * x, "b": jnp.linalg.cholesky(jnp.eye(2) * times)}


def use_up(kind: str, x: Any, key: Any) -> Any:
    """A function that may use up an argument, and takes a key."""
    traces.append("use_up")
    return x + jax.random.normal(key, x.shape)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of one's own, and the functions of this file among those that have a name."""
    place = tmp_path / "programs"
    place.mkdir(mode=0o700)
    program_folder.use(place)
    monkeypatch.setattr(fingerprints, "_KNOWN", (*fingerprints._KNOWN, __name__.split(".")[0]))
    traces.clear()
    yield place
    program_folder.use(None)


def again(static: tuple[str, ...] = ("times",)) -> Kept:
    """The function as another process would have it."""
    return Kept(double, static)


def files(folder: Path) -> list[Path]:
    """The programs."""
    return sorted(folder.iterdir())


def test_a_program_is_found_again_without_a_trace(folder: Path) -> None:
    x = np.arange(3.0)
    first, second = again()(x, 4), again()(x, 4)
    assert traces == ["double"] and len(files(folder)) == 1
    assert [one.name for one in program_folder.listing()] == ["double"]
    for one, other in zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(second["a"], 2 * x)


def test_other_arguments_have_programs_of_their_own(folder: Path) -> None:
    function = again()
    for x in (np.zeros(3), np.zeros(4), np.zeros(3, np.float32)):
        function(x, 4)
        function(x, 9)
        function(x, 9)
    assert len(files(folder)) == len(traces) == 6
    assert float(function(np.zeros(3), 9)["b"][0, 0]) == 3.0 and len(traces) == 6


def test_arrays_are_used_up_and_keys_are_taken(folder: Path) -> None:
    key = jax.random.key(3)
    outcomes = []
    for _ in range(2):
        x = jnp.ones(5)
        outcomes.append(np.asarray(Kept(use_up, ("kind",), ("x",))("plain", x, key)))
        assert x.is_deleted()
    assert traces == ["use_up"]
    np.testing.assert_array_equal(outcomes[0], outcomes[1])
    separate = jnp.ones(5) + jax.random.normal(key, (5,))
    np.testing.assert_allclose(outcomes[0], separate, rtol=1e-15)  # fused, or one after the other


LEVEL = {"xla_backend_optimization_level": 0}
ODD = {"xla_no_such_option": 1}


@pytest.mark.parametrize("haste", [(LEVEL,), (ODD, LEVEL), (ODD, ODD)])
def test_a_program_that_runs_once_is_compiled_in_haste(
    folder: Path, monkeypatch: pytest.MonkeyPatch, haste: tuple[dict[str, int], ...]
) -> None:
    asked: list[Any] = []
    usual = jax.stages.Lowered.compile

    def compile(self: Any, compiler_options: Any = None) -> Any:
        asked.append(compiler_options)
        return usual(self, compiler_options)

    monkeypatch.setattr(jax.stages.Lowered, "compile", compile)
    assert kept_programs._HASTE[-1] == LEVEL
    monkeypatch.setattr(kept_programs, "_HASTE", haste)
    first = Kept(double, ("times",), once=True)(np.ones(3), 4)
    wanted = [*haste, None]  # a new XLA may not know what is asked
    assert asked == wanted[: 1 + wanted.index(LEVEL if LEVEL in haste else None)]
    second = again()(np.ones(3), 4)
    assert traces == ["double"] and len(files(folder)) == 1
    np.testing.assert_array_equal(first["b"], second["b"])


def test_a_program_in_haste_and_the_usual_one_have_one_trace_and_files_of_their_own(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_programs, "always_hasty", lambda: False)
    asked: list[Any] = []
    usual = jax.stages.Lowered.compile

    def compile(self: Any, compiler_options: Any = None) -> Any:
        asked.append(compiler_options)
        return usual(self, compiler_options)

    def build() -> Any:
        return lambda x: double(x, 4), "told"

    monkeypatch.setattr(jax.stages.Lowered, "compile", compile)
    results = []
    for hasty in (True, False, True, False):
        compiled, told = program("haste", ("one",), build, (np.ones(3),), hasty=hasty)
        results.append(np.asarray(compiled(np.arange(3.0))["a"]))
        assert told == "told"
    assert traces == ["double"] and asked == [kept_programs._HASTE[0], None]
    assert sorted(path.stem.endswith("-hasty") for path in files(folder)) == [False, True]
    for result in results:
        np.testing.assert_array_equal(result, [0.0, 2.0, 4.0])


def test_few_programs_wait_for_their_usual_compilation(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_programs, "always_hasty", lambda: False)
    monkeypatch.setattr(kept_programs, "MOST_LOWERED", 2)
    for name in ("one", "two", "three"):
        program(name, (name,), lambda: (lambda x: x + 1.0, None), (np.ones(2),), hasty=True)
    assert [path.name.split("-")[0] for path in kept_programs._lowered] == ["two", "three"]


def test_where_all_programs_are_made_in_haste_there_is_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XLA_FLAGS", "--xla_backend_optimization_level=0")
    for hasty in (True, False):
        program("haste", ("two",), lambda: (lambda x: double(x, 4), None), (np.ones(3),), hasty=hasty)
    assert traces == ["double"] and len(files(folder)) == 1


@pytest.mark.table
@pytest.mark.parametrize("damage", ["cut", "bit", "swapped", "other", "empty"])
def test_a_damaged_file_is_compiled_anew(folder: Path, damage: str) -> None:
    again()(np.ones(3), 9)
    (theirs,) = files(folder)
    again()(np.ones(3), 4)
    (path,) = (one for one in files(folder) if one != theirs)
    data, head = path.read_bytes(), len(kept_programs._MARK) + 32
    traces.clear()
    middle = len(data) // 2
    path.write_bytes(
        {
            "cut": data[:middle],
            "bit": data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :],
            "swapped": data[:head] + theirs.read_bytes()[head:],
            "other": b"something else",
            "empty": b"",
        }[damage]
    )
    np.testing.assert_array_equal(again()(np.ones(3), 4)["b"], 2 * np.eye(2))
    assert traces == ["double"] and path.read_bytes()[: len(kept_programs._MARK)] == kept_programs._MARK
    again()(np.ones(3), 4)
    assert len(traces) == 1


def test_what_jaxs_own_cache_gave_is_not_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Such a program cannot be written again: what is read back from it has lost its code."""
    monkeypatch.setattr(kept_programs, "_out_of_the_other_cache", contextlib.nullcontext)
    before = jax.config.values[kept_programs._SHORTEST]
    jax.config.update(kept_programs._SHORTEST, 0.0)
    try:
        again()(np.ones(7), 25)
        program_folder.clear()
        for _ in range(2):
            np.testing.assert_array_equal(again()(np.ones(7), 25)["a"], 2 * np.ones(7))
        assert not files(folder) and len(traces) == 3
    finally:
        jax.config.update(kept_programs._SHORTEST, before)


def test_a_program_leaves_no_copy_in_jaxs_cache_and_its_option_as_it_was(folder: Path) -> None:
    before = jax.config.values[kept_programs._SHORTEST]
    with kept_programs._out_of_the_other_cache(), kept_programs._out_of_the_other_cache():
        assert jax.config.values[kept_programs._SHORTEST] > 1e6
    assert jax.config.values[kept_programs._SHORTEST] == before


def test_the_folder_stays_small(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    again()(np.ones(3), 4)
    monkeypatch.setattr(caches, "LARGEST", 1 + files(folder)[0].stat().st_size * 3 // 2)
    os.utime(files(folder)[0], (1e9, 1e9))
    again()(np.ones(4), 4)
    assert len(files(folder)) == 1 and len(traces) == 2


def test_another_source_is_another_program(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    again()(np.ones(3), 4)
    monkeypatch.setattr(fingerprints, "_source", lambda: "changed")
    fingerprints._surroundings.cache_clear()
    again()(np.ones(3), 4)
    fingerprints._surroundings.cache_clear()
    assert len(files(folder)) == len(traces) == 2


def test_jax_takes_over_where_nothing_is_kept(folder: Path) -> None:
    outer = jax.jit(lambda x: again()(x, 4)["a"])
    np.testing.assert_array_equal(outer(np.ones(2)), 2 * np.ones(2))  # while another function is traced
    assert float(again()(3.0, 4)["a"]) == 6.0  # a number is no array
    with jax.enable_x64(False):
        assert again()(np.ones(2), 4)["a"].dtype == jnp.float32  # what would be converted
    nameless = Kept(lambda x: x + 1)
    assert float(nameless(np.ones(()))) == 2.0
    program_folder.use(None)
    np.testing.assert_array_equal(again()(np.ones(2), 4)["a"], 2 * np.ones(2))
    assert not files(folder) and program_folder.listing() == [] and program_folder.clear() == 0


def test_what_is_kept_can_be_removed(folder: Path) -> None:
    again()(np.ones(3), 4)
    assert program_folder.clear() == 1 and not files(folder)
    again()(np.ones(3), 4)
    assert len(traces) == 2 and len(files(folder)) == 1


def test_a_folder_of_somebody_elses_is_left_alone(folder: Path) -> None:
    (folder / "theirs").write_bytes(b"x")
    own = folder / "programs"
    own.mkdir()
    program_folder.use(own)
    again()(np.ones(3), 4)
    assert program_folder.clear() == 1 and (folder / "theirs").exists()


@pytest.fixture
def unchosen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No choice of a folder, and a folder for caches of one's own."""
    for name in ("CREDO_PROGRAMS", "JAX_ENABLE_COMPILATION_CACHE", "JAX_COMPILATION_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CREDO_CACHE_DIR", str(tmp_path / "caches"))
    monkeypatch.setattr(program_folder.Choice, "known", False)
    return tmp_path / "caches"


def test_the_usual_folder_is_the_users(unchosen: Path) -> None:
    assert program_folder.folder() == unchosen / "compiled" / caches.machine() / "programs"


@pytest.mark.parametrize(
    ("name", "value"),
    [("CREDO_PROGRAMS", "0"), ("JAX_ENABLE_COMPILATION_CACHE", "false"), ("JAX_COMPILATION_CACHE_DIR", "")],
)
def test_a_switch_turns_it_off(
    unchosen: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    assert program_folder.folder() is None and not unchosen.exists()


def test_another_folder_can_be_named(unchosen: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(unchosen / "other"))
    assert program_folder.folder() == unchosen / "other" / "programs"


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="rights of Unix")
def test_a_folder_that_others_may_write_to_is_not_used(unchosen: Path) -> None:
    place = unchosen / "compiled" / caches.machine() / "programs"
    place.mkdir(parents=True)
    place.chmod(0o777)
    assert program_folder.folder() is None


DOOR = """
import jax, numpy as np

traced = []
def hear(event, _, **more):
    if event.endswith("jaxpr_trace_duration"):
        traced.append(more["fun_name"])

jax.monitoring.register_event_duration_secs_listener(hear)
from credo.core import fingerprints, kept_programs
from credo.estimators import RiverClassifier
from credo.sessions import Session

def root(x):
    return jax.numpy.linalg.cholesky(x)  # a call of LAPACK, which nothing has looked for yet

fingerprints._KNOWN += ("__main__",)
answers = [np.asarray(kept_programs.Kept(root)(4 * np.eye(30, dtype=np.float32)))[29, 29]]
rng = np.random.default_rng(0)
model = RiverClassifier("linear")
rows = [{"a": a, "b": b, "y": a + b} for a, b in rng.normal(size=(40, 2)).round(3).tolist()]
for row in rows:
    x = {"a": row["a"], "b": row["b"]}
    answers.append(model.predict_proba_one(x))
    model.learn_one(x, row["y"] > 0)
session = Session.from_rows(rows, "y", model="linear")
session.learn(rows)
answers.append(session.predict(rows[:3]))
print(answers)
large = {"root", "step", "forecast", "_score_rows", "score_rows", "forecast_rows", "_prior", "_spread"}
print(sorted(name for name in traced if any(name.startswith(one) for one in large)))
"""


@pytest.mark.slow
def test_a_second_process_traces_nothing_and_gives_the_same_answers(tmp_path: Path) -> None:
    def run() -> tuple[str, str, str]:
        choice = {"CREDO_PROGRAMS": "1", "JAX_COMPILATION_CACHE_DIR": str(tmp_path / "jax")}
        command = [sys.executable, "-c", DOOR]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | choice)
        answers, traced = done.stdout.strip().rsplit("\n", 1)
        return answers, traced, done.stderr

    first, second = run(), run()
    assert first[0] == second[0]
    assert "root" in first[1] and "step" in first[1] and "forecast" in first[1] and "score_rows" in first[1]
    assert second[1] == "[]"
    assert second[2] == ""  # no line of XLA
