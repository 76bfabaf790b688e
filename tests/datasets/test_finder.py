"""Files are looked for in the data folder, the cache, the packages and on the network, in this order."""

from __future__ import annotations

import gzip
import io
import sys
from pathlib import Path

import pytest

from credo.core.caches import cache_dir
from credo.core.errors import DataError
from credo.datasets import finder
from credo.datasets.finder import DataFile, Finder, MissingFile, checksum, package_file

RIGHT = b"right"
FILE = DataFile(
    "set/file.txt.gz",
    checksum(RIGHT),
    urls=("https://host.example/file.txt.gz",),
    package=("shipping", "file.txt"),
)


@pytest.fixture
def everywhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Path]:
    """The file in all four places; a test removes it from some of them."""
    for name in ("argument", "variable"):
        (tmp_path / name / "set").mkdir(parents=True)
        (tmp_path / name / "set" / "file.txt.gz").write_bytes(gzip.compress(name.encode()))
    (cache_dir() / "set").mkdir(parents=True)
    (cache_dir() / "set" / "file.txt.gz").write_bytes(gzip.compress(RIGHT))
    shipped = tmp_path / "shipped.txt"
    shipped.write_bytes(b"shipped")
    monkeypatch.setenv("CREDO_DATA_DIR", str(tmp_path / "variable"))
    monkeypatch.setattr(finder, "package_file", lambda package, path: shipped if shipped.exists() else None)
    monkeypatch.setattr(finder, "urlopen", lambda request, timeout: io.BytesIO(RIGHT))
    return {
        "argument": tmp_path / "argument" / "set" / "file.txt.gz",
        "variable": tmp_path / "variable" / "set" / "file.txt.gz",
        "cache": cache_dir() / "set" / "file.txt.gz",
        "package": shipped,
    }


def test_the_order_of_the_places(everywhere: dict[str, Path]) -> None:
    argument = everywhere["argument"].parent.parent
    found = Finder("toy", argument).read(FILE)
    assert found.content == b"argument"
    assert found.place.startswith("set/file.txt.gz in data_dir, whose content differs")
    assert str(argument) not in found.place

    found = Finder("toy").read(FILE)
    assert found.content == b"variable"
    everywhere["variable"].unlink()

    found = Finder("toy").read(FILE)
    assert (found.content, found.place) == (RIGHT, "set/file.txt.gz in the cache")
    everywhere["cache"].unlink()

    found = Finder("toy").read(FILE)
    assert (found.content, found.place) == (b"shipped", "the package shipping")
    assert not everywhere["cache"].exists()
    everywhere["package"].unlink()

    found = Finder("toy").read(FILE)
    assert (found.content, found.place) == (RIGHT, "set/file.txt.gz, downloaded")
    assert everywhere["cache"].exists()


def test_the_argument_replaces_the_variable(everywhere: dict[str, Path]) -> None:
    everywhere["argument"].unlink()
    assert Finder("toy", everywhere["argument"].parent.parent).read(FILE).content == RIGHT


def test_an_uncompressed_file_serves_as_well(everywhere: dict[str, Path]) -> None:
    everywhere["variable"].unlink()
    everywhere["variable"].with_suffix("").write_bytes(RIGHT)
    assert Finder("toy").at_hand(FILE)
    assert Finder("toy").read(FILE).place == "set/file.txt.gz in CREDO_DATA_DIR"


@pytest.mark.parametrize("damaged", [b"wrong", gzip.compress(RIGHT)[:-4]], ids=["other", "truncated"])
def test_a_damaged_file_in_the_cache_is_replaced(everywhere: dict[str, Path], damaged: bytes) -> None:
    everywhere["variable"].unlink()
    everywhere["package"].unlink()
    everywhere["cache"].write_bytes(damaged)
    with pytest.raises(MissingFile, match=r"damaged or of another version.*downloads were not allowed"):
        Finder("toy", allow_download=False).read(FILE)
    assert Finder("toy").read(FILE).content == RIGHT
    assert everywhere["cache"].read_bytes() == RIGHT


def test_a_damaged_file_in_the_users_folder_is_an_error(everywhere: dict[str, Path]) -> None:
    everywhere["variable"].write_bytes(gzip.compress(RIGHT)[:-4])
    with pytest.raises(DataError, match=r"'toy'.*file\.txt\.gz cannot be read: .*cut off") as caught:
        Finder("toy").read(FILE)
    assert not isinstance(caught.value, MissingFile)


def test_a_file_found_nowhere_names_what_was_tried_and_what_to_do(
    everywhere: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise OSError("no route to host")

    monkeypatch.setattr(finder, "urlopen", refuse)
    for path in everywhere.values():
        path.unlink()
    with pytest.raises(MissingFile) as caught:
        Finder("toy").read(FILE)
    for words in (
        "data set 'toy' was not found",
        "CREDO_DATA_DIR has no set/file.txt.gz",
        "the cache has no set/file.txt.gz",
        "the package shipping",
        "https://host.example/file.txt.gz failed (no route to host)",
        "run pip install -e '.[data]' in a checkout of credo, or place the file at set/file.txt.gz",
    ):
        assert words in str(caught.value)


@pytest.mark.parametrize("field", ["data_dir", "CREDO_DATA_DIR"])
def test_a_data_folder_that_is_not_there_is_an_error(
    field: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CREDO_DATA_DIR", str(tmp_path / "none"))
    with pytest.raises(DataError, match=f"{field} must be a folder"):
        Finder("toy", tmp_path / "none" if field == "data_dir" else None)


def test_a_package_is_found_without_being_imported() -> None:
    assert package_file("this_package_is_not_installed", "file") is None
    assert package_file("numpy", "this file is not there") is None


def test_the_cache_follows_the_platform(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert cache_dir() == tmp_path / "cache"
    monkeypatch.delenv("CREDO_CACHE_DIR")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_dir() == tmp_path / "xdg" / "credo"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_dir() == Path.home() / ".cache" / "credo"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache_dir() == Path.home() / "Library" / "Caches" / "credo"
