"""The commit: once per identity, never guessed, nothing lost to another writer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tablestore_engine.errors import OutcomeUnknown, RetryError, StorageError
from tablestore_engine.fileio.local import LocalFileIO
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.schema_change import add_column
from tablestore_engine.format.snapshot import CommitKind, Snapshot
from tablestore_engine.format.type_text import parse_type
from tablestore_engine.store.commit.commit import Committer
from tablestore_engine.store.commit.snapshot_claim import MainDestination, OvertakenError
from tablestore_engine.store.commit.snapshot_files import Planned
from tablestore_engine.store.files.rolling_writer import SAMPLE_ROWS
from tablestore_engine.store.table_context import committer_of
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.store.write.write_request import WriteRequest
from tests.doubles.faults import Fault, FaultKind, FaultyFileIO, InjectedFaultError
from tests.unit.store.table_world import (
    Row,
    acting,
    as_table,
    delete,
    make_table,
    open_table,
    overwrite,
    put,
    row,
    rows_of,
)


def faulty(root: Path, *faults: Fault) -> TableStore:
    """A handle on a file system with these faults."""
    return open_table(root, fileio=FaultyFileIO(LocalFileIO(str(root)), faults))


def race(
    store: TableStore, monkeypatch: pytest.MonkeyPatch, rival: Callable[[], object], times: int = 1
) -> list[int]:
    """`rival` commits right before each of the next `times` claims; returns the list of claims made."""
    real, claims = Committer.claim, []

    def claim(self: Committer, destination: object, snapshot: Snapshot, schema: object) -> bool:
        claims.append(snapshot.id)
        if len(claims) <= times:
            monkeypatch.setattr(Committer, "claim", real)
            rival()
            monkeypatch.setattr(Committer, "claim", claim)
        return real(self, destination, snapshot, schema)  # type: ignore[arg-type]

    monkeypatch.setattr(Committer, "claim", claim)
    return claims


def test_one_write_is_one_append_snapshot(tmp_path: Path) -> None:
    """A keyed write is a single APPEND snapshot with added files only, changelog, exact counts and a LATEST hint."""
    store = make_table(tmp_path)
    put(store, row(1), row(2))
    report = put(store, row(2, "b"), row(3))
    snapshot = store.snapshots.get(2)
    assert (report.snapshot_id, report.inserted, report.updated) == (2, 1, 1)
    assert snapshot.commit_kind is CommitKind.APPEND
    assert (snapshot.total_record_count, snapshot.delta_record_count) == (4, 2)
    assert snapshot.changelog_record_count == 3
    assert (tmp_path / "demo.db/t/snapshot/LATEST").read_text() == "2"
    assert store.verify() == ()


def test_the_same_identity_commits_once(tmp_path: Path) -> None:
    """A repeated (user, identifier) returns the first report and writes no snapshot; only that very
    pair is a repetition: a lower identifier of the same user commits its rows.
    """
    store = make_table(tmp_path)
    put(store, row(1))
    first = put(store, row(1, "b"), row(2), commit_user="job", commit_identifier=7)
    again = put(open_table(tmp_path), row(1, "c"), commit_user="job", commit_identifier=7)
    assert first == again
    assert (first.inserted, first.updated, first.changelog_rows) == (1, 1, 3)
    assert store.snapshots.list_ids() == (1, 2)
    assert put(store, row(8), commit_user="job", commit_identifier=8).snapshot_id == 3
    lower = put(store, row(6), commit_user="job", commit_identifier=6)
    assert (lower.snapshot_id, lower.inserted) == (4, 1)
    for identifier, snapshot_id in ((6, 4), (7, 2), (8, 3)):
        again = put(open_table(tmp_path), row(99), commit_user="job", commit_identifier=identifier)
        assert again.snapshot_id == snapshot_id
    assert rows_of(store) == [row(1, "b"), row(2), row(6), row(8)]


def test_a_user_without_identifier_is_only_a_prefix(tmp_path: Path) -> None:
    """Two writes that name the same user but no identifier are two commits."""
    store = make_table(tmp_path)
    put(store, row(1), commit_user="dbt")
    put(store, row(2), commit_user="dbt")
    users = {snapshot.commit_user for snapshot in store.snapshots.list_all()}
    assert len(users) == 2
    assert all(user.startswith("dbt_") for user in users)


def test_an_empty_write_makes_no_snapshot(tmp_path: Path) -> None:
    """Nothing to write: the newest snapshot is reported, whatever properties the write carries."""
    store = make_table(tmp_path)
    assert put(store).snapshot_id is None
    put(store, row(1))
    assert put(store).snapshot_id == 1
    assert delete(store, row(99)).snapshot_id == 1
    assert put(store, properties={"invocation": "x"}).snapshot_id == 1
    put(store, row(2), properties={"invocation": "x"})
    assert (store.snapshots.get(2).properties or {})["invocation"] == "x"
    assert store.verify() == ()


@pytest.mark.parametrize("part", ["/snapshot/snapshot-2"])
def test_a_lost_answer_of_the_claim_is_a_commit(tmp_path: Path, part: str) -> None:
    """The snapshot was created but the answer was an error: read back, it is ours, once, and LATEST names it."""
    put(make_table(tmp_path), row(1))
    store = faulty(tmp_path, Fault(FaultKind.AFTER, "create_exclusive", part))
    assert put(store, row(2)).snapshot_id == 2
    clean = open_table(tmp_path)
    assert clean.snapshots.read_latest_hint() == 2
    assert clean.snapshots.list_ids() == (1, 2)
    assert rows_of(clean) == [row(1), row(2)]
    assert clean.verify() == ()


def test_a_claim_that_failed_before_it_began_is_made_again(tmp_path: Path) -> None:
    """The claim raised and nobody is there: the same snapshot is claimed again."""
    put(make_table(tmp_path), row(1))
    store = faulty(tmp_path, Fault(FaultKind.BEFORE, "create_exclusive", "/snapshot/snapshot-2", times=2))
    assert put(store, row(2)).snapshot_id == 2
    assert open_table(tmp_path).verify() == ()


@pytest.mark.folders
def test_an_unknown_outcome_is_said_and_nothing_is_deleted(tmp_path: Path) -> None:
    """Neither the claim answers nor the read-back: TS1306, all files stay, and the same call later finds its commit."""
    put(make_table(tmp_path), row(1))
    store = faulty(
        tmp_path,
        Fault(FaultKind.AFTER, "create_exclusive", "/snapshot/snapshot-2"),
        Fault(FaultKind.BEFORE, "read", "/snapshot/snapshot-2", times=99),
    )
    with pytest.raises(OutcomeUnknown, match="TS1306"):
        put(store, row(2), commit_user="job", commit_identifier=1)
    assert not [call for call, path in store.fileio.calls if call == "delete"]  # type: ignore[attr-defined]
    clean = open_table(tmp_path)
    assert clean.verify() == ()
    report = put(clean, row(2), commit_user="job", commit_identifier=1)
    assert (report.snapshot_id, report.inserted) == (2, 1)


def test_an_overtaken_claim_whose_first_put_may_still_land_stays_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No answer, nobody there, and then the base is gone: TS1306, and no file that the put names is deleted."""
    put(make_table(tmp_path), row(1))
    answers = iter([OSError("no answer"), OvertakenError()])

    def claim(*_: object) -> bool:
        raise next(answers)

    monkeypatch.setattr(MainDestination, "claim", claim)
    store = faulty(tmp_path)
    with pytest.raises(OutcomeUnknown, match="TS1306"):
        put(store, row(2))
    assert not [call for call, path in store.fileio.calls if call == "delete"]  # type: ignore[attr-defined]


