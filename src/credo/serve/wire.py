"""Answers on the wire: the head of an answer and its body leave as one piece."""

from __future__ import annotations

import asyncio
from typing import Any

__all__ = ["Together", "protocol"]


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


def protocol(**words: Any) -> Any:
    """A protocol of uvicorn for one connection, over `Together` and with limits of heads."""
    from credo.serve.heads import LimitedHeads

    one: Any = LimitedHeads(**words)
    connected = one.connection_made
    one.connection_made = lambda transport: connected(Together(transport))
    return one
