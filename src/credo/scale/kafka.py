"""Rows from a topic of Kafka: what is learned is noted before, so that a run goes on with the same lines."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from credo.core.errors import CredoError, DataError
from credo.core.extensions import extra
from credo.core.files import write_atomically
from credo.core.places import Place
from credo.scale.feed import Feed
from credo.sessions.chunk_parts import after_line
from credo.tables import Chunk, json_chunk

__all__ = ["SCHEME", "KafkaSource", "Part", "Readings", "Topic"]


class Part(NamedTuple):
    """Consecutive messages of a partition: the offsets from `first` to before `end`, `messages` of them."""

    partition: int
    first: int
    end: int
    messages: int


class Reading(NamedTuple):
    """Messages that were read together, and the last line before them."""

    line: int
    parts: tuple[Part, ...]

    @property
    def last(self) -> int:
        """The line of the last of them."""
        return self.line + sum(part.messages for part in self.parts)


class Readings:
    """The readings of a run, in its folder. One is on the disk before its rows are learned: the brokers give
    messages of several partitions in another order each time, and lines must be the same ones again.

    Arguments:
        folder: the folder of the run.
        line: the line up to which it has learned; what was read up to there is cut down to where partitions
            go on.

    Attributes:
        again: the readings of which rows are to be learned again.
        line: the last line of all readings.
        ends: the offset at which each partition goes on.
    """

    def __init__(self, folder: Path, line: int) -> None:
        self._path = folder / "kafka.jsonl"
        found = list(self._read())
        done = [one for one in found if one.last <= line]
        self.again = found[len(done) :]
        self.line = found[-1].last if found else 0
        self.ends = _ends(found)
        if done:  # and the end of the file may be torn
            start = Reading(done[-1].last, tuple(Part(at, end, end, 0) for at, end in _ends(done).items()))
            write_atomically(self._path, "".join(map(_line, (start, *self.again))).encode())

    def note(self, parts: Sequence[Part]) -> None:
        """Write what is read next to the disk."""
        reading = Reading(self.line, tuple(parts))
        try:
            with self._path.open("ab") as file:
                file.write(_line(reading).encode())
                # on the disk before a row is learned: after a crash the same rows are the same lines again
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise DataError(f"cannot write {self._path}: {error.strerror or error}.") from None
        self.line = reading.last
        self.ends |= _ends([reading])

    def _read(self) -> Iterator[Reading]:
        if not self._path.exists():
            return
        for line in self._path.read_bytes().split(b"\n")[:-1]:  # the last one may be torn, and has no rows
            found = json.loads(line)
            yield Reading(found["line"], tuple(Part(*part) for part in found["parts"]))


def _line(reading: Reading) -> str:
    return json.dumps({"line": reading.line, "parts": reading.parts}) + "\n"


def _ends(readings: Iterable[Reading]) -> dict[int, int]:
    return {part.partition: part.end for reading in readings for part in reading.parts}


PATIENCE = 10.0
"""For how many seconds brokers may be silent."""

WAIT = 0.5
"""For how many seconds messages are waited for at a time."""


class Topic:
    """The messages of a topic, by partition.

    Arguments:
        name: the address, in messages.
        topic: the topic.
        settings: those of the client (librdkafka).
    """

    def __init__(self, name: str, topic: str, settings: Mapping[str, str]) -> None:
        try:
            import confluent_kafka
        except ImportError:
            raise CredoError(
                f"{name} needs the package confluent-kafka: {extra('kafka')}.", field="source"
            ) from None
        self._kafka: Any = confluent_kafka
        self._name = name
        self._topic = topic
        fixed = {
            "group.id": "credo",  # which the client asks for; offsets are not committed
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "log_level": 0,
        }
        try:
            self._client: Any = confluent_kafka.Consumer({**settings, **fixed})
        except confluent_kafka.KafkaException as error:
            raise CredoError(f"source has settings that Kafka's client refuses: {_words(error)}.") from None

    def partitions(self) -> list[int]:
        """The numbers of the partitions."""
        try:
            found: Any = self._client.list_topics(self._topic, timeout=PATIENCE).topics[self._topic]
        except self._kafka.KafkaException as error:
            raise DataError(f"{self._name} cannot be read: {_words(error)}.") from None
        if found.error is not None:
            raise DataError(f"{self._name} cannot be read: {found.error.str()}.")
        return sorted(found.partitions)

    def earliest(self, partition: int) -> int:
        """The offset of the first message of a partition that is still there."""
        place = self._kafka.TopicPartition(self._topic, partition)
        try:
            low, _ = self._client.get_watermark_offsets(place, timeout=PATIENCE)
        except self._kafka.KafkaException as error:
            raise DataError(f"{self._name} cannot be read: {_words(error)}.") from None
        return int(low)

    def seek(self, positions: Mapping[int, int]) -> None:
        """Read on at these offsets."""
        places = [self._kafka.TopicPartition(self._topic, *place) for place in positions.items()]
        self._client.assign(places)

    def take(self, most: int, seconds: float) -> tuple[list[Any], set[int]]:
        """The next messages within so many seconds, and the partitions that ended for now."""
        messages = []
        ended = set[int]()
        for message in self._client.consume(most, seconds):
            error = message.error()
            if error is None:
                messages.append(message)
            elif error.code() == self._kafka.KafkaError._PARTITION_EOF:
                ended.add(message.partition())
            elif error.code() == self._kafka.KafkaError._AUTO_OFFSET_RESET:
                raise DataError(
                    f"{self._name} has lost messages of partition {message.partition()} that were not read, "
                    "because the topic keeps messages for a limited time; begin a new run."
                )
            elif not error.retriable():
                raise DataError(f"{self._name} cannot be read: {error.str()}.")
        return messages, ended

    def part(self, part: Part) -> list[Any]:
        """The messages of a part, which must all be there."""
        self.seek({part.partition: part.first})
        found: list[Any] = []
        until = time.monotonic() + PATIENCE
        while len(found) < part.messages and time.monotonic() < until:
            messages, ended = self.take(part.messages - len(found), WAIT)
            found += messages
            if ended:
                break
        kept = [message for message in found if message.offset() < part.end]
        if len(kept) != part.messages:
            raise DataError(
                f"{self._name} has {len(kept):,} messages from offset {part.first:,} to {part.end - 1:,} of "
                f"partition {part.partition}, where the run read {part.messages:,}: the others are gone, or "
                "brokers do not answer."
            )
        return kept

    def close(self) -> None:
        """Close the connection to the brokers."""
        self._client.close()


def _words(error: Any) -> str:
    """The message of an error of the client."""
    return str(error.args[0].str()).rstrip(".")


SCHEME = "kafka://"
"""The beginning of the address of a topic: kafka://host:9092/topic."""


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
        self.name = address.partition("?")[0]
        self.chunk_rows = chunk_rows
        self.strict = strict
        self.follow = follow
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
        count = sum(map(len, self._ahead))
        until = time.monotonic() + PATIENCE
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
        chunks = []
        line = 0
        for messages in self._ahead:
            chunks.append(self._chunk(line, messages))
            line += len(messages)
        return tuple(chunks)

    def after(self, feed: Feed, folder: Place) -> Iterator[Chunk | None]:
        """The messages after those that a feed has read."""
        assert isinstance(folder, Path), "learn_keyed refuses addresses"
        readings = Readings(folder, feed.line)
        self._begun = True
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
        heard = time.monotonic()
        quiet = 0.0
        while True:
            try:
                messages, ended = self.topic.take(self.chunk_rows, WAIT)
            except KeyboardInterrupt:
                return
            self._ended |= ended
            now = time.monotonic()
            if messages:
                heard = now
                quiet = 0.0
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
        line = readings.line
        ends = readings.ends
        parts = []
        ordered = sorted(messages, key=lambda one: one.partition())
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
    topic = parts.path.strip("/")
    asked = dict(parse_qsl(parts.query))
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
