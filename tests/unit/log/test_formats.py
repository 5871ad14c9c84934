"""Formats of messages: vectors as Flink writes them, and the way back, for every type, kind and combination.

Vectors    apache/flink, flink-formats/flink-json: CanalJsonSerializationSchema, MaxwellJsonSerializationSchema,
           DebeziumJsonSerializationSchema and their Deserialization counterparts;
           flink-avro-confluent-registry: DebeziumAvroSerializationSchema. The classes themselves read ours in
           integration_tests/interop/test_flink_formats.py.
"""

from __future__ import annotations

import datetime as dt
import io
import json
from decimal import Decimal
from itertools import product
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablestore_engine.errors import FixData, FixRequest
from tablestore_engine.format.schema import TableSchema, new_schema
from tablestore_engine.log.avro_schema import SchemaIds, avro_schemas
from tablestore_engine.log.decode import LogMessage, decode_rows
from tablestore_engine.log.log_formats import KeyFormat, LogFormats, ValueFormat
from tablestore_engine.log.message_envelope import ChangelogMode, encode_rows, plan_envelope
from tests.doses import case_rows, examples
from tests.unit.log.format_world import EVERY, KEY, Numbers, messages_of, rows

SHOP = pa.schema([pa.field("id", pa.int64(), nullable=False), ("day", pa.date32()), ("name", pa.string())])
KEYED, BARE = new_schema(SHOP, primary_keys=["id"]), new_schema(SHOP)
ROW = '{"id":1,"day":"2024-01-31","name":"x"}'
VECTORS = {
    ValueFormat.DEBEZIUM_JSON: (
        f'{{"before":null,"after":{ROW},"op":"c"}}', f'{{"before":{ROW},"after":null,"op":"d"}}',
    ),
    ValueFormat.CANAL_JSON: (f'{{"data":[{ROW}],"type":"INSERT"}}', f'{{"data":[{ROW}],"type":"DELETE"}}'),
    ValueFormat.MAXWELL_JSON: (f'{{"data":{ROW},"type":"insert"}}', f'{{"data":{ROW},"type":"delete"}}'),
}  # fmt: skip
ALL_KINDS = [ValueFormat.DEBEZIUM_JSON, ValueFormat.CANAL_JSON, ValueFormat.MAXWELL_JSON, ValueFormat.AVRO]


def shop(*kinds: int) -> pa.Table:
    """The same row with each of these kinds."""
    row = {"id": 1, "day": dt.date(2024, 1, 31), "name": "x"}
    return pa.Table.from_pylist([row] * len(kinds), SHOP).append_column(
        "_ROW_KIND", pa.array(kinds, pa.int8())
    )


def sent(table: pa.Table, schema: TableSchema, formats: LogFormats, mode: ChangelogMode) -> list[LogMessage]:
    """Messages of rows."""
    return messages_of(encode_rows(table, plan_envelope(schema, mode, formats)))


@pytest.mark.parametrize("value", VECTORS)
def test_values_are_those_of_flink(value: ValueFormat) -> None:
    """A put and a retraction, byte by byte; what is a tombstone in mode upsert is one in every format."""
    put, retraction = (text.encode() for text in VECTORS[value])
    everything = sent(shop(0, 1, 2, 3), KEYED, LogFormats(value), ChangelogMode.ALL)
    assert [message.value for message in everything] == [put, retraction, put, retraction]
    upserts = sent(shop(0, 1, 2, 3), KEYED, LogFormats(value), ChangelogMode.AUTO)
    assert [message.value for message in upserts] == [put, put, None]
    assert {message.key for message in (*everything, *upserts)} == {b'{"id":1}'}


def test_json_is_the_row() -> None:
    """Nothing around it; a delete in mode upsert is a tombstone."""
    plain = LogFormats(ValueFormat.JSON)
    assert [one.value for one in sent(shop(0), BARE, plain, ChangelogMode.AUTO)] == [ROW.encode()]
    upserts = sent(shop(0, 1, 2, 3), KEYED, plain, ChangelogMode.AUTO)
    assert [(one.key, one.value) for one in upserts] == [
        (b'{"id":1}', value) for value in (ROW.encode(), ROW.encode(), None)
    ]


