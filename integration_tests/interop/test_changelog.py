"""Each change is seen exactly once, whoever reads it: batch changelog, Java's stream, Rust, and we on Java's tables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from integration_tests.interop.golden import Golden
from integration_tests.interop.java_paimon import JavaPaimon
from integration_tests.interop.oracle import Oracle
from integration_tests.interop.our_tables import OURS
from integration_tests.interop.ours import Ours
from integration_tests.interop.peers import ProcessPeer
from integration_tests.interop.rows import Change, arrow_rows, assert_same
from integration_tests.interop.sample_data import make_rows
from integration_tests.interop.schemas import schema
from tests.doses import cases

CHANGING = [
    "all_types",
    "nested",
    "to_nothing_and_back",
    "folding",
    "key_types",
    "overwritten_keyed",
    "partitioned_keyed",
    "sequence_field",
]
THEIRS = [
    "deletion_vectors_lookup",
    "changelog_lookup",
    "changelog_full_compaction",
    "changelog_input",
    "merge_on_read",
]


@pytest.mark.parametrize("name", CHANGING)
def test_our_changelog_is_the_difference_of_states(ours: Callable[[str], Golden], name: str) -> None:
    """Each of our snapshots brings exactly the changes that lead from the state before to the state after."""
    assert name in OURS
    table = ours(name)
    for snapshot in table.history.rows:
        expected = table.history.changes.get(snapshot, [])
        assert_same(
            expected, Ours().changelog(table.location, snapshot - 1, snapshot), f"{name}, snapshot {snapshot}"
        )


@pytest.mark.parametrize("name", cases(CHANGING, 2))
def test_java_sees_each_of_our_changes_once(
    ours: Callable[[str], Golden], java: JavaPaimon, name: str
) -> None:
    """Java's stream from snapshot 1 gives every snapshot's changes in one plan of its own; its batch query the same."""
    table = ours(name)
    expected = {snapshot: changes for snapshot, changes in table.history.changes.items() if changes}
    batches = java.stream(table.location, scan__mode="from-snapshot", scan__snapshot_id="1").poll()
    assert [snapshot for snapshot, _ in batches] == list(expected)
    for snapshot, changes in batches:
        assert_same(expected[snapshot], changes, f"stream of {name}, snapshot {snapshot}")
    newest = max(table.history.rows)
    since_first = [change for snapshot, changes in expected.items() if snapshot > 1 for change in changes]
    assert_same(
        since_first, java.changelog(table.location, 1, newest), f"incremental-between 1,{newest} of {name}"
    )


@pytest.mark.parametrize("name", cases(CHANGING, 2))
def test_rust_sees_each_of_our_changes_once(
    ours: Callable[[str], Golden], rust: ProcessPeer, name: str
) -> None:
    """pypaimon-rust's incremental scan of the changelog gives each snapshot's changes."""
    table = ours(name)
    for snapshot, expected in table.history.changes.items():
        if snapshot > 1:
            got = rust.changelog(table.location, snapshot - 1, snapshot)
            assert_same(expected, got, f"rust, {name}, snapshot {snapshot}")


def test_java_stream_goes_from_snapshot_to_log_without_gap(java: JavaPaimon, tmp_path: Path) -> None:
    """Streams that start at the full table, or at its end, then get each of our commits once, folds included."""
    made = schema({"id": "BIGINT", "v": "STRING"}, keys=("id",), options={"bucket": "2", "num-levels": "4"})
    location, oracle, writer = tmp_path / "ours.db" / "followed", Oracle(made), Ours()
    writer.create(location, made)

    def commit(round_number: int) -> list[Change]:
        keys = sorted({(round_number * 3 + n) % 11 for n in range(4)})
        rows = [{"id": key, "v": f"{round_number}-{key}"} for key in keys]
        kinds = ["+U", "+U", "-D", "+U"]
        writer.write(location, arrow_rows(made, rows), kinds)
        return oracle.apply(zip(kinds, rows, strict=True))

    for number in range(3):
        commit(number)
    full, latest = java.stream(location, scan__mode="latest-full"), java.stream(location, scan__mode="latest")
    assert_same(
        [("+I", row) for row in oracle.rows()], [c for _, batch in full.poll() for c in batch], "full start"
    )
    assert latest.poll() == []
    for number in range(3, 12):
        changes = commit(number)
        for stream in (full, latest):
            batches = stream.poll()
            assert_same(changes, [change for _, batch in batches for change in batch], f"commit {number}")
            assert len(batches) == 1
    assert "COMPACT" in {kind for _, kind in writer.snapshots(location)}


@pytest.mark.parametrize("name", cases(THEIRS, 2))
def test_we_see_the_changes_that_java_wrote(
    golden: Callable[[str], Golden], java: JavaPaimon, name: str
) -> None:
    """On Java's tables of every changelog producer, our changes of a snapshot are those of Java's own stream."""
    table = golden(name)
    streamed = dict(java.stream(table.location, scan__mode="from-snapshot", scan__snapshot_id="1").poll())
    for snapshot in table.history.rows:
        got = Ours().changelog(table.location, snapshot - 1, snapshot)
        assert_same(streamed.get(snapshot, []), got, f"{name}, snapshot {snapshot}")


def test_appends_of_ours_are_streamed_once(java: JavaPaimon, tmp_path: Path) -> None:
    """Java's stream of our append table gives each appended row once, and nothing for our compaction."""
    made = schema({"id": "BIGINT", "v": "STRING"})
    location, writer = tmp_path / "ours.db" / "appended", Ours()
    writer.create(location, made)
    rows = make_rows({"id": "BIGINT", "v": "STRING"}, range(60), seed=1)
    for start in range(0, 60, 10):
        writer.write(location, arrow_rows(made, rows[start : start + 10]))
    writer.compact(location)
    batches = java.stream(location, scan__mode="from-snapshot", scan__snapshot_id="1").poll()
    assert_same(
        [("+I", (row["id"], row["v"])) for row in rows], [c for _, b in batches for c in b], "appends"
    )
    assert writer.snapshots(location)[-1][1] == "COMPACT"
