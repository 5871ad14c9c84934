"""tag, restore, convert, rescale, rollback, verify on a real warehouse."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from tablestore_engine.api import Engine
from tablestore_engine.errors import Unsupported
from tablestore_engine.format.schema_change import set_options
from tests.unit.certify.planted import plant
from tests.unit.store.table_world import as_table, make_table, row
from tests.unit.store.test_changelog import foreign_level_zero
from tests.unit.store.test_conversion import MERGED

from .conftest import Run, orders


def test_tags_come_and_go(run: Run, engine: Engine) -> None:
    """A tag is created on a snapshot or the newest, listed with its snapshot, and deleted."""
    assert run("tag", "create", "demo.orders", "old", "--snapshot", "1", "--json").json == {"old": 1}
    assert run("tag", "create", "demo.orders", "new", "--json").json == {"new": 3, "old": 1}
    assert run("tag", "delete", "demo.orders", "old", "--json").json == {"new": 3}
    assert run("tag", "list", "demo.orders", "--json").json == {"new": 3}
    run("tag", "create", "demo.orders", "short", "--time-retained", "36h")
    assert engine.table("demo.orders").store.tags.get("short").time_retained == timedelta(hours=36)


def test_a_missing_tag_is_an_error(run: Run) -> None:
    """Deleting a tag that does not exist says which ones do."""
    run("tag", "create", "demo.orders", "new")
    done = run("tag", "delete", "demo.orders", "old")
    assert done.status == 1
    assert "TS1321" in done.err
    assert "new" in done.err


def test_rescale(run: Run, engine: Engine) -> None:
    """More buckets in one snapshot with the same rows; again: it has them already; a nonsense number is refused."""
    rows = sorted(map(repr, engine.table("demo.orders").scan().to_arrow().to_pylist()))
    done = run("rescale", "demo.orders", "--buckets", "3", "--json").json
    assert (done["buckets"], done["committed"], done["snapshot"]) == (3, True, 4)
    table = engine.table("demo.orders")
    assert table.schema.bucket_count == 3
    assert sorted(map(repr, table.scan().to_arrow().to_pylist())) == rows
    assert "has 3 buckets already" in run("rescale", "demo.orders", "--buckets", "3").out
    assert "TS1344" in run("rescale", "demo.orders", "--buckets", "0").err


def test_convert(run: Run, engine: Engine) -> None:
    """A table that merges on read: refused for a write, converted, written; again: there is nothing to do."""
    assert "written by this engine already" in run("convert", "demo.orders").out
    place = engine.warehouse
    merged = make_table(place, options={**MERGED, "bucket": "-1"})
    foreign_level_zero(merged, [row(1), row(2)], [0, 0])
    with pytest.raises(Unsupported, match="tablestore convert"):
        engine.table("demo.t").write(as_table([row(3)], merged.schema))
    done = run("convert", "demo.t", "--buckets", "2", "--json").json
    assert (done["buckets"], done["committed"], done["snapshot"]) == (2, True, 3)
    engine.table("demo.t").write(as_table([row(3)], engine.table("demo.t").schema))
    assert engine.table("demo.t").scan().to_arrow().num_rows == 3
    assert "TS1577" in run("convert", "demo.t", "--buckets", "0").err


def test_rollback_asks_first(run: Run, engine: Engine) -> None:
    """Without --yes nothing is deleted, and the message names the snapshots and tags that would be."""
    engine.table("demo.orders").tag("newest")
    done = run("rollback", "demo.orders", "--to", "1")
    assert done.status == 1
    assert "snapshots 2 to 3 and the tags newest" in done.err
    assert engine.table("demo.orders").latest_snapshot_id() == 3


def test_rollback_goes_back(run: Run, engine: Engine) -> None:
    """With --yes the later snapshots are gone and the old rows are the table again."""
    done = run("rollback", "demo.orders", "--to", "1", "--yes", "--json")
    assert done.json == {"table": "demo.orders", "snapshot": 1, "deleted": [2, 3]}
    assert engine.table("demo.orders").scan().to_arrow().num_rows == 3
    assert run("rollback", "demo.orders", "--to", "1", "--json").json["deleted"] == []


def test_restore_keeps_history(run: Run, engine: Engine) -> None:
    """Rows of snapshot 1 become snapshot 4, the others stay; again: nothing to do; a tag names rows as well."""
    table = engine.table("demo.orders")
    past = sorted(map(repr, table.scan(snapshot=1).to_arrow().to_pylist()))
    done = run("restore", "demo.orders", "--to", "1", "--json").json
    assert (done["restored"], done["snapshot"], done["committed"]) == ("snapshot 1", 4, True)
    assert sorted(map(repr, table.scan().to_arrow().to_pylist())) == past
    assert table.snapshot_ids() == (1, 2, 3, 4)
    table.tag("good", 1)
    assert run("restore", "demo.orders", "--tag", "good", "--json").json["committed"] is False
    assert "the rows of snapshot 3: snapshot 5" in run("restore", "demo.orders", "--to", "3").out


def test_restore_of_what_is_not_there(run: Run) -> None:
    """A snapshot or a tag that does not exist is an error."""
    assert "TS1302" in run("restore", "demo.orders", "--to", "9").err
    assert "TS1321" in run("restore", "demo.orders", "--tag", "none").err


def test_verify_of_a_sound_warehouse(run: Run) -> None:
    """verify without a name checks every table and ends with status 0."""
    done = run("verify", "--json")
    assert done.status == 0
    assert done.json == [{"table": "demo.events", "problems": []}, {"table": "demo.orders", "problems": []}]


def test_verify_finds_a_missing_file(run: Run, engine: Engine) -> None:
    """A data file that is gone is listed as a problem and makes the exit status 1."""
    lost = engine.table("demo.orders").scan().plan().files[0]
    engine.table("demo.orders").store.fileio.delete(lost.path)
    done = run("verify", "demo.orders", "--json")
    assert done.status == 1
    assert lost.meta.file_name in "".join(done.json[0]["problems"])
    assert run("verify", "demo.orders").status == 1


def test_refusals_name_no_internals(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    """Each text says what was given, in the words of the command line."""
    assert "neither a table nor --all is given" in run("orphans").err
    assert "both the table demo.orders and --all" in run("orphans", "demo.orders", "--all").err
    assert "--older-than 36 has no unit" in run("orphans", "--all", "--older-than", "36").err
    assert "why: 0 snapshots were to stay" in run("expire", "demo.orders", "--keep", "0").err
    assert "it deletes snapshot 3 for ever" in run("rollback", "demo.orders", "--to", "2").err
    with pytest.raises(SystemExit):
        run("restore", "demo.orders", "--to", "t1")
    assert "--tag t1" in capsys.readouterr().err


def test_iceberg_sync_writes_what_is_missing(run: Run, engine: Engine) -> None:
    """A table without the option is refused; with it all snapshots are listed, and a repetition adds none."""
    assert "TS1028" in run("iceberg", "sync", "demo.orders").err
    store = engine.table("demo.orders").store
    store.alter(lambda schema: set_options(schema, {"metadata.iceberg.storage": "table-location"}))
    store.fileio.delete_tree(f"{store.location}/metadata")
    done = run("iceberg", "sync", "demo.orders", "--json").json
    assert done["added"] == list(store.snapshots.list_ids())
    assert done["metadata"].endswith("/metadata/v1.metadata.json")
    assert "0 snapshots added" in run("iceberg", "sync", "demo.orders").out


def test_analyze_counts_rows_and_columns(run: Run, engine: Engine) -> None:
    """All columns, or some; a column that is none is refused, and no snapshot is made."""
    done = run("analyze", "demo.orders", "--columns", "order_id", "--json").json["statistics"]
    table = engine.table("demo.orders")
    assert done["row_count"] == len(table)
    assert [*done["columns"]] == ["order_id"]
    assert (
        f"{len(table)} rows, {len(table.schema.fields)} columns of snapshot"
        in run("analyze", "demo.orders").out
    )
    before = table.snapshot_ids()
    assert "TS1225" in run("analyze", "demo.orders", "--columns", "order_id, nothing").err
    assert table.snapshot_ids() == before


def test_certify_compares_readers(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A right reader and status 0; a wrong one is named with what is wrong, and the status is 1."""
    done = run("certify", "demo.orders", "--with", "pypaimon-rust", "--snapshot", "1", "--json")
    assert done.status == 0
    [reader] = done.json["readers"]
    assert (done.json["snapshot"], done.json["rows"], done.json["clean"]) == (1, 3, True)
    assert (reader["reader"], reader["status"], reader["rows"], reader["details"]) == (
        "pypaimon-rust",
        "OK",
        3,
        [],
    )
    plant(tmp_path, monkeypatch, orders((2, "bob", 2.0), (3, "cy", 3.0), (4, "dee", 4.0)))
    done = run("certify", "demo.orders")
    assert done.status == 1
    assert "demo.orders, snapshot 3: 3 rows" in done.out
    assert "pypaimon: values of amount" in done.out
    done = run("certify", "demo.orders", "--with", "pypaimon, pyiceberg")
    assert done.status == 1
    assert "TS1582" in done.err
    assert "pip install pyiceberg" in done.err
