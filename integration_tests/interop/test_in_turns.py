"""Java Paimon and we write one table in turns: nothing is lost, nothing is doubled, each change is told once.

Rule of the shared table (format.md#sharing-a-table): our keyed tables are write-only, so another engine adds level 0,
which batch readers do not see until our next commit takes it in. Where a test lets Java write fully (deletion vectors,
compaction), it and we take turns, never at the same time.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from integration_tests.interop.java_paimon import JavaPaimon, JavaStream
from integration_tests.interop.oracle import Kinded, Oracle
from integration_tests.interop.our_tables import KEY_TYPES, key_rows
from integration_tests.interop.ours import Ours
from integration_tests.interop.peers import ProcessPeer
from integration_tests.interop.rows import Change, Row, arrow_rows, assert_same
from integration_tests.interop.sample_data import ALL_TYPES, make_rows
from integration_tests.interop.schemas import Schema, Type, schema
from tablestore_engine.errors import Unsupported
from tablestore_engine.format import schema_change
from tablestore_engine.store.retention import Retention
from tests.doses import cases, examples, is_nightly

FEW: dict[str, Type] = {"id": "BIGINT", "text": "STRING", "price": "DECIMAL(18, 4)", "at": "TIMESTAMP(6)"}
FULLY = {"write-only": "false"}


class Shared:
    """One table with two writers, and the oracle that follows both."""

    def __init__(
        self,
        java: JavaPaimon,
        location: Path,
        made: Schema,
        readers: Sequence[Any] = (),
        *,
        made_by: JavaPaimon | None = None,
    ) -> None:
        """Our engine makes the table, unless `made_by` says who does."""
        self.java, self.location, self.us = java, location, Ours()
        self.readers = [java, self.us, *readers]
        self.oracle = Oracle(made)
        (made_by or self.us).create(location, made)
        self.changes: list[Change] = []
        self.waiting: list[list[Kinded]] = []

    def ours(self, changes: Iterable[Kinded]) -> None:
        """We commit; what Java left in level 0 is taken in before."""
        listed = list(changes)
        last_wins = "last" if self.oracle.schema.keys else None
        self.us.write(self.location, self._rows(listed), [kind for kind, _ in listed], duplicates=last_wins)
        self._take_in()
        self.changes += self.oracle.apply(listed)

    def inbox(self, changes: Iterable[Kinded]) -> None:
        """Java commits as the table asks it to: level 0 only, seen by nobody yet."""
        listed = list(changes)
        self.java.write(self.location, self._rows(listed), [kind for kind, _ in listed])
        self.waiting.append(listed)

    def fully(self, changes: Iterable[Kinded]) -> None:
        """Java commits and compacts, vectors and changelog included."""
        listed = list(changes)
        self.java.write(self.location, self._rows(listed), [kind for kind, _ in listed], options=FULLY)
        self._take_in()
        self.changes += self.oracle.apply(listed)

    def check(self, where: str) -> None:
        """All readers show what the oracle says; Java counts it right by metadata; our own checks find nothing."""
        for reader in self.readers:
            assert_same(self.oracle.rows(), reader.read(self.location), f"{reader.name}, {where}")
        assert self.java.count(self.location) in {None, len(self.oracle.rows())}, where
        assert self.us.store(self.location).verify() == (), where

    def check_changes(self, stream: JavaStream) -> None:
        """The stream, and our own changelog, told each change once, and nothing else."""
        told = [change for _, batch in stream.poll() for change in batch]
        assert_same(self.changes, told, "java's stream")
        newest = self.us.snapshots(self.location)[-1][0]
        assert_same(self.changes, self.us.changelog(self.location, 0, newest), "our changelog")

    def _take_in(self) -> None:
        """Level 0 of several commits becomes visible at once: one net change per key."""
        if self.waiting:
            self.changes += self.oracle.apply([change for commit in self.waiting for change in commit])
            self.waiting = []

    def _rows(self, changes: Sequence[Kinded]) -> Any:
        return arrow_rows(self.oracle.schema, [row for _, row in changes])


def upserts(keys: Iterable[int], seed: int, columns: dict[str, Type] | None = None) -> list[Kinded]:
    """Upserts of keys with values of the seed."""
    return [("+U", row) for row in make_rows(columns or FEW, keys, seed=seed, required=("id",))]


def deletes(keys: Iterable[int]) -> list[Kinded]:
    """Deletes of keys."""
    return [("-D", {"id": key}) for key in keys]


def from_start(java: JavaPaimon, location: Path) -> JavaStream:
    """A stream of everything since snapshot 1."""
    return java.stream(location, scan__mode="from-snapshot", scan__snapshot_id="1")


@pytest.fixture
def location(tmp_path: Path) -> Path:
    """Where the shared table lies."""
    return tmp_path / "shared.db" / "t"


def test_java_leaves_level_zero_and_we_take_it_in(
    java: JavaPaimon, spark: ProcessPeer, pypaimon: ProcessPeer, rust: ProcessPeer, location: Path
) -> None:
    """Rows of a write-only Java writer wait unseen, our next commit takes them in, the changelog tells both once."""
    made = schema({**FEW, **ALL_TYPES}, keys=("id",), options={"bucket": "2"})
    columns = {**FEW, **ALL_TYPES}
    shared = Shared(java, location, made, [spark, pypaimon, rust])
    shared.ours(upserts(range(20), 1, columns))
    for number in range(3):
        before = shared.oracle.rows()
        shared.inbox([*upserts(range(number, 30, 4), 10 + number, columns), *deletes([number + 1])])
        if number == 1:
            shared.inbox(upserts(range(2, 12, 3), 20, columns))
        for reader in shared.readers:  # equal for all, as a snapshot has to be (decision 0105)
            assert_same(before, reader.read(location), f"level 0 is not seen by {reader.name}")
        shared.ours([*upserts(range(number * 2, 25, 5), 30 + number, columns), *deletes([9])])
        shared.check(f"round {number}")
    shared.check_changes(from_start(java, location))


@pytest.mark.parametrize("partitions", cases([(), ("part",)], 1))
def test_both_assign_dynamic_buckets_in_turns(
    java: JavaPaimon, spark: ProcessPeer, location: Path, partitions: tuple[str, ...]
) -> None:
    """Java's assigner finds the keys of our hash indexes and we those of its own; new keys of both fill buckets of
    seven; an overwrite of ours leaves buckets whose index is empty; expiry and compaction keep the indexes that count.
    """
    columns: dict[str, Type] = {"part": "STRING", **FEW}
    options = {"bucket": "-1", "dynamic-bucket.target-row-num": "7", "num-levels": "5"}
    made = schema(columns, keys=(*partitions, "id"), partitions=partitions, options=options)
    others = [spark] if is_nightly() else []  # by day it reads the table of the test before
    shared, rng = Shared(java, location, made, others), random.Random(len(partitions))

    def changes(seed: int) -> list[Kinded]:
        keys = rng.sample(range(40), 12)
        put = [(kind, {**row, "part": "ab"[row["id"] % 2]}) for kind, row in upserts(keys, seed, FEW)]
        gone = rng.sample(range(40), 3)
        return [*put, *(("-D", {"part": "ab"[key % 2], "id": key}) for key in gone)]

    for number in range(examples(2, 6)):
        shared.ours(changes(number * 3))
        (shared.fully if number % 2 else shared.inbox)(changes(number * 3 + 1))
        shared.ours(changes(number * 3 + 2))
        shared.check(f"round {number}")
    java.compact(location)
    shared.us.compact(location)
    shared.check("compacted by both")
    kept = [row for _, row in changes(60)[:5]]
    shared.us.write(location, arrow_rows(made, kept), overwrite={})
    shared.changes += shared.oracle.overwrite(kept)
    shared.check("overwritten by us")
    shared.check_changes(from_start(java, location))
    java.expire(location, keep=1)
    shared.fully(changes(70))
    shared.ours(changes(71))
    shared.check("after expiry")


@pytest.mark.nightly  # by day the other turns of this file
def test_java_writes_fully_in_turns_with_us(
    java: JavaPaimon, spark: ProcessPeer, pypaimon: ProcessPeer, rust: ProcessPeer, location: Path
) -> None:
    """Java with its own lookup compaction, then we, then a full compaction of Java, then we: equal after each."""
    shared = Shared(
        java, location, schema(FEW, keys=("id",), options={"bucket": "2"}), [spark, pypaimon, rust]
    )
    shared.ours(upserts(range(40), 1))
    shared.ours([*upserts(range(0, 20, 3), 2), *deletes([4, 5])])
    shared.fully([*upserts(range(10, 50, 4), 3), *deletes([0, 1])])
    shared.check("after java")
    shared.ours([*upserts([0, 4, 11, 60], 4), *deletes([14])])
    shared.check("after us")
    java.compact(location)
    shared.check("after java's full compaction")
    shared.ours([*upserts(range(5, 15), 5), *deletes([20, 21])])
    shared.fully(upserts([20, 70], 6))
    shared.us.compact(location)
    shared.check("after our compaction")
    shared.check_changes(from_start(java, location))


def test_java_compacts_tables_that_only_we_wrote(java: JavaPaimon, location: Path) -> None:
    """Java's full compaction straight on many runs of ours keeps the rows and tells no change."""
    made = schema(FEW, keys=("id",), options={"bucket": "1"})
    shared = Shared(java, location, made)
    for number in range(9):
        shared.ours([*upserts({number * 3 % 20, number * 7 % 20, number}, number), *deletes([number + 10])])
    java.compact(location)
    shared.check("after java's full compaction")
    shared.ours(upserts(range(3), 50))
    shared.check("after us again")
    shared.check_changes(from_start(java, location))


