"""What a connection sends: in one turn of the event loop one piece, in order, and before it is closed."""

from __future__ import annotations

import asyncio

from credo.serve.server import Together


class _Sink:
    def __init__(self) -> None:
        self.pieces: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.pieces.append(data)

    def close(self) -> None:
        self.pieces.append(b"closed")

    def is_closing(self) -> bool:
        return b"closed" in self.pieces


def test_the_pieces_of_a_turn_are_sent_together_and_before_the_end() -> None:
    sink = _Sink()

    async def send() -> None:
        transport = Together(sink)
        transport.write(b"head ")
        transport.write(b"body")
        assert sink.pieces == []
        await asyncio.sleep(0)
        transport.write(b"next")
        await asyncio.sleep(0)
        transport.write(b"last")
        transport.close()
        assert transport.is_closing()
        await asyncio.sleep(0)

    asyncio.run(send())
    assert sink.pieces == [b"head body", b"next", b"last", b"closed"]
