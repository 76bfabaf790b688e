"""Rows from a topic of Kafka, by the brokers that Kafka's client brings for tests: the same lines again."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest
from tests.needed import needs
from tests.scale.test_sources import OWN, table, write

import credo
from credo.scale import KeyedOptions, learn_keyed
from credo.scale.feed import Feed
from credo.scale.kafka import KafkaSource, Part, Readings, Topic
from credo.sessions import ColumnOptions

kafka: Any = needs("confluent_kafka")
ROWS = table()
SHARDS = KeyedOptions(**{**vars(OWN), "shards": 2})


class Broker:
    """A topic of four partitions, to which rows are sent; a key's rows are in one of them."""

    def __init__(self) -> None:
        self.producer = kafka.Producer({"test.mock.num.brokers": 1, "log_level": 0})
        (broker,) = self.producer.list_topics(timeout=10).brokers.values()
        self.place = f"kafka://{broker.host}:{broker.port}"

    def send(self, topic: str, rows: list[Any]) -> str:
        """Send rows, or messages as they are, and return the topic's address."""
        for row in rows:
            value = row if row is None or isinstance(row, bytes) else json.dumps(row).encode()
            key = row["user"] if isinstance(row, dict) else "u0"
            self.producer.produce(topic, value, key)
        self.producer.flush(10)
        return f"{self.place}/{topic}"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    yield Broker()


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> dict[int, bytes]:
    """The message of each line that a source gives, which is the same one whenever it is given."""
    found: dict[int, bytes] = {}
    chunk = KafkaSource._chunk

    def kept(self: KafkaSource, line: int, messages: Any) -> Any:
        for place, message in enumerate(messages, line + 1):
            if self._begun:  # and not for a first look
                assert found.setdefault(place, message.value()) == message.value()
        return chunk(self, line, messages)

    monkeypatch.setattr(KafkaSource, "_chunk", kept)
    return found


def predictions(folder: Path) -> np.ndarray:
    """The mean and the sd of each line."""
    import pyarrow.parquet as pq

    found = [row for path in (folder / "predictions").iterdir() for row in pq.read_table(path).to_pylist()]
    found.sort(key=lambda row: row["line"])
    assert [row["line"] for row in found] == list(range(1, len(ROWS) + 1))
    return np.array([[row["mean"], row["sd"]] for row in found])


def as_from_a_file(folder: Path, taken: dict[int, bytes]) -> None:
    """A run gives what a run over a file of its lines gives."""
    rows = [json.loads(taken[line]) for line in sorted(taken)]
    assert sorted(row["t"] for row in rows) == sorted(row["t"] for row in ROWS)
    learn_keyed(write(folder / "rows.jsonl", rows), folder / "filed", OWN)
    np.testing.assert_allclose(predictions(folder / "run"), predictions(folder / "filed"), rtol=1e-5)