def test_our_commit_in_the_middle_of_a_java_write(java: JavaPaimon, location: Path) -> None:
    """Java has written its files, we commit, then Java commits: both writes are in the table."""
    shared = Shared(java, location, schema(FEW, keys=("id",), options={"bucket": "1"}))
    shared.ours(upserts(range(10), 1))
    late = upserts(range(5, 15), 2)
    prepared = java.prepare(location, shared._rows(late), [kind for kind, _ in late])
    shared.ours([*upserts(range(8), 3), *deletes([9])])
    prepared.commit()
    shared.waiting.append(late)
    shared.ours(upserts([100], 4))
    shared.check("after all three")
    shared.check_changes(from_start(java, location))


def test_a_writer_that_compacts_beside_ours_leaves_keys_twice(java: JavaPaimon, location: Path) -> None:
    """Why our tables say `write-only`: Java's commit takes back the deletion vectors of ours, and `verify` finds it.

    With `write-only` the same order of the two commits is right (the test above).
    """
    shared = Shared(java, location, schema(FEW, keys=("id",), options={"bucket": "1"}))
    shared.ours(upserts(range(20), 1))
    late = upserts(range(5), 2)
    prepared = java.prepare(location, shared._rows(late), [kind for kind, _ in late], options=FULLY)
    shared.ours(upserts(range(10, 15), 3))
    prepared.commit()
    for reader in shared.readers:
        assert len(reader.read(location)) == 25
    (found,) = shared.us.store(location).verify()
    assert "5 keys are visible twice" in found


