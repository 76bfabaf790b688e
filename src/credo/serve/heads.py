"""Connections whose heads come within a limit of bytes and of seconds.

uvicorn waits for ever for the rest of a head, and reads one of any length before it asks for a token: sixty
megabytes took three seconds in which nobody else was answered.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from credo.serve.problems import PROBLEM, Problem, problem_reply

__all__ = ["HEAD", "WAIT", "LimitedHeads"]

# The longest head of a request in bytes, and for how many seconds it may come.
HEAD = 1 << 16
WAIT = 10.0


class LimitedHeads(HttpToolsProtocol):
    """uvicorn's protocol for one connection, which closes it if a head is too long or comes too slowly."""

    def __init__(self, *words: Any, **more: Any) -> None:
        super().__init__(*words, **more)
        self._length = 0
        self._whole = False
        self._clock: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Wait for the first head."""
        super().connection_made(transport)
        self._start_clock()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._stop_clock()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """Wait for the rest of a head."""
        self._whole = False
        self._start_clock()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """A head came whole: what follows is a body, which the routes limit."""
        self._stop_clock()
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
