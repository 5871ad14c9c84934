"""Rows that the client would refuse are found before they are committed, and no others."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from confluent_kafka import KafkaException, Producer
from hypothesis import given, settings
from hypothesis import strategies as st

from tablestore_engine.errors import FixData
from tablestore_engine.format.row_kind import ROW_KIND_COLUMN
from tablestore_engine.format.schema import new_schema
from tablestore_engine.log.kafka.client_config import ClientConfig
from tablestore_engine.log.kafka.message_limit import HEADERS, _bound, check_sizes, message_limit
from tablestore_engine.log.kafka.settings import LogSettings
from tablestore_engine.log.log_formats import KeyFormat, LogFormats, ValueFormat
from tablestore_engine.log.message_envelope import ChangelogMode, encode_rows, plan_envelope
from tests.doses import examples
from tests.unit.log.format_world import EVERY, KEY, rows

COLUMNS = pa.schema(
    [("id", pa.int64()), ("text", pa.string()), ("blob", pa.binary()), ("tags", pa.list_(pa.string()))]
)
SCHEMA = new_schema(COLUMNS, primary_keys=["id"])
SETTINGS = LogSettings("d.t", "u", "t", 1, ChangelogMode.UPSERT, ClientConfig({"message.max.bytes": "2000"}))


def _limited(properties: dict[str, str]) -> LogSettings:
    return replace(SETTINGS, client=ClientConfig(properties))


def _rows(text: str, blob: bytes = b"", tags: tuple[str, ...] = ()) -> pa.Table:
    columns = [
        pa.array([1, 2], pa.int64()),
        ["", text],
        pa.array([b"", blob]),
        pa.array([[], list(tags)], pa.list_(pa.string())),
    ]
    return pa.table(columns, schema=COLUMNS)


@pytest.mark.parametrize(
    "rows",
    [_rows("x" * 2000), _rows("\x01" * 400), _rows("", b"x" * 1800), _rows("", b"", ("abc" * 300,) * 3)],
    ids=["text", "escaped", "binary", "nested"],
)
def test_a_row_above_the_limit_is_named(rows: pa.Table) -> None:
    """TS1739 has the key and says that nothing is written, whatever makes the message large."""
    with pytest.raises(FixData, match="TS1739") as caught:
        check_sizes(rows, SCHEMA, message_limit(SETTINGS))
    assert '{"id":2}' in str(caught.value)
    assert "nothing is written" in str(caught.value)


def test_the_limit_is_exact() -> None:
    """The largest message that leaves room for headers passes, one byte more does not."""
    kinds = pa.array([0, 0], pa.int8())
    encoded = encode_rows(
        _rows("y" * 1500).append_column(ROW_KIND_COLUMN, kinds), plan_envelope(SCHEMA, SETTINGS.mode)
    )
    assert encoded.keys is not None
    size = max(len(key) + len(value or b"") for key, value in zip(encoded.keys, encoded.values, strict=True))
    size += HEADERS
    check_sizes(
        _rows("y" * 1500),
        SCHEMA,
        message_limit(_limited({"message.max.bytes": str(size)})),
    )
    with pytest.raises(FixData, match="TS1739"):
        check_sizes(
            _rows("y" * 1500),
            SCHEMA,
            message_limit(_limited({"message.max.bytes": str(size - 1)})),
        )


def test_no_rows_and_small_rows_pass() -> None:
    """Also with the client's default limit."""
    check_sizes(_rows("x").slice(0, 0), SCHEMA, message_limit(SETTINGS))
    check_sizes(_rows("x" * 1000), SCHEMA, message_limit(_limited({})))


@pytest.mark.parametrize("user", [1, 400])
def test_what_passes_is_taken_by_the_client(user: int) -> None:
    """The largest row that passes, with the headers of a short and of a long commit user, on a real client."""
    producer = Producer({"bootstrap.servers": "127.0.0.1:1", "message.max.bytes": 2000, "log_level": 0})
    headers = [("s", b"9" * 18), ("c", b"u" * user + b":" + b"9" * 18), ("k", b"+I"), ("q", b"9" * 9)]
    producer.produce("t", key=b"k" * 8, value=b"x" * (2000 - HEADERS - 8), headers=headers)
    with pytest.raises(KafkaException):
        producer.produce("t", key=b"k" * 8, value=b"x" * (2000 - 8), headers=headers)
    producer.purge()
    producer.flush(1)


@pytest.mark.parametrize("value", ValueFormat)
@settings(max_examples=examples(5, 30), deadline=None)
@given(data=st.data())
def test_no_message_is_larger_than_the_bound(value: ValueFormat, data: st.DataObject) -> None:
    """Of any rows of every type, in every format: what the bound lets pass needs no measuring."""
    table = data.draw(rows((0,)))
    schema = new_schema(EVERY, primary_keys=list(KEY))
    for key in KeyFormat:
        formats = LogFormats(value, key, ignore_delete=True)
        encoded = encode_rows(table, plan_envelope(schema, ChangelogMode.UPSERT, formats))
        sizes = [len(k) + len(v or b"") for k, v in zip(encoded.keys or [], encoded.values, strict=True)]
        assert max(sizes, default=0) <= _bound(table.drop_columns([ROW_KIND_COLUMN]))


def test_the_bound_holds_for_many_small_items() -> None:
    """A list of booleans takes eight times its bits in Arrow, names of a struct come again with each item."""
    items = pa.array(
        [[{"a_rather_long_name": True}] * 500], pa.list_(pa.struct([("a_rather_long_name", pa.bool_())]))
    )
    table = pa.table({"id": pa.array([1], pa.int64()), "x": items, "y": pa.array([[False] * 3000])})
    schema = new_schema(table.schema, primary_keys=["id"])
    encoded = encode_rows(
        table.append_column(ROW_KIND_COLUMN, pa.array([0], pa.int8())),
        plan_envelope(schema, ChangelogMode.UPSERT),
    )
    assert len(encoded.values[0] or b"") <= _bound(table)
    with pytest.raises(FixData, match="TS1739"):
        check_sizes(
            table,
            schema,
            message_limit(_limited({"message.max.bytes": "20000"})),
        )
