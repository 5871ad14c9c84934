"""Every place that lists types: a VARIANT and a timestamp of 9 digits are supported there, or refused by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from tablestore_engine.errors import TablestoreError
from tablestore_engine.format.binary_row import decode_row, encode_row
from tablestore_engine.format.bucket import assign_buckets, hash_rows
from tablestore_engine.format.capability import check_readable, check_writable
from tablestore_engine.format.column_default import default_value
from tablestore_engine.format.data_type import STRING, DataField, DataType
from tablestore_engine.format.evolution_cast import cast_column, check_cast, is_widening
from tablestore_engine.format.file_index_columns import check_file_indexes
from tablestore_engine.format.row_values import row_values
from tablestore_engine.format.safe_cast import safe_cast
from tablestore_engine.format.schema import TableSchema, check_keys
from tablestore_engine.format.schema_change import retype_column
from tablestore_engine.format.schema_check import check_schema
from tablestore_engine.format.statistics import StatsCollector
from tablestore_engine.format.type_arrow import field_with_ids, type_from_arrow, type_to_arrow
from tablestore_engine.format.type_text import parse_type, type_from_json, type_to_json
from tablestore_engine.format.value_text import cast_text, legacy_text
from tablestore_engine.iceberg.schema_mapping import check_iceberg
from tablestore_engine.ingest.plain_values import plain_column
from tablestore_engine.log.avro_schema import avro_schemas
from tablestore_engine.log.json_decode import json_column
from tablestore_engine.log.json_values import json_texts
from tablestore_engine.log.log_formats import KeyFormat, LogFormats, ValueFormat, check_types
from tablestore_engine.lsm.merge_options import check_merge_options
from tablestore_engine.options import StatsMode
from tablestore_engine.spark.spark_types import spark_type
from tablestore_engine.spark.type_ddl import spark_ddl
from tablestore_engine.store.read.text_condition import TextCondition

VARIANT, FINE = DataType("VARIANT"), DataType("TIMESTAMP", precision=9)
_ONE = np.datetime64("1969-12-31T23:59:59.999999999", "ns")
_VALUES = {
    VARIANT: pa.array([{"value": b"\0", "metadata": b"\1\0\0"}, None], type_to_arrow(VARIANT)),
    FINE: pa.array([-1, None], pa.timestamp("ns")),
}
_ROW = {VARIANT: {"value": b"\0", "metadata": b"\1\0\0"}, FINE: _ONE}


def _schema(type_: DataType, *, key: str = "id", **options: str) -> TableSchema:
    fields = (DataField(0, "id", DataType("INT", nullable=False)), DataField(1, "x", type_))
    named = {name.replace("__", ".").replace("_", "-"): text for name, text in options.items()}
    return TableSchema(0, fields, 1, primary_keys=(key,), options=named)


def _columns(type_: DataType) -> pa.ChunkedArray:
    return pa.chunked_array([_VALUES[type_]])


def _statistics(type_: DataType) -> object:
    collector = StatsCollector([type_], StatsMode(counts=True, bounds=True))
    collector.add(pa.table({"x": _columns(type_)}))
    return decode_row(collector.finish().min_values, [type_.with_nullable(True)])


_X = {one: DataField(1, "x", one) for one in (VARIANT, FINE)}
OK = "supported"
ICEBERG = {"metadata__iceberg__storage": "table-location", "deletion_vectors__enabled": "true"}
Place = Callable[[DataType], object]
# place → (what it does with the type, outcome for VARIANT, outcome for TIMESTAMP(9))
PLACES: dict[str, tuple[Place, str, str]] = {
    "schema file": (lambda t: type_from_json(type_to_json(t)) == t, OK, OK),
    "arrow": (lambda t: type_from_arrow(type_to_arrow(t)) == t, OK, OK),
    "parquet ids": (lambda t: field_with_ids(DataField(1, "x", t)), OK, OK),
    "readable": (lambda t: check_readable(_schema(t)), OK, OK),
    "writable": (lambda t: check_writable(_schema(t)), OK, OK),
    "stored schema": (lambda t: check_schema(_schema(t)), OK, OK),
    "incoming rows": (lambda t: safe_cast(_columns(t), type_to_arrow(t)).to_pylist(), OK, OK),
    "rows of files": (lambda t: cast_column(_columns(t), t, t).to_pylist(), OK, OK),
    "values of python": (lambda t: row_values(_columns(t)), OK, OK),
    "statistics": (_statistics, OK, OK),
    "primary key": (lambda t: check_keys(_schema(t.with_nullable(False), key="x")), "TS1113", OK),
    "bucket key": (lambda t: check_keys(_schema(t, bucket_key="x", key="x")), "TS1113", OK),
    "sequence field": (lambda t: check_keys(_schema(t, sequence__field="x")), "TS1113", OK),
    "binary row": (lambda t: decode_row(encode_row([_ROW[t]], [t]), [t]) == (_ROW[t],), "TS1115", OK),
    "bucket": (lambda t: hash_rows([_columns(t)], [t]), "TS1115", OK),
    "bucket of hive": (lambda t: assign_buckets([_columns(t)], [t], 2, "hive"), "TS1121", "TS1121"),
    "bucket of mod": (lambda t: assign_buckets([_columns(t)], [t], 2, "mod"), "TS1119", "TS1119"),
    "partition folder": (lambda t: legacy_text(_ROW[t], t), "TS1122", OK),
    "text of a value": (lambda t: cast_text(_ROW[t], t), "TS1122", OK),
    "old files as text": (lambda t: check_cast(t, STRING, column="x"), "TS1123", OK),
    "old files of text": (lambda t: check_cast(STRING, t, column="x"), "TS1123", "TS1123"),
    "old files of microseconds": (
        lambda t: check_cast(DataType("TIMESTAMP", precision=6), t, column="x"), "TS1123", OK,
    ),
    "default": (lambda t: default_value(replace(_X[t], default_value="2026-01-31 12:00:00")), "TS1153", OK),
    "another type": (lambda t: retype_column(_schema(t), "x", STRING), "TS1125", "TS1125"),
    "file index": (lambda t: check_file_indexes(_schema(t, file_index__bitmap__columns="x")), "TS1147", "TS1147"),
    "iceberg": (lambda t: check_iceberg(_schema(t, **ICEBERG)), "TS1143", "TS1143"),
    "log": (lambda t: check_types(_schema(t).fields, "t"), "TS1163", OK),
    "log in avro": (
        lambda t: avro_schemas(_schema(t), "topic", LogFormats(ValueFormat.AVRO, KeyFormat.JSON)), "TS1764", OK,
    ),
    "log in json": (lambda t: json_column(_json(t), t).equals(_VALUES[t]), "ValueError", OK),
    "messages of others": (lambda t: plain_column(["{}"], t), "ValueError", "ValueError"),
    "spark type": (spark_type, OK, "TS1508"),
    "spark ddl": (spark_ddl, OK, "TS1508"),
    "aggregation max": (lambda t: _aggregated(t, "max"), "TS1662", OK),
    "aggregation sum": (lambda t: _aggregated(t, "sum"), "TS1662", "TS1662"),
    "aggregation last_value": (lambda t: _aggregated(t, "last_value"), OK, OK),
    "filter text": (lambda t: _filtered(t, "x = 1"), "TS1565", "TS1565"),
    "filter of NULL": (lambda t: _filtered(t, "x is null"), OK, OK),
}  # fmt: skip


def _json(type_: DataType) -> list[str | None]:
    return [None if one == "null" else one.strip('"') for one in json_texts(_VALUES[type_]).to_list()]


def _aggregated(type_: DataType, function: str) -> None:
    options = {"merge-engine": "aggregation", "fields.x.aggregate-function": function}
    check_merge_options(TableSchema(0, _schema(type_).fields, 1, primary_keys=("id",), options=options))


def _filtered(type_: DataType, text: str) -> object:
    return TextCondition(text).bind(_schema(type_))


def _outcome(place: Place, type_: DataType) -> str:
    try:
        assert place(type_) is not False
    except TablestoreError as error:
        return error.code
    except (ValueError, pa.ArrowException) as error:
        return type(error).__name__
    return OK


@pytest.mark.parametrize("name", PLACES)
def test_place_supports_or_refuses(name: str) -> None:
    """By the code that belongs to the place; nowhere another error, nowhere another value."""
    place, variant, fine = PLACES[name]
    assert (_outcome(place, VARIANT), _outcome(place, FINE)) == (variant, fine)


def test_nothing_widens_to_or_from_a_variant() -> None:
    """DECIMAL stands for numbers."""
    others = [STRING, FINE, parse_type("DECIMAL(10, 2)"), DataType("INT")]
    assert not any(is_widening(*pair) for one in others for pair in ((one, VARIANT), (VARIANT, one)))
