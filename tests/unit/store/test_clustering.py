"""Clustering: the rows stay, the order is the asked one, and a filter reads fewer files and row groups."""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from itertools import pairwise, product
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pyarrow as pa
import pytest

from tablestore_engine.errors import FixRequest
from tablestore_engine.format.cluster_order import ClusterOrder, check_clustering, parse_order
from tablestore_engine.format.data_type import DataType
from tablestore_engine.format.schema_change import set_options
from tablestore_engine.format.snapshot import CommitKind
from tablestore_engine.format.type_arrow import type_to_arrow
from tablestore_engine.format.type_text import parse_type
from tablestore_engine.store import table_traits
from tablestore_engine.store.files import rolling_writer, row_budget
from tablestore_engine.store.files.file_read import FileReader
from tablestore_engine.store.read.text_condition import TextCondition
from tablestore_engine.store.rows.cluster_curve import ClusterCurve, hilbert_axes, interleaved
from tablestore_engine.store.rows.matching_rows import possible_groups
from tablestore_engine.store.rows.row_filter import SameKeys
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.store.write.write_request import WriteMode, WriteRequest
from tests.doses import examples
from tests.doubles.faults import SimulatedCrash, crashing, seeded_runtime
from tests.unit.store.table_world import acting, changes, changes_of, make_table, open_table, put, row

PLANE = {"a": "INT", "b": "BIGINT", "text": "STRING"}
LEFT = {"tablestore.compaction": "dedicated", "target-file-size": "1 kb"}