def test_a_failing_hint_does_not_fail_the_commit(tmp_path: Path) -> None:
    """LATEST cannot be written: the commit stands, and the next reader finds the snapshot."""
    put(make_table(tmp_path), row(1))
    store = faulty(tmp_path, Fault(FaultKind.BEFORE, "replace", "LATEST"))
    assert put(store, row(2)).snapshot_id == 2
    assert rows_of(open_table(tmp_path)) == [row(1), row(2)]


def test_torn_and_failing_writes_leave_the_table_as_it_was(tmp_path: Path) -> None:
    """Whatever file write fails or tears, the error comes out, and a later write is right."""
    put(make_table(tmp_path), row(1))
    for part in ("data-", "/index/", "/manifest/manifest-list", "/manifest/manifest", "/manifest/index"):
        for kind in FaultKind:
            store = faulty(tmp_path, Fault(kind, "write", part))
            with pytest.raises(InjectedFaultError):
                put(store, row(1, "x"), row(2))
    for kind in FaultKind:
        with pytest.raises(InjectedFaultError):  # more rows than are encoded in memory
            put(faulty(tmp_path, Fault(kind, "open_output", "data-")), *map(row, range(SAMPLE_ROWS + 1)))
    clean = open_table(tmp_path)
    assert (clean.snapshots.list_ids(), rows_of(clean)) == ((1,), [row(1)])
    put(clean, row(1, "y"))
    assert clean.verify() == ()


