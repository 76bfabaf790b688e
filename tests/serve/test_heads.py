"""Heads that are too long or come too slowly, over real connections."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import uvicorn

from credo.serve import server as serving


async def _app(scope: Any, receive: Any, send: Any) -> None:
    """Answer with the length of the body."""
    size, more = 0, True
    while more:
        message = await receive()
        size += len(message.get("body", b""))
        more = message.get("more_body", False)
    body = str(size).encode()
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The port of a server that waits for heads for half a second."""
    monkeypatch.setattr(serving, "WAIT", 0.5)
    config = uvicorn.Config(_app, "127.0.0.1", 0, http=serving.Connection, lifespan="off", log_level="error")
    server = uvicorn.Server(config)
    listening = config.bind_socket()
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield listening.getsockname()[1]
    server.should_exit = True
    thread.join()


def ask(port: int, *parts: bytes, pause: float = 0.0) -> bytes:
    """What comes back until the connection is closed, or an answer is there."""
    with socket.create_connection(("127.0.0.1", port), timeout=20.0) as one:
        for part in parts:
            one.sendall(part)
            time.sleep(pause)
        answer = b""
        while not answer.endswith(b"\r\n\r\n0") and (piece := one.recv(65536)):
            answer += piece
            if b"200 OK" in answer and b"\r\n\r\n" in answer:
                break
        return answer


def test_a_head_that_is_too_long_is_refused_before_it_is_whole(port: int) -> None:
    line = b"x-long: " + b"a" * 8000 + b"\r\n"
    answer = ask(port, b"GET / HTTP/1.1\r\nhost: a\r\n" + line * 10)
    assert answer.startswith(b"HTTP/1.1 431 ") and b"a head must have at most 65,536 bytes." in answer


@pytest.mark.parametrize("said", [b"", b"GET / HTTP/1.1\r\nhost: a\r\n"])
def test_a_head_that_does_not_come_closes_the_connection(port: int, said: bytes) -> None:
    start = time.monotonic()
    answer = ask(port, said)
    assert 0.3 < time.monotonic() - start < 15.0
    assert answer.startswith(b"HTTP/1.1 408 ") if said else answer == b""


def test_a_later_head_of_a_connection_must_come_as_soon(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=20.0) as one:
        one.sendall(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
        assert one.recv(65536).endswith(b"0")
        start = time.monotonic()
        one.sendall(b"GET / HTTP/1.1\r\n")
        time.sleep(0.3)
        one.sendall(b"host: a\r\n")  # which gives it no more time
        assert one.recv(65536).startswith(b"HTTP/1.1 408 ")
        assert 0.4 < time.monotonic() - start < 15.0


def test_long_and_slow_bodies_and_several_requests_are_taken(port: int) -> None:
    head = b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 200000\r\n\r\n"
    assert ask(port, head + b"b" * 200_000).endswith(b"200000")
    assert ask(port, head, b"b" * 100_000, b"b" * 100_000, pause=0.4).endswith(b"200000")
    with socket.create_connection(("127.0.0.1", port), timeout=20.0) as one:
        for _ in range(3):
            one.sendall(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
            assert one.recv(65536).endswith(b"0")