def test_both_put_every_type_of_key_into_the_same_bucket(java: JavaPaimon, location: Path) -> None:
    """A key of sixteen columns of fifteen types, written by one and updated by the other, stays one row.

    Java's rows are the larger ones, so that its compaction takes our file in: where it only looks keys up in a file
    that it leaves alone, Java 1.4.2 cannot compare a BINARY behind another key column (ClassCastException).
    """
    columns: dict[str, Type] = {"id": "INT", **KEY_TYPES, "v": "STRING"}
    made = schema(columns, keys=("id", *KEY_TYPES), options={"bucket": "7"})
    shared = Shared(java, location, made)
    shared.ours([("+I", row) for row in key_rows(0, "ours", 14)])
    large = random.Random(1).randbytes(2_000).hex()
    shared.fully([("+U", row) for row in key_rows(4, large, 14)])
    shared.check("java updated our keys")
    shared.ours([("+U", row) for row in key_rows(8, "ours again", 12)])
    shared.ours([("-D", row) for row in key_rows(0, "", 3)])
    shared.check("we updated java's keys")


@pytest.mark.parametrize("column", cases([*KEY_TYPES, "k_varchar", "k_binary"], 2))
def test_both_put_each_single_key_type_into_the_same_bucket(
    java: JavaPaimon, location: Path, column: str
) -> None:
    """For one key column of each type: Java's update of our rows leaves one row per key, in seven buckets."""
    wanted = {**KEY_TYPES, "k_varchar": "VARCHAR(20)", "k_binary": "VARBINARY(12)"}[column]
    made = schema({column: wanted, "v": "STRING"}, keys=(column,), options={"bucket": "7"})
    shared = Shared(java, location, made)
    source = {"k_varchar": "k_text", "k_binary": "k_bytes"}.get(column, column)
    values = {repr(row[source]): row[source] for row in key_rows(0, "", 12)}
    shared.ours([("+I", {column: value, "v": "ours"}) for value in values.values()])
    shared.fully([("+U", {column: value, "v": "java"}) for value in values.values()])
    shared.check(column)
    assert {row[1] for row in shared.us.read(location)} == {"java"}


