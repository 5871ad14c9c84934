"""Plans: which files, which positions, which schema."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tablestore_engine.errors import FixData, Unsupported
from tablestore_engine.format.schema_change import add_column, drop_column, rename_column, retype_column
from tablestore_engine.format.type_text import parse_type
from tests.unit.store.table_world import make_table, open_table, put, row, rows_of
from tests.unit.store.test_changelog import foreign_level_zero


def test_filters_leave_out_files(tmp_path: Path) -> None:
    """Partition and bucket filters are exact; plans of one snapshot are equal."""
    store = make_table(
        tmp_path,
        keys=("id", "dt"),
        partitions=("dt",),
        columns={"id": "INT", "dt": "STRING"},
        options={"bucket": "2"},
    )
    put(store, *[{"id": number, "dt": dt} for number in range(10) for dt in ("x", "y")])
    only = store.plan_scan(partitions=lambda values: values == ("x",), buckets=[1])
    assert {(file.partition, file.bucket) for file in only.files} == {(("x",), 1)}
    assert store.plan_scan() == open_table(tmp_path).plan_scan()
    assert store.plan_scan().visible_rows == 20


def test_columns_are_projected_in_the_order_asked(tmp_path: Path) -> None:
    """Only the wanted columns, as named; no column gives rows without columns."""
    store = make_table(tmp_path)
    put(store, row(1), row(2))
    plan = store.plan_scan()
    assert store.read(plan, ["n", "id"]).to_pylist() == [{"n": 0, "id": 1}, {"n": 0, "id": 2}]
    assert [batch.num_rows for batch in store.read_batches(plan, ["id"])] == [2]
    assert store.read(plan, []).num_columns == 0


def test_an_old_file_is_read_with_the_new_schema(tmp_path: Path) -> None:
    """Renamed, dropped, added and widened columns are matched by id; the old snapshot reads as it was."""
    store = make_table(tmp_path)
    put(store, row(1, "a", 5))
    changed = rename_column(store.schema, "name", "title")
    changed = retype_column(changed, "n", parse_type("BIGINT"))
    changed = add_column(changed, "name", parse_type("STRING"))
    store.context.schemas.claim(replace(changed, id=1))
    put(store, {"id": 2, "title": "t", "n": 2**40, "name": "new"})
    assert rows_of(store) == [
        {"id": 1, "title": "a", "n": 5, "name": None},
        {"id": 2, "title": "t", "n": 2**40, "name": "new"},
    ]
    assert rows_of(store, 1) == [row(1, "a", 5)]
    store.context.schemas.claim(replace(drop_column(open_table(tmp_path).schema, "title"), id=2))
    assert rows_of(open_table(tmp_path))[0] == {"id": 1, "n": 5, "name": None}


def test_merge_on_read_tables_of_others_show_the_newest_rows(tmp_path: Path) -> None:
    """Without deletion vectors positions are computed: older ones and deleted keys stay out (format.md#merge-order)."""
    store = make_table(tmp_path, options={"deletion-vectors.enabled": "false"})
    foreign_level_zero(store, [row(1), row(2), row(3)], [0, 0, 0])
    foreign_level_zero(store, [row(1, "b"), row(2), row(4)], [2, 3, 0])
    assert rows_of(store) == [row(1, "b"), row(3), row(4)]
    assert rows_of(store, 1) == [row(1), row(2), row(3)]
    assert store.plan_scan().visible_rows == 3


def test_partition_values_come_from_the_manifest(tmp_path: Path) -> None:
    """A NULL and an odd partition value read back as they were written."""
    store = make_table(tmp_path, keys=(), partitions=("dt",), columns={"id": "INT", "dt": "STRING"})
    rows = [{"id": 1, "dt": None}, {"id": 2, "dt": "a/b=c é"}]
    put(store, *rows)
    assert rows_of(store) == rows


def test_unknown_features_and_damage_are_named(tmp_path: Path) -> None:
    """A table of an engine we cannot follow is refused; a snapshot that removes what it lacks is damage (TS1304)."""
    store = make_table(tmp_path / "a", options={"chain-table.enabled": "true"})
    with pytest.raises(Unsupported, match="TS1126"):
        store.plan_scan()
    store = make_table(tmp_path / "b")
    put(store, row(1))
    put(store, row(1, "b"))
    store.compact(full=True)
    newest = store.latest()
    assert newest is not None
    with pytest.raises(FixData, match="TS1304"):
        store.context.scanner.live_entries(
            replace(newest, base_manifest_list=store.snapshots.get(1).base_manifest_list)
        )
