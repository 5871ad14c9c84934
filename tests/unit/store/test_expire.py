"""Snapshot expiry on disk: what goes, what stays, who is in the way."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tablestore_engine.errors import FixData, FixRequest, NotFound, TablestoreError, Unsupported
from tablestore_engine.fileio.local import LocalFileIO
from tablestore_engine.format.layout import TableLayout
from tablestore_engine.store.clone import clone_table
from tablestore_engine.store.expiry.expire_tag import delete_tag
from tablestore_engine.store.expiry.expiry_rules import Hold
from tablestore_engine.store.rows.row_filter import SameKeys
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.store.write.write_request import WriteMode
from tests.doubles.faults import seeded_runtime
from tests.unit.store.expiry_world import newest, strays, visible, written
from tests.unit.store.table_world import (
    changes_of,
    make_table,
    open_table,
    overwrite,
    put,
    row,
    rows_of,
)

LOG = {"log.system": "kafka", "kafka.topic": "t", "tablestore.table-uuid": "u"}


def test_old_snapshots_go_with_all_that_only_they_need(tmp_path: Path) -> None:
    """The others read as before, with their changes; no file is left that none of them names."""
    store = written(tmp_path)
    overwrite(store, row(8))
    overwrite(store, row(9))
    before, changed = visible(store), changes_of(store, 6)
    report = store.expire(newest(2))
    assert (report.first, report.end, report.snapshots) == (1, 6, 5)
    assert store.snapshots.list_ids() == (6, 7)
    again = open_table(tmp_path)
    assert visible(again) == {name: before[name] for name in ("snapshot 6", "snapshot 7")}
    assert changes_of(again, 6) == changed
    assert strays(again) == set()
    assert again.verify() == ()
    assert report.files > 10
    assert report.bytes > 0


def test_it_goes_on_where_it_ended(tmp_path: Path) -> None:
    """Expiring one snapshot at a time leaves what expiring them together leaves, and writing goes on."""
    for count in (4, 3, 2, 1):
        store = open_table(tmp_path) if count < 4 else written(tmp_path)
        store.expire(newest(count))
        assert strays(store) == set()
    put(store, row(5))
    assert open_table(tmp_path).verify() == ()
    assert store.snapshots.list_ids() == (5, 6)
    assert store.snapshots.find_earliest_id() == 5


def test_folds_and_upgrades_take_no_live_file_away(tmp_path: Path) -> None:
    """A bucket that was folded several times: compactions remove files of some snapshots that others still need."""
    store = make_table(tmp_path, options={"num-levels": "4"})
    for number in range(9):
        put(store, *(row(n, f"v{number}") for n in range(number, number + 3)))
    before = visible(store)
    store.expire(newest(4))
    after = visible(open_table(tmp_path))
    assert len(after) == 4
    assert after == {name: before[name] for name in after}
    assert strays(store) == set()


def test_tables_without_a_key(tmp_path: Path) -> None:
    """Partitions, marked rows, joined files: the same."""
    store = make_table(tmp_path, keys=(), partitions=("name",), options={"compaction.min.file-num": "2"})
    for number in range(6):
        put(store, row(number, "a"), row(number, "b/c"))
    put(store, row(3, "a", 1), mode=WriteMode.REPLACE, replaces=SameKeys(("id",)))
    before = visible(store)
    store.expire(newest(2))
    after = visible(open_table(tmp_path))
    assert after == {name: before[name] for name in after}
    assert strays(store) == set()


def test_a_dry_run_tells_the_same_and_does_nothing(tmp_path: Path) -> None:
    """The numbers are those of the run after it."""
    store = written(tmp_path)
    files = sorted(tmp_path.rglob("*"))
    told = store.expire(newest(2), dry_run=True)
    assert sorted(tmp_path.rglob("*")) == files
    assert store.expire(newest(2)) == told


def test_the_options_of_the_table_decide(tmp_path: Path) -> None:
    """Fresh snapshots stay; two days later the least number stays, at most `limit` at once."""
    store = written(tmp_path, 16, options={"snapshot.expire.limit": "4"})
    assert store.expire().snapshots == 0
    later = open_table(tmp_path, runtime=seeded_runtime(start_ms=1_700_000_000_000 + 2 * 86_400_000))
    newest_id = store.snapshots.list_ids()[-1]
    assert later.expire().snapshots == 4
    assert later.expire().snapshots == newest_id - 10 - 4
    assert later.expire().reason == "the newest 10 stay"
    assert len(later.snapshots.list_ids()) == 10


def test_a_tag_keeps_its_files(tmp_path: Path) -> None:
    """Field bug 6: the snapshot goes, the tag reads as before; when it goes too, so do its files."""
    store = written(tmp_path)
    store.tags.create("old", 2)
    store.tags.create("older", 1)
    overwrite(store, row(9))
    before = visible(store)
    store.expire(newest(1))
    assert store.snapshots.list_ids() == (6,)
    assert visible(store) == {name: before[name] for name in ("snapshot 6", "tag old", "tag older")}
    assert strays(store) == set()
    delete_tag(store.context, "older")
    assert visible(store) == {name: before[name] for name in ("snapshot 6", "tag old")}
    assert strays(store) == set()
    delete_tag(store.context, "old")
    assert strays(store) == set()
    assert store.verify() == ()


def test_the_tag_of_a_snapshot_that_is_there_leaves_its_files(tmp_path: Path) -> None:
    """Deleting it is deleting a name."""
    store = written(tmp_path)
    store.tags.create("old", 2)
    before = visible(store)
    delete_tag(store.context, "old")
    del before["tag old"]
    assert visible(store) == before


def test_what_a_tag_needs_and_cannot_be_read_stops_it(tmp_path: Path) -> None:
    """Field bug 6: a manifest of the tag is gone: nothing is deleted, and the error is told."""
    store = written(tmp_path)
    store.tags.create("old", 2)
    lost = store.context.manifests.read_list(store.snapshots.get(2).delta_manifest_list)[0].file_name
    (Path(store.location) / "manifest" / lost).unlink()
    files = sorted(tmp_path.rglob("*"))
    with pytest.raises(NotFound, match="TS1201"):
        open_table(tmp_path).expire(newest(1))
    assert sorted(tmp_path.rglob("*")) == files


@pytest.mark.parametrize("kind", ["delta", "changelog"])
def test_a_damaged_manifest_stops_it(tmp_path: Path, kind: str) -> None:
    """Of a snapshot that goes: what it removed is not known, so all stays."""
    store = written(tmp_path)
    snapshot = store.snapshots.get(2)
    name = snapshot.delta_manifest_list if kind == "delta" else snapshot.changelog_manifest_list
    path = Path(store.location) / "manifest" / str(name)
    path.write_bytes(path.read_bytes()[:-9])
    files = sorted(tmp_path.rglob("*"))
    with pytest.raises(TablestoreError):
        open_table(tmp_path).expire(newest(1))
    assert sorted(tmp_path.rglob("*")) == files


def test_a_staged_snapshot_keeps_its_base(tmp_path: Path) -> None:
    """It reads as before and can be published when main was only folded; when it is gone, expiry goes on."""
    store = make_table(tmp_path)
    for number in range(3):
        put(store, row(number))
    put(store, row(7), stage="gate")
    store.compact(full=True)
    before = visible(store)
    report = store.expire(newest(1))
    assert report.end == 3
    assert "staged snapshot gate" in report.reason
    assert visible(store) == {name: before[name] for name in ("snapshot 3", "snapshot 4", "staged gate")}
    assert strays(store) == set()
    store.staging.publish("gate")
    assert rows_of(store) == [row(0), row(1), row(2), row(7)]
    store.expire(newest(1))
    assert len(store.snapshots.list_ids()) == 1
    assert store.verify() == ()


def test_a_branch_of_another_engine_keeps_its_files(tmp_path: Path) -> None:
    """A copy of a snapshot in a branch reads as before, though main has no such snapshot any more."""
    store = written(tmp_path)
    copied = store.snapshots.get(2)
    branch = store.context.on_branch("feature")
    branch.fileio.mkdirs(branch.layout.schema_dir)
    assert branch.schemas.claim(store.schema)
    branch.fileio.mkdirs(branch.layout.snapshot_dir)
    assert branch.snapshots.claim(copied)
    before = rows_of(store, 2)
    store.expire(newest(1))
    on_branch = replace(store, branch="feature")
    assert rows_of(on_branch) == before
    assert store.snapshots.list_ids() == (5,)


def test_a_consumer_keeps_what_it_has_not_read(tmp_path: Path) -> None:
    """Its next snapshot and all after it stay; one that cannot be read is TS1391, and nothing goes."""
    store = written(tmp_path)
    consumer = Path(store.location) / "consumer" / "consumer-flink"
    consumer.parent.mkdir()
    consumer.write_text('{"nextSnapshot": 3}')
    report = store.expire(newest(1))
    assert store.snapshots.list_ids() == (3, 4, 5)
    assert report.reason == "consumer flink goes on at snapshot 3"
    consumer.write_text('{"nextSnap')
    with pytest.raises(FixData, match="TS1391"):
        store.expire(newest(1))
    assert store.snapshots.list_ids() == (3, 4, 5)


def test_what_the_log_lacks_stays(tmp_path: Path) -> None:
    """The newest published snapshot and all behind it; without being told how far the log is: TS1392."""
    store = written(tmp_path, options=LOG)
    with pytest.raises(FixRequest, match="TS1392"):
        store.expire(newest(1))
    changed = [changes_of(store, number) for number in (3, 4, 5)]
    assert store.expire(newest(1), log=Hold(3, "the log has snapshot 3")).end == 3
    assert [changes_of(open_table(tmp_path), number) for number in (3, 4, 5)] == changed


def test_a_changelog_that_outlives_its_snapshots_is_not_ours_to_expire(tmp_path: Path) -> None:
    """Another engine's folder `changelog` names files of snapshots that are gone: TS1393."""
    store = written(tmp_path)
    folder = Path(store.location) / "changelog"
    folder.mkdir()
    (folder / "changelog-1").write_text("{}")
    with pytest.raises(Unsupported, match="TS1393"):
        store.expire(newest(1))
    assert store.snapshots.list_ids() == (1, 2, 3, 4, 5)