@pytest.mark.nightly  # by day test_blank_partitions.py; the other turns of this file
def test_partitions_of_both_are_one(java: JavaPaimon, spark: ProcessPeer, location: Path) -> None:
    """Partition values with escapes are the same directory and the same bytes for both writers."""
    columns: dict[str, Type] = {"day": "DATE", "dt": "STRING", "id": "BIGINT", "v": "STRING"}
    made = schema(columns, keys=("day", "dt", "id"), partitions=("day", "dt"), options={"bucket": "1"})
    shared = Shared(java, location, made, [spark])
    homes = ["a", "b:c=d é%", " x", "{y}^"]

    def rows(keys: Iterable[int], v: str) -> list[Kinded]:
        import datetime as dt

        day = dt.date(2024, 1, 1)
        return [("+U", {"day": day, "dt": homes[key % 4], "id": key, "v": v}) for key in keys]

    shared.ours(rows(range(12), "ours"))
    shared.fully(rows(range(6, 16), "java"))
    shared.check("java in our partitions")
    shared.ours(rows(range(0, 16, 3), "again"))
    shared.check("we in java's partitions")
    assert sum(1 for path in location.glob("day=*/*") if path.is_dir()) == len(homes)


def test_append_table_in_turns(
    java: JavaPaimon, spark: ProcessPeer, pypaimon: ProcessPeer, rust: ProcessPeer, location: Path
) -> None:
    """Both append, Java joins small files, we overwrite, Java appends again: every row once, at every step."""
    shared = Shared(java, location, schema(FEW), [spark, pypaimon, rust])
    for number in range(4):
        shared.ours([("+I", row) for _, row in upserts(range(number * 5, number * 5 + 5), number)])
        shared.fully([("+I", row) for _, row in upserts(range(100, 103), number)])
    shared.check("after appends of both")
    java.compact(location)
    shared.check("after java's compaction")
    kept = [row for _, row in upserts(range(3), 50)]
    shared.us.write(location, arrow_rows(shared.oracle.schema, kept), overwrite={})
    shared.oracle.overwrite(kept)
    shared.check("after our overwrite")
    shared.fully([("+I", row) for _, row in upserts(range(3, 6), 51)])
    shared.us.compact(location)
    shared.check("after java again, and our compaction")


def test_schema_changes_of_both_are_followed(
    java: JavaPaimon, spark: ProcessPeer, pypaimon: ProcessPeer, rust: ProcessPeer, location: Path
) -> None:
    """Java renames, drops and widens columns of our table, we add one; both write before and after; all read equal."""
    columns: dict[str, Type] = {"id": "BIGINT", "n": "INT", "text": "STRING", "gone": "INT"}
    shared = Shared(
        java, location, schema(columns, keys=("id",), options={"bucket": "1"}), [spark, pypaimon, rust]
    )
    shared.ours(upserts(range(8), 1, columns))
    java.alter(location, ("rename", "text", "label"), ("drop", "gone"), ("type", "n", "BIGINT"))
    first = shared.oracle.schema
    n, text = first.columns[1], first.columns[2]
    changed: dict[str, Type] = {"id": "BIGINT", "n": "BIGINT", "label": "STRING"}
    followed = type(first)(
        (first.columns[0], type(n)(n.id, "n", "BIGINT"), type(text)(text.id, "label", "STRING")), first.keys
    )
    shared.oracle.evolve(followed)
    shared.check("after java's change")
    shared.ours([*upserts(range(4, 10), 2, changed), *deletes([0])])
    shared.check("after us")
    shared.us.alter(location, ("add", "extra", "TIMESTAMP(3)"))
    shared.oracle.evolve(type(first)((*followed.columns, type(n)(4, "extra", "TIMESTAMP(3)")), first.keys))
    shared.fully(upserts(range(8, 12), 3, {**changed, "extra": "TIMESTAMP(3)"}))
    shared.check("after java with our column")


