"""Keys are looked up: by as few row groups and requests as they need, at any state, whatever their types are."""

from __future__ import annotations

import datetime as dt
import random
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tablestore_engine.fileio.local import LocalFileIO
from tablestore_engine.fileio.object_cache import CachedFileIO
from tablestore_engine.fileio.object_input import TAIL_BYTES
from tablestore_engine.store.files import file_read, parquet_input
from tablestore_engine.store.files.parquet_footer import FooterCache
from tablestore_engine.store.files.parquet_input import ParquetInput
from tablestore_engine.store.merge import lookup
from tablestore_engine.store.read.text_condition import TextCondition
from tablestore_engine.store.rows.row_filter import MatchingRows, SameKeys
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.store.write.write_request import WriteMode, WriteRequest
from tests.doses import examples
from tests.doubles.request_counts import CountingFileIO
from tests.unit.store.table_world import Row, delete, make_table, put
from tests.unit.store.test_changelog import foreign_level_zero

ROWS, GROUP_ROWS = 1_000, 10
Decoded = list[tuple[tuple[str, ...], int]]  # columns and row groups of each read


@pytest.fixture(autouse=True)
def large_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of some rows are read as large ones are."""
    monkeypatch.setattr(lookup, "FEW_ROWS", 0)


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> Decoded:
    """What is decoded from now on."""
    found: Decoded = []
    read = ParquetInput.read

    def recorded(
        self: ParquetInput, columns: Sequence[str], groups: Sequence[int] | None = None, **more: Any
    ) -> pa.Table:
        count = len(self.group_starts) - 1 if groups is None else len(groups)
        found.append((tuple(columns), count))
        return read(self, columns, groups, **more)

    monkeypatch.setattr(ParquetInput, "read", recorded)
    return found


def groups_of(decoded: Decoded, *columns: str) -> int:
    """Row groups that were decoded with exactly these columns."""
    return sum(count for names, count in decoded if set(names) == set(columns))


def filled(folder: Path, *, buckets: int = 2) -> TableStore:
    """Even keys 0 … 1998."""
    options = {"bucket": str(buckets), "parquet.row-group-rows": str(GROUP_ROWS)}
    store = make_table(folder, options=options)
    put(store, *[{"id": 2 * one, "name": f"n{one}", "n": one % 7} for one in range(ROWS)])
    return store


def keys_of(*numbers: int) -> pa.Table:
    """Keys as a table."""
    return pa.table({"id": pa.array(numbers, pa.int64())})


@pytest.mark.parametrize("asked", [1, 5, 40])
def test_rows_of_some_keys_decode_a_row_group_for_each(tmp_path: Path, decoded: Decoded, asked: int) -> None:
    """O(k): at most one row group of keys and one of other columns for each key; missing keys and repeats cost none."""
    store = filled(tmp_path)
    chosen = random.Random(asked).sample(range(ROWS), asked)
    snapshot = store.snapshots.get(1)
    decoded.clear()
    keys = keys_of(*(2 * one for one in chosen), 2 * chosen[0], -1, 2 * ROWS)
    rows = store.find_rows(snapshot, keys, ["name"])
    assert sorted(rows["name"].to_pylist()) == sorted(f"n{one}" for one in chosen)
    assert 0 < groups_of(decoded, "id") <= asked + 2
    assert 0 < groups_of(decoded, "name") <= asked
    assert sum(count for _, count in decoded) == groups_of(decoded, "id") + groups_of(decoded, "name")


def test_rows_of_all_keys_decode_each_row_group_once(
    tmp_path: Path, decoded: Decoded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many keys cost what a scan of their columns costs, and no read holds more than a step of rows."""
    store = filled(tmp_path)
    total = sum(-(-file.meta.row_count // GROUP_ROWS) for file in store.plan_scan().files)
    monkeypatch.setattr(file_read, "STEP_ROWS", 5 * GROUP_ROWS)
    decoded.clear()
    rows = store.find_rows(store.snapshots.get(1), keys_of(*range(2 * ROWS)), ["name"])
    assert rows.num_rows == ROWS
    assert groups_of(decoded, "id") == groups_of(decoded, "name") == total
    assert max(count for names, count in decoded if names == ("name",)) == 5


@pytest.mark.parametrize("where", ["id = 400", "id = 400 and n < 9", "name <> '' and id in (400)"])
def test_filter_of_one_key_decodes_one_row_group(tmp_path: Path, decoded: Decoded, where: str) -> None:
    """Also with further conjuncts, whose columns are read with the row."""
    store = filled(tmp_path)
    plan = store.plan_scan()
    decoded.clear()
    rows = store.read_matching(plan, TextCondition(where).bind(plan.schema))
    assert rows.to_pylist() == [{"id": 400, "name": "n200", "n": 4}]
    assert decoded == [(("id",), 1), (("name", "n"), 1)]  # the key's values are those that were asked for


def test_filter_of_another_column_decodes_the_rest_where_it_matches(tmp_path: Path, decoded: Decoded) -> None:
    """The column that decides is read first, others of row groups with matches only."""
    store = filled(tmp_path, buckets=1)
    plan = store.plan_scan()
    decoded.clear()
    rows = store.read_matching(plan, TextCondition("name = 'n5' or name like '%77'").bind(plan.schema))
    assert sorted(rows["name"].to_pylist()) == sorted(
        ["n5", *(f"n{hundred or ''}77" for hundred in range(10))]
    )
    assert groups_of(decoded, "name") == ROWS // GROUP_ROWS
    assert groups_of(decoded, "id", "n") == 11


@pytest.mark.parametrize(
    "picks",
    [MatchingRows(TextCondition("id = 400")), SameKeys(("id",), keys_of(400))],
    ids=["filter", "keys"],
)
def test_delete_of_one_key_decodes_row_groups_of_one_key(
    tmp_path: Path, decoded: Decoded, picks: MatchingRows | SameKeys
) -> None:
    """As an upsert of one row: the row group with the key, and the same for the changelog."""
    store = filled(tmp_path)
    empty = store.schema.arrow_schema().empty_table()
    decoded.clear()
    report = store.write(WriteRequest(empty, mode=WriteMode.REPLACE, replaces=picks))
    assert report.deleted == 1
    assert [count for _, count in decoded] == [1, 1]


def test_key_on_an_object_store_takes_two_requests(tmp_path: Path) -> None:
    """At a state that is known: the end of the file with its footer, and one range with all columns; then one."""
    options = {"parquet.row-group-rows": "100", "file.compression": "none"}
    chance, cache = random.Random(1), CachedFileIO(CountingFileIO(LocalFileIO(str(tmp_path))))
    store = make_table(tmp_path, options=options, fileio=cache)
    put(store, *[{"id": one, "name": chance.randbytes(100).hex(), "n": one} for one in range(3_000)])
    counter = CountingFileIO(LocalFileIO(str(tmp_path)))
    store = TableStore(CachedFileIO(counter), f"{tmp_path}/demo.db/t")
    plan = store.plan_scan()
    assert plan.files[0].meta.file_size > 9 * TAIL_BYTES
    for where, requests in (("id = 400", 2), ("id = 1402 and n > 4", 1), ("id in (7, 2000)", 1)):
        counter.restart()
        found = store.read_matching(plan, TextCondition(where).bind(plan.schema))
        assert found["id"].to_pylist() == [int(one) for one in re.findall("[0-9]+", where.split(" and")[0])]
        assert counter.total == requests, counter.steps()


def test_footers_are_decoded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A handle remembers them, within a limit: what was used longest ago is read again."""
    store, made = filled(tmp_path), list[str]()
    footer_of = parquet_input.read_footer
    monkeypatch.setattr(
        parquet_input, "read_footer", lambda source, path: [made.append(path), footer_of(source, path)][1]
    )
    plan = store.plan_scan()
    for where in ("n = 3", "id in (2, 4, 6, 8, 10, 12)", "n = 4", "id in (2, 4, 6, 8, 10, 12)"):
        store.read_matching(plan, TextCondition(where).bind(plan.schema))
    assert sorted(made) == sorted({file.path for file in plan.files})
    footer = store.context.key_cache.footers.find(made[0])
    assert footer is not None
    small = FooterCache(capacity_bytes=2 * footer.size_bytes + 1)
    for name in ("a", "b"):
        small.put(name, footer)
    assert small.find("a") is footer
    small.put("c", footer)
    assert [small.find(name) is not None for name in "abc"] == [True, False, True]


def test_keys_of_doubles_are_equal_as_numbers(tmp_path: Path) -> None:
    """0.0 equals -0.0, which is another key in another bucket: the filter finds both."""
    columns = {"x": "DOUBLE", "v": "INT"}
    store = make_table(tmp_path, keys=("x",), columns=columns, options={"bucket": "5"})
    put(store, {"x": 0.0, "v": 1}, {"x": -0.0, "v": 2}, {"x": 1.0, "v": 3})
    plan = store.plan_scan()
    found = store.read_matching(plan, TextCondition("x in (0, 7)").bind(plan.schema))
    assert sorted(found["v"].to_pylist()) == [1, 2]


def test_delete_of_keys_in_one_partition_keeps_the_others(tmp_path: Path) -> None:
    """The same key in another partition stays."""
    store = make_table(
        tmp_path, keys=("id", "p"), partitions=("p",), columns={"id": "INT", "p": "STRING", "n": "INT"}
    )
    put(store, *[{"id": one, "p": part, "n": one} for one in range(3) for part in "xy"])
    keys = pa.table({"id": pa.array([1, 2], pa.int32()), "p": ["x", "y"]})
    empty = store.schema.arrow_schema().empty_table()
    request = WriteRequest(empty, mode=WriteMode.REPLACE, replaces=SameKeys(("id", "p"), keys))
    assert store.write(request).deleted == 2
    left = store.read().to_pylist()
    assert sorted((row["id"], row["p"]) for row in left) == [(0, "x"), (0, "y"), (1, "y"), (2, "x")]


def test_rows_at_positions_come_in_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many steps they are read in."""
    monkeypatch.setattr(file_read, "STEP_ROWS", GROUP_ROWS)
    store = filled(tmp_path, buckets=1)
    (file,) = store.plan_scan().files
    positions = np.array([905, 3, 904, 17, 3], np.int64)
    rows = file_read.FileReader(store.fileio, store.schema).read_positions(file, positions, ["id"])
    assert rows["id"].to_pylist() == [1810, 6, 1808, 34, 6]


def test_rows_at_positions_have_texts_that_repeat_as_texts(tmp_path: Path) -> None:
    """They are decoded as dictionaries, each row group with its own; texts that do not repeat, and numbers, are not."""
    columns, group_rows = {"id": "BIGINT", "few": "STRING", "many": "STRING", "n": "INT"}, 400
    store = make_table(tmp_path, columns=columns, options={"parquet.row-group-rows": str(group_rows)})
    count = 5 * group_rows

    def few(number: int) -> str | None:
        return None if number % 7 == 0 else f"{number // group_rows}-{number % 3}"

    rows: list[Row] = [{"id": one, "few": few(one), "many": f"{one}", "n": one % 2} for one in range(count)]
    put(store, *rows)
    (file,) = store.plan_scan().files
    reader = file_read.FileReader(store.fileio, store.schema)
    positions = np.random.default_rng(1).permutation(count)[: count // 3]
    with reader.open(file) as opened:
        assert len(opened.groups) == 5
        assert opened.parquet.footer.repeating == {"few"}
        coded = opened.parquet.read(list(columns), coded=True)
        assert [one.name for one in coded.schema if pa.types.is_dictionary(one.type)] == ["few"]
        found = opened.read_positions(positions)
    expected = reader.read(file).take(pa.array(positions))
    assert found.schema == expected.schema
    assert found.to_pylist() == expected.to_pylist()


def test_key_of_a_table_that_is_read_by_merging(tmp_path: Path) -> None:
    """Newest rows alone are found, deleted ones are not, by key and by key and value."""
    options = {"deletion-vectors.enabled": "false", "bucket": "1"}
    store = make_table(tmp_path, options=options)
    foreign_level_zero(store, [{"id": one, "name": "old", "n": 1} for one in range(4)], [0] * 4)
    foreign_level_zero(store, [{"id": 1, "name": "new", "n": 9}], [2])
    foreign_level_zero(store, [{"id": 2, "name": None, "n": None}], [3])
    plan = store.plan_scan()

    def names(where: str) -> list[str]:
        return store.read_matching(plan, TextCondition(where).bind(plan.schema))["name"].to_pylist()

    assert names("id = 0") == ["old"]
    assert names("id = 1") == ["new"]
    assert names("id = 1 and n = 1") == []
    assert names("id = 2") == []
    assert sorted(names("id in (0, 1, 2, 3)")) == ["new", "old", "old"]


_CHANCES: dict[str, tuple[str, Callable[[int], object], Callable[[Any], str]]] = {
    "BIGINT": ("BIGINT", lambda n: n - 3, str),
    "STRING": ("STRING", lambda n: "ab"[: n % 3] + chr(97 + n) + "é" * (n % 2), lambda v: f"'{v}'"),
    "DATE": ("DATE", lambda n: dt.date(1969, 12, 28) + dt.timedelta(n), lambda v: f"DATE '{v}'"),
    "DECIMAL": ("DECIMAL(30, 2)", lambda n: Decimal(25 * n - 125).scaleb(-2), str),
    "BOOLEAN": ("BOOLEAN", lambda n: n % 2 == 0, lambda v: str(v).lower()),
    "DOUBLE": ("DOUBLE", lambda n: [0.0, -0.0, 1.5, -2.0][n % 4], repr),
}


@pytest.mark.parametrize("seed", range(examples(6, 120)))
def test_filters_by_composite_keys_find_the_rows_of_each_snapshot(tmp_path: Path, seed: int) -> None:
    """Keys of one to three columns, with and without partitions, at past snapshots: a dict is the oracle."""
    chance = random.Random(seed)
    kinds = chance.choices([*_CHANCES], k=chance.choice([1, 2, 3]))
    names = [f"k{at}" for at in range(len(kinds))]
    parts = [f"k{len(kinds) - 1}"] if len(kinds) > 1 and chance.random() < 0.5 else []
    if parts and kinds[-1] == "DOUBLE":
        kinds[-1] = "STRING"
    columns = {name: _CHANCES[kind][0] for name, kind in zip(names, kinds, strict=True)} | {"v": "INT"}
    options = {"bucket": str(chance.choice([1, 3])), "parquet.row-group-rows": str(chance.choice([1, 2, 4]))}
    store = make_table(tmp_path, keys=names, partitions=parts, columns=columns, options=options)
    rows: dict[tuple[object, ...], dict[str, object]] = {}
    states = []

    def key() -> tuple[object, ...]:
        return tuple(_CHANCES[kind][1](chance.randrange(9)) for kind in kinds)

    def name_of(one: tuple[object, ...]) -> tuple[object, ...]:
        return tuple(map(repr, one))

    for _ in range(3):
        some = {name_of(one): one for one in (key() for _ in range(chance.randint(1, 25)))}
        batch = [{**dict(zip(names, one, strict=True)), "v": chance.randrange(3)} for one in some.values()]
        put(store, *batch)
        rows.update(zip(some, batch, strict=True))
        gone = chance.choice([*rows])
        delete(store, rows.pop(gone))
        states.append((store.latest(), dict(rows)))
    for snapshot, expected in states:
        plan = store.plan_scan(snapshot)
        for _ in range(8):
            asked = {name: {repr(one): one for one in (key()[at] for _ in range(chance.randint(1, 4)))}
                     for at, name in enumerate(names) if chance.random() < 0.9}  # fmt: skip
            limit = chance.choice([None, 1])
            texts = [
                f"{name} in ({', '.join(_CHANCES[kind][2](one) for one in asked[name].values())})"
                for name, kind in zip(names, kinds, strict=True)
                if name in asked
            ] + ([] if limit is None else [f"v < {limit}"])
            if not texts:
                continue
            wanted = [
                row
                for row in expected.values()
                if all(row[name] in asked[name].values() for name in asked)
                and (limit is None or row["v"] < limit)
            ]
            text = " and ".join(texts)
            found = store.read_matching(plan, TextCondition(text).bind(plan.schema)).to_pylist()
            assert sorted(map(repr, found)) == sorted(map(repr, wanted)), text
        some_keys = chance.sample(list(expected.values()), k=min(3, len(expected)))
        given = pa.Table.from_pylist(
            [{name: row[name] for name in names} for row in some_keys],
            pa.schema([plan.schema.arrow_schema().field(name) for name in names]),
        )
        found = store.find_rows(plan.snapshot, given).to_pylist()
        assert sorted(map(repr, found)) == sorted(map(repr, some_keys))
