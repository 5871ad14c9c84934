"""Primary keys across partitions: a key has one row in the table, whichever partition its rows name."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest

from tablestore_engine.errors import FixData, FixRequest, Unsupported
from tablestore_engine.format.row_kind import RowKind
from tablestore_engine.format.schema import encode_schema
from tablestore_engine.store.changelog import ChangelogReader
from tablestore_engine.store.rows.row_filter import SameKeys
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.store.write.write_request import WriteMode, WriteRequest
from tests.doses import examples, pairs
from tests.doubles.faults import SimulatedCrash, crashing, seeded_runtime
from tests.doubles.key_model import KeyModel
from tests.doubles.reference_model import freeze
from tests.unit.store.table_world import (
    Row,
    acting,
    as_table,
    changes,
    changes_of,
    make_table,
    open_table,
    overwrite,
    put,
    rows_of,
)

COLUMNS = {"id": "BIGINT", "dt": "STRING", "name": "STRING", "n": "INT"}
ENGINES = {
    "deduplicate": {},
    "partial-update": {"merge-engine": "partial-update"},
    "aggregation": {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"},
    "first-row": {"merge-engine": "first-row", "deletion-vectors.enabled": "false"},
}


POINTS = ("write.data_files", "commit.manifests", "commit.claimed", "commit.done")


def table(root: Path, engine: str = "deduplicate", **options: str) -> TableStore:
    """Keyed by `id`, partitioned by `dt`."""
    merged = {
        **ENGINES[engine],
        **{key.replace("__", ".").replace("_", "-"): text for key, text in options.items()},
    }
    return make_table(root, partitions=["dt"], columns=COLUMNS, options=merged)


def one(number: int, dt: str, name: str | None = "a", n: int | None = 0) -> Row:
    """A row of COLUMNS."""
    return {"id": number, "dt": dt, "name": name, "n": n}


def check(store: TableStore, model: KeyModel, before: list[Row], since: int) -> None:
    """The table is the model, and its changelog since `since` leads there from `before`."""
    rows = rows_of(store)
    assert rows == sorted(model.rows.values(), key=repr)
    newest = store.latest()
    counted = Counter(map(freeze, before))
    for number in range(since + 1, (newest.id if newest else 0) + 1):
        for (kind, row), times in changes_of(store, number).items():
            counted[row] += times if kind in (0, 2) else -times
    assert +counted == Counter(map(freeze, rows))
    assert not -counted


class History:
    """Random work of one writer on one table, and the model beside it."""

    def __init__(self, root: Path, seed: int, engine: str, buckets: int, **options: str) -> None:
        self.random, self.root, self.engine, self.buckets = random.Random(seed), root, engine, buckets
        self.store = table(
            root, engine, bucket=str(buckets), tablestore__duplicates="last", **DYNAMIC, **options
        )
        self.model, self.past, self.next = KeyModel(engine), {}, 1  # type: ignore[var-annotated]

    def rows(self, most: int = 6) -> list[Row]:
        """Random ones."""
        draw = self.random
        count = draw.randint(0, most)
        return [
            one(
                draw.randrange(9),
                draw.choice("pqr"),
                draw.choice([None, "a", "b"]),
                draw.choice([None, 1, 2]),
            )
            for _ in range(count)
        ]

    def upsert(self) -> None:
        """Rows of any kind, in their order."""
        rows = self.rows()
        kinds = [0] * len(rows)
        if self.engine == "deduplicate":
            kinds = [self.random.choice([0, 0, 2, 3]) for _ in rows]
        self.store.write(WriteRequest(as_table(rows, self.store.schema), kinds=pa.array(kinds, pa.int8())))
        for kind, row in zip(kinds, rows, strict=True):
            self.model.put(kind, row)

    def killed(self) -> None:
        """A writer dies on its way, its command comes again: the rows count once."""
        rows = self.rows()
        request = WriteRequest(
            as_table(rows, self.store.schema), commit_user="again", commit_identifier=self.next
        )
        self.next += 1
        point = self.random.choice(POINTS)
        runtime = crashing(seeded_runtime(10_000 + self.next), point, self.random.randint(1, 2))
        with suppress(SimulatedCrash):
            open_table(self.root, runtime=runtime).write(request)
        self.store = open_table(self.root)
        self.store.write(request)
        for row in rows:
            self.model.put(0, row)

    def overwrite_table(self) -> None:
        """All rows go."""
        rows = self.rows()
        overwrite(self.store, *rows)
        self.model.overwrite(None, rows)

    def overwrite_partitions(self) -> None:
        """Those that occur in the rows; only a table that moves keys takes them out of others."""
        rows = self.rows()
        touched = {str(row["dt"]) for row in rows}
        stays = {key for key, row in self.model.rows.items() if row["dt"] not in touched}
        moves = any(row["id"] in stays for row in rows)
        request = WriteRequest(as_table(rows, self.store.schema), mode=WriteMode.OVERWRITE_PARTITIONS)
        if moves and self.engine != "deduplicate":
            with pytest.raises(FixRequest, match="TS1149"):
                self.store.write(request)
            return
        self.store.write(request)
        self.model.overwrite(touched, rows)

    def drop_partition(self) -> None:
        """As DELETE of a partition."""
        place = self.random.choice("pqr")
        put(self.store, mode=WriteMode.OVERWRITE_STATIC, partition={"dt": place})
        self.model.overwrite({place}, [])

    def delete_keys(self) -> None:
        """As DELETE by key."""
        keys = self.random.sample(range(9), 2)
        picked = SameKeys(("id",), pa.table({"id": pa.array(keys, pa.int64())}))
        self.store.write(WriteRequest(mode=WriteMode.REPLACE, replaces=picked))
        for key in keys:
            self.model.rows.pop(key, None)

    def replace_keys(self) -> None:
        """What UPDATE and MERGE do: the rows take the place of those of their keys."""
        rows = list({row["id"]: row for row in self.rows(4)}.values())
        request = WriteRequest(
            as_table(rows, self.store.schema), mode=WriteMode.REPLACE, replaces=SameKeys(("id",))
        )
        self.store.write(request)
        for row in rows:
            self.model.rows[row["id"]] = dict(row)

    def compact(self) -> None:
        """No row changes."""
        self.store.compact(full=self.random.random() < 0.5)

    def rescale(self) -> None:
        """No row changes."""
        if self.buckets > 0:
            self.store.rescale(self.store.schema.bucket_count * self.random.choice([1, 2]) % 8 or 1)
            self.past.clear()  # rows of then are in other buckets

    def restore(self) -> None:
        """Back to the rows of an earlier snapshot, as a new one."""
        newest = self.store.latest()
        if self.past:
            number, rows = self.random.choice(sorted(self.past.items()))
            assert newest is not None
            self.store.restore(self.store.snapshots.get(number))
            self.model.rows = dict(rows)

    def rollback(self) -> None:
        """Later snapshots go."""
        newest = self.store.latest()
        earlier = [number for number in self.past if newest is not None and number < newest.id]
        if earlier and self.random.random() < 0.3:
            number = self.random.choice(earlier)
            self.store.rollback(number)
            self.store = open_table(self.root)
            self.model.rows = dict(self.past[number])
            self.past = {at: rows for at, rows in self.past.items() if at <= number}

    def run(self, steps: int) -> None:
        """Each step is checked: the rows, and (unless history was taken back) the changelog."""
        works: list[Callable[[], None]] = [
            *[self.upsert] * 6,
            self.overwrite_table,
            *[self.overwrite_partitions] * 2,
            self.drop_partition,
            *[self.killed] * 2,
            self.delete_keys,
            self.replace_keys,
            self.compact,
            self.rescale,
            self.restore,
            self.rollback,
        ]
        for _ in range(steps):
            work, before, newest = self.random.choice(works), rows_of(self.store), self.store.latest()
            since = newest.id if newest else 0
            work()
            if work in (self.rollback, self.rescale):
                before, since = rows_of(self.store), 10**9
            check(self.store, self.model, before, since)
            newest = self.store.latest()
            if newest is not None:
                self.past[newest.id] = dict(self.model.rows)
        assert not self.store.verify()


DYNAMIC = {"dynamic-bucket__target-row-num": "2"}


@pytest.mark.parametrize(("engine", "buckets"), pairs(list(ENGINES), [3, -1]))
def test_random_history_has_each_key_once(tmp_path: Path, engine: str, buckets: int) -> None:
    """Upserts, overwrites, deletes, compactions, restores: the rows are a dictionary's, and so are the changes."""
    for seed in range(examples(1, 40)):
        History(tmp_path / str(seed), seed, engine, buckets).run(examples(14, 30))