def test_a_schema_change_of_ours_that_died_is_covered(
    java: JavaPaimon, spark: ProcessPeer, pypaimon: ProcessPeer, rust: ProcessPeer, location: Path
) -> None:
    """Killed before the snapshot of a schema change: we read the old columns, and after our next commit so do all
    others, which take the newest schema file. ALTERs of ours, of columns or of a comment, are snapshots they all read.
    """
    columns: dict[str, Type] = {"id": "BIGINT", "n": "INT", "text": "STRING"}
    shared = Shared(
        java, location, schema(columns, keys=("id",), options={"bucket": "1"}), [spark, pypaimon, rust]
    )
    shared.ours(upserts(range(8), 1, columns))
    store = shared.us.store(location)
    died = replace(schema_change.drop_column(store.schema, "text"), id=1, claim="died")
    assert store.context.schemas.claim(died)
    assert shared.us.store(location).schema.field_names == ("id", "n", "text")
    shared.ours(upserts(range(4, 10), 2, columns))
    shared.check("after our next commit")
    shared.us.alter(location, ("add", "extra", "INT"))
    first = shared.oracle.schema
    added = (*first.columns, type(first.columns[0])(3, "extra", "INT"))
    shared.oracle.evolve(type(first)(added, first.keys))
    shared.check("after our change")
    shared.us.store(location).alter(lambda now: schema_change.describe_column(now, "n", "how many"))
    shared.check("after our comment")
    shared.fully(upserts(range(8, 12), 3, {**columns, "extra": "INT"}))
    shared.check("after java")
    shared.ours(upserts(range(2), 4, {**columns, "extra": "INT"}))
    shared.check("after us")


def test_java_expires_our_snapshots(java: JavaPaimon, location: Path) -> None:
    """Java expires all but three snapshots of a table of ours: those stay readable, for both, and we go on."""
    shared = Shared(java, location, schema(FEW, keys=("id",), options={"bucket": "2", "num-levels": "5"}))
    shown: dict[int, list[Row]] = {}
    for number in range(10):
        shared.ours([*upserts(range(number, number + 6), number), *deletes([number + 2])])
        shown[shared.us.snapshots(location)[-1][0]] = shared.oracle.rows()
    shared.us.store(location).tags.create("kept", 2)
    assert java.expire(location, keep=3) > 0
    left = [number for number, _ in shared.us.snapshots(location)]
    assert len(left) == 3
    for number in set(left) & set(shown):
        assert_same(shown[number], shared.us.read(location, number), f"ours, snapshot {number}")
        assert_same(shown[number], java.read(location, number), f"java, snapshot {number}")
    tagged = java.read(location, options={"scan.tag-name": "kept"})
    assert_same(shown[2], tagged, "our tag, read by java, outlives its snapshot")
    shared.ours(upserts(range(4), 50))
    shared.check("after expiry")


def test_java_reads_what_we_expired(java: JavaPaimon, location: Path) -> None:
    """We expire all but three snapshots of a shared table: Java reads each of them, a tag, and the stream from the
    first one on; it writes and expires on top, and we go on.
    """
    shared = Shared(java, location, schema(FEW, keys=("id",), options={"bucket": "2", "num-levels": "5"}))
    shown: dict[int, list[Row]] = {}
    for number in range(10):
        shared.ours([*upserts(range(number, number + 6), number), *deletes([number + 2])])
        shown[shared.us.snapshots(location)[-1][0]] = shared.oracle.rows()
    store = shared.us.store(location)
    store.tags.create("kept", 2)
    at_once = -(1 << 60)
    done = store.expire(Retention(3, None, retained_ms=at_once, grace_ms=at_once, limit=None))
    assert done.snapshots > 0
    left = [number for number, _ in shared.us.snapshots(location)]
    assert len(left) == 3
    for number in set(left) & set(shown):
        assert_same(shown[number], java.read(location, number), f"java, snapshot {number}")
    assert_same(shown[2], java.read(location, options={"scan.tag-name": "kept"}), "java, our tag")
    shared.check("after our expiry")
    shared.fully(upserts(range(4, 9), 60))
    shared.check("after java wrote and compacted")
    assert java.expire(location, keep=1) > 0
    shared.ours(upserts(range(4), 50))
    shared.check("after expiry by both")


