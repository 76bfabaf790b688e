"""Times and scales of each key, and folders that grow: exact whatever is cut, and refused in sentences."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.scale.test_keyed_run import KEYS, beliefs, predictions, refusal, same
from tests.streams.setups import bitwise

import credo
from credo.cli.main import main
from credo.live.encoding import TableEncoding
from credo.recipes.options import Options
from credo.scale import KeyedOptions, learn_keyed
from credo.scale.feed import Feed, Marks
from credo.scale.keyed_run import Plan, state_of
from credo.sessions import ColumnOptions
from credo.tables import Schema, infer_schema

ROWS = 240
OWN = KeyedOptions(
    *("user", ColumnOptions("y", task="regression"), Options(drift="walk:0.01")),
    time="t",
    scale="key",
    batch=50,
    checkpoint=2,
)


def table() -> list[dict[str, Any]]:
    """Rows whose keys have units, slopes and times of their own."""
    rng = np.random.default_rng(3)
    users, x, steps = rng.integers(0, KEYS, ROWS), rng.normal(size=ROWS), rng.uniform(size=ROWS)
    rows: list[dict[str, Any]] = []
    for user, one, clock in zip(users.tolist(), x.tolist(), np.cumsum(steps).tolist(), strict=True):
        y, kind = 1000.0 * user + (user + 1) * one, "ab"[len(rows) % 2]
        rows.append({"user": f"u{user}", "t": clock, "x": 10.0 * user + one, "y": y, "kind": kind})
    rows[60]["x"] = None
    return rows


def write(path: Path, rows: list[dict[str, Any]], age: float = 60.0) -> str:
    """A file of JSON lines that was written some seconds ago."""
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    then = path.stat().st_mtime - age
    os.utime(path, (then, then))
    return str(path)


PARTS = table()[:90], table()[90:100], table()[100:]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of one run over three files."""
    folder = tmp_path_factory.mktemp("whole")
    for name, rows in zip("abc", PARTS, strict=True):
        write(folder / f"in/{name}.jsonl", rows)
    learn_keyed(str(folder / "in"), folder / "run", OWN)
    return folder / "run"


