"""Compiled programs are kept between runs, in a folder of bounded size, unless somebody chose otherwise."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from credo.cli.compile_cache import keep_compiled_programs
from credo.core.caches import prune


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A process that has not imported JAX, with a folder for caches of its own."""
    monkeypatch.delitem(sys.modules, "jax")
    monkeypatch.setenv("CREDO_CACHE_DIR", str(tmp_path))
    for name in ("JAX_ENABLE_COMPILATION_CACHE", "JAX_COMPILATION_CACHE_DIR"):
        monkeypatch.setenv(name, "x")  # so that it is taken back, whatever the test leaves
        monkeypatch.delenv(name)
    for name in ("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"):
        monkeypatch.setenv(name, "7")
    return tmp_path


@pytest.mark.filterwarnings("default")
def test_the_cache_is_on_in_the_users_folder(fresh: Path) -> None:
    folder = keep_compiled_programs()
    assert folder is not None and folder.parent == fresh / "compiled" and folder.is_dir()
    assert os.environ["JAX_COMPILATION_CACHE_DIR"] == str(folder)
    assert os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] == "7"  # the user's own choice stays


@pytest.mark.parametrize(("given", "level"), [(None, "3"), ("1", "3"), ("0", "0"), ("2", "2")])
def test_xla_says_nothing_of_programs_unless_the_user_asked(
    fresh: Path, monkeypatch: pytest.MonkeyPatch, given: str | None, level: str
) -> None:
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", given or "1")  # 1 is what a process inherits from one with JAX
    if given is None:
        monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL")
    keep_compiled_programs()
    assert os.environ["TF_CPP_MIN_LOG_LEVEL"] == level


@pytest.mark.parametrize(
    ("name", "value"), [("JAX_COMPILATION_CACHE_DIR", ""), ("JAX_ENABLE_COMPILATION_CACHE", "false")]
)
def test_the_users_choice_stands(fresh: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    assert keep_compiled_programs() is None and not list(fresh.iterdir())


def test_a_folder_that_cannot_be_made_leaves_the_cache_off(
    fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (fresh / "file").touch()
    monkeypatch.setenv("CREDO_CACHE_DIR", str(fresh / "file"))
    assert keep_compiled_programs() is None and "JAX_COMPILATION_CACHE_DIR" not in os.environ


def test_a_program_that_has_imported_jax_is_left_alone(tmp_path: Path) -> None:
    assert "jax" in sys.modules and keep_compiled_programs() is None


def test_the_files_unused_for_longest_go_first(tmp_path: Path) -> None:
    for age, name in enumerate(("new", "old", "oldest")):
        path = tmp_path / "machine" / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(bytes(100))
        os.utime(path, (1e9 - age, 1e9 - age))
    prune(tmp_path, 250)
    assert {path.name for path in tmp_path.rglob("*") if path.is_file()} == {"new", "old"}