@pytest.fixture(autouse=True)
def _small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is closed at a row group of 32 rows: files of few rows."""
    monkeypatch.setattr(table_traits, "APPEND_GROUP_ROWS", 32)
    monkeypatch.setattr(rolling_writer, "SAMPLE_ROWS", 32)


def _plane(root: Path, side: int = 32, options: Mapping[str, str] = MappingProxyType({})) -> TableStore:
    """Points of a plane in a random order, the second column in a wider unit, in four appends."""
    store = make_table(root, keys=(), columns=PLANE, options={**LEFT, **options})
    points = list(product(range(side), range(side)))
    random.Random(1).shuffle(points)
    for part in range(4):
        rows = [{"a": a, "b": b * 1_000_003, "text": f"t{a:03}"} for a, b in points[part::4]]
        put(store, *rows)
    return store


def _rows(store: TableStore) -> Counter[tuple[object, ...]]:
    return Counter(tuple(one.values()) for one in store.read(store.plan_scan()).to_pylist())


def _files_of(store: TableStore, condition: str) -> tuple[int, int]:
    """Files that a filter opens, and all files; its rows are checked against those of all files."""
    plan = store.plan_scan()
    wanted = TextCondition(condition).bind(plan.schema)
    found = store.read_matching(plan, wanted)
    every = store.read(plan)
    assert sorted(found.to_pylist(), key=repr) == sorted(
        every.filter(pa.array(wanted.mask(every))).to_pylist(), key=repr
    )
    return len(wanted.prune(plan.files)), len(plan.files)


# --- the order --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dimensions", "bits"), [(2, 4), (3, 3), (4, 2)])
def test_a_hilbert_curve_goes_through_each_cell_once_in_single_steps(dimensions: int, bits: int) -> None:
    """Neighbours on the curve differ by one in one column, and each cell has a place of its own."""
    cells = np.array(list(product(range(1 << bits), repeat=dimensions)), np.uint64)
    columns = [np.ascontiguousarray(cells[:, at]) for at in range(dimensions)]
    places = interleaved(hilbert_axes(columns, bits), bits)
    assert sorted(places.tolist()) == list(range(1 << bits * dimensions))
    line = cells[np.argsort(places)].astype(int)
    assert all(int(np.abs(left - right).sum()) == 1 for left, right in pairwise(line))


VALUES: dict[str, list[object]] = {
    "BOOLEAN": [False, True],
    "TINYINT": [-128, -1, 0, 127],
    "BIGINT": [-(2**63), -1, 0, 2**63 - 1],
    "FLOAT": [float("-inf"), -1.5, 0.0, 2.5],
    "DOUBLE": [-1e300, -1.0, 0.0, 1e300],
    "DECIMAL(20, 2)": [Decimal("-123456789012345678.12"), Decimal("0.00"), Decimal("0.01")],
    "DATE": [dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(9999, 12, 31)],
    "TIME(3)": [dt.time(0), dt.time(12, 30), dt.time(23, 59, 59)],
    "TIMESTAMP(3)": [*(dt.datetime(year, 1, 1) for year in (1, 1970, 2026))],  # noqa: DTZ001
    "TIMESTAMP(6) WITH LOCAL TIME ZONE": [
        dt.datetime(1969, 1, 1, tzinfo=dt.UTC),
        dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
    ],
    "CHAR(3)": ["a  ", "ab ", "b  "],
    "STRING": ["", "a", "a common beginning 1", "a common beginning 2", "é"],
    "BINARY(2)": [b"\x00\x01", b"\x7f\xff", b"\xff\x00"],
    "BYTES": [b"", b"\x00\x01", b"\x80", b"\xff"],
}


@pytest.mark.parametrize("type_", VALUES)
def test_numbers_grow_with_the_values_of_each_type(type_: str) -> None:
    """NULL first, then every value in its order, also in a slice; the sort is the same."""
    ascending = [None, *VALUES[type_]]
    values = pa.array([*ascending, None], type_to_arrow(parse_type(type_)))
    rows = pa.table({"v": values}).slice(1)
    for strategy in ("order", "zorder", "hilbert"):
        curve = ClusterCurve.of_sample(ClusterOrder(strategy, ("v",)), rows)
        numbers = curve.numbers(rows)
        assert numbers[-1] == 0
        assert (np.diff(numbers[:-1].astype(np.int64)) > 0).all()
        shuffled = rows.take(pa.array(np.random.default_rng(3).permutation(rows.num_rows)))
        assert curve.sort(shuffled).column("v").to_pylist() == [None, *VALUES[type_]]


def test_the_spelling_of_an_order() -> None:
    """A strategy and columns, or columns alone; what cannot be an order is refused."""
    assert str(parse_order("ZOrder: a , b")) == "zorder:a,b"
    assert [str(parse_order(text)) for text in ("a", "a,b", "a,b,c,d,e")] == [
        "order:a",
        "zorder:a,b",
        "hilbert:a,b,c,d,e",
    ]
    for text in ("", "zorder:", "peano:a", "order:a,A", "order:" + ",".join("abcdefghijklmnopq")):
        with pytest.raises(FixRequest, match="TS1213"):
            parse_order(text)


# --- what it does -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["zorder", "hilbert"])
def test_a_filter_of_any_clustered_column_reads_fewer_files(tmp_path: Path, strategy: str) -> None:
    """Before each filter opens every file; after it at most half of them, for either column; rows are the same."""
    store = _plane(tmp_path)
    before = _rows(store)
    opened, every = _files_of(store, "a < 4")
    assert opened == every >= 10
    report = store.compact(order=parse_order(f"{strategy}:a,b"))
    assert (len(report.snapshot_ids), report.before.rows, report.after.rows) == (1, 1024, 1024)
    assert changes_of(store, report.snapshot_ids[0]) == changes()
    assert _rows(store) == before
    for condition in ("a < 4", f"b < {4 * 1_000_003}", "a = 17 and b > 20000000"):
        opened, every = _files_of(store, condition)
        assert every >= 10
        assert opened <= every // 2
    assert store.verify() == ()


def test_order_sorts_by_the_first_column(tmp_path: Path) -> None:
    """`order` leaves one or two files for a value of the first column, and the rows of each file sorted."""
    store = _plane(tmp_path)
    store.compact(order=parse_order("order:text,b"))
    found = [(one["text"], one["b"]) for one in store.read(store.plan_scan()).to_pylist()]
    assert found == sorted(found)
    assert _files_of(store, "text = 't009'")[0] <= 2


def test_row_groups_of_one_file_are_left_out(tmp_path: Path) -> None:
    """In one large file a filter decodes some of the row groups."""
    store = _plane(tmp_path, options={"target-file-size": "128 mb"})

    def groups() -> int:
        plan = store.plan_scan()
        wanted = TextCondition("a = 5").bind(plan.schema)
        total = 0
        for file in plan.files:
            with FileReader(store.context.fileio, plan.schema).open(file) as opened:
                total += len(possible_groups(opened, wanted))
        return total

    assert groups() == 32
    store.compact(order=parse_order("hilbert:a,b"))
    assert len(store.plan_scan().files) == 1
    assert groups() <= 8


def test_work_larger_than_the_memory_of_a_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a step of 50 rows the rows go through ranges on disk: the same rows, and files that filters leave out."""
    store = _plane(tmp_path)
    before = _rows(store)
    monkeypatch.setattr(row_budget, "STEP_ROWS", 50)
    store.compact(order=parse_order("zorder:a,b"))
    assert _rows(store) == before
    opened, every = _files_of(store, "a < 4")
    assert opened <= every // 2
    put(store, *({"a": 1, "b": None, "text": None} for _ in range(300)))
    store.compact(order=parse_order("order:text"))
    found = store.read(store.plan_scan()).column("text").to_pylist()
    assert found == [None] * 300 + sorted(one for _, _, one in before.elements())


