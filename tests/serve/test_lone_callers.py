"""One caller is served without waking other threads, and gets what it would get otherwise."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.serve.conftest import LINEAR, hosting, ready, row

from credo.serve import service
from credo.serve.building import JOURNAL
from credo.serve.journal_store import Store
from credo.serve.service import Callers
from credo.serve.threads import Inbox


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 10.0
    while not true():
        assert time.monotonic() < end
        time.sleep(0.001)


def test_work_is_borrowed_only_from_a_thread_that_waits() -> None:
    inbox: Inbox[int] = Inbox()
    taken: list[list[int]] = []
    thread = threading.Thread(target=inbox.run, args=(taken.append, 0.01))
    thread.start()
    while not inbox.borrow():
        pass
    assert not inbox.borrow()
    seen = len(taken)
    inbox.put([1])
    inbox.end()
    thread.join(0.1)
    assert thread.is_alive() and taken[seen:] == []  # it takes nothing meanwhile, not even after its time
    inbox.busy.release()
    thread.join()
    assert taken[-1] == [1]
    assert not inbox.borrow()  # it has ended


def test_work_is_not_borrowed_before_what_waits_and_not_after_a_failure() -> None:
    inbox: Inbox[int] = Inbox()
    inbox.put([1])
    assert not inbox.borrow()
    with pytest.raises(ZeroDivisionError):
        inbox.run(lambda things: print(1 // (things[0] - 1)), 0.01)
    assert len(inbox) == 0 and not inbox.borrow()  # nobody knows what is done


def test_the_next_transaction_waits_until_the_learner_has_taken_the_last_but_not_for_long() -> None:
    inbox: Inbox[int] = Inbox()
    inbox.wait_until_empty(60.0)  # nothing waits
    inbox.put([1, 2])
    inbox.wait_until_empty(0.01)
    assert len(inbox) == 2
    free = threading.Event()

    def wait() -> None:
        inbox.wait_until_empty(60.0)
        free.set()

    thread = threading.Thread(target=wait)
    thread.start()
    assert inbox.take(most=1) == [1] and not free.wait(0.05)  # one is still there
    assert inbox.take() == [2] and free.wait(10.0)
    thread.join()


def test_rows_that_come_while_the_learner_is_busy_are_one_transaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "LONELY", float("inf"))  # all callers of a test client have one address
    for name in ("PAUSE", "IDLE"):  # nor are answers alone written meanwhile
        monkeypatch.setattr(f"credo.serve.writing.{name}", 60.0)
    with hosting(tmp_path) as client, ThreadPoolExecutor(9) as pool:
        client.put("/v1/models/linear", json=LINEAR)
        ready(client)
        writer, busy, free = client.service.writer, threading.Event(), threading.Event()

        def work() -> None:
            busy.set()
            free.wait(60.0)

        client.service._call(work)
        assert busy.wait(10.0)  # or the learner might take the first row together with this
        before = writer.transactions
        first = pool.submit(client.post, "/v1/models/linear/learn", json=row(0))
        until(lambda: len(client.service.learner._inbox) == 1)
        rest = [pool.submit(client.post, "/v1/models/linear/learn", json=row(k)) for k in range(1, 9)]
        until(lambda: writer.waiting == 8)
        assert writer.transactions == before + 1
        free.set()
        assert all(one.result().json()["learned"] for one in (first, *rest))
        assert writer.transactions == before + 2


def test_a_caller_is_alone_after_a_while_without_others(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("credo.serve.service.time.monotonic", lambda: now)
    who = Callers()
    for caller, passed, alone in (("a", 0.0, False), ("a", 1.0, True), ("b", 5.0, False), ("b", 0.05, False)):
        now += passed
        assert who.alone(caller) == alone


def test_the_answers_of_a_lone_caller_are_written_down_without_further_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "LONELY", -1.0)
    with hosting(tmp_path / "s") as client:
        client.put("/v1/models/linear", json=LINEAR)
        ready(client)
        time.sleep(0.1)  # the writer waits, for however long
        seq = client.post("/v1/models/linear/learn", json=row(1)).json()["seq"]
        with contextlib.closing(Store(tmp_path / "s" / JOURNAL)) as store:
            until = time.monotonic() + 20
            while (kept := store.answer(seq)) is None and time.monotonic() < until:
                time.sleep(0.05)
        while client.service.learner.answers and time.monotonic() < until:
            time.sleep(0.05)
        assert not client.service.learner.answers  # they are not written again
    assert kept is not None


def test_the_event_loop_compiles_nothing_for_a_lone_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "LONELY", -1.0)
    with hosting(tmp_path / "s") as client:
        client.put("/v1/models/linear", json=LINEAR)
        ready(client)
        model, threads = client.service.hosts["linear"].model, list[str]()
        whole = model.apply

        def apply(*arguments: Any) -> Any:
            threads.append(threading.current_thread().name)
            return whole(*arguments)

        monkeypatch.setattr(model, "apply", apply)
        for number, more in ((1, {}), (2, {"late": 2.5}), (3, {"late": 1.5})):
            new = row(number)
            assert client.post("/v1/models/linear/learn", json=new | {"x": new["x"] | more}).is_success
    assert [name == "credo-learner" for name in threads] == [False, True, False]


@pytest.mark.optimised
def test_alone_or_not_answers_and_states_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for lonely in (-1.0, 1e9):
        monkeypatch.setattr(service, "LONELY", lonely)
        with hosting(tmp_path / f"{lonely}") as client:
            client.put("/v1/models/linear", json=LINEAR)
            ready(client)
            threads: list[str] = []
            learner, whole = client.service.learner, client.service.learner.apply

            def apply(*arguments: object, whole=whole, threads=threads) -> None:  # type: ignore[no-untyped-def]
                threads.append(threading.current_thread().name)
                whole(*arguments)

            monkeypatch.setattr(learner, "apply", apply)
            answers = []
            for number in range(20):
                answers.append(client.post("/v1/models/linear/learn", json=row(number)).json())
                answers.append(client.post("/v1/models/linear/predict", json={"x": row(number)["x"]}).json())
            digest = client.service.hosts["linear"].model.digest(tmp_path / "digest.credo")
        found.append((answers, digest))
        others = [name for name in threads if name not in ("credo-writer", "credo-learner")]
        if (
            lonely < 0
        ):  # the thread that read the request has done all of it, unless the writer was still busy
            assert len(set(others)) == 1 and len(others) > len(threads) / 2
        else:
            assert set(threads) == {"credo-learner"}
    assert found[0] == found[1]