@pytest.mark.parametrize("kind", [1, 3])
def test_json_never_makes_an_insert_of_a_delete(kind: int) -> None:
    """Rows that another engine took out, say: TS1773 in mode all, and nothing is encoded."""
    for schema in (BARE, KEYED):
        with pytest.raises(FixRequest, match="TS1773"):
            sent(shop(0, kind), schema, LogFormats(ValueFormat.JSON), ChangelogMode.ALL)


def test_avro_is_debeziums_record_behind_the_number_of_its_schema() -> None:
    """0, four bytes of the number, then before, after and op; keys have a number of their own."""
    formats = LogFormats(ValueFormat.AVRO, KeyFormat.AVRO)
    envelope = plan_envelope(KEYED, ChangelogMode.ALL, formats, SchemaIds(key=7, value=258))
    encoded = encode_rows(shop(0, 3), envelope)
    row = (
        b"\x02" + b"\x02\xd2\xb4\x02" + b"\x02\x02x"
    )  # 1; day 19753 and "x", each behind the branch of its union
    assert encoded.values == [
        b"\0\0\0\x01\x02" + b"\0\x02" + row + b"\x02c",
        b"\0\0\0\x01\x02" + b"\x02" + row + b"\0\x02d",
    ]
    assert encoded.keys == [b"\0\0\0\0\x07\x02"] * 2
    upserts = encode_rows(shop(2, 3), plan_envelope(KEYED, ChangelogMode.UPSERT, formats))
    assert upserts.values[1] is None


@pytest.mark.parametrize("value", ValueFormat)
@pytest.mark.parametrize("mode", [ChangelogMode.UPSERT, ChangelogMode.ALL])
def test_a_log_that_ignores_deletes_has_none(value: ValueFormat, mode: ChangelogMode) -> None:
    """-U and -D give no message in either mode, no tombstone either, and what is read are inserts."""
    formats = LogFormats(value, ignore_delete=True)
    numbers = Numbers()
    ids = numbers.register(KEYED, formats)
    encoded = encode_rows(shop(0, 1, 2, 3), plan_envelope(KEYED, mode, formats, ids))
    assert encoded.kinds == [0, 2]
    assert None not in encoded.values
    back = decode_rows(messages_of(encoded), KEYED, formats, numbers.find)
    assert back["_ROW_KIND"].to_pylist() == [0, 0]
    assert encode_rows(shop(3), plan_envelope(KEYED, mode, formats, ids)).values == []


def test_a_tombstone_in_a_log_without_deletes_is_not_guessed_away() -> None:
    """It is not ours: TS1718."""
    with pytest.raises(FixData, match="TS1718"):
        decode_rows([LogMessage(0, 0, b'{"id":1}', None)], KEYED, LogFormats(ignore_delete=True))


@pytest.mark.parametrize(("value", "key"), case_rows(list(product(ValueFormat, KeyFormat)), 5))
@settings(max_examples=examples(4, 15), deadline=None)
@given(data=st.data())
def test_decode_gives_back_what_was_encoded(value: ValueFormat, key: KeyFormat, data: st.DataObject) -> None:
    """decode(encode(rows)) = rows for every type, kind, format and mode; a tombstone keeps its key."""
    is_plain = value is ValueFormat.JSON
    formats, numbers = LogFormats(value, key), Numbers()
    schema = new_schema(EVERY, primary_keys=list(KEY))
    ids = numbers.register(schema, formats)
    table = data.draw(rows())
    sendable = table.filter(pc.is_in(table["_ROW_KIND"], pa.array([0, 2], pa.int8()))) if is_plain else table
    everything = encode_rows(sendable, plan_envelope(schema, ChangelogMode.ALL, formats, ids))
    back = decode_rows(messages_of(everything), schema, formats, numbers.find)
    assert back.to_pylist() == sendable.to_pylist()
    assert [f.type for f in back.schema] == [f.type for f in table.schema]
    upserts = encode_rows(table, plan_envelope(schema, ChangelogMode.UPSERT, formats, ids))
    back = decode_rows(messages_of(upserts), schema, formats, numbers.find)
    gone = {name: None for name in EVERY.names if name not in KEY}
    wanted = [row for row in table.to_pylist() if row["_ROW_KIND"] != 1]
    assert back.to_pylist() == [row | gone if row["_ROW_KIND"] == 3 else row for row in wanted]