def test_a_table_with_clustering_columns_is_sorted_once(tmp_path: Path) -> None:
    """A full compaction sorts, the next one has nothing to do; new rows, deletes and another order do."""
    store = _plane(tmp_path, options={"clustering.columns": "a,b"})
    before = _rows(store)
    assert len(store.compact(full=True).snapshot_ids) == 1
    assert store.compact(full=True).is_empty
    assert _files_of(store, "a < 4")[0] <= _files_of(store, "a < 4")[1] // 2
    put(store, {"a": 1, "b": 1, "text": "x"})
    assert len(store.compact(full=True).snapshot_ids) == 1
    keys = pa.table({"a": pa.array([7], pa.int32())})
    store.write(WriteRequest(mode=WriteMode.REPLACE, replaces=SameKeys(("a",), keys)))
    assert len(store.compact(full=True).snapshot_ids) == 1
    store.alter(lambda schema: set_options(schema, {"clustering.strategy": "hilbert"}))
    assert len(store.compact(full=True).snapshot_ids) == 1
    assert store.compact(full=True).is_empty
    store.compact(order=parse_order("order:text"))
    assert len(store.compact(full=True).snapshot_ids) == 1
    expected = Counter({one: count for one, count in before.items() if one[0] != 7})
    assert _rows(store) == expected + Counter({(1, 1, "x"): 1})
    assert store.verify() == ()


def test_commits_sort_what_is_due(tmp_path: Path) -> None:
    """clustering.incremental: level 0 stays below five files, runs become few and large, all rows are there."""
    options = {"clustering.columns": "id", "clustering.incremental": "true"}
    store = make_table(tmp_path, keys=(), options=options)
    for turn in range(40):
        put(store, *(row(number * 40 + turn) for number in range(10)))
        levels = Counter(file.meta.level for file in store.plan_scan().files)
        assert levels[0] <= 5
        assert len(levels) <= 6
    kinds = [one.commit_kind for one in store.snapshots.list_all()]
    assert kinds.count(CommitKind.COMPACT) >= 5
    assert sorted(one["id"] for one in store.read(store.plan_scan()).to_pylist()) == list(range(400))
    assert store.verify() == ()