def test_a_lost_race_on_the_same_bucket_plans_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rival updated the same key: ours lands on top, its changelog starts from the rival's row."""
    store = make_table(tmp_path)
    put(store, row(1))
    claims = race(store, monkeypatch, lambda: put(open_table(tmp_path), row(1, "rival")))
    report = put(store, row(1, "ours"), row(2))
    assert (claims, report.snapshot_id, report.updated, report.inserted) == ([2, 3], 3, 1, 1)
    assert rows_of(store) == [row(1, "ours"), row(2)]
    assert store.verify() == ()


def test_a_write_on_a_base_that_is_not_the_newest_any_more_plans_again(tmp_path: Path) -> None:
    """What an operation saw at its begin is the base of its first try alone."""
    store = make_table(tmp_path)
    put(store, row(1))
    seen = store.find_seen()
    put(open_table(tmp_path), row(1, "rival"), row(3))
    request = WriteRequest(as_table([row(1, "ours"), row(2)], store.schema))
    report = store.write(request, seen)
    assert (report.snapshot_id, report.updated, report.inserted) == (3, 1, 1)
    assert rows_of(store) == [row(1, "ours"), row(2), row(3)]
    assert store.verify() == ()


def test_what_is_taken_back_is_not_named_by_latest(tmp_path: Path) -> None:
    """The base goes away behind the claim: the snapshot goes too, and LATEST names the newest one that is there."""
    store = make_table(tmp_path)
    for number in range(3):
        put(store, row(number))
    acts = acting("commit.claimed", lambda: open_table(tmp_path).rollback(1))
    report = put(open_table(tmp_path, runtime=acts), row(9))
    clean = open_table(tmp_path)
    assert report.snapshot_id == 2
    assert clean.snapshots.list_ids() == (1, 2)
    assert clean.snapshots.read_latest_hint() == 2
    assert clean.verify() == ()


def test_a_lost_race_on_another_bucket_keeps_the_data_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Disjoint partitions: data files and delta manifests are written once, only the base is new."""
    store = make_table(tmp_path, keys=("id", "dt"), partitions=("dt",), columns={"id": "INT", "dt": "STRING"})
    rival = open_table(tmp_path)
    plans: list[object] = []
    real = Planned.__init__

    def spy(self: Planned, *args: object, **kwargs: object) -> None:
        plans.append(kwargs)
        real(self, *args, **kwargs)  # type: ignore[arg-type]

    put(store, {"id": 1, "dt": "a"}, {"id": 1, "dt": "b"})
    race(store, monkeypatch, lambda: put(rival, {"id": 1, "dt": "b"}, {"id": 2, "dt": "b"}), times=2)
    monkeypatch.setattr(Planned, "__init__", spy)
    put(store, {"id": 1, "dt": "a"}, {"id": 3, "dt": "a"})
    assert len(plans) == 3  # ours once, the rival twice
    assert len(rows_of(store)) == 4
    assert store.verify() == ()


def test_files_of_a_lost_attempt_are_deleted_and_only_those(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a lost race every file on disk is named by some snapshot."""
    store = make_table(tmp_path)
    put(store, row(1))
    race(store, monkeypatch, lambda: put(open_table(tmp_path), row(2)), times=3)
    put(store, row(1, "b"))
    location = tmp_path / "demo.db/t"
    on_disk = {path.name for path in location.rglob("*") if path.is_file()}
    named = {"LATEST", "EARLIEST", "schema-0"} | {
        f"snapshot-{number}" for number in store.snapshots.list_ids()
    }
    for snapshot in store.snapshots.list_all():
        named |= files_of(store, snapshot)
    assert on_disk == named


def files_of(store: TableStore, snapshot: Snapshot) -> set[str]:
    """Every file that a snapshot names."""
    manifests = store.context.manifests
    lists = [snapshot.base_manifest_list, snapshot.delta_manifest_list, snapshot.changelog_manifest_list]
    found = {name for name in lists if name} | (
        {snapshot.index_manifest} if snapshot.index_manifest else set()
    )
    found |= {entry.file_name for entry in manifests.read_index(snapshot.index_manifest)}
    for name in filter(None, lists):
        found |= {meta.file_name for meta in manifests.read_list(name)}
        found |= {entry.file.file_name for entry in manifests.read_entries(name)}
    return found