@pytest.mark.parametrize("value", ALL_KINDS)
def test_kinds_come_from_the_value_where_no_header_says_them(value: ValueFormat) -> None:
    """A producer without our headers is read too: a put is +I, a retraction -D."""
    formats, numbers = LogFormats(value), Numbers()
    ids = numbers.register(KEYED, formats)
    encoded = encode_rows(shop(0, 1, 2, 3), plan_envelope(KEYED, ChangelogMode.ALL, formats, ids))
    back = decode_rows(messages_of(encoded, with_kinds=False), KEYED, formats, numbers.find)
    assert back["_ROW_KIND"].to_pylist() == [0, 3, 0, 3]
    assert back["name"].to_pylist() == ["x"] * 4


def test_updates_of_the_real_canal_and_maxwell_are_read() -> None:
    """`old` has what changed, `data` the new row: +U. Field names and words are those of their own messages."""
    canal = (
        f'{{"data":[{ROW}],"old":[{{"name":"y"}}],"type":"UPDATE","database":"shop","ts":1,"isDdl":false}}'
    )
    maxwell = (
        f'{{"database":"shop","table":"t","type":"update","ts":1,"xid":2,"data":{ROW},"old":{{"name":"y"}}}}'
    )
    for value, text in ((ValueFormat.CANAL_JSON, canal), (ValueFormat.MAXWELL_JSON, maxwell)):
        back = decode_rows([LogMessage(0, 0, None, text.encode())], KEYED, LogFormats(value))
        assert back.to_pylist() == [{"id": 1, "day": dt.date(2024, 1, 31), "name": "x", "_ROW_KIND": 2}]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (ValueFormat.CANAL_JSON, b'{"data":null,"type":"CREATE"}'),
        (ValueFormat.CANAL_JSON, b'{"data":[{"id":1},{"id":2}],"type":"INSERT"}'),
        (ValueFormat.CANAL_JSON, b'{"data":[{"id":1}],"type":"insert"}'),
        (ValueFormat.MAXWELL_JSON, b'{"data":{"id":1},"type":"INSERT"}'),
        (ValueFormat.MAXWELL_JSON, b'{"data":[],"type":"insert"}'),
        (ValueFormat.JSON, b'"text"'),
        (ValueFormat.AVRO, b'{"before":null,"after":{"id":1},"op":"c"}'),
        (ValueFormat.AVRO, b"\0\0\0\0\x09abc"),
        (ValueFormat.AVRO, b"\0\0\0\0\x01"),
        (ValueFormat.AVRO, b"\0\0\0\0\x01\0\x02\x02\0\0\x02c!"),
        (ValueFormat.AVRO, b"\0\0\0\0\x01\0\0\x02c"),
        (ValueFormat.AVRO, b"\0\0\0\0\x01\0\x02\x02\0\0\x02q"),
        (ValueFormat.AVRO, b"\0\0\0\0\x01\x06"),
    ],
)  # fmt: skip
def test_what_is_no_message_of_the_format_is_named(value: ValueFormat, text: bytes) -> None:
    """TS1718 with the offset: another format, several rows, no row, a number nobody knows, bytes too few or many."""
    formats, numbers = LogFormats(value), Numbers()
    numbers.register(KEYED, LogFormats(ValueFormat.AVRO))

    def find(number: int) -> str:
        if number > len(numbers.texts):
            raise ValueError(f"no schema {number}")
        return numbers.find(number)

    with pytest.raises(FixData, match=r"TS1718.*offset 42"):
        decode_rows([LogMessage(0, 42, None, text)], KEYED, formats, find)


def test_avro_without_a_registry_cannot_be_read() -> None:
    """TS1718 says which schema is missing."""
    encoded = encode_rows(
        shop(0), plan_envelope(BARE, ChangelogMode.ALL, LogFormats(ValueFormat.AVRO), SchemaIds(value=9))
    )
    with pytest.raises(FixData, match="schema 9"):
        decode_rows(messages_of(encoded), BARE, LogFormats(ValueFormat.AVRO))