@pytest.mark.slow
def test_a_run_that_was_cut_reads_the_same_lines_again(
    broker: Broker, taken: dict[int, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = broker.send("cut", ROWS[:150])
    calls, encode = 0, Feed._encode

    def dying(self: Feed, chunk: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 3:  # with rows that are noted, and not learned for good
            raise RuntimeError("cut")
        return encode(self, chunk)

    with monkeypatch.context() as patch:
        patch.setattr(Feed, "_encode", dying)
        with pytest.raises(RuntimeError, match="cut"):
            learn_keyed(address, tmp_path / "run", SHARDS)
    place = tmp_path / "run/kafka.jsonl"
    before = place.read_bytes()
    place.write_bytes(before + b'{"line": 1')  # torn, so that its rows were not learned
    broker.send("cut", ROWS[150:])
    learn_keyed(address, tmp_path / "run", SHARDS, resume=True)
    after = place.read_bytes().splitlines()
    assert before.splitlines()[-1] in after and all(json.loads(line) for line in after)
    as_from_a_file(tmp_path, taken)
    said: list[str] = []
    learn_keyed(address, tmp_path / "run", SHARDS, resume=True, say=said.append)
    assert any("has no row after line 240" in sentence for sentence in said)
    assert len(place.read_bytes().splitlines()) == 1


def test_a_topic_is_followed(
    broker: Broker, taken: dict[int, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address, take = broker.send("followed", ROWS[:100]), Topic.take
    saved, parts = tmp_path / "run/metrics.json", [ROWS[100:130], ROWS[130:]]

    def watched(self: Topic, most: int, seconds: float) -> tuple[list[Any], set[int]]:
        messages, ended = take(self, most, 0.1)
        line = json.loads(saved.read_text())["line"] if saved.exists() else 0
        if line == len(ROWS) - sum(map(len, parts)):  # saved while nothing came
            if not parts:
                raise KeyboardInterrupt
            broker.send("followed", parts.pop(0))
        return messages, ended

    monkeypatch.setattr(Topic, "take", watched)
    learn_keyed(address, tmp_path / "run", OWN, follow=0.5)
    as_from_a_file(tmp_path, taken)


def test_a_look_at_the_columns_leaves_the_first_rows_to_be_seen(broker: Broker) -> None:
    with KafkaSource(broker.send("looked", ROWS[:100]), 10, False, None) as source:
        assert source.columns == ("user", "t", "x", "y", "kind")
        assert sum(map(len, source.peek(40))) < 100
        assert sum(map(len, source.peek(1000))) == sum(map(len, source.peek(40))) == 100


def test_messages_that_are_no_objects_are_counted(broker: Broker, tmp_path: Path) -> None:
    address = broker.send("bad", [*ROWS[:60], None, b"[1]", b"\xff", *ROWS[60:90]])
    result = learn_keyed(address, tmp_path / "run", OWN)
    assert result.bad_rows == 3 and result.line == 93
    strict = KeyedOptions(**{**vars(OWN), "columns": ColumnOptions("y", task="regression", strict=True)})
    with pytest.raises(credo.DataError, match=r"line [0-9]+ (has no content|holds an array|is not UTF-8)"):
        learn_keyed(address, tmp_path / "strict", strict)


@pytest.mark.slow
def test_what_cannot_be_read_is_refused(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = broker.send("lost", ROWS[:100])
    learn_keyed(address, tmp_path / "run", OWN)
    readings = Readings(tmp_path / "run", 60)  # as if the run had learned up to there
    broker.send("other", ROWS[:20])
    monkeypatch.setattr("credo.scale.kafka.PATIENCE", 0.5)
    other = KafkaSource(f"{broker.place}/other", 50, False, None)
    part = Part(readings.again[0].parts[0].partition, 0, 500, 200)
    with other, pytest.raises(credo.DataError, match="where the run read 200: the others are gone"):
        other.topic.part(part)
    with pytest.raises(credo.DataError, match="cannot be read"):
        learn_keyed("kafka://127.0.0.1:9/clicks", tmp_path / "none", OWN)
    for wrong in ("kafka://host:9092", "kafka://host/a/b", "kafka://host/a?group=x"):
        with pytest.raises(credo.CredoError, match="source must be kafka://host:9092/topic"):
            learn_keyed(wrong, tmp_path / "none", OWN)
    (tmp_path / "client").write_text("# comment\nsecurity.protocol=nonsense\n")
    with pytest.raises(credo.CredoError, match="settings that Kafka's client refuses"):
        learn_keyed(f"{address}?config={tmp_path / 'client'}", tmp_path / "none", OWN)
    with pytest.raises(credo.DataError, match="cannot read"):
        learn_keyed(f"{address}?config={tmp_path / 'nothing'}", tmp_path / "none", OWN)
    rows = write(tmp_path / "rows.jsonl", ROWS[:60])
    learn_keyed(rows, tmp_path / "file", OWN)
    with pytest.raises(credo.DataError, match="was not begun with a topic"):
        learn_keyed(address, tmp_path / "file", OWN, resume=True)
    with pytest.raises(credo.CredoError, match="folder must be one of this machine for a topic of Kafka"):
        learn_keyed(address, "memory://topics/run", OWN)
    assert not fsspec.filesystem("memory").find("topics")
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(
        credo.CredoError, match=r"needs the package confluent-kafka: pip install -e '.\[kafka\]'"
    ):
        learn_keyed(address, tmp_path / "none", OWN)