def test_giving_up_is_a_retry_error_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More lost races than commit.max-retries: TS1305, and our files are gone."""
    store = make_table(tmp_path, options={"commit.max-retries": "2"})
    rival = open_table(tmp_path)
    numbers = iter(range(100, 200))
    race(store, monkeypatch, lambda: put(rival, row(next(numbers))), times=99)
    with pytest.raises(RetryError, match="TS1305"):
        put(store, row(1))
    monkeypatch.undo()
    named = {"LATEST", "EARLIEST", "schema-0"} | {
        f"snapshot-{number}" for number in rival.snapshots.list_ids()
    }
    for snapshot in rival.snapshots.list_all():
        named |= files_of(rival, snapshot)
    assert {path.name for path in (tmp_path / "demo.db/t").rglob("*") if path.is_file()} == named


def test_a_schema_change_is_claimed_with_its_rows(tmp_path: Path) -> None:
    """New column and rows in one commit; the old snapshot still reads with its own schema."""
    store = make_table(tmp_path)
    put(store, row(1))
    wider = _wider(store)
    store.write(_request(wider, {"id": 2, "name": "b", "n": 1, "extra": "new"}))
    assert rows_of(store) == [{**row(1), "extra": None}, {"id": 2, "name": "b", "n": 1, "extra": "new"}]
    assert rows_of(store, 1) == [row(1)]
    assert store.snapshots.get(2).schema_id == 1
    assert store.verify() == ()


def test_a_schema_that_somebody_else_took_is_a_retry_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """schema-1 appears with other content while we plan: TS1307, no snapshot, and the table reads as before."""
    store = make_table(tmp_path)
    put(store, row(1))
    wider, other = _wider(store), _wider(store, "other")
    race(store, monkeypatch, lambda: open_table(tmp_path).context.schemas.claim(other))
    with pytest.raises(RetryError, match="TS1307"):
        store.write(_request(wider, {"id": 2, "name": "b", "n": 1, "extra": "x"}))
    assert open_table(tmp_path).snapshots.list_ids() == (1,)
    assert open_table(tmp_path).verify() == ()


def test_overwrites_with_nothing_new_change_nothing(tmp_path: Path) -> None:
    """A full refresh with the same rows is no snapshot: the difference is empty (decision 0002)."""
    store = make_table(tmp_path)
    put(store, row(1), row(2))
    report = overwrite(store, row(1), row(2))
    assert (report.snapshot_id, report.unchanged) == (1, 2)


def _wider(store: TableStore, name: str = "extra") -> TableSchema:
    """The next schema, with one more column."""
    return replace(add_column(store.schema, name, parse_type("STRING")), id=store.schema.id + 1)


def _request(schema: TableSchema, one: Row) -> WriteRequest:
    return WriteRequest(as_table([one], schema), new_schema=schema)


class _Refusing:
    """A place whose claims fail with these errors, one after the other; nobody is there."""

    def __init__(self, *problems: Exception) -> None:
        self.problems = iter(problems)

    def claim(self, snapshot: Snapshot, schema: TableSchema | None) -> bool:
        """Fail."""
        raise next(self.problems)

    def find_claimed(self, snapshot_id: int) -> Snapshot | None:
        """Nothing is seen yet."""
        return None


def test_refusal_after_a_lost_answer_leaves_the_outcome_open(tmp_path: Path) -> None:
    """The first put may still land, whatever later ones are refused for: TS1306, on which nothing is deleted."""
    store = make_table(tmp_path)
    put(store, row(1))
    refused = StorageError("TS1264", "refused", why="ExpiredToken", fix="renew")
    committer, snapshot = committer_of(store.context), store.snapshots.get(1)
    with pytest.raises(StorageError, match="TS1264"):
        committer.claim(_Refusing(refused), snapshot, None)  # type: ignore[arg-type]  # what claim calls
    places = _Refusing(OSError("lost"), *[refused] * 9)
    with pytest.raises(OutcomeUnknown, match="TS1306"):
        committer.claim(places, snapshot, None)  # type: ignore[arg-type]  # what claim calls