def test_messages_of_an_older_schema_are_read_by_their_own() -> None:
    """Columns added, dropped, widened and made finer meanwhile; order of messages kept, tombstones between them."""
    old = pa.schema([pa.field("id", pa.int32(), nullable=False), ("at", pa.timestamp("ms")), ("gone", pa.string()),
                     ("price", pa.decimal128(5, 2)), ("inner", pa.struct([("a", pa.int32())]))])  # fmt: skip
    new = pa.schema([pa.field("id", pa.int64(), nullable=False), ("at", pa.timestamp("us")),
                     ("price", pa.decimal128(9, 3)), ("inner", pa.struct([("a", pa.int64()), ("b", pa.string())])),
                     ("more", pa.list_(pa.int32()))])  # fmt: skip
    formats, numbers = LogFormats(ValueFormat.AVRO, KeyFormat.AVRO), Numbers()
    messages = []
    second = dt.datetime(2024, 1, 31, 1, 2, 3)  # noqa: DTZ001 - a wall clock
    for columns, row in (
        (old, {"id": 1, "at": second, "gone": "x", "price": Decimal("1.50"), "inner": {"a": 1}}),
        (
            new,
            {
                "id": 2,
                "at": second,
                "price": Decimal("2.125"),
                "inner": {"a": 2, "b": "b"},
                "more": [1, None],
            },
        ),
        (old, {"id": 3, "at": None, "gone": None, "price": None, "inner": None}),
    ):
        schema = new_schema(columns, primary_keys=["id"])
        table = pa.Table.from_pylist([row, row], columns).append_column(
            "_ROW_KIND", pa.array([0, 3], pa.int8())
        )
        ids = numbers.register(schema, formats)
        messages += messages_of(encode_rows(table, plan_envelope(schema, ChangelogMode.UPSERT, formats, ids)))
    back = decode_rows(messages, new_schema(new, primary_keys=["id"]), formats, numbers.find)
    assert len(numbers.texts) == 4
    blank = {"at": None, "price": None, "inner": None, "more": None}
    assert back.to_pylist() == [
        {
            **blank,
            "id": 1,
            "at": second,
            "price": Decimal("1.500"),
            "inner": {"a": 1, "b": None},
            "_ROW_KIND": 0,
        },
        {**blank, "id": 1, "_ROW_KIND": 3},
        {
            "id": 2,
            "at": second,
            "price": Decimal("2.125"),
            "inner": {"a": 2, "b": "b"},
            "more": [1, None],
            "_ROW_KIND": 0,
        },
        {**blank, "id": 2, "_ROW_KIND": 3},
        {**blank, "id": 3, "_ROW_KIND": 0},
        {**blank, "id": 3, "_ROW_KIND": 3},
    ]


def test_a_table_with_more_columns_is_compatible() -> None:
    """A reader with the new schema reads an old message: added columns have a default, a wider number promotes."""
    before = new_schema(pa.schema([pa.field("id", pa.int32(), nullable=False), ("n", pa.float32())]))
    after = new_schema(
        pa.schema(
            [
                pa.field("id", pa.int64(), nullable=False),
                ("n", pa.float64()),
                ("s", pa.string()),
                ("r", pa.struct([("x", pa.int32())])),
            ]
        )
    )
    formats = LogFormats(ValueFormat.AVRO)
    old, new = (
        fastavro.parse_schema(json.loads(avro_schemas(schema, "t", formats).value or ""))
        for schema in (before, after)
    )
    table = pa.table({"id": pa.array([5], pa.int32()), "n": pa.array([1.5], pa.float32())})
    data = encode_rows(
        table.append_column("_ROW_KIND", pa.array([0], pa.int8())),
        plan_envelope(before, ChangelogMode.ALL, formats),
    ).values[0]
    read = fastavro.schemaless_reader(io.BytesIO((data or b"")[5:]), old, new)
    assert read == {"before": None, "after": {"id": 5, "n": 1.5, "s": None, "r": None}, "op": "c"}


_MILLIS_MOST = 95025871 * 86_400_000  # the last day of which JSON has a text


