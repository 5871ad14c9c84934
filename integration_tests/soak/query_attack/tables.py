"""Random tables: columns with foreign keys that may dangle, keys of one or two columns or none, NULL-rich rows.

The same column names (id, name, v, amount …) appear in several tables on purpose.

Types      `double`: exact halves, no key.  `real`: DOUBLE with both zeros and NaN, joined and grouped by as any other.
"""

from __future__ import annotations

import datetime as dt
import random
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import pyarrow as pa

Row = dict[str, Any]
ARROW: dict[str, pa.DataType] = {
    "int": pa.int32(),
    "bigint": pa.int64(),
    "string": pa.string(),
    "decimal": pa.decimal128(8, 2),
    "double": pa.float64(),
    "real": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "boolean": pa.bool_(),
}
IDS = 12  # ids run from 1 to IDS; foreign keys to IDS + 2, so that some dangle
_FIRST_DAY = dt.date(2024, 1, 27)
FIRST_MOMENT = dt.datetime(2024, 1, 30, 12, tzinfo=dt.UTC)  # of runs: among the days and times of the rows
_REALS = (0.0, -0.0, -0.0, float("nan"), 1.5, -2.0)  # equal values that are not the same value
_TEXTS = ("a", "b", "B", "ab", "c d", "", "ä", "k1")


@dataclass(frozen=True)
class Column:
    """`refers`: the table whose ids the values are (its own key column: the table itself)."""

    name: str
    type: str
    null: bool = True
    refers: str | None = None


@dataclass(frozen=True)
class TableDef:
    """One input. `key` empty: no primary key, rows are appended and deleted by SQL."""

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    options: tuple[tuple[str, str], ...] = ()
    partition_by: tuple[str, ...] = ()

    def column(self, name: str) -> Column:
        """By its name."""
        return next(one for one in self.columns if one.name == name)

    def arrow(self, rows: list[Row]) -> pa.Table:
        """Rows as Arrow; a column that a row does not name is NULL."""
        fields = [pa.field(one.name, ARROW[one.type], nullable=one.null) for one in self.columns]
        data = [pa.array([row.get(one.name) for row in rows], ARROW[one.type]) for one in self.columns]
        return pa.Table.from_arrays(data, schema=pa.schema(fields))


# name → key columns, foreign keys (column → table)
_KINDS: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "regions": (("id",), {}),
    "customers": (("id",), {"region_id": "regions", "agent": "staff"}),
    "products": (("id",), {"maker": "customers"}),
    "staff": (("id",), {"boss": "staff", "region_id": "regions"}),
    "orders": (("id",), {"customer_id": "customers", "seller": "staff", "payer": "customers"}),
    "lines": (("order_id", "line_no"), {"order_id": "orders", "product_id": "products"}),
    "events": ((), {"customer_id": "customers", "product_id": "products"}),
    "prices": (("product_id", "region_id"), {"product_id": "products", "region_id": "regions"}),
    "notes": ((), {"id": "orders"}),
}
_EXTRA = (
    *(("v", "int"), ("w", "bigint"), ("name", "string"), ("note", "string"), ("amount", "decimal")),
    *(("total", "decimal"), ("rate", "double"), ("score", "real"), ("level", "real"), ("day", "date")),
    *(("placed", "timestamp"), ("flag", "boolean")),
)  # fmt: skip
_STARS = (
    ("orders", "customers", "staff"),
    ("lines", "orders", "products", "customers"),
    ("staff", "regions"),
)


def random_tables(rng: random.Random) -> tuple[TableDef, ...]:
    """2 to 5 tables, of which some refer to each other."""
    names = list(rng.choice(_STARS)) if rng.random() < 0.75 else []
    while len(names) < 2 or (len(names) < 5 and rng.random() < 0.5):
        names.append(rng.choice([one for one in _KINDS if one not in names]))
    types = {name: rng.choice(("int", "int", "bigint", "string")) for name in names}
    return tuple(_table(rng, name, types) for name in names)


def _table(rng: random.Random, name: str, types: dict[str, str]) -> TableDef:
    key, foreign = _KINDS[name]
    columns = [Column(one, types[name], null=False, refers=name) for one in key if one == "id"]
    for one, target in foreign.items():
        if one in key:
            columns.append(Column(one, types.get(target, "int"), null=False, refers=target))
        elif rng.random() < 0.85:
            columns.append(Column(one, _width(rng, types.get(target, "int")), refers=target))
    if "line_no" in key:
        columns.append(Column("line_no", "int", null=False))
    extra = [one for one in _EXTRA if one[0] not in {column.name for column in columns}]
    for one, kind in rng.sample(extra, rng.randint(2, 5)):
        columns.append(Column(one, kind, null=rng.random() < 0.9))
    rng.shuffle(columns)
    table = TableDef(name, tuple(columns), key)
    if key and rng.random() < 0.2:
        table = replace(table, options=(rng.choice(_option_choices(table)),))
    if key and rng.random() < 0.15:
        table = replace(table, options=(*table.options, ("bucket", "2")))
    if key and len(key) == 2 and rng.random() < 0.15:
        table = replace(table, partition_by=key[:1])
    return table


def _option_choices(table: TableDef) -> list[tuple[str, str]]:
    """What changes the changelog of a keyed table, or which of two rows wins."""
    numbers = [
        one.name for one in table.columns if one.type in ("int", "bigint") and one.name not in table.key
    ]
    first = [("sequence.field", one) for one in numbers[:1]]
    return [("changelog-producer", "none"), ("changelog-producer.row-deduplicate", "true"), *first]


def _width(rng: random.Random, kind: str) -> str:
    """A foreign key is at times wider or narrower than the key."""
    return rng.choice(("int", "bigint")) if kind in ("int", "bigint") and rng.random() < 0.2 else kind


def random_value(rng: random.Random, column: Column) -> Any:
    """NULL at times where the column allows it."""
    if column.null and rng.random() < 0.2:
        return None
    if column.refers is not None:
        number = rng.randint(1, IDS + 2)
        return f"k{number}" if column.type == "string" else number
    match column.type:
        case "int" | "bigint":
            return rng.randint(1, 3) if column.name == "line_no" else rng.randint(-2, 9)
        case "string":
            return rng.choice(_TEXTS)
        case "decimal":
            return Decimal(rng.randint(-8, 60)) / 4
        case "double":
            return rng.randint(-8, 40) / 2
        case "real":
            return rng.choice(_REALS)
        case "date":
            return _FIRST_DAY + dt.timedelta(days=rng.randint(0, 9))
        case "timestamp":
            day = _FIRST_DAY + dt.timedelta(days=rng.randint(0, 9))
            return dt.datetime(day.year, day.month, day.day, rng.choice((0, 5, 23)), 30)  # noqa: DTZ001
        case _:
            return rng.random() < 0.5


def random_row(rng: random.Random, table: TableDef, key: tuple[Any, ...] | None = None) -> Row:
    """With the key that is given, or a random one."""
    row = {one.name: random_value(rng, one) for one in table.columns}
    if key is not None:
        row.update(zip(table.key, key, strict=True))
    return row


def random_rows(rng: random.Random, table: TableDef, count: int) -> list[Row]:
    """At most `count`; each key once; some rows twice where there is no key."""
    rows = [random_row(rng, table) for _ in range(count)]
    if not table.key:
        return rows + [rng.choice(rows) for _ in range(count // 5)]
    return list({tuple(row[one] for one in table.key): row for row in rows}.values())