def test_a_clone_keeps_working(tmp_path: Path) -> None:
    """Table and clone share bytes, not names: each expires by itself, the other reads as before."""
    store = written(tmp_path)
    clone_table(store.context, TableLayout(f"{tmp_path}/demo.db/copy"))
    copy = TableStore(LocalFileIO(str(tmp_path)), f"{tmp_path}/demo.db/copy", seeded_runtime(77))
    same = rows_of(copy)
    overwrite(store, row(50))
    store.expire(newest(1))
    assert rows_of(copy) == same
    assert copy.verify() == ()
    mine = visible(store)
    overwrite(copy, row(60))
    copy.expire(newest(1))
    assert strays(copy) == set()
    assert visible(store) == mine
    assert store.verify() == ()


def test_a_commit_that_has_expired_is_not_made_again(tmp_path: Path) -> None:
    """Field bug 14: not found is not the same as not committed: TS1394, no row comes twice."""
    store = make_table(tmp_path, keys=())
    put(store, row(1), commit_user="job", commit_identifier=1)
    put(store, row(2))
    put(store, row(3))
    store.expire(newest(1))
    with pytest.raises(FixRequest, match="TS1394"):
        put(store, row(1), commit_user="job", commit_identifier=1)
    put(store, row(4), commit_user="job", commit_identifier=2)
    assert [one["id"] for one in rows_of(store)] == [1, 2, 3, 4]


def test_a_time_before_the_earliest_snapshot_is_told(tmp_path: Path) -> None:
    """Time travel to what has expired names what is there."""
    store = written(tmp_path)
    first = store.snapshots.get(1)
    store.expire(newest(2))
    with pytest.raises(NotFound, match=r"TS1302(.|\n)*snapshots 4 to 5"):
        store.snapshots.get(1)
    with pytest.raises(NotFound, match="TS1303"):
        store.snapshots.get_by_timestamp(first.time_millis)
