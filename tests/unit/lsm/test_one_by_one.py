"""nested_update, merge_map_with_keytime and rbm32 against plain Python, and what they refuse."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyroaring import BitMap

from tablestore_engine.errors import FixData, TablestoreError
from tablestore_engine.format.data_type import DataType
from tablestore_engine.format.type_arrow import type_from_arrow
from tablestore_engine.lsm.merge_options import check_merge_options
from tablestore_engine.sql.statement import DropColumns, RenameColumn
from tablestore_engine.warehouse.statements.alter_statement import alter_schema
from tests.unit.store.table_world import make_table, put, rows_of

_ROW = pa.struct([("k", pa.int32()), ("t", pa.string())])
ROWS, TIMED = type_from_arrow(pa.list_(_ROW)), type_from_arrow(pa.map_(pa.string(), _ROW))
NUMBERS, COUNTS = type_from_arrow(pa.list_(pa.int32())), type_from_arrow(pa.map_(pa.string(), pa.int32()))


def of_column(function: str, **options: str) -> dict[str, str]:
    """Options of a table with the column `v`."""
    named = {f"fields.v.{key.replace('_', '-')}": value for key, value in options.items()}
    return {"merge-engine": "aggregation", "fields.v.aggregate-function": function, **named}


def merged(root: Path, type_: str | DataType, options: dict[str, str], values: list[Any]) -> Any:
    """The value of a key after a commit of each value."""
    store = make_table(root, columns={"id": "BIGINT", "v": type_}, options=options)
    for value in values:
        put(store, {"id": 1, "v": value})
    return rows_of(store)[0]["v"]


@pytest.mark.parametrize("seed", range(5))
def test_nested_update_is_a_fold(tmp_path: Path, seed: int) -> None:
    """Appended rows, of a key the last, and no more than the limit: as a loop over the rows has them."""
    chance = random.Random(seed)
    values = [
        [{"k": chance.randrange(3), "t": f"{number}{at}"} for at in range(chance.randrange(3))]
        for number in range(5)
    ]
    every = [row for value in values for row in value]
    assert merged(tmp_path / "all", ROWS, of_column("nested_update"), values) == every
    limited = of_column("nested_update", count_limit="4")
    assert merged(tmp_path / "limit", ROWS, limited, values) == every[:4]
    last: dict[int, Any] = {}
    for row in every:
        last[row["k"]] = row
    keyed = merged(tmp_path / "keyed", ROWS, of_column("nested_update", nested_key="k"), values)
    assert sorted(keyed, key=repr) == sorted(last.values(), key=repr)


@pytest.mark.parametrize("seed", range(5))
def test_merge_map_with_keytime_keeps_the_latest(tmp_path: Path, seed: int) -> None:
    """Of each key the row with the largest time, the first of equal ones; NULL removes the key."""
    chance = random.Random(seed)
    values: list[list[tuple[str, Any]]] = [
        [
            (key, None if chance.random() < 0.2 else {"k": number, "t": chance.choice("123")})
            for key in chance.sample("abc", 2)
        ]
        for number in range(6)
    ]
    expected = dict(values[0])
    for value in values[1:]:
        for key, row in value:
            if row is None:
                expected.pop(key, None)
            elif expected.get(key) is None or row["t"] > expected[key]["t"]:
                expected[key] = row
    found = merged(tmp_path, TIMED, of_column("merge_map_with_keytime"), values)
    assert dict(found) == expected


def test_rbm32_is_a_union(tmp_path: Path) -> None:
    """Bytes of the union, as a bitmap of all numbers has them; other bytes are refused (TS1671)."""
    parts, whole = [range(9), range(5, 70_000), [2**32 - 1]], BitMap()
    for part in parts:
        whole |= BitMap(part)
    whole.run_optimize()
    values = [BitMap(part).serialize() for part in parts]
    assert merged(tmp_path / "a", "BYTES", of_column("rbm32"), values) == whole.serialize()
    with pytest.raises(FixData, match="TS1671"):
        merged(tmp_path / "b", "BYTES", of_column("rbm32"), [values[0], b"no bitmap"])


@pytest.mark.parametrize(
    ("type_", "options", "code"),
    [
        (ROWS, of_column("nested_update", nested_key="x"), "TS1672"),
        (ROWS, of_column("nested_update", nested_key="k", count_limit="2"), "TS1667"),
        (NUMBERS, of_column("nested_update"), "TS1662"),
        (TIMED, of_column("merge_map_with_keytime", ts_field="x"), "TS1672"),
        (TIMED, of_column("merge_map_with_keytime", ts_field="k"), "TS1662"),
        (COUNTS, of_column("merge_map_with_keytime"), "TS1662"),
        ("STRING", of_column("rbm32"), "TS1662"),
        ("BYTES", of_column("rbm64"), "TS1661"),
        ("BYTES", of_column("theta_sketch"), "TS1661"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    tmp_path: Path, type_: str | DataType, options: dict[str, str], code: str
) -> None:
    """Nested columns that are not there, types, and what Paimon's releases do differently."""
    store = make_table(tmp_path, columns={"id": "BIGINT", "v": type_}, options=options)
    with pytest.raises(TablestoreError, match=code):
        check_merge_options(store.schema)


def test_a_nested_key_keeps_its_name(tmp_path: Path) -> None:
    """ALTER TABLE cannot take away what an option names (TS1665)."""
    options = of_column("nested_update", nested_key="k")
    schema = make_table(tmp_path, columns={"id": "BIGINT", "v": ROWS}, options=options).schema
    for action in (
        RenameColumn("k", "key", ("v", "element")),
        DropColumns((), nested=(("v", "element", "k"),)),
    ):
        with pytest.raises(TablestoreError, match="TS1672"):
            alter_schema(schema, action, ())
    assert alter_schema(schema, RenameColumn("t", "text", ("v", "element")), ()) != schema
