"""Runs whose state lies at an address: exact as in a folder, and refused in sentences."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.scale.shelf import Shelf
from tests.scale.test_keyed_run import (
    KEYS,
    OPTIONS,
    ROWS,
    _Killed,
    beliefs,
    dying,
    lines,
    predictions,
    refusal,
    same,
    write,
)
from tests.streams.setups import bitwise

import credo
from credo.cli.main import main
from credo.core.places import Address, Place, place_of
from credo.scale import KeyedOptions, learn_keyed
from credo.scale.keyed_run import Generation, Shard

fsspec: Any = pytest.importorskip("fsspec")
SHARDS = 2
DIVIDED = KeyedOptions(**{**vars(OPTIONS), "shards": SHARDS, "evict": 4})


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of one run over the whole file, without shards."""
    folder = tmp_path_factory.mktemp("whole")
    learn_keyed(write(folder / "t.csv", lines()), folder / "run", OPTIONS)
    return folder / "run"


@pytest.fixture(params=["folder", "memory", "store"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """Where a run is to lie."""
    if request.param == "folder":
        yield Path(tmp_path / "run")
    elif request.param == "store":
        yield Address(Shelf(), str(tmp_path / "run"))
    else:
        found = place_of("memory://runs/one", "folder")
        yield found
        fsspec.filesystem("memory").rm("/runs", recursive=True)


def equal(place: Place, whole: Path, tmp_path: Path) -> None:
    """The run at a place is the whole one: read there, and as files that were copied into a folder."""
    theirs = beliefs(whole)
    ours = beliefs(place, SHARDS)  # type: ignore[arg-type]
    assert ours.keys() == theirs.keys() and len(ours) == KEYS
    for key, belief in theirs.items():
        bitwise(ours[key], belief)
    copy = place
    if isinstance(place, Address):
        copy = tmp_path / "copy"
        place.system.get(place.path, str(copy), recursive=True)
    assert isinstance(copy, Path)
    same(copy, whole, SHARDS)


@pytest.mark.slow
@pytest.mark.table
@pytest.mark.parametrize(("name", "at"), [("save", 4), ("_write", 9)])
def test_a_run_goes_on_exactly_after_a_death(
    name: str, at: int, place: Place, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write(tmp_path / "t.csv", lines())
    with monkeypatch.context() as patch:
        dying(patch, Shard, name, at)
        with pytest.raises(_Killed):
            learn_keyed(source, place, DIVIDED)
    learn_keyed(source, place, DIVIDED, resume=True)
    equal(place, whole, tmp_path)


def test_a_torn_checkpoint_of_a_shard_gives_way_to_the_one_before(
    place: Place, whole: Path, tmp_path: Path
) -> None:
    learn_keyed(write(tmp_path / "t.csv", lines(200)), place, DIVIDED)
    shard = place / "shard-001"
    torn = shard / max(path.name for path in shard.glob("manifest-*"))
    (tmp_path / "half").write_bytes(b"half")
    if isinstance(torn, Address):
        torn.put(tmp_path / "half")
    else:
        torn.write_bytes(b"half")
    source, said = write(tmp_path / "t.csv", lines()), list[str]()
    with pytest.warns(UserWarning, match="The checkpoint before it is taken"):
        learn_keyed(source, place, DIVIDED, resume=True, say=said.append)
    assert (
        "the latest checkpoint of a shard is damaged or gone: rows after line 161 are learned again" in said
    )
    equal(place, whole, tmp_path)


def test_an_older_generation_may_not_save(place: Place) -> None:
    older, newer = Generation(place), Generation(place)
    newer.require_latest()
    with pytest.raises(credo.DataError, match="this one is older, and may not save"):
        older.require_latest()
    assert [path.name for path in place.glob("generation-*")] == [f"generation-{newer.number:08d}"]


def test_the_command_writes_to_an_address(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = write(tmp_path / "t.csv", lines()), "memory://runs/two"
    words = [source, "--key", "user", "--target", "y"]
    assert main(["keyed", *words, "--out", out]) == 0
    assert "predictions: memory:///runs/two/predictions" in capsys.readouterr().err
    assert main(["keyed", source, "--out", out, "--resume"]) == 0
    assert "memory:///runs/two has a run already: --resume goes on with it" in refusal(
        [*words, "--out", out], capsys
    )
    said = refusal([*words, "--out", "memory://runs/three", "--workers", "1"], capsys)
    assert "workers do not see memory:///runs/three: choose a folder, or the address of a store." in said
    metrics = json.loads(fsspec.filesystem("memory").cat("/runs/two/metrics.json"))
    assert metrics["rows"] == ROWS
    assert main(["keyed", *words, "--out", f"file://{tmp_path}/local"]) == 0  # which is a folder
    assert len(predictions(tmp_path / "local")) == ROWS


def test_a_store_that_cannot_create_exclusively_is_refused(tmp_path: Path) -> None:
    local = fsspec.implementations.local.LocalFileSystem

    class Forgetful(Shelf):
        def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **kwargs: Any) -> None:
            super().pipe_file(path, value)

    class Racing(local):  # type: ignore[misc,valid-type]
        protocol = "racing"

    class Silent(Shelf):
        def ls(self, path: str, detail: bool = False, **kwargs: Any) -> Any:
            raise RuntimeError("no answer")

    for kind, why in (
        (Forgetful, "it creates a file where there is one"),
        (Racing, "it cannot create a file only where there is none"),
        (Silent, "no answer"),
    ):
        with pytest.raises(credo.DataError, match=f"cannot use .*: {why}"):
            Generation(Address(kind(skip_instance_cache=True), str(tmp_path)))