def test_tags_of_java_are_ours(java: JavaPaimon, location: Path) -> None:
    """A tag that Java sets on our table names the same rows for us."""
    shared = Shared(java, location, schema(FEW, keys=("id",), options={"bucket": "1"}))
    shared.ours(upserts(range(5), 1))
    named = shared.oracle.rows()
    java.tag(location, "before", 1)
    shared.ours(upserts(range(3, 9), 2))
    store = shared.us.store(location)
    assert store.tags.get("before").snapshot.id == 1
    assert_same(named, shared.us.read(location, store.tags.get("before").snapshot.id), "tag")


def test_rows_of_pypaimon_are_taken_in(java: JavaPaimon, pypaimon: ProcessPeer, location: Path) -> None:
    """pypaimon's writer leaves level 0 on our table, which our next commit takes in, changelog included."""
    shared = Shared(java, location, schema(FEW, keys=("id",), options={"bucket": "2"}), [pypaimon])
    shared.ours(upserts(range(10), 1))
    theirs = [("+I", row) for _, row in upserts(range(5, 15), 2)]
    pypaimon.write(location, shared._rows(theirs))
    shared.waiting.append(theirs)
    shared.ours([*upserts([3], 3), *deletes([6])])
    shared.check("after us")
    shared.check_changes(from_start(java, location))


@pytest.mark.parametrize(
    ("producer", "is_64_bit"), [("none", "true"), ("lookup", "false"), ("lookup", "true")]
)
def test_we_write_to_tables_that_java_made(
    java: JavaPaimon, location: Path, producer: str, is_64_bit: str
) -> None:
    """On tables that Java made, with vectors of both forms, with and without changelog, both write in turns."""
    vectors = {"deletion-vectors.enabled": "true", "deletion-vectors.bitmap64": is_64_bit}
    options = {"bucket": "2", **vectors, "changelog-producer": producer}
    made = schema(FEW, keys=("id",), options=options)
    shared = Shared(java, location, made, made_by=java)
    shared.fully(upserts(range(20), 1))
    shared.ours([*upserts(range(15, 25), 2), *deletes([3])])
    shared.check("after us")
    shared.fully([*upserts(range(0, 30, 4), 3), *deletes([16])])
    shared.ours(upserts([0, 16, 50], 4))
    java.compact(location)
    shared.check("after both")
    if producer == "lookup":
        shared.check_changes(from_start(java, location))


@pytest.mark.parametrize("format_", ["orc", "avro"])
def test_table_of_another_format_is_written_once_it_says_parquet(
    java: JavaPaimon, location: Path, format_: str
) -> None:
    """Files of the old format stay: rows in them are updated, deleted and compacted, and Java reads all."""
    options = {"bucket": "2", "deletion-vectors.enabled": "true", "changelog-producer": "lookup"}
    made = schema({"id": "BIGINT", "v": "STRING", "n": "INT"}, keys=("id",), options=options)
    shared = Shared(java, location, made.with_options(file__format=format_), made_by=java)
    shared.fully([("+I", {"id": n, "v": f"a{n}", "n": n}) for n in range(20)])
    with pytest.raises(Unsupported, match=f"file.format={format_}.*(?s:.)*set it to parquet"):
        shared.ours([("+I", {"id": 1, "v": "b", "n": 1})])
    java.alter(location, ("option", "file.format", "parquet"))
    shared.ours(
        [*(("+U", {"id": n, "v": "b", "n": n}) for n in range(15, 25)), ("-D", {"id": 3, "v": "a3", "n": 3})]
    )
    shared.check("after us")
    shared.fully([("+U", {"id": 0, "v": "c", "n": 0})])
    shared.us.compact(location)
    shared.check("after our compaction")
    shared.check_changes(from_start(java, location))


def test_tables_without_vectors_are_refused_before_anything_is_written(
    java: JavaPaimon, location: Path
) -> None:
    """We read Java's merge-on-read tables but do not write them: the error says why, the table stays as it was."""
    made = schema(FEW, keys=("id",), options={"bucket": "2"})
    shared = Shared(java, location, made, made_by=java)
    shared.fully(upserts(range(20), 1))
    before = sorted(path for path in location.rglob("*") if path.is_file())
    with pytest.raises(Unsupported, match="no deletion vectors"):
        shared.ours(upserts(range(5), 2))
    assert before == sorted(path for path in location.rglob("*") if path.is_file())
    shared.check("after the refusal")
