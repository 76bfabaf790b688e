"""Rows that bring columns for which there is no room wait beside the learner, and nobody else does."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from tests.serve.conftest import LINEAR, Host, hosting, ready, row

from credo.serve import learning
from credo.serve.building import SNAPSHOTS
from credo.serve.contents import Learn, Predict
from credo.serve.growing import grown
from credo.serve.hosting import Hosted
from credo.serve.journal_lines import Event, ModelRow
from credo.serve.learning import Growth, Learner, Lines
from credo.serve.problems import Reply
from credo.serve.specs import read_spec
from credo.serve.table_model import TableModel
from credo.serve.verifying import verify
from credo.tables.schema import ColumnSpec

Asked = list[tuple[Hosted, list[Growth]]]


class Growing(NamedTuple):
    """A service whose models grow when a test says so, what grows, and threads for its clients."""

    client: Host
    asked: Asked
    pool: ThreadPoolExecutor

    def send(self, number: int, **more: float) -> Future[Any]:
        """Send a row from another thread, with some more cells."""
        one = row(number)
        one["x"] |= more
        return self.pool.submit(self.client.post, "/v1/models/linear/learn", json=one)

    def resume(self) -> None:
        """Say of what grows that its programs are there."""
        hosted, growths = self.asked.pop()
        self.client.service._grown(hosted, growths[-1].upto)


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 60.0
    while not true():
        assert time.monotonic() < end
        time.sleep(0.005)


def add(client: Host, *names: str) -> None:
    for name in names:
        assert client.put(f"/v1/models/{name}", json=LINEAR).status_code == 202
    ready(client)


def _have_grown(client: Host, asked: Asked) -> None:
    """Note what grows, and wait until the test says that it has."""
    client.service.learner._grow = lambda hosted, growths: asked.append((hosted, growths))
    client.service.learner._through = False


@pytest.fixture
def growing(tmp_path: Path) -> Iterator[Growing]:
    asked: Asked = []
    with hosting(tmp_path / "service") as client, ThreadPoolExecutor(12) as pool:
        _have_grown(client, asked)
        add(client, "linear", "other")
        yield Growing(client, asked, pool)


def aside(growing: Growing) -> int:
    return int(growing.client.service.learner.waiting)


def test_a_model_that_grows_answers_forecasts_and_keeps_nobody_else_waiting(growing: Growing) -> None:
    client = growing.client
    before = client.post("/v1/models/linear/learn", json=row(0)).json()
    wide = growing.send(1, new=1.0)
    until(lambda: bool(growing.asked))
    later = growing.send(2)
    again = growing.send(1, new=1.0)
    until(lambda: aside(growing) == 3)
    assert client.post("/v1/models/other/learn", json=row(1)).json()["learned"]
    asked = client.post("/v1/models/linear/predict", json={"x": row(3)["x"]}).json()
    assert asked["version"] == 1  # the state before
    assert not any(one.done() for one in (wide, later, again))
    growing.resume()
    answers = [one.result(60).json() for one in (wide, later, again)]
    assert all(one["learned"] for one in answers) and answers[2].pop("duplicate")
    assert before["seq"] < answers[0]["seq"] < answers[1]["seq"] and answers[2] == answers[0]
    assert client.service.hosts["linear"].model.schema.late and not growing.asked


def test_a_column_for_which_there_is_room_waits_for_nothing(growing: Growing) -> None:
    first = growing.send(1, new=1.0)
    until(lambda: bool(growing.asked))
    growing.resume()
    assert first.result(60).json()["learned"]
    width = growing.client.service.hosts["linear"].model.schema.width
    assert growing.send(2, newer=1.0).result(60).json()["learned"]
    assert growing.client.service.hosts["linear"].model.schema.width == width and not growing.asked


def test_rows_that_came_after_the_programs_were_asked_for_may_wait_for_others(growing: Growing) -> None:
    first = growing.send(1, new=1.0)
    until(lambda: bool(growing.asked))
    more = {f"more-{number}": 1.0 for number in range(20)}
    second = growing.send(2, **more)
    until(lambda: aside(growing) == 2)
    third = growing.send(3)
    until(lambda: aside(growing) == 3)
    growing.resume()
    assert first.result(60).json()["learned"]
    until(lambda: bool(growing.asked))
    assert not second.done() and not third.done()
    growing.resume()
    assert second.result(60).json()["seq"] < third.result(60).json()["seq"]


def test_a_challenger_that_comes_while_lines_wait_learns_each_once_and_takes_its_place(
    growing: Growing, tmp_path: Path
) -> None:
    client = growing.client
    wide = growing.send(1, new=1.0)
    until(lambda: bool(growing.asked))
    assert client.put("/v1/models/linear/challenger", json={**LINEAR, "levels": [0.5]}).status_code == 202
    ready(client)
    assert client.service.hosts["linear"].challenger.learned == 1
    promoted = client.post("/v1/models/linear/promote")
    assert promoted.status_code == 200 and wide.result(60).json()["learned"]
    assert client.service.hosts["linear"].learned == 1  # and not twice
    growing.resume()  # there is nothing left to take
    assert growing.send(2).result(60).json()["learned"]


def test_what_waits_is_learned_when_the_service_stops(tmp_path: Path) -> None:
    folder = tmp_path / "service"
    with ThreadPoolExecutor(2) as pool, hosting(folder) as client:
        growing = Growing(client, [], pool)
        _have_grown(client, growing.asked)
        add(client, "linear")
        wide = growing.send(1, new=1.0)
        until(lambda: bool(growing.asked))
        client.service.stop()
        assert wide.result(60).json()["learned"]
        client.service.stop = lambda: None
    (verdict,) = verify(folder)
    assert verdict.same_state and verdict.lines == 1 and not verdict.other_answers


def test_the_child_process_learns_what_the_learner_will(growing: Growing, tmp_path: Path) -> None:
    client, path = growing.client, tmp_path / "before.credo"
    assert growing.send(0).result(60).json()["learned"]
    wide = growing.send(1, new=1.0, newer="ab")  # type: ignore[arg-type]
    until(lambda: bool(growing.asked))
    later = growing.send(2)
    until(lambda: aside(growing) == 2)
    ((hosted, (growth,)),) = growing.asked
    growth.write(path)
    model = grown(tmp_path / "service", hosted.number, path, growth.applied, growth.upto + 1)
    growing.resume()
    assert wide.result(60).json()["learned"] and later.result(60).json()["learned"]
    ours = client.service.hosts["linear"].model
    assert model.digest(tmp_path / "one") == ours.digest(tmp_path / "two")
    assert not list((tmp_path / "service" / SNAPSHOTS).glob("*credo-grower*"))


def test_classes_make_a_model_grow_where_there_is_no_room_for_them() -> None:
    spec = read_spec({"target": "y", "task": "classification", "first": 12, "options": {"model": "linear"}})
    model = TableModel.start(spec, [Learn({"a": float(k)}, "abc"[k % 3]) for k in range(12)], Path())  # type: ignore[arg-type]

    def grows(*labels: str, kind: str = "learn") -> bool:
        return model.grows([Event(k, str(k), kind, 0.0, Learn({"a": 1.0}, y)) for k, y in enumerate(labels)])

    assert not grows("a", "b") and grows("a", "d")
    assert model.grows([Event(1, "1", "learn", 0.0, Learn({"a": 1.0, "b": 2.0}, "a"))])
    assert not model.grows([Event(1, "1", "learn", 0.0, Learn({"a": 1.0, "b": None}, "a"))])
    assert not model.grows([Event(1, "1", "predict", 0.0, Predict({"b": 2.0}))])
    room = model.schema.including([ColumnSpec("c", "numeric", has_missing=True)])
    model.session.encoding.become(room)  # type: ignore[attr-defined]
    assert not model.grows([Event(1, "1", "learn", 0.0, Learn({"a": 1.0, "b": 2.0}, "a"))])


class Narrow(TableModel):
    """A model that knows one column, and has room for one more."""

    def __init__(self) -> None:
        self.known = {"a"}

    def knows(self, event: Event) -> bool:
        return _names(event) <= self.known

    def grows(self, events: Sequence[Event]) -> bool:
        return len(set().union(*map(_names, events)) - self.known) > 1


def _names(event: Event) -> set[str]:
    assert isinstance(event.content, Learn)
    return set(event.content.x)


def _event(seq: int, *names: str) -> Event:
    return Event(seq, str(seq), "learn", 0.0, Learn(dict.fromkeys(names, 1.0), 1.0))


def _narrow() -> tuple[Learner, Hosted]:
    """A learner without a thread, and a model that it hosts."""
    spec = msgspec.json.encode(
        read_spec({"target": "y", "task": "regression", "options": {"model": "linear"}})
    )
    hosted = Hosted(ModelRow(1, "narrow", spec, 0.0))
    hosted.stage = "ready"
    hosted.model = Narrow()
    store: Any = None
    return Learner(store, lambda _: None, lambda _: None, lambda _, growths: None), hosted


def test_lines_of_one_group_share_the_room_that_there_is() -> None:
    learner, hosted = _narrow()
    bringing: dict[Hosted, list[Event]] = {}

    def waits(seq: int, *names: str) -> bool:
        event = _event(seq, *names)
        ticket: Any = None
        return learner._set_aside(Lines(hosted, [event], ticket), [event], bringing)

    assert not waits(1, "a") and not waits(2, "a", "b") and not waits(3, "b")
    assert waits(4, "c")  # with the line before it, for which there was room
    assert waits(5, "a")  # after what waits
    assert [one.entries[0].seq for one in learner._aside[hosted]] == [4, 5]  # type: ignore[union-attr]


def test_a_model_takes_the_lines_that_it_has_not_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    learner, hosted = _narrow()
    taken: list[int] = []
    monkeypatch.setattr(learner, "apply", lambda _, events: taken.extend(event.seq for event in events))
    hosted.seen = 2
    learner._take(hosted, [_event(1, "a"), _event(2, "a")])
    learner._take(hosted, [_event(2, "a"), _event(3, "a"), _event(4, "a")])
    learner._take(hosted, [_event(5, "a")])
    assert taken == [3, 4, 5] and hosted.seen == 5


class Clock:
    """A clock that goes on when the slow model learns, by so many seconds a line; and what was taken."""

    def __init__(self, learner: Learner, monkeypatch: pytest.MonkeyPatch, pace: float) -> None:
        self.now = 0.0
        self.taken: list[tuple[str, list[int]]] = []
        self.pace = pace
        monkeypatch.setattr(learning, "time", self)
        monkeypatch.setattr(learner, "apply", self.apply)
        monkeypatch.setattr(learner, "_reply", lambda lines: Reply(200, lines.hosted.name.encode()))

    def perf_counter(self) -> float:
        return self.now

    def apply(self, hosted: Hosted, events: Sequence[Event]) -> None:
        self.taken.append((hosted.name, [event.seq for event in events]))
        self.now += self.pace * len(events) * (hosted.name == "slow")


def _hosted(name: str) -> Hosted:
    hosted = _narrow()[1]
    hosted.name = name
    return hosted


def _work_off(learner: Learner) -> None:
    while waiting := learner._inbox.take():
        learner._work(waiting)


def test_a_slow_model_lets_others_in_between_and_keeps_its_order(monkeypatch: pytest.MonkeyPatch) -> None:
    learner, _ = _narrow()
    clock = Clock(learner, monkeypatch, pace=0.009)
    answered: list[str] = []
    monkeypatch.setattr(
        learning, "answer_all", lambda replies: answered.extend(reply.body.decode() for _, reply in replies)
    )
    slow = _hosted("slow")
    quick = _hosted("quick")
    ticket: Any = None

    def lines(hosted: Hosted, *numbers: int) -> Lines:
        return Lines(hosted, [_event(number, "a") for number in numbers], ticket, many=len(numbers) > 1)

    learner._work([lines(slow, 1), lines(slow, 2, 3)])  # nobody knows yet how long it takes
    assert clock.taken == [("slow", [1, 2, 3])] and answered == ["slow"] * 2
    clock.taken.clear()
    answered.clear()
    learner._work([lines(slow, 4, 5, 6, 7, 8), lines(slow, 9), lines(quick, 1)])
    assert clock.taken == [("quick", [1]), ("slow", [4, 5])] and answered == ["quick"]
    learner.submit([lines(slow, 10), lines(quick, 2)])
    learner.submit([lines(slow, 9)])
    _work_off(learner)
    rows = [number for name, numbers in clock.taken if name == "slow" for number in numbers]
    assert rows == [4, 5, 6, 7, 8, 9, 10]
    assert clock.taken.index(("quick", [2])) < len(clock.taken) - 2
    assert answered == ["quick", "quick", *["slow"] * 4] and not learner._aside and not learner._cut


def _single(hosted: Hosted, seq: int, *names: str) -> Lines:
    ticket: Any = None
    return Lines(hosted, [_event(seq, *names)], ticket)


def test_lines_that_wait_are_taken_as_many_as_have_time(monkeypatch: pytest.MonkeyPatch) -> None:
    learner, _ = _narrow()
    clock = Clock(learner, monkeypatch, pace=0.009)
    monkeypatch.setattr(learning, "answer_all", lambda replies: None)
    slow = _hosted("slow")
    slow.pace = 0.009
    learner._work([_single(slow, seq, "a") for seq in range(1, 8)])
    while waiting := learner._inbox.take():
        assert len(waiting) == 1
        learner._work(waiting)
    assert [numbers for _, numbers in clock.taken] == [[1, 2], [3, 4], [5, 6], [7]]
    ticket: Any = None
    batch = Lines(slow, [_event(seq, "a") for seq in range(8, 14)], ticket, many=True)
    learner._work([batch, _single(slow, 14, "a")])
    while waiting := learner._inbox.take():
        assert len(waiting) == 1
        learner._work(waiting)
    assert [numbers for _, numbers in clock.taken[4:]] == [[8, 9], [10, 11], [12, 13], [14]]


def test_a_model_that_had_to_wait_grows_once_it_has_taken_the_lines_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    learner, _ = _narrow()
    clock = Clock(learner, monkeypatch, pace=0.009)
    monkeypatch.setattr(learning, "answer_all", lambda replies: None)
    slow = _hosted("slow")
    slow.pace = 0.009
    grown: list[int] = []
    monkeypatch.setattr(learner, "_start_growing", lambda hosted: grown.append(hosted.seen))
    brings = [("a",), ("a",), ("a",), ("a", "b"), ("a", "c"), ("a", "b", "c"), ("a",)]
    learner._work([_single(slow, seq, *names) for seq, names in enumerate(brings, 1)])
    assert not grown
    _work_off(learner)
    assert grown == [5]
    assert [numbers for _, numbers in clock.taken] == [[1, 2], [3], [4], [5]]
    assert [one.entries[0].seq for one in learner._aside[slow]] == [6, 7]  # type: ignore[union-attr]


def test_a_service_that_stops_takes_what_had_to_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    learner, _ = _narrow()
    clock = Clock(learner, monkeypatch, pace=1.0)
    monkeypatch.setattr(learning, "answer_all", lambda replies: None)
    slow = _hosted("slow")
    ticket: Any = None
    for numbers in ([1], [2, 3, 4]):
        learner._work([Lines(slow, [_event(number, "a") for number in numbers], ticket, many=True)])
    assert clock.taken == [("slow", [1]), ("slow", [2])]
    learner.compile_here()
    assert clock.taken[2:] == [("slow", [3, 4])]
    _work_off(learner)
    assert len(clock.taken) == 3


def test_a_model_grows_by_a_process_of_its_own(tmp_path: Path) -> None:
    with hosting(tmp_path / "service") as client:
        add(client, "linear")
        asked: list[Any] = []
        compile, service = client.service.grower._compile, client.service
        service.grower._compile = lambda growth: asked.append((growth, compile(growth)))
        one = row(1)
        one["x"]["new"] = 1.0
        assert client.post("/v1/models/linear/learn", json=one).json()["learned"]
        assert len(asked) == (not service.learner._through)
        assert all(thread.is_alive() for thread in service._threads)
