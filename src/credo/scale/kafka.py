"""Rows from a topic of Kafka: what is learned is noted before, so that a run goes on with the same lines."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from credo.core.errors import CredoError, DataError
from credo.core.places import Place
from credo.scale.feed import Feed
from credo.scale.readings import Part, Readings
from credo.scale.topics import PATIENCE, WAIT, Topic
from credo.sessions.cutting import after_line
from credo.tables import Chunk, json_chunk

__all__ = ["SCHEME", "KafkaSource"]

SCHEME = "kafka://"
"""What an address of a topic begins with: kafka://host:9092/topic."""


class KafkaSource:
    """A topic whose messages are JSON objects.

    A line is a message. The messages of a partition come in their order, those of different partitions in
    any; so keys are in order if a key's messages are in one partition, as Kafka's producers do it.

    Arguments:
        address: kafka://broker:9092,other:9092/topic, and ?config=FILE for more settings of the client, as
            lines "name=value".
        chunk_rows: how many messages are read at once.
        strict: whether a message that is no JSON object is an error.
        follow: after how many seconds without a message the run is saved, and waits on; None to end with the
            messages that are there.
    """

    def __init__(self, address: str, chunk_rows: int, strict: bool, follow: float | None) -> None:
        self.name, self.chunk_rows, self.strict, self.follow = (
            address.partition("?")[0],
            chunk_rows,
            strict,
            follow,
        )
        brokers, topic, settings = _address(address)
        self.topic = Topic(self.name, topic, settings | {"bootstrap.servers": brokers})
        self._ahead: list[list[Any]] | None = None
        self._starts: dict[int, int] = {}
        self._ended = set[int]()
        self._begun = False

    @property
    def columns(self) -> tuple[str, ...]:
        """The names in the first messages."""
        return tuple(dict.fromkeys(name for chunk in self.peek(self.chunk_rows) for name in chunk.names))

    def peek(self, rows: int) -> tuple[Chunk, ...]:
        """The first messages that are there; if the topic is followed, at least one is waited for."""
        if self._ahead is None:
            self._place({})
            self._ahead = []
        count, until = sum(map(len, self._ahead)), time.monotonic() + PATIENCE
        while (not count and self.follow is not None) or (count < rows and not self._over()):
            messages, ended = self.topic.take(self.chunk_rows, WAIT)
            self._ended |= ended
            count += len(messages)
            if messages:
                self._ahead.append(messages)
            elif not self._over() and time.monotonic() > until:
                raise self._silent()
        if not self._ahead:
            raise DataError(f"{self.name} has no message.")
        chunks, line = [], 0
        for messages in self._ahead:
            chunks.append(self._chunk(line, messages))
            line += len(messages)
        return tuple(chunks)

    def after(self, feed: Feed, folder: Place) -> Iterator[Chunk | None]:
        """The messages after those that a feed has read."""
        assert isinstance(folder, Path), "learn_keyed refuses addresses"
        readings, self._begun = Readings(folder, feed.line), True
        if feed.line and not readings.ends:
            raise DataError(f"{folder} was not begun with a topic; got {self.name}.")
        yield from after_line(self._again(readings), feed.line)
        if self._ahead is None:
            self._place(readings.ends)
        if not readings.ends:
            readings.note([Part(at, first, first, 0) for at, first in self._starts.items()])
        for messages in self._ahead or ():
            yield self._noted(readings, messages)
        yield from self._new(readings)

    def __enter__(self) -> KafkaSource:
        return self

    def __exit__(self, *exc: object) -> None:
        self.topic.close()

    def _again(self, readings: Readings) -> Iterator[Chunk]:
        """The messages of readings, as they were."""
        for reading in readings.again:
            messages = [one for part in reading.parts if part.messages for one in self.topic.part(part)]
            yield self._chunk(reading.line, messages)

    def _new(self, readings: Readings) -> Iterator[Chunk | None]:
        """The messages after all readings, until all partitions end, or for ever."""
        heard, quiet = time.monotonic(), 0.0
        while True:
            try:
                messages, ended = self.topic.take(self.chunk_rows, WAIT)
            except KeyboardInterrupt:
                return
            self._ended |= ended
            now = time.monotonic()
            if messages:
                heard, quiet = now, 0.0
                yield self._noted(readings, messages)
            elif self.follow is not None:
                quiet += WAIT
                if quiet >= self.follow:
                    quiet = 0.0
                    yield None
                    if self.topic.partitions() != sorted(self._starts):
                        self._place(readings.ends)
            elif self._over():
                return
            elif now > heard + PATIENCE:
                raise self._silent()

    def _over(self) -> bool:
        """Whether all partitions have ended for now."""
        return self._ended >= self._starts.keys()

    def _silent(self) -> DataError:
        return DataError(f"{self.name} cannot be read: its brokers have not answered for {PATIENCE:g} s.")

    def _place(self, known: Mapping[int, int]) -> None:
        """Read on where partitions go on that are known, and at the beginning of the others."""
        partitions = self.topic.partitions()
        self._starts = {at: known[at] if at in known else self.topic.earliest(at) for at in partitions}
        self.topic.seek(self._starts)

    def _noted(self, readings: Readings, messages: Sequence[Any]) -> Chunk:
        """Rows whose reading is on the disk."""
        line, ends = readings.line, readings.ends
        parts, ordered = [], sorted(messages, key=lambda one: one.partition())
        for place in dict.fromkeys(message.partition() for message in ordered):
            offsets = [one.offset() for one in ordered if one.partition() == place]
            parts.append(Part(place, ends.get(place, int(offsets[0])), offsets[-1] + 1, len(offsets)))
        readings.note(parts)
        return self._chunk(line, ordered)

    def _chunk(self, line: int, messages: Sequence[Any]) -> Chunk:
        chunk = json_chunk((place, message.value()) for place, message in enumerate(messages, line + 1))
        if self.strict and chunk.bad:
            raise DataError(f"{self.name}: {chunk.bad[0]}.")
        return chunk


def _address(address: str) -> tuple[str, str, dict[str, str]]:
    """The brokers, the topic and the settings of an address."""
    parts = urlsplit(address)
    topic, asked = parts.path.strip("/"), dict(parse_qsl(parts.query))
    if not parts.netloc or not topic or "/" in topic or asked.keys() - {"config"}:
        raise CredoError(
            "source must be kafka://host:9092/topic, with ?config=FILE for settings of the client; got "
            f"{address}.",
            field="source",
        )
    settings = dict[str, str]()
    if "config" in asked:
        try:
            lines = Path(asked["config"]).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise DataError(
                f"cannot read {asked['config']}: {getattr(error, 'strerror', None) or error}."
            ) from None
        for line in lines:
            name, found, value = line.partition("=")
            if found and not line.lstrip().startswith("#"):
                settings[name.strip()] = value.strip()
    return parts.netloc, topic, settings
