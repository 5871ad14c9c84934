"""Random tables for filters: rows with NULL, NaN, -0.0 and values at the edges of their types, written in many ways.

Files have several row groups, and their keys are looked up by statistics, as in large files.

The rows that must be there are kept in a dict beside the table, so that no reader of the engine says what is right.
"""

from __future__ import annotations

import datetime as dt
import math
import random
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from tablestore_engine.api import Engine, Table
from tablestore_engine.store.merge import lookup
from tablestore_engine.store.rows import matching_rows

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("part", pa.string(), nullable=False),
        ("tiny", pa.int8()),
        ("big", pa.int64()),
        ("f", pa.float32()),
        ("d", pa.float64()),
        ("price", pa.decimal128(9, 2)),
        ("wide", pa.decimal128(30, 10)),
        ("day", pa.date32()),
        ("moment", pa.timestamp("us")),
        ("sent", pa.timestamp("us", "UTC")),
        ("name", pa.string()),
        ("flag", pa.bool_()),
    ]
)
_DAYS = [
    dt.date(1, 1, 1),
    dt.date(1969, 12, 31),
    dt.date(2026, 1, 31),
    dt.date(2026, 2, 1),
    dt.date(9999, 12, 31),
]
_MOMENTS = [
    dt.datetime(1, 1, 1),  # noqa: DTZ001 - wall clock
    dt.datetime(1969, 12, 31, 23, 59, 59, 999_999),  # noqa: DTZ001
    dt.datetime(2026, 1, 31),  # noqa: DTZ001
    dt.datetime(2026, 1, 31, 14, 0, 0, 1),  # noqa: DTZ001
]
VALUES: dict[str, list[object]] = {
    "part": ["eu", "us", "a b"],
    "tiny": [-128, -1, 0, 1, 2, 127],
    "big": [-(2**63), -(2**53) - 1, -1, 0, 1, 2, 2**53 + 1, 2**63 - 1],
    "f": [math.nan, math.inf, -math.inf, -0.0, 0.0, 0.5, 1.0, -1.5, 16_777_216.0, 0.10000000149011612],
    "d": [math.nan, math.inf, -math.inf, -0.0, 0.0, 0.1, 1.0, -1.5, 1e300, 5e-324],
    "price": [Decimal(text) for text in ("-9999999.99", "-0.01", "0.00", "1.50", "2.00", "9999999.99")],
    "wide": [Decimal(text) for text in ("-1.5000000000", "0.0000000001", "9" * 20 + "." + "9" * 10)],
    "day": list(_DAYS),
    "moment": list(_MOMENTS),
    "sent": [one.replace(tzinfo=dt.UTC) for one in _MOMENTS],
    "name": ["", "a", "ab", "abc", "a_c", "a%c", "b", "é", "z\nz", "it's", "\U0001f600", "x" * 40],
    "flag": [True, False],
}
Row = dict[str, object]


def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of some rows are read as large ones are."""
    monkeypatch.setattr(lookup, "FEW_ROWS", 0)
    monkeypatch.setattr(matching_rows, "BLOCK_GROUPS", 2)


class World:
    """One table, and the rows that it must have."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.chance = random.Random(seed)
        chance, self.rows = self.chance, dict[tuple[object, object], Row]()
        self._made = 0
        self.is_keyed = chance.random() < 0.7
        is_parted = chance.random() < 0.4
        self.nulls = chance.choice([0.0, 0.2, 0.9])
        options: dict[str, str | int | bool] = {"bucket": chance.choice([1, 3]) if self.is_keyed else -1}
        options["parquet.row-group-rows"] = chance.choice([1, 2, 5, 8192])
        if chance.random() < 0.6:
            options["write-only"] = True  # levels pile up
        key = () if not self.is_keyed else ("id", "part") if is_parted else "id"
        self.table: Table = Engine(str(folder)).create_table(
            "demo.t", SCHEMA, primary_key=key, partition_by="part" if is_parted else (), options=options
        )
        for _ in range(chance.randint(1, 6)):
            self._change()

    def _change(self) -> None:
        chance = self.chance
        if self.rows and chance.random() < 0.25:
            self._delete()
            return
        rows = [self._row() for _ in range(chance.choice([1, 5, 12, 60]))]
        table = pa.Table.from_pylist(list({self._key(row): row for row in rows}.values()), SCHEMA)
        (self.table.upsert if self.is_keyed else self.table.append)(table)
        self.rows.update((self._key(row), row) for row in table.to_pylist())
        if chance.random() < 0.2:
            self.table.compact(full=chance.random() < 0.5)

    def _delete(self) -> None:
        """Some keys; of a table without a key all rows of an id."""
        gone = self.chance.sample(
            sorted(self.rows, key=repr), k=min(len(self.rows), self.chance.randint(1, 5))
        )
        if self.is_keyed:
            self.table.delete([{"id": self.rows[key]["id"], "part": self.rows[key]["part"]} for key in gone])
        else:
            self.table.delete("id in (" + ", ".join(str(key[0]) for key in gone) + ")")
        ids = {key[0] for key in gone}
        for key in [one for one in self.rows if one in gone or (not self.is_keyed and one[0] in ids)]:
            del self.rows[key]

    def _key(self, row: Row) -> tuple[object, object]:
        """Ids are unique where the table has no key as well, so that each row has a name."""
        is_parted = "part" in self.table.schema.partition_keys
        return (row["id"], row["part"] if is_parted else None)

    def _row(self) -> Row:
        self._made += 1
        number = self.chance.randint(0, 40) if self.is_keyed else self._made
        row: Row = {"id": number}
        for name, values in VALUES.items():
            is_null = name != "part" and self.chance.random() < self.nulls
            row[name] = None if is_null else self.chance.choice(values)
        return row

    def expected(self) -> pa.Table:
        """All rows."""
        return pa.Table.from_pylist(list(self.rows.values()), SCHEMA)


def names(rows: pa.Table) -> list[tuple[object, object]]:
    """Which rows they are, in one order."""
    return sorted(zip(rows["id"].to_pylist(), rows["part"].to_pylist(), strict=True))
