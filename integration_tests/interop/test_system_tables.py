"""Our system tables and Java's show the same rows of the same table, whoever wrote it."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from integration_tests.interop.golden import Golden
from integration_tests.interop.java_paimon import JavaPaimon
from integration_tests.interop.ours import Ours
from integration_tests.interop.schemas import schema
from tablestore_engine.api import Engine
from tablestore_engine.catalog.system_tables.known_tables import SYSTEM_TABLES
from tests.doses import cases

_COLUMNS = {"id": "BIGINT", "dt": "DATE", "amount": "DECIMAL(10, 2)", "note": "STRING"}
_OPTIONS = {"bucket": "2", "num-levels": "6", "fields.note.stats-mode": "full"}
# Java here is 1.4.2; these came with Paimon 2
_NEWER_TABLES = ("file_key_ranges",)
_NEWER_COLUMNS = {
    "snapshots": ["operation", "writer_version"],
    "partitions": ["total_buckets", "done", "deleted_record_count"],
}
_JSON = ("options", "fields", "partition_keys", "primary_keys", "colstat")


# Java cannot show its own partitions of a TIMESTAMP column (DateTimeParseException)
_NOT_SHOWN = {"every_partition_type": ("partitions",)}


def compare(java: JavaPaimon, location: Path) -> None:
    """Names, types and values of all columns; texts of JSON as values, since maps of Java have no order."""
    with Engine(str(location.parent.parent)) as engine:
        table = engine.table(f"{location.parent.name.removesuffix('.db')}.{location.name}")
        for name in SYSTEM_TABLES:
            if name not in (*_NEWER_TABLES, *_NOT_SHOWN.get(location.name, ())):
                theirs, ours = java.system_table(location, name), table.system_table(name)
                ours = ours.drop_columns(_NEWER_COLUMNS.get(name, []))
                assert ours.column_names == theirs.column_names, name
                if name in ("audit_log", "binlog"):  # Java shows the kinds in the files, deleted keys too
                    theirs = theirs.filter(pc.field("rowkind") != "-D").drop_columns(["rowkind"])
                    ours = ours.drop_columns(["rowkind"])
                assert _rows(ours) == _rows(theirs), name


def _rows(table: pa.Table) -> list[str]:
    """As texts, of which NaN is one."""
    columns = [
        [_sorted_json(value) if name in _JSON else value for value in table.column(name).to_pylist()]
        for name in table.column_names
    ]
    return sorted(map(repr, zip(*columns, strict=True)))


def _sorted_json(text: str | None) -> str | None:
    return json.dumps(json.loads(text), sort_keys=True) if text else text


@pytest.mark.parametrize("partitions", [(), ("dt",)])
def test_a_table_of_ours_shows_the_same_in_java(
    java: JavaPaimon, tmp_path: Path, partitions: tuple[str, ...]
) -> None:
    """Updates, deleted rows, a tag, a branch, changed columns, and two levels of sorted runs."""
    us, location = Ours(), tmp_path / "ours.db" / "t"
    made = schema(_COLUMNS, keys=("id", *partitions), partitions=partitions, options=_OPTIONS)
    us.create(location, made)
    for number in range(3):
        us.write(location, _numbered(range(number, number + 6)))
    us.write(location, _numbered(range(2)), ["-D", "-D"])
    java.tag(location, "first", 1)
    java.table(location).createBranch("dev", "first")
    us.alter(location, ("add", "more", "INT"), ("rename", "note", "remark"))
    compare(java, location)
    us.compact(location)
    us.write(
        location,
        _numbered(range(9))
        .append_column("more", pa.array(range(9), pa.int32()))
        .rename_columns(["id", "dt", "amount", "remark", "more"]),
    )
    compare(java, location)


def _numbered(numbers: range) -> pa.Table:
    return pa.table(
        {
            "id": list(numbers),
            "dt": [dt.date(2026, 1, 1 + one % 2) for one in numbers],
            "amount": pa.array([Decimal(one) / 4 for one in numbers], pa.decimal128(10, 2)),
            "note": [None if one % 3 == 0 else f"a long text of number {one}" for one in numbers],
        }
    )


@pytest.mark.parametrize(
    "name",
    cases(
        [
            "append",
            "changelog_input",
            "deletion_vectors",
            "dynamic_bucket",
            "every_partition_type",
            "evolving_append",
            "evolving_vectors",
            "merge_on_read",
            "partitioned_vectors",
        ],
        5,
    ),
)
def test_a_table_of_java_shows_the_same_here(
    java: JavaPaimon, golden: Callable[[str], Golden], name: str
) -> None:
    """With Java's own levels, statistics and manifests."""
    compare(java, golden(name).location)
