"""The saved form: what is damaged or forged is refused in a sentence, by every reader."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import save as to_bytes
from tests.tiers import few

import credo
from credo.bandits import Agent, Bandit
from credo.core import archive
from credo.core.errors import CredoError, DataError, FormatError
from credo.sessions import Session

ROWS: list[dict[str, Any]] = [
    {"a": float(i % 7), "b": "xy"[i % 2], "y": 2.0 * (i % 7) + (i % 3)} for i in range(40)
]
ARRAYS = {"b": np.arange(3.0), "a/0": np.zeros((2, 0), np.int32)}


def saved_session(path: Path) -> Callable[[Path], object]:
    session = Session.from_rows(ROWS, "y", model="linear")
    session.learn(ROWS)
    session.save(path)
    return Session.load


def saved_regressor(path: Path) -> Callable[[Path], object]:
    frame = pd.DataFrame(ROWS)
    credo.OnlineRegressor("linear").fit(frame[["a", "b"]], frame["y"]).save(path)
    return credo.OnlineRegressor.load


def saved_river(path: Path) -> Callable[[Path], object]:
    model = credo.RiverRegressor("linear")
    for row in ROWS:
        model.learn_one({"a": row["a"], "b": row["b"]}, row["y"])
    model.save(path)
    return credo.RiverRegressor.load


def saved_bandit(path: Path) -> Callable[[Path], object]:
    model = credo.Model(credo.Linear(2), credo.Normal(0.5))
    agent = Agent(credo.bong(model, credo.Full()), arms=2, scale="online", units="online")
    bandit = Bandit(agent, ["left", "right"], features=2)
    for i in range(6):
        bandit.reward(bandit.decide({"a": float(i)}).id, float(i % 2))
    bandit.decide({"a": 1.0})
    bandit.save(path)
    return Bandit.load


def saved_operator(path: Path) -> Callable[[Path], object]:
    credo.flows.save_operator(path, credo.flows.Operator(dim=2, width=2, hidden=4).begin(key=0))
    return credo.flows.load_operator


KINDS = [saved_session, saved_regressor, saved_river, saved_bandit, saved_operator]


def test_what_was_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x"
    archive.write(path, "example", {"format": 1, "a": [1, {"b": '[[["{'}]}, ARRAYS)
    header, arrays = archive.read(path, "example", 1, "example")
    assert header == {"format": 1, "a": [1, {"b": '[[["{'}]}
    assert {name: array.tolist() for name, array in arrays.items()} == {"b": [0, 1, 2], "a/0": [[], []]}
    parts = {"one": ARRAYS, "none": {}}
    assert archive.split(archive.join(parts), ("one", "none")) == parts
    tree: Any = {"x": jnp.ones(2), "y": (jnp.zeros(()), None)}
    back = archive.refill(tree, archive.leaves_of(tree), "tree")
    assert back["y"][1] is None and back["x"].tolist() == [1.0, 1.0]
    with pytest.raises(FormatError, match="tree must have the shapes"):
        archive.refill(tree, archive.leaves_of({"x": jnp.ones(3), "y": jnp.zeros(())}), "tree")


def text(header: str) -> bytes:
    return to_bytes({"a": np.zeros(1)}, metadata={"example": header})


@pytest.mark.table
@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "is no example, or is cut short"),
        (b"\xff" * 64, "is no example, or is cut short"),
        ((2**62).to_bytes(8, "little") + b"{}", "is no example, or is cut short"),
        (to_bytes({"a": np.zeros(1)}, metadata={"other": "{}"}), "is a safetensors file, but no example"),
        (text("{not json"), "its header is not JSON"),
        (text("[1]"), "its header is no JSON object"),
        (text("[" * 100_000 + "]" * 100_000), "nested more than 200 deep"),
        (text('{"a": ' * 300 + "1" + "}" * 300), "nested more than 200 deep"),
        (text('{"format": 7, "credo": "9.9"}'), "has format 7, written by credo 9.9"),
        (text('{"format": "x"}'), "has format x; this version reads up to 1"),
        (text('{"format": 1}'), "do not match its checksum"),
    ],
)
def test_what_is_no_archive_is_refused(content: bytes, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=sentence):
        archive.read(path, "example", 1, "example")


def test_an_array_larger_than_its_file_is_refused(tmp_path: Path) -> None:
    header = {"a": {"dtype": "F64", "shape": [2**40], "data_offsets": [0, 2**43]}}
    words = json.dumps(header).encode()
    path = tmp_path / "x"
    path.write_bytes(len(words).to_bytes(8, "little") + words + b"\0" * 64)
    with pytest.raises(FormatError, match="cut short"):
        archive.read(path, "example", 1, "example")
    with pytest.raises(DataError, match="no example at"):
        archive.read(tmp_path / "nothing", "example", 1, "example")


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of everything inside a JSON value."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = [path] if path else []
    return found + [place for name, child in inside for place in places(child, (*path, name))]


def forged(header: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    """The header with another value at a path; without any where the value is `...`."""
    changed = copy.deepcopy(header)
    *outer, last = path
    place: Any = changed
    for step in outer:
        place = place[step]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return changed


@pytest.mark.slow
@pytest.mark.table
@pytest.mark.parametrize("save", few(KINDS, *KINDS[1:]), ids=lambda save: save.__name__)
def test_forged_files_load_or_are_refused(save: Callable[[Path], Any], tmp_path: Path) -> None:
    """A reader may take another number for a good one, but it never fails by another error."""
    path = tmp_path / "x.credo"
    load = save(path)
    load(path)
    mark = "credo-flow" if save is saved_operator else "credo"
    header, arrays = archive.read(path, mark, 1, "file")
    chance = random.Random(0)
    known = places(header.get("meta", header))
    for _ in range(150):
        place = chance.choice(known)
        place = ("meta", *place) if "meta" in header else place
        value: Any = chance.choice([..., None, -1, 10**12, "x", [], {}, [1, "x"], 0.5, True])
        archive.write(path, mark, forged(header, place, value), arrays)
        attempt(load, path, (place, value))
    for name in arrays:
        for other in (np.zeros(0), np.full((2, 3), np.nan), None):
            rest = {key: array for key, array in arrays.items() if key != name}
            archive.write(path, mark, header, rest if other is None else {**rest, name: other})
            attempt(load, path, (name, other))


def attempt(load: Callable[[Path], object], path: Path, what: object) -> None:
    try:
        load(path)
    except CredoError as error:
        assert str(error).endswith("."), (what, error)
    except Exception as error:
        raise AssertionError((what, error)) from error