@pytest.mark.parametrize(("value", "most_ms", "most_days"), [
    (ValueFormat.AVRO, 2**63 - 1, 2**31 - 1), (ValueFormat.CANAL_JSON, _MILLIS_MOST, 95025871),
])  # fmt: skip
def test_the_widest_values_survive(value: ValueFormat, most_ms: int, most_days: int) -> None:
    """The ends of what 64 bits, 38 digits and the calendar hold, which Python's own types and Arrow's parser do not."""
    columns = pa.schema([
        ("at", pa.timestamp("ms")), ("nano", pa.timestamp("ns")), ("day", pa.date32()), ("price", pa.decimal128(38, 0)),
    ])  # fmt: skip
    table = pa.table([
        pa.array([most_ms, -most_ms, -62167219200001, 253402300800000], pa.timestamp("ms")),
        pa.array([2**63 - 1, 1 - 2**63, 0, -1], pa.timestamp("ns")),
        pa.array([most_days, -most_days, -719529, 2932897], pa.int32()).cast(pa.date32()),
        pa.array([Decimal(10**38 - 1), Decimal(1 - 10**38), None, None], pa.decimal128(38, 0)),
        pa.array([0, 0, 0, 0], pa.int8()),
    ], [*columns.names, "_ROW_KIND"])  # fmt: skip
    formats, numbers = LogFormats(value), Numbers()
    schema = new_schema(columns)
    ids = numbers.register(schema, formats)
    encoded = encode_rows(table, plan_envelope(schema, ChangelogMode.ALL, formats, ids))
    assert decode_rows(messages_of(encoded), schema, formats, numbers.find).equals(table)


@pytest.mark.parametrize(
    ("name", "text"),
    [("at", "12024-13-01 00:00:00"), ("at", "12024-02-30 00:00:00"), ("at", "12024-01-01 24:00:00"), ("at", "x"),
     ("at", "12024-01-01 00:00:00.0001"), ("day", "12024-01-01 00:00:00"), ("day", "2023-02-29")],
)  # fmt: skip
def test_a_moment_that_is_none_is_an_error(name: str, text: str) -> None:
    """TS1718 instead of another day, beyond the years of Arrow's parser too."""
    schema = new_schema(pa.schema([("at", pa.timestamp("ms")), ("day", pa.date32())]))
    value = json.dumps({name: text}).encode()
    with pytest.raises(FixData, match="TS1718"):
        decode_rows([LogMessage(0, 0, None, value)], schema, LogFormats(ValueFormat.JSON))


def test_the_page_shows_what_is_sent() -> None:
    """Each example of docs/kafka-envelope.md is the message that this row gives; Avro in hexadecimal."""
    page = (Path(__file__).parents[3] / "docs" / "kafka-envelope.md").read_text()
    examples = page.partition("```\ndebezium-json\n")[2].partition("\n```")[0].split("\n\n")
    shown = dict(zip(["debezium-json", "canal-json", "maxwell-json", "json", "avro"], examples, strict=True))
    columns = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("day", pa.date32(), nullable=False),
                         pa.field("price", pa.decimal128(9, 2), nullable=False),
                         pa.field("at", pa.timestamp("ms"), nullable=False)])  # fmt: skip
    moment = dt.datetime(2024, 1, 31, 12, 0, 1, 500_000)  # noqa: DTZ001 - a wall clock
    row = {"id": 1, "day": dt.date(2024, 1, 31), "price": Decimal("9.90"), "at": moment}
    schema = new_schema(columns, primary_keys=["id"])
    for name, text in shown.items():
        lines = text.removeprefix(f"{name}\n").split("\n")
        rows = pa.Table.from_pylist([row] * len(lines), columns).append_column(
            "_ROW_KIND", pa.array([0, 3][: len(lines)], pa.int8())
        )
        formats = LogFormats(ValueFormat(name), KeyFormat.AVRO if name == "avro" else KeyFormat.JSON)
        encoded = encode_rows(rows, plan_envelope(schema, ChangelogMode.ALL, formats, SchemaIds(6, 7)))
        if name == "avro":
            assert [(value or b"").hex() for value in encoded.values] == [
                line.replace(" ", "") for line in lines
            ]
            assert (encoded.keys or [])[0].hex() == "000000000602"
        else:
            assert [(value or b"").decode() for value in encoded.values] == lines