@pytest.mark.parametrize("buckets", ["2", "-1"])
@pytest.mark.parametrize("engine", ENGINES)
def test_writer_that_was_overtaken_looks_its_keys_up_again(tmp_path: Path, engine: str, buckets: str) -> None:
    """Two writers bring one new key with two partitions: the slower one finds the row of the quicker one."""
    other = table(tmp_path, engine, bucket=buckets)
    model = KeyModel(engine)
    quick, slow = one(1, "q", "quick", 1), one(1, "p", "slow", 2)
    store = open_table(tmp_path, runtime=acting("commit.manifests", lambda: put(other, quick)))
    put(store, slow)
    for row in (quick, slow):
        model.put(0, row)
    check(open_table(tmp_path), model, [], 0)


def test_two_writers_in_any_order_leave_each_key_once(tmp_path: Path) -> None:
    """Random pairs of writes, of which one comes in the middle of the other: as if one came after the other."""
    for seed in range(examples(2, 100)):
        draw, root = random.Random(seed), tmp_path / str(seed)
        engine = draw.choice(list(ENGINES))
        other = table(root, engine, bucket=draw.choice(["2", "-1"]), **DYNAMIC)
        model = KeyModel(engine)
        for _ in range(4):
            batches = [
                [one(key, draw.choice("pq"), draw.choice("ab"), 1) for key in draw.sample(range(5), 3)]
                for _ in range(2)
            ]
            came: list[object] = []

            def come(
                store: TableStore = other, rows: list[Row] = batches[0], came: list[object] = came
            ) -> None:
                came.append(put(store, *rows))

            put(open_table(root, runtime=acting("commit.manifests", come)), *batches[1])
            order = batches if came else batches[::-1]  # a write without a change commits nothing
            if not came:
                come()
            for row in (*order[0], *order[1]):
                model.put(0, row)
            assert rows_of(open_table(root)) == sorted(model.rows.values(), key=repr)


