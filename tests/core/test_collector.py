"""Work without collections of garbage, from several threads."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator

import pytest

from credo.core.kept_programs import without_collector


@pytest.fixture(autouse=True)
def usual() -> Iterator[None]:
    """Collections as they are, afterwards."""
    before = gc.isenabled()
    yield
    if before:
        gc.enable()
    else:
        gc.disable()


def test_collections_come_back_after_the_outermost_work_and_after_an_error() -> None:
    gc.enable()
    with without_collector():
        with without_collector():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ZeroDivisionError), without_collector():
        raise ZeroDivisionError
    assert gc.isenabled()


def test_who_wants_no_collections_gets_none_afterwards_either() -> None:
    gc.disable()
    with without_collector():
        pass
    assert not gc.isenabled()


def test_the_last_of_two_threads_starts_them_again() -> None:
    gc.enable()
    begun = threading.Event()
    may_end = threading.Event()

    def work() -> None:
        with without_collector():
            begun.set()
            may_end.wait(10)

    thread = threading.Thread(target=work)
    with without_collector():
        thread.start()
        assert begun.wait(10)
    assert not gc.isenabled()
    may_end.set()
    thread.join()
    assert gc.isenabled()