def test_what_cannot_be_clustered_is_refused(tmp_path: Path) -> None:
    """Unknown columns, types without an order, keyed tables and fixed buckets; a table's options likewise."""
    columns = {"id": "BIGINT", "list": DataType("ARRAY", element=parse_type("INT"))}
    store = make_table(tmp_path / "a", keys=(), columns=columns)
    put(store, {"id": 1, "list": [1]})
    keyed = make_table(tmp_path / "b")
    bucketed = make_table(tmp_path / "c", keys=(), options={"bucket": "2", "bucket-key": "id"})
    for table, order in ((store, "nobody"), (store, "id,list"), (keyed, "id"), (bucketed, "id")):
        with pytest.raises(FixRequest, match="TS1214"):
            table.compact(order=parse_order(order))
        with pytest.raises(FixRequest, match="TS1214"):
            check_clustering(set_options(table.schema, {"clustering.columns": order}))
    with pytest.raises(FixRequest, match="TS1213"):
        check_clustering(set_options(store.schema, {"clustering.incremental": "true"}))
    assert len(store.snapshots.list_ids()) == 1


# --- beside others ----------------------------------------------------------------------------------------------


def test_a_row_deleted_while_rows_are_sorted_stays_deleted(tmp_path: Path) -> None:
    """Somebody deletes and appends at each step: it is planned again on what is there then."""
    for number, point in enumerate(("write.data_files", "commit.manifests")):
        store = _plane(tmp_path / str(number), side=8)
        other = open_table(tmp_path / str(number))
        keys = pa.table({"a": pa.array([3], pa.int32())})

        def act(other: TableStore = other, keys: pa.Table = keys) -> None:
            other.write(WriteRequest(mode=WriteMode.REPLACE, replaces=SameKeys(("a",), keys)))
            put(other, {"a": 99, "b": 1, "text": "late"})

        open_table(tmp_path / str(number), runtime=acting(point, act)).compact(
            order=parse_order("zorder:a,b")
        )
        found = Counter(one[0] for one in _rows(store).elements())
        assert found == Counter({a: 8 for a in range(8) if a != 3} | {99: 1})
        assert store.verify() == ()


@pytest.mark.parametrize("point", ["write.data_files", "commit.manifests", "commit.claimed", "commit.done"])
def test_killed_while_rows_are_sorted(tmp_path: Path, point: str) -> None:
    """At each step the rows are as before, and the same command ends it."""
    store = _plane(tmp_path, side=8)
    before = _rows(store)
    with pytest.raises(SimulatedCrash):
        open_table(tmp_path, runtime=crashing(seeded_runtime(1), point, 1)).compact(order=parse_order("a,b"))
    store = open_table(tmp_path)
    assert _rows(store) == before
    store.compact(order=parse_order("a,b"))
    assert _rows(store) == before
    assert {file.meta.level for file in store.plan_scan().files} == {5}
    assert store.verify() == ()


# --- random tables ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(examples(2, 40)))
def test_random_tables_have_the_same_rows_and_right_filters(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Columns of any type with NULLs, partitions, deletes: rows and filtered rows are the same."""
    chance = random.Random(seed)
    monkeypatch.setattr(row_budget, "STEP_ROWS", chance.choice([37, 500_000]))
    types = chance.sample(sorted(VALUES), 4)
    columns = {"id": "BIGINT", "day": "STRING", **{f"c{at}": type_ for at, type_ in enumerate(types)}}
    store = make_table(tmp_path, keys=(), partitions=("day",), columns=columns, options=LEFT)
    for turn in range(3):
        put(store, *(
            {"id": turn * 100 + number, "day": chance.choice("xy"),
             **{f"c{at}": chance.choice([None, *VALUES[type_]]) for at, type_ in enumerate(types)}}
            for number in range(60)))  # fmt: skip
    keys = pa.table({"id": pa.array(chance.sample(range(260), 30), pa.int64())})
    store.write(WriteRequest(mode=WriteMode.REPLACE, replaces=SameKeys(("id",), keys)))
    before = _rows(store)
    names = chance.sample(["id", "day", "c0", "c1", "c2", "c3"], chance.randint(1, 5))
    for strategy in ("order", "zorder", "hilbert"):
        store.compact(order=ClusterOrder(strategy, tuple(names)))
        assert _rows(store) == before
        assert _files_of(store, f"id > {chance.randrange(200)}")[0] > 0
        assert store.verify() == ()