def test_move_is_a_delete_and_an_insert_in_this_order(tmp_path: Path) -> None:
    """The changelog of a key that goes to a partition that sorts before its old one; replayed by key it is the row."""
    store = table(tmp_path)
    put(store, one(1, "z"), one(2, "z"))
    report = put(store, one(1, "a", "b"))
    assert (report.inserted, report.updated, report.deleted) == (1, 0, 1)
    assert changes_of(store, 2) == changes(("-D", one(1, "z")), ("+I", one(1, "a", "b")))
    kinds = [
        kind
        for batch in ChangelogReader(store.context).read(store.snapshots.get(2))
        for kind in batch.rows.column("_ROW_KIND").to_pylist()
    ]
    assert kinds == [RowKind.DELETE, RowKind.INSERT]


def test_repeated_keys_are_refused_whatever_their_partitions(tmp_path: Path) -> None:
    """Two rows of a key with two partitions, and nothing to order them: no engine takes one by chance."""
    for engine, code in (("deduplicate", "TS1601"), ("partial-update", "TS1150"), ("first-row", "TS1150")):
        store = table(tmp_path / engine, engine)
        with pytest.raises(FixData, match=code):
            put(store, one(1, "p"), one(1, "q"))
        assert store.latest() is None


def test_key_that_another_engine_has_left_in_two_partitions(tmp_path: Path) -> None:
    """The next row takes the place of both, or is refused where nothing says which row is the key's."""
    for engine in ("deduplicate", "partial-update"):
        made = make_table(
            tmp_path / engine, keys=["id", "dt"], partitions=["dt"], columns=COLUMNS, options=ENGINES[engine]
        )
        put(made, one(1, "p"), one(1, "q"))
        (path,) = (tmp_path / engine).rglob("schema-0")  # as a writer without an index sees the table
        path.write_bytes(encode_schema(replace(made.schema, primary_keys=("id",))))
        store = open_table(tmp_path / engine)
        assert store.schema.primary_keys == ("id",)
        assert any("partitions" in problem for problem in store.verify())
        if engine == "deduplicate":
            put(store, one(1, "r"))
            assert rows_of(store) == [one(1, "r")]
            assert store.verify() == ()
        else:
            with pytest.raises(FixData, match="TS1148"):
                put(store, one(1, "r"))


