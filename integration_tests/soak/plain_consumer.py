"""A consumer of a keyed topic as anyone would write it: confluent-kafka, read_committed, json; no code of ours."""

from __future__ import annotations

import base64
import datetime as dt
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from integration_tests.interop.oracle import Stored
from integration_tests.interop.schemas import Column, Type

Key = tuple[Any, ...]
_WAIT_SECONDS = 30.0


@dataclass(frozen=True)
class Told:
    """`row`: values by column id; None: the row of this key is gone."""

    snapshot: int | None
    key: Key
    row: Stored | None


@dataclass(frozen=True)
class Read:
    """`columns(snapshot)`: those of messages of a snapshot; `keys`: names of the key's columns."""

    columns: Callable[[int | None], Sequence[Column]]
    keys: Sequence[str]


def consume(url: str, topic: str, read: Read) -> Iterator[Told]:
    """In the order of each partition. Raises AssertionError when a message is no Debezium JSON of the table."""
    settings = {
        "bootstrap.servers": url,
        "group.id": f"{topic}-plain",
        "isolation.level": "read_committed",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "earliest",
    }
    with closing(Consumer(settings)) as consumer:
        partitions = consumer.list_topics(topic, timeout=_WAIT_SECONDS).topics[topic].partitions
        for partition in sorted(partitions):
            consumer.assign([TopicPartition(topic, partition, 0)])
            for message in iter(lambda: _next(consumer), None):
                yield _told(message, read)


def _next(consumer: Consumer) -> Message | None:
    """None at the end of the partition."""
    message = consumer.poll(_WAIT_SECONDS)
    assert message is not None, "the broker does not answer"
    error = message.error()
    if error is None:
        return message
    assert error.code() == KafkaError._PARTITION_EOF, error
    return None


def _told(message: Message, read: Read) -> Told:
    headers = {name: text for name, text in message.headers() or () if isinstance(text, bytes)}
    snapshot = int(headers["s"]) if "s" in headers else None
    columns = {column.name: column for column in read.columns(snapshot)}
    named = json.loads(message.key() or b"", parse_float=Decimal)
    key = tuple(plain_value(columns[name].type, named[name]) for name in read.keys)
    text = message.value()
    if text is None:
        assert headers["k"] == b"-D", headers
        return Told(snapshot, key, None)
    row = json.loads(text, parse_float=Decimal)["after"]
    assert set(row) == set(columns), (snapshot, sorted(row), sorted(columns))
    return Told(snapshot, key, {one.id: plain_value(one.type, row[name]) for name, one in columns.items()})


# values ---------------------------------------------------------------------------------------------------------


def plain_value(kind: Type, value: Any) -> Any:
    """What Flink's JSON formats mean by it."""
    if value is None:
        return None
    if isinstance(kind, tuple):
        return _nested(kind, value)
    root = kind.split("(", maxsplit=1)[0]
    return _PLAIN.get(root, _same)(value)


def _nested(kind: tuple[Any, ...], value: Any) -> Any:
    if kind[0] == "ARRAY":
        return tuple(plain_value(kind[1], one) for one in value)
    if kind[0] == "MAP":
        return "map", tuple(sorted(_entries(kind, value), key=repr))
    return tuple(plain_value(child, value[name]) for name, child in kind[1])


def _entries(kind: tuple[Any, ...], value: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
    is_text = str(kind[1]) in ("STRING", "VARCHAR", "CHAR")
    for key, one in value.items():
        yield plain_value(kind[1], key if is_text else json.loads(key)), plain_value(kind[2], one)


def _same(value: Any) -> Any:
    return value


def _double(value: Any) -> float | str:
    number = float(value)
    if math.isnan(number):
        return "NaN"
    return "-0.0" if number == 0 and math.copysign(1, number) < 0 else number


def _float(value: Any) -> float | str:
    return _double(np.float32(float(value)))


def _time(text: str) -> dt.datetime:
    """A moment loses its zone: it is UTC."""
    return dt.datetime.fromisoformat(text.removesuffix("Z"))


_PLAIN: Mapping[str, Callable[[Any], Any]] = {
    "FLOAT": _float,
    "DOUBLE": _double,
    "DECIMAL": lambda value: Decimal(str(value)),
    "BYTES": base64.b64decode,
    "DATE": dt.date.fromisoformat,
    "TIMESTAMP": _time,
}
