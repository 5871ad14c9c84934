"""Rows a second of each encoder of the log, against debezium-json in the same run; Avro also against fastavro.

Steps      slices of 32,768 rows, as the publisher makes them, round after round through all formats, so that a machine
           that slows down slows all of them; fastavro gets Python rows that are made beforehand
Usage      python -m benchmarks.formats [--rows 500000] [--rounds 5]
"""

from __future__ import annotations

import argparse
import io
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Protocol

import fastavro
import numpy as np
import pyarrow as pa

from benchmarks.data import rows_of
from tablestore_engine.format.row_kind import ROW_KIND_COLUMN
from tablestore_engine.format.schema import TableSchema, new_schema
from tablestore_engine.log.avro_schema import SchemaIds, avro_schemas
from tablestore_engine.log.log_formats import KeyFormat, LogFormats, ValueFormat
from tablestore_engine.log.message_envelope import ChangelogMode, encode_rows, plan_envelope

_SLICE_ROWS = 32_768
_BASE = "debezium-json"
_PEER = "avro by fastavro, a row at a time"
_PEER_ROWS = 50_000


class SheetLike(Protocol):
    """Where figures go."""

    facts: dict[str, object]


def measure_formats(sheet: SheetLike, rows: int = 500_000, rounds: int = 5) -> None:
    """Facts `formats rows/s` and `formats / debezium-json`, medians over the rounds."""
    table = rows_of(np.arange(rows), seed=3)
    table = table.append_column(ROW_KIND_COLUMN, pa.array(np.zeros(rows, np.int8)))
    schema = new_schema(table.schema.remove(len(table.schema) - 1), primary_keys=["id"])
    slices = [table.slice(start, _SLICE_ROWS) for start in range(0, rows, _SLICE_ROWS)]
    subjects: dict[str, tuple[int, Callable[[], int]]] = {}
    for value in ValueFormat:
        key = KeyFormat.AVRO if value is ValueFormat.AVRO else KeyFormat.JSON
        subjects[value] = (rows, _encoder(slices, schema, LogFormats(value, key, ignore_delete=True)))
    subjects[_PEER] = (min(rows, _PEER_ROWS), _fastavro(table, schema))
    seen: dict[str, list[float]] = {name: [] for name in subjects}
    for turn in range(rounds + 1):  # the first one warms up
        for name, (count, encode) in subjects.items():
            started = time.perf_counter()
            if encode() != count:
                raise SystemExit(f"{name}: the messages are not {count}")
            if turn:
                seen[name].append(count / (time.perf_counter() - started))
    medians = {name: statistics.median(found) for name, found in seen.items()}
    sheet.facts["formats rows/s"] = {name: round(found, -3) for name, found in medians.items()}
    sheet.facts["formats / debezium-json"] = {
        name: round(found / medians[_BASE], 2) for name, found in medians.items()
    }


def _encoder(slices: Sequence[pa.Table], schema: TableSchema, formats: LogFormats) -> Callable[[], int]:
    envelope = plan_envelope(schema, ChangelogMode.UPSERT, formats, SchemaIds(1, 2))
    return lambda: sum(len(encode_rows(one, envelope)) for one in slices)


def _fastavro(table: pa.Table, schema: TableSchema) -> Callable[[], int]:
    text = avro_schemas(schema, "t", LogFormats(ValueFormat.AVRO)).value
    parsed = fastavro.parse_schema(json.loads(text or ""))
    listed = table.slice(0, _PEER_ROWS).drop_columns([ROW_KIND_COLUMN]).to_pylist()
    envelopes = [{"before": None, "after": row, "op": "c"} for row in listed]

    def encode() -> int:
        values = []
        for one in envelopes:
            out = io.BytesIO()
            fastavro.schemaless_writer(out, parsed, one)
            values.append(b"\0\0\0\0\2" + out.getvalue())
        return len(values)

    return encode


class _Print:
    """A sheet for the command alone."""

    def __init__(self) -> None:
        self.facts: dict[str, object] = {}


def main(argv: list[str]) -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args(argv)
    sheet = _Print()
    measure_formats(sheet, arguments.rows, arguments.rounds)
    print(json.dumps(sheet.facts, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
