"""`credo serve`: the application on uvicorn, until it is asked to stop.

uvicorn waits for ever for the rest of a head, and reads one of any length before it asks for a token: sixty
megabytes took three seconds in which nobody else was answered. So heads have limits of bytes and of seconds.
"""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import Callable, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from credo.core.errors import CredoError
from credo.serve.app import build_app
from credo.serve.options import ServiceOptions
from credo.serve.problems import PROBLEM, Problem, problem_reply
from credo.serve.service import Service
from credo.serve.tokens import Tokens, require_loopback

__all__ = ["HEAD", "WAIT", "Connection", "Together", "serve"]

# The longest head of a request in bytes, and for how many seconds it may come.
HEAD = 1 << 16
WAIT = 10.0


class Together:
    """A transport of bytes that sends what is written in one turn of the event loop as one piece.

    uvicorn writes an answer in two pieces, and the system takes longer to send one than Python to make it.
    """

    def __init__(self, transport: Any) -> None:
        self._transport = transport
        self._parts = list[bytes]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Queue bytes, which are sent before the loop waits again."""
        if not self._parts:
            asyncio.get_running_loop().call_soon(self._send)
        self._parts.append(data)

    def close(self) -> None:
        """Send what was written, and close the connection."""
        self._send()
        self._transport.close()

    def _send(self) -> None:
        if self._parts:
            parts = self._parts
            self._parts = []
            self._transport.write(b"".join(parts))


class Connection(HttpToolsProtocol):
    """uvicorn's protocol for one connection, which closes it if a head is too long or comes too slowly."""

    def __init__(self, *words: Any, **more: Any) -> None:
        super().__init__(*words, **more)
        self._length = 0
        self._whole = False
        self._clock: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Wait for the first head."""
        super().connection_made(Together(transport))  # type: ignore[arg-type]
        self._start_clock()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._stop_clock()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """Begin a head."""
        self._whole = False
        if self._clock is not None:
            self._start_clock()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """A head came whole: what follows is a body, which the routes limit."""
        self._length = 0
        self._whole = True
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        """Take bytes, of which those of a head are counted."""
        if not self._whole:
            self._length += len(data)
            # a head may come in one piece with a body, which is longer
            if self._length > HEAD and b"\r\n\r\n" not in data[:HEAD]:
                return self._refuse(431, f"a head must have at most {HEAD:,} bytes.")
        super().data_received(data)
        # most heads come in one piece: the clock of such a one need not start
        if not self._whole:
            if self._clock is None:
                self._start_clock()
        elif self._clock is not None:
            self._stop_clock()
        return None

    def _start_clock(self) -> None:
        self._stop_clock()
        self._clock = self.loop.call_later(WAIT, self._late)

    def _stop_clock(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None

    def _late(self) -> None:
        self._clock = None
        self._refuse(408, f"a head must come within {WAIT:g} seconds.")

    def _refuse(self, status: int, sentence: str) -> None:
        """Answer by a refusal, unless nothing was asked, and close the connection."""
        self._stop_clock()
        if self.transport.is_closing():
            return
        if self._length:
            reply = problem_reply(Problem(status, sentence))
            head = (
                f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\ncontent-type: {PROBLEM}\r\n"
                f"content-length: {len(reply.body)}\r\nconnection: close\r\n\r\n"
            )
            self.transport.write(head.encode() + reply.body)
        self.transport.close()


def serve(
    folder: Path,
    host: str = "127.0.0.1",
    port: int = 8000,
    tokens: Path | None = None,
    options: ServiceOptions | None = None,
    say: Callable[[str], None] = lambda sentence: None,
    names: Sequence[str] = (),
) -> int:
    """Serve the models of a folder until SIGTERM or Ctrl-C: what came is learned and saved; 0 then.

    If a thread of the service ends before, the process must end: 1 then. What was acknowledged is in the
    journal, and comes back at the next start, for which a supervisor is (`packaging/`).

    Arguments:
        folder: the folder, made if need be.
        host, port: where to listen; other than loopback addresses need tokens.
        tokens: a file of tokens, see `credo.serve.tokens`.
        options: how models are saved.
        say: called with a sentence about where it serves, and about what ended it.
        names: the names under which it is reached besides loopback addresses. Without tokens a request
            under another name is refused.

    Raises:
        CredoError: an argument is not allowed, or the address is in use.
        DataError: the folder or the tokens cannot be used.
    """
    if tokens is None:
        require_loopback(host)
    known = Tokens() if tokens is None else Tokens.read(tokens)
    service = Service(folder, options)
    app = build_app(service, known, lambda: server.should_exit, names)
    config = uvicorn.Config(
        app,
        host,
        port,
        http=Connection,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,  # a caller is a connection, whoever sends over it
        timeout_graceful_shutdown=30,
    )
    server = uvicorn.Server(config)

    def end() -> None:
        server.should_exit = server.force_exit = True

    service.on_failure = end
    # uvicorn raises the signal again when it has stopped, which is no failure here
    before = {number: signal.signal(number, _stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        socket = config.bind_socket()
    except SystemExit:
        raise CredoError(
            f"port {port} of {host} is in use or not allowed; give another one.", field="port"
        ) from None
    try:
        address, taken = socket.getsockname()[:2]
        # A search for rubbish among the modules, which stay, kept every request waiting for .1 seconds.
        gc.collect()
        gc.freeze()
        say(f"credo serves {folder} at http://{address}:{taken}")
        server.run([socket])
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if service.failure:
        say(f"{service.failure}; start it again: what was acknowledged is in the journal.")
        return 1
    return 0


def _stop(number: int, frame: object) -> None:
    """Do nothing: the server has stopped."""