def test_key_with_one_of_two_partition_columns(tmp_path: Path) -> None:
    """Keys (region, id) in partitions (region, day): a day may change, another region is another key."""
    store = make_table(
        tmp_path,
        keys=["region", "id"],
        partitions=["region", "day"],
        columns={"region": "STRING", "day": "DATE", "id": "INT", "n": "INT"},
        options={"bucket": "2"},
    )

    def line(region: str, day: int, key: int, n: int) -> Row:
        return {"region": region, "day": date(2026, 1, day), "id": key, "n": n}

    put(store, line("eu", 1, 1, 0), line("us", 1, 1, 0), line("eu", 2, 2, 0))
    put(store, line("eu", 2, 1, 1), {**line("us", 1, 2, 5), "day": None})
    put(store, line("us", 3, 2, 6))
    expected = [line("eu", 2, 1, 1), line("us", 1, 1, 0), line("eu", 2, 2, 0), line("us", 3, 2, 6)]
    assert rows_of(store) == sorted(expected, key=repr)
    newest = store.latest()
    assert newest is not None
    found = store.find_rows(newest, pa.table({"region": ["eu", "us"], "id": pa.array([1, 9], pa.int32())}))
    assert found.to_pylist() == [line("eu", 2, 1, 1)]
    assert store.verify() == ()


def test_staged_move_is_published_beside_a_compaction(tmp_path: Path) -> None:
    """The stage was planned before main was compacted: the move is looked up again, and the rows are those tested."""
    store = table(tmp_path, bucket="1")
    for number in range(3):
        put(store, one(number, "p"), one(9, "pqp"[number]))
    put(store, one(0, "q", "moved"), one(9, "a", "moved"), stage="s")
    store.compact(full=True)
    store.staging.publish("s")
    rows = [one(0, "q", "moved"), one(1, "p"), one(2, "p"), one(9, "a", "moved")]
    assert rows_of(store) == sorted(rows, key=repr)
    assert store.verify() == ()


def test_second_write_into_a_stage_is_refused(tmp_path: Path) -> None:
    """One snapshot would have two changes of a key in two partitions, in no order; the first write stays staged."""
    store = table(tmp_path)
    put(store, one(1, "p"))
    put(store, one(1, "q", "b"), stage="s", builds_on_stage=True)
    with pytest.raises(Unsupported, match="TS1152"):
        put(store, one(1, "r", "c"), stage="s", builds_on_stage=True)
    store.staging.publish("s")
    assert rows_of(open_table(tmp_path)) == [one(1, "q", "b")]


def test_sequence_field_is_refused(tmp_path: Path) -> None:
    """As in Paimon: versions of a key in two partitions are not compared."""
    with pytest.raises(FixRequest, match="TS1113"):
        table(tmp_path, sequence__field="n")


def test_table_that_ignores_deletes_moves_no_key(tmp_path: Path) -> None:
    """The delete of a move would be ignored, too; first-row deletes nothing, and ignores what comes."""
    store = table(tmp_path / "a", ignore_delete="true")
    with pytest.raises(Unsupported, match="TS1152"):
        put(store, one(1, "p"))
    put(table(tmp_path / "b", "first-row", ignore_delete="true"), one(1, "p"))
