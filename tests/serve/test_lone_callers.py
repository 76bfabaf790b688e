"""One caller is served without waking other threads, and gets what it would get otherwise."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from tests.serve.conftest import LINEAR, hosting, ready, row

from credo.serve import callers
from credo.serve.callers import Callers
from credo.serve.inbox import Inbox


def test_work_is_borrowed_only_from_a_thread_that_waits() -> None:
    inbox: Inbox[int] = Inbox()
    assert not inbox.borrow()  # nobody waits for things yet
    taken: list[list[int] | None] = []
    thread = threading.Thread(target=lambda: taken.extend(iter(lambda: inbox.take(0.01), None)))
    thread.start()
    while not inbox.borrow():
        pass
    assert not inbox.borrow()
    seen = len(taken)
    inbox.put([1])
    inbox.end()
    thread.join(0.1)
    assert thread.is_alive() and taken[seen:] == []  # it takes nothing meanwhile, not even after its time
    inbox.give_back()
    thread.join()
    assert taken[-1] == [1]


def test_a_caller_is_alone_after_a_while_without_others(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("credo.serve.callers.monotonic", lambda: now)
    who = Callers()
    for caller, passed, alone in (("a", 0.0, False), ("a", 1.0, True), ("b", 5.0, False), ("b", 0.05, False)):
        now += passed
        who.note(caller)
        assert who.alone == alone


@pytest.mark.optimised
def test_alone_or_not_answers_and_states_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for lonely in (-1.0, 1e9):
        monkeypatch.setattr(callers, "LONELY", lonely)
        with hosting(tmp_path / f"{lonely}") as client:
            client.put("/v1/models/linear", json=LINEAR)
            ready(client)
            threads: set[str] = set()
            learner, whole = client.service.learner, client.service.learner.apply

            def apply(*arguments: object, whole=whole, threads=threads) -> None:  # type: ignore[no-untyped-def]
                threads.add(threading.current_thread().name)
                whole(*arguments)

            monkeypatch.setattr(learner, "apply", apply)
            answers = []
            for number in range(20):
                answers.append(client.post("/v1/models/linear/learn", json=row(number)).json())
                answers.append(client.post("/v1/models/linear/predict", json={"x": row(number)["x"]}).json())
            digest = client.service.hosts["linear"].model.digest(tmp_path / "digest.credo")
        found.append((answers, digest))
        assert threads == {"credo-writer" if lonely < 0 else "credo-learner"}
    assert found[0] == found[1]
