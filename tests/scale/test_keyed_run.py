"""Runs with a learner for each key: exact whatever is cut, killed or divided, and refused in sentences."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shlex
import signal
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.needed import needs
from tests.scale.shelf import Shelf
from tests.streams.setups import bitwise
from tests.tiers import few

import credo
from credo.cli.main import main
from credo.core.actors import join_cluster
from credo.core.parallel import Crew
from credo.core.places import Address
from credo.core.processes import Process
from credo.scale import KeyedOptions, learn_keyed
from credo.scale.keyed_run import Generation, Plan, Shard, Worker, Workers
from credo.sessions import ColumnOptions

ROWS, KEYS = 240, 9
OPTIONS = KeyedOptions("user", ColumnOptions("y"), batch=40, checkpoint=2)


def lines(rows: int = ROWS) -> list[str]:
    """The lines of a file whose keys have slopes of their own."""
    rng = np.random.default_rng(0)
    slopes, users = rng.normal(size=KEYS), rng.integers(0, KEYS, ROWS)
    x = rng.normal(size=ROWS)
    y = 50 + 10 * slopes[users] * x + rng.normal(size=ROWS)
    table = zip(users.tolist(), x.tolist(), y.tolist(), strict=True)
    return ["user,x,y", *(f"u{user},{one:.4f},{target:.4f}" for user, one, target in table)][: rows + 1]


def write(path: Path, text: list[str]) -> str:
    path.write_text("\n".join(text) + "\n", encoding="utf-8")
    return str(path)


def beliefs(folder: Path, shards: int = 1) -> dict[str, Any]:
    """The belief of every key, by the checkpoints."""
    found: dict[str, Any] = {}
    for shard in range(shards):
        keyed = credo.Keyed.load(folder / f"shard-{shard:03d}")
        mine = {f"u{key}": keyed.belief(f"u{key}") for key in range(KEYS) if f"u{key}" in keyed}
        assert not found.keys() & mine.keys()
        found |= mine
    return found


def predictions(folder: Path) -> list[tuple[Any, ...]]:
    """All predictions, by line."""
    rows: list[tuple[Any, ...]] = []
    for path in (folder / "predictions").iterdir():
        if path.suffix == ".csv":
            with path.open(newline="", encoding="utf-8") as file:
                rows += [(int(line), *rest) for line, *rest in list(csv.reader(file))[1:]]
        else:
            parquet = pytest.importorskip("pyarrow.parquet")
            rows += [tuple(row.values()) for row in parquet.read_table(path).to_pylist()]
    return sorted(rows)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of one run over the whole file, without shards."""
    folder = tmp_path_factory.mktemp("whole")
    learn_keyed(write(folder / "t.csv", lines()), folder / "run", OPTIONS)
    return folder / "run"


def same(folder: Path, whole: Path, shards: int = 1) -> None:
    ours, theirs = beliefs(folder, shards), beliefs(whole)
    assert ours.keys() == theirs.keys() and len(ours) == KEYS
    for key, belief in theirs.items():
        bitwise(ours[key], belief)
    assert predictions(folder) == predictions(whole)
    told, expected = (json.loads((one / "metrics.json").read_text()) for one in (folder, whole))
    for name in ("rows", "scored", "keys", "nlpd", "rmse", "coverage_90", "line"):
        assert told[name] == pytest.approx(expected[name], rel=1e-12)


def test_every_row_has_one_prediction_made_before_it_was_learned(whole: Path) -> None:
    told = predictions(whole)
    assert [row[0] for row in told] == list(range(2, ROWS + 2))
    metrics = json.loads((whole / "metrics.json").read_text())
    assert metrics["rows"] == ROWS and metrics["keys"] == KEYS and metrics["scored"] == ROWS - 10
    targets = np.array([float(line.split(",")[2]) for line in lines()[1:]])
    errors = targets - np.array([row[2] for row in told], float)
    assert metrics["rmse"] == pytest.approx(float(np.sqrt(np.mean(errors[10:] ** 2))), rel=1e-5)
    assert 0.8 < metrics["coverage_90"] <= 1 and len(metrics["newest"]) == KEYS
    assert metrics["worst"] and all(count >= 20 for _, count, _ in metrics["worst"])


@pytest.mark.slow
def test_a_file_that_grows_and_is_divided_gives_the_bits_of_one_run(whole: Path, tmp_path: Path) -> None:
    folder, options = tmp_path / "run", KeyedOptions(**{**vars(OPTIONS), "shards": 3, "evict": 4})
    learn_keyed(write(tmp_path / "t.csv", lines(101)), folder, options)
    learn_keyed(write(tmp_path / "t.csv", lines()), folder, options, resume=True)
    said: list[str] = []
    learn_keyed(str(tmp_path / "t.csv"), folder, options, resume=True, say=said.append)
    assert any("has no row after line 241" in sentence for sentence in said)
    same(folder, whole, shards=3)


class _Killed(Exception):
    """What a test raises in the place of a kill."""