@pytest.mark.optimised
def test_a_folder_that_grows_gives_the_bits_of_one_run(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, options = tmp_path / "in", KeyedOptions(**{**vars(OWN), "shards": 2, "evict": 4})
    write(folder / "a.jsonl", PARTS[0])
    write(folder / "b.jsonl.tmp", PARTS[1][:3])
    write(folder / "_done", [])
    learn_keyed(str(folder), tmp_path / "run", options)
    naps: list[float] = []

    def line() -> int:
        read: int = json.loads((tmp_path / "run/metrics.json").read_text())["line"]
        return read

    def nap(seconds: float) -> None:
        naps.append(seconds)
        if len(naps) == 1:
            assert line() == 90
            (folder / "b.jsonl.tmp").unlink()
            write(folder / "b.jsonl", PARTS[1])
            write(folder / "bb.jsonl", [])
        elif len(naps) == 2:
            assert line() == 100
            write(folder / "c.jsonl", PARTS[2][:7], age=-60.0)  # which is still being written
        elif len(naps) == 3:
            assert line() == 100
            write(folder / "c.jsonl", PARTS[2])
        else:
            raise KeyboardInterrupt

    monkeypatch.setattr("credo.scale.sources.time.sleep", nap)
    learn_keyed(str(folder), tmp_path / "run", options, resume=True, follow=7.0)
    assert naps == [7.0] * 4
    same(tmp_path / "run", whole, shards=2)
    said: list[str] = []
    learn_keyed(str(folder), tmp_path / "run", options, resume=True, say=said.append)
    assert any("has no row after line 240" in sentence for sentence in said)


def test_a_run_that_ends_within_a_file_goes_on_there(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, calls = str(whole.parent / "in"), 0
    encode = Feed._encode

    def dying(self: Feed, chunk: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 6:
            raise KeyboardInterrupt
        return encode(self, chunk)

    with monkeypatch.context() as patch:
        patch.setattr(Feed, "_encode", dying)
        with pytest.raises(KeyboardInterrupt):
            learn_keyed(folder, tmp_path / "run", KeyedOptions(**{**vars(OWN), "checkpoint": 3}))
    saved = state_of(tmp_path / "run").header["feed"]
    assert saved["line"] == 150 and [name for name, *_ in saved["files"]] == ["a.jsonl", "b.jsonl"]
    learn_keyed(folder, tmp_path / "run", OWN, resume=True)
    same(tmp_path / "run", whole)


def test_each_key_is_standardised_and_timed_by_its_own_rows(whole: Path) -> None:
    header, found = state_of(whole).header, beliefs(whole)
    features = Schema.from_dict(header["feed"]["encoding"]["schema"]).features
    scaled = tuple(name == "x" for name in features)
    learner, prior, _ = Plan(whole, header["settings"], len(features), (), 16, None, False, scaled).begin()
    scored = 0
    for user in range(KEYS):
        mine = [row for row in table() if row["user"] == f"u{user}"]
        scored += max(0, len(mine) - 10)
        if user not in (4, 5):  # of which one lacks a number
            continue
        belief, before = prior, mine[0]["t"]
        for row in mine:
            values = {"x": np.nan if row["x"] is None else row["x"], f"kind={row['kind']}": 1.0}
            values["x=(missing)"] = float(row["x"] is None)
            x = jnp.asarray([values.get(name, 0.0) for name in features], jnp.float32)
            dt, before = jnp.float32(row["t"] - before), row["t"]
            belief, _ = learner.step(belief, x, jnp.float32(row["y"]), dt=dt)
        assert belief.inputs.count[0] == sum(row["x"] is not None for row in mine)
        for one, other in zip(jax.tree.leaves(belief), jax.tree.leaves(found[f"u{user}"]), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)
    metrics = json.loads((whole / "metrics.json").read_text())
    assert metrics["scored"] == scored and metrics["rmse"] < 2.0


def test_times_may_be_dates_and_rows_that_are_late_take_no_time(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{**row, "t": place} for place, row in enumerate(PARTS[0][:31])]
    rows += [{**PARTS[0][70], "t": 3}, {**PARTS[0][71], "t": None}]
    written = [{**row, "t": row["t"] and f"2024-01-{1 + row['t']:02d}T12:00"} for row in rows]
    written[0]["t"] = "2024-01-01T12:00"
    results = [
        learn_keyed(write(tmp_path / f"{name}.jsonl", some), tmp_path / name, OWN)
        for name, some in (("numbers", rows), ("dates", written))
    ]
    theirs, ours = beliefs(tmp_path / "numbers"), beliefs(tmp_path / "dates")
    for key, belief in theirs.items():
        bitwise(ours[key], belief)
    assert [result.metrics["late"] for result in results] == [1, 1]
    assert results[1].bad == ("line 33 has no time: 't' is missing",)
    words = [str(tmp_path / "numbers.jsonl"), "--key", "user", "--target", "y", "--task", "regression"]
    said = refusal([*words, "--time", "t", "--strict", "--out", str(tmp_path / "strict")], capsys)
    assert "line 33 has no time" in said
    write(tmp_path / "numbers.jsonl", rows[:-1])
    said = refusal([*words, "--time", "t", "--strict", "--out", str(tmp_path / "late")], capsys)
    assert "times must not go back for a key; got 3.0 after" in said
    said = refusal([*words, "--time", "kind", "--out", str(tmp_path / "no")], capsys)
    assert "--time must be a column of numbers, or of ISO dates" in said and "'kind' holds 'a'" in said
    said = refusal([*words, "--follow", "1", "--out", str(tmp_path / "no")], capsys)
    assert "--follow must be for a folder, to which files come" in said
    said = refusal([str(whole.parent / "in"), "--out", str(whole), "--resume", "--scale", "shared"], capsys)
    assert "--scale was 'key' when" in said and "cannot be changed; got 'shared'" in said


def test_files_that_change_or_come_too_late_are_refused(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, out = tmp_path / "in", tmp_path / "run"
    words = [str(folder), "--out", str(out)]
    folder.mkdir()
    assert "has no file with rows" in refusal([*words, "--key", "user", "--target", "y"], capsys)
    write(folder / "b.jsonl", PARTS[0])
    options = KeyedOptions(**{**vars(OWN), "batch": 1000})
    learn_keyed(str(folder), out, options)
    write(folder / "c.jsonl", PARTS[1])
    write(folder / "a.jsonl", PARTS[1])
    said = refusal([*words, "--resume"], capsys)
    assert "a.jsonl comes before b.jsonl, which" in said and "new files must have later names" in said
    (folder / "a.jsonl").unlink()
    write(folder / "b.jsonl", PARTS[0][:-1])
    assert "a file that was read must stay as it is" in refusal([*words, "--resume"], capsys)
    (folder / "b.jsonl").unlink()  # a file that was read may go
    assert learn_keyed(str(folder), out, options, resume=True).line == 100
    state = state_of(whole).header["feed"]
    assert [end[0] for end in state["files"]] == ["a.jsonl", "b.jsonl", "c.jsonl"]


def test_rows_come_from_an_address(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fsspec: Any = pytest.importorskip("fsspec")
    store = fsspec.filesystem("memory")
    for path in (whole.parent / "in").iterdir():
        store.pipe(f"/keyed/{path.name}", path.read_bytes())
    learn_keyed("memory://keyed", tmp_path / "run", OWN)
    same(tmp_path / "run", whole)
    learn_keyed("memory://keyed/a.jsonl", tmp_path / "one", OWN)
    assert len(predictions(tmp_path / "one")) == 90
    with pytest.raises(credo.DataError, match=r"memory://keyed/d\.jsonl does not exist"):
        learn_keyed("memory://keyed/d.jsonl", tmp_path / "no", OWN)
    with pytest.raises(credo.DataError, match="cannot be opened: Protocol not known: nowhere"):
        learn_keyed("nowhere://d.jsonl", tmp_path / "no", OWN)
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(credo.CredoError, match=r"needs the package fsspec: pip install -e '.\[remote\]'"):
        learn_keyed("memory://keyed", tmp_path / "no", OWN)


@pytest.mark.slow
def test_rows_come_from_the_journal_of_a_service(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("litestar")
    from tests.serve.conftest import LINEAR, hosting, ready, row

    from credo.serve.journal_source import open_journal

    rows = [row(number) for number in range(30)]
    words = ["--key", "c", "--batch", "8", "--checkpoint", "1"]
    write(tmp_path / "t.jsonl", [{**one["x"], "y": one["y"]} for one in rows])
    source, out = f"{tmp_path}/service/linear", tmp_path / "run"
    with hosting(tmp_path / "service") as host:
        host.put("/v1/models/linear", json=LINEAR)
        host.put("/v1/models/arms", json={"kind": "bandit", "arms": ["p", "q"]})
        ready(host)
        for number, one in enumerate(rows):
            if number == 20:
                assert main(["keyed", source, *words, "--out", str(out)]) == 0
            ask = {"id": one["id"], "x": one["x"]}
            if number == 5:
                host.post("/v1/models/linear/predict", json=ask)
                answer = host.post("/v1/models/linear/label", json={"id": one["id"], "y": one["y"]})
            else:
                answer = host.post("/v1/models/linear/learn", json=one)
            assert answer.json()["learned"]
        assert main(["keyed", source, "--out", str(out), "--resume"]) == 0
        host.post("/v1/models/linear/learn", json={**row(30), "weight": 3.0})
    assert main(["keyed", str(tmp_path / "t.jsonl"), "--target", "y", *words, "--out", f"{out}2"]) == 0
    ours, theirs = (credo.Keyed.load(Path(f"{out}{end}") / "shard-000") for end in ("", "2"))
    assert len(ours) == 3 and ours.rows == 30
    for key in "uvw":
        bitwise(ours.belief(key), theirs.belief(key))
    with open_journal(tmp_path / "service", "linear") as table:
        chunks = list(table)
    assert [weight for chunk in chunks if chunk.weights is not None for weight in chunk.weights][-1] == 3.0
    encoding = TableEncoding(infer_schema(chunks, "y", drop=["c"]))
    batches = list(Feed(encoding, Marks("c"), 100).batches(chunks))
    assert batches[0] is not None and batches[0].weights[-2:].tolist() == [1.0, 3.0]
    capsys.readouterr()
    said = refusal([f"{tmp_path}/service/liner", *words, "--out", str(tmp_path / "no")], capsys)
    assert "has no model 'liner': did you mean 'linear'?" in said
    said = refusal([f"{tmp_path}/service/arms", *words, "--out", str(tmp_path / "no")], capsys)
    assert "arms must be a model of a table; it is a bandit" in said
    monkeypatch.setitem(sys.modules, "credo.serve.journal_source", None)
    said = refusal([source, *words, "--out", str(tmp_path / "no")], capsys)
    assert "the journal of a service needs" in said
