"""The messages of a topic of Kafka, by confluent-kafka."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from credo.core.errors import CredoError, DataError
from credo.core.extensions import extra
from credo.scale.readings import Part

__all__ = ["PATIENCE", "WAIT", "Topic"]

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
        self._name, self._topic = name, topic
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
        messages, ended = [], set[int]()
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
        """Let the brokers go."""
        self._client.close()


def _words(error: Any) -> str:
    """What an error of the client says."""
    return str(error.args[0].str()).rstrip(".")