def dying(monkeypatch: pytest.MonkeyPatch, target: type, name: str, at: int) -> None:
    """Let a call of a method fail as if the process had ended there, after having done its work."""
    method: Callable[..., Any] = getattr(target, name)
    calls = 0

    def dies(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        value = method(*arguments)
        if calls == at:
            raise _Killed
        return value

    monkeypatch.setattr(target, name, dies)


@pytest.mark.parametrize(
    ("name", "at"), [("apply", 3), ("apply", 8), ("save", 2), ("save", 4), ("_write", 9)]
)
def test_a_driver_that_ends_anywhere_goes_on_exactly(
    name: str, at: int, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, options = tmp_path / "run", KeyedOptions(**{**vars(OPTIONS), "shards": 2})
    source = write(tmp_path / "t.csv", lines())
    with monkeypatch.context() as patch:
        dying(patch, Shard, name, at)
        with pytest.raises(_Killed):
            learn_keyed(source, folder, options)
    learn_keyed(source, folder, options, resume=True)
    same(folder, whole, shards=2)


@pytest.mark.slow
@pytest.mark.parametrize("where", few(["folder", "store"], "folder"))
def test_a_worker_that_is_killed_begins_again_exactly(
    where: str, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Address(Shelf(), str(tmp_path / "run")) if where == "store" else tmp_path / "run"
    apply, calls = Workers.apply, 0

    def killing(self: Workers, parts: Any) -> None:
        nonlocal calls
        calls += 1
        apply(self, parts)
        if calls in (2, 5):
            post = self.workers[calls % 2].post
            assert isinstance(post, Process) and post.process.pid is not None
            os.kill(post.process.pid, signal.SIGKILL)

    monkeypatch.setattr(Workers, "apply", killing)
    options = KeyedOptions(**{**vars(OPTIONS), "shards": 3, "workers": 2})
    learn_keyed(write(tmp_path / "t.csv", lines()), place, options)
    assert calls == 6
    same(tmp_path / "run", whole, shards=3)


def test_only_the_latest_generation_may_save(tmp_path: Path) -> None:
    older = Generation(tmp_path)
    newer = Generation(tmp_path)
    newer.require_latest()
    with pytest.raises(credo.DataError, match="this one is older, and may not save"):
        older.require_latest()


def test_a_shard_that_was_replaced_may_not_save(whole: Path, tmp_path: Path) -> None:
    header = json.loads(json.dumps(_settings(whole)))
    plan = Plan(tmp_path, header, 2, (), 16, None, False)
    stopped, _ = Shard(plan, 0), Shard(plan, 0)
    with pytest.raises(credo.DataError, match="this one is older"):
        stopped.save()


def _settings(folder: Path) -> Any:
    from credo.scale.keyed_run import state_of

    return state_of(folder).header["settings"]


def refusal(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["keyed", *words]) == 2
    return capsys.readouterr().err


def test_refusals_are_sentences(whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, run = write(tmp_path / "t.csv", lines()), str(whole)
    new = ["--out", str(tmp_path / "new")]
    said = refusal([source, *new, "--target", "y"], capsys)
    assert "--key is missing: name the column." in said
    said = refusal([source, *new, "--key", "who", "--target", "y"], capsys)
    assert "--key must be a column of" in said and "one of user, x, y; got 'who'." in said
    said = refusal([source, "--out", run, "--key", "user", "--target", "y"], capsys)
    assert "has a run already: --resume goes on with it" in said
    said = refusal([source, "--out", run, "--resume", "--shards", "8"], capsys)
    assert "--shards was 1 when" in said and "cannot be changed; got 8." in said
    said = refusal([source, "--out", run, "--resume", "--posterior", "diagonal"], capsys)
    assert "cannot be changed; got {'posterior': 'diagonal'}" in said
    said = refusal([source, *new, "--resume"], capsys)
    assert "no run of keyed learners at" in said
    place, cells = 100, lines()[100].split(",")
    for changed in ([cells[0], cells[1], "7.5"], ["nobody", *cells[1:]]):
        rows = [*lines()[:place], ",".join(changed), *lines()[place + 1 :], "a,1,2"]
        said = refusal([write(tmp_path / "o.csv", rows), "--out", run, "--resume"], capsys)
        assert "is not the file from which" in said
        assert "up to line 241 its keys or targets have changed" in said
    cut = write(tmp_path / "cut.csv", lines(90))
    assert "ends at line 91, before line 241 up to which" in refusal([cut, "--out", run, "--resume"], capsys)
    gone = write(tmp_path / "gone.csv", [line.split(",", 1)[1] for line in [*lines(), "u1,2,3"]])
    said = refusal([gone, "--out", run, "--resume"], capsys)
    assert "the column 'user' of the keys is gone; there are x, y." in said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "runs"),
    [
        ("keyed-streams", ["users", "own", "daily"]),
        ("keyed-recovery", ["again"]),
        pytest.param("keyed-machines", ["many"], marks=pytest.mark.slow),
    ],
)
def test_the_commands_of_the_pages_run(
    name: str, runs: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    head, *rows = lines()
    rows = [f"{line},2024-05-{1 + row // 8:02d}" for row, line in enumerate(rows)]
    write(tmp_path / "clicks.csv", [f"{head.replace('y', 'spent')},day", *rows])
    (tmp_path / "clicks").mkdir()
    write(tmp_path / "clicks/2024-05.csv", [f"{head.replace('y', 'spent')},day", *rows])
    page = Path(__file__).parents[2] / f"docs/how-to/{name}.md"
    blocks = re.findall(r"^```sh\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert blocks
    for line in "".join(blocks).splitlines():
        program, *words = shlex.split(line)
        assert program == "credo" and main(words) == 0
    assert [len(predictions(tmp_path / "runs" / run)) for run in runs] == [ROWS] * len(runs)


def test_rows_come_from_standard_input_and_as_json_lines(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head, *rows = [line.split(",") for line in lines()]
    cells = [[user, float(x), float(y)] for user, x, y in rows]
    text = "".join(json.dumps(dict(zip(head, row, strict=True))) + "\n" for row in cells)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert main(["keyed", "-", "--key", "user", "--target", "y", "--out", str(tmp_path / "run")]) == 0
    for key, belief in beliefs(whole).items():
        bitwise(beliefs(tmp_path / "run")[key], belief)


def test_rows_without_a_key_are_counted_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = lines()
    text[3], text[7] = "," + text[3].split(",", 1)[1], "NaN," + text[7].split(",", 1)[1]
    source, out = write(tmp_path / "t.csv", text), tmp_path / "run"
    words = [source, "--key", "user", "--target", "y", "--batch", "40"]
    assert main(["keyed", *words, "--out", str(out)]) == 0
    said = capsys.readouterr().err
    assert "2 rows could not be used: line 4 has no key: 'user' is missing; line 8 has no key" in said
    assert len(predictions(out)) == ROWS - 2
    assert "line 4 has no key" in refusal([*words, "--out", str(tmp_path / "b"), "--strict"], capsys)


@pytest.mark.slow
def test_a_slow_worker_is_sent_no_more_than_it_can_hold(tmp_path: Path) -> None:
    source = write(tmp_path / "t.csv", lines())
    options = KeyedOptions(**{**vars(OPTIONS), "workers": 1, "batch": 5, "checkpoint": 4})
    most = 0
    apply = Worker.apply

    def watching(self: Worker, number: int, batch: Any) -> None:
        nonlocal most
        apply(self, number, batch)
        most = max(most, self.flight, len(self.kept))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Worker, "apply", watching)
        learn_keyed(source, tmp_path / "run", options)
    assert most == 4


def test_without_ray_a_sentence_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    options = KeyedOptions(**{**vars(OPTIONS), "workers": 1, "ray": "local"})
    with pytest.raises(credo.CredoError, match=r"`ray` needs the package ray: pip install -e '.\[ray\]'"):
        learn_keyed(write(tmp_path / "t.csv", lines()), tmp_path / "run", options)
    with pytest.raises(credo.CredoError, match=r"`ray` needs the package ray"):
        Crew(2, ray="10.0.0.1:6379")


@pytest.mark.parametrize("kind", [Exception, ConnectionError, RuntimeError])
def test_a_part_of_ray_that_dies_while_it_starts_is_no_bug_of_credo(
    kind: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def init(*_: object, **__: object) -> None:
        raise kind("The current node timed out during startup. This could happen for many reasons.\nMore.")

    fake = types.SimpleNamespace(is_initialized=lambda: False, init=init)
    monkeypatch.setitem(sys.modules, "ray", fake)
    said = "^no cluster of Ray answers at local: The current node timed out during startup.$"
    with pytest.raises(credo.DataError, match=said):
        join_cluster("local")


@pytest.mark.thorough
def test_actors_of_ray_that_are_killed_begin_again_exactly(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray: Any = needs("ray")
    apply, calls = Workers.apply, 0

    def killing(self: Workers, parts: Any) -> None:
        nonlocal calls
        calls += 1
        apply(self, parts)
        if calls in (2, 5):
            post: Any = self.workers[calls % 2].post
            ray.kill(post.actor)

    monkeypatch.setattr(Workers, "apply", killing)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    options = KeyedOptions(**{**vars(OPTIONS), "shards": 3, "workers": 2, "ray": "local"})
    try:
        learn_keyed(write(tmp_path / "t.csv", lines()), tmp_path / "run", options)
        with Crew(2, ray="local") as crew:  # which runs functions in such actors
            assert crew.each(lambda k: crew.call(lambda: (k, os.environ["NPROC"])), [1, 2]) == [
                (1, "1"),
                (2, "1"),
            ]
    finally:
        ray.shutdown()
    assert calls == 6
    same(tmp_path / "run", whole, shards=3)
