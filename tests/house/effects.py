"""What each option changes: the same work done with two or more of its values, looked at from outside.

Rule       an option belongs here once different values give different observations; an observation is taken from
           files, rows, errors, topics' and clients' configuration, never from the option itself.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Mapping
from datetime import date, datetime
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq

from tablestore_engine.api import Engine, TableSpec, WriteSpec
from tablestore_engine.errors import TablestoreError
from tablestore_engine.format.data_type import DataType
from tablestore_engine.format.row_kind import ROW_KIND_COLUMN, RowKind
from tablestore_engine.format.schema import new_schema
from tablestore_engine.format.type_arrow import type_from_arrow
from tablestore_engine.log.kafka import kafka_client, kafka_topic, topic_settings
from tablestore_engine.log.kafka.settings import LogSettings, resolve_log
from tablestore_engine.log.message_envelope import EncodedRows, encode_rows, plan_envelope
from tablestore_engine.lsm.levels import level_count
from tablestore_engine.options import check_options
from tablestore_engine.spi import drop_expired
from tablestore_engine.sql import statement as sql
from tablestore_engine.store.expiry.automatic_tags import expire_tags, make_due_tags
from tablestore_engine.store.expiry.done_partitions import mark_after_commit
from tablestore_engine.store.iceberg_metadata.iceberg_sync import sync_iceberg
from tablestore_engine.store.read.text_condition import TextCondition
from tablestore_engine.store.rows.row_filter import SameKeys
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.store.table_traits import TableTraits
from tablestore_engine.store.write.write_request import WriteMode
from tablestore_engine.stream.position import Part, decode_position
from tablestore_engine.warehouse.statements.row_statements import insert_mode
from tests.doubles.faults import seeded_runtime
from tests.unit.store.expiry_world import written
from tests.unit.store.table_world import Row, acting, delete, make_table, open_table, put, row, rows_of
from tests.unit.stream.log_world import MemoryLog, log_reader
from tests.unit.stream.stream_world import reader, told

Options = Mapping[str, str]
See = Callable[[Path, Options], object]  # an empty folder; the option, or nothing
SHOWN_BY = {
    "write-only": "integration_tests/interop/test_in_turns.py::test_java_leaves_level_zero_and_we_take_it_in",
    "tablestore.managed-topic": "integration_tests/kafka/test_log_added.py::"
    "test_a_log_added_later_holds_the_whole_table",
    "tablestore.log-start": "integration_tests/kafka/test_log_added.py::test_a_log_begins_with_what_comes_next",
    "tablestore.log-start-snapshot": "integration_tests/kafka/test_log_added.py::"
    "test_a_log_begins_with_the_rows_of_now",
}
_LOG = {
    "log.system": "kafka",
    "kafka.topic": "orders",
    "tablestore.table-uuid": "u1",
    "changelog-producer": "lookup",
    "bucket": "-1",
}
_HOUR_MS = 3_600_000
_PROFILE = {"kafka.bootstrap.servers": "127.0.0.1:1", "schema.registry.url": "http://127.0.0.1:1"}


def _code(act: Callable[[], object]) -> str:
    """The code that something is refused with, or `done`."""
    try:
        act()
    except TablestoreError as refused:
        return refused.code
    return "done"


def _texts(count: int) -> list[Row]:
    rng = random.Random(5)
    return [row(n, rng.randbytes(20).hex() + "a" * 20) for n in range(count)]


def _data(root: Path, prefix: str = "data") -> list[Path]:
    return sorted(root.rglob(f"{prefix}-*.parquet"))


def _folders(root: Path) -> list[str]:
    return sorted({path.parent.parent.name for path in _data(root)})


def _manifests(store: TableStore) -> int:
    newest = store.latest()
    assert newest is not None
    return len(store.context.manifests.read_list(newest.base_manifest_list))


# --- layout -----------------------------------------------------------------------------------------------------


def _buckets(base: Options, **table: object) -> See:
    """Which keys lie in which bucket."""

    def see(root: Path, options: Options) -> object:
        store = make_table(root, options={**base, **options}, **table)  # type: ignore[arg-type]
        put(store, *(row(n * 5_000_000_001, f"n{n % 2}") for n in range(12)))
        return {path.parent.name: pq.read_table(path)["id"].to_pylist() for path in _data(root)}

    return see


def _partition(name: str, value: object) -> See:
    """The folder of a partition value."""

    def see(root: Path, options: Options) -> object:
        columns = {"id": "BIGINT", "name": "STRING", "day": "DATE"}
        store = make_table(root, keys=(), partitions=(name,), columns=columns, options=options)
        put(store, {"id": 1, "name": None, "day": date(2026, 1, 1), name: value})
        return _folders(root)

    return see


# --- merge ------------------------------------------------------------------------------------------------------


def _survivor(base: Options) -> See:
    """Which of two versions stays, the one with the larger `n` arriving first."""

    def see(root: Path, options: Options) -> object:
        store = make_table(root, options={**base, **options})
        put(store, row(1, "first", 9))
        put(store, row(1, "second", 3))
        return rows_of(store)

    return see


def _outcome(*rows: Row) -> See:
    """Whether a table can be written with it."""

    def see(root: Path, options: Options) -> object:
        return _code(lambda: put(make_table(root, options=options), *rows))

    return see


def _changelog(root: Path, options: Options) -> object:
    """Rows of changelog files after the same row came twice."""
    store = make_table(root, options=options)
    put(store, row(1))
    put(store, row(1))
    return sum(pq.read_table(path).num_rows for path in _data(root, "changelog"))


def _changelog_with(base: Options) -> See:
    """The same where the row came with another `n`."""

    def see(root: Path, options: Options) -> object:
        store = make_table(root, options={**base, **options})
        put(store, row(1))
        put(store, row(1, n=5))
        return rows_of(store), sum(pq.read_table(path).num_rows for path in _data(root, "changelog"))

    return see


_AGGREGATION = {"merge-engine": "aggregation"}
_PARTIAL = {"merge-engine": "partial-update"}
_SUM = {"fields.n.aggregate-function": "sum"}
_NESTED_ROW = pa.struct([("k", pa.int32()), ("t", pa.string())])
_ROWS = type_from_arrow(pa.list_(_NESTED_ROW))
_LISTAGG = {"fields.name.aggregate-function": "listagg"}


def _merged_row(base: Options, *, deletes: bool = False, n: int = 4) -> See:
    """The row of a key after two versions, the larger `n` first, and a delete if asked."""

    def see(root: Path, options: Options) -> object:
        store = make_table(root, options={**base, **options})
        put(store, row(1, "b", 9))
        put(store, row(1, "b", 3))
        if deletes:
            refused = _code(lambda: delete(store, row(1, "b", n)))
            return refused, rows_of(store)
        return rows_of(store)

    return see


def _nested_values(function: str, type_: DataType, first: object, second: object) -> See:
    """What two values of a nested column become."""

    def see(root: Path, options: Options) -> object:
        columns = {"id": "BIGINT", "v": type_}
        base = {**_AGGREGATION, "fields.v.aggregate-function": function}
        store = make_table(root, columns=columns, options={**base, **options})
        for value in (first, second):
            put(store, {"id": 1, "v": value})
        return rows_of(store)

    return see


def _rows_after_a_delete(root: Path, options: Options) -> object:
    """What is left of two rows."""
    store = make_table(root, options=options)
    put(store, row(1), row(2))
    delete(store, row(1))
    return rows_of(store)


def _rows_after_update_before(root: Path, options: Options) -> object:
    """What is left of a row."""
    store = make_table(root, options=options)
    put(store, row(1))
    put(store, row(1), kinds=pa.array([int(RowKind.UPDATE_BEFORE)], pa.int8()))
    return rows_of(store)


def _rows_of_kinds(root: Path, options: Options) -> object:
    """What is left of two rows, one of which says that it deletes."""
    store = make_table(root, options=options)
    put(store, row(1, "+I"), row(2, "-D"))
    return rows_of(store)


def _after_a_delete(root: Path, options: Options) -> object:
    """Vectors, or files written anew."""
    store = make_table(root, keys=(), options=options)
    put(store, *(row(n) for n in range(30)))
    put(store, row(3, "new"), mode=WriteMode.REPLACE, replaces=SameKeys(("id",)))
    return len(list(root.rglob("index-*"))), len(_data(root))


def _vector_magic(root: Path, options: Options) -> object:
    """How the vectors begin that an upsert writes."""
    store = make_table(root, options=options)
    put(store, row(1))
    put(store, row(1, "new"))
    return {file.read_bytes()[5:9] for file in root.rglob("index-*-crc32-*")}


# --- files ------------------------------------------------------------------------------------------------------


def _files(look: Callable[[list[Path]], object], **base: str) -> See:
    """What data files look like."""

    def see(root: Path, options: Options) -> object:
        put(make_table(root, options={**base, **options}), *_texts(600))
        return look(_data(root))

    return see


def _codec_of_lists(root: Path, options: Options) -> object:
    put(make_table(root, options=options), row(1))
    head = next(root.rglob("manifest-list-*")).read_bytes()[:1500]
    assert b"avro.codec" in head
    return next(word for word in (b"zstandard", b"deflate", b"null") if word in head)


def _iceberg(root: Path, options: Options) -> object:
    """Where metadata is after a commit and a delete, and which files have the deleted rows."""
    store = make_table(root, options=options)
    put(store, row(1), row(2))
    delete(store, {"id": 1})
    sync_iceberg(store.context)
    found = {path.relative_to(root) for path in root.rglob("metadata/*")}
    return {str(path.parent) for path in found}, {path.suffix for path in found}


def _iceberg_trouble(root: Path, options: Options) -> object:
    """What a write says of a catalog that is not configured."""
    table = TableSpec(options={"metadata.iceberg.storage": "table-location", **options})
    report = Engine(str(root)).write("demo.t", pa.table({"id": [1]}), WriteSpec(table=table))
    return report.iceberg_trouble is None


def _rolled(root: Path, options: Options) -> object:
    """Manifests of one commit of many files."""
    store = make_table(root, keys=(), partitions=("id",), options=options)
    put(store, *_texts(200))
    put(store, row(1))
    return _manifests(store)


def _after_commits(root: Path, options: Options) -> object:
    """Manifests in the base list after eight small commits."""
    store = make_table(root, keys=(), options={"compaction.min.file-num": "99", **options})
    for number in range(8):
        put(store, row(number))
    return _manifests(store)


def _after_removals(root: Path, options: Options) -> object:
    """The same after commits that write files anew and so remove others."""
    base = {"compaction.min.file-num": "99", "deletion-vectors.enabled": "false"}
    store = make_table(root, keys=(), options={**base, **options})
    for number in range(4):
        put(store, row(0, str(number)), row(number + 1), mode=WriteMode.REPLACE, replaces=SameKeys(("id",)))
    return _manifests(store)


def _statistics(root: Path, options: Options) -> object:
    """What a manifest keeps of the values."""
    store = make_table(root, options=options)
    put(store, *_texts(5))
    newest = store.latest()
    assert newest is not None
    return repr(
        [one.file.value_stats for one in store.context.manifests.read_entries(newest.delta_manifest_list)]
    )


_BITMAP = {"file-index.bitmap.columns": "name", "metadata.stats-mode": "none"}
_BLOOM = {"file-index.bloom-filter.columns": "name"}


def _index_files(base: Options) -> See:
    """Sizes of the indexes of a file, in the manifest and beside it."""

    def see(root: Path, options: Options) -> object:
        store = make_table(root, options={**base, **options})
        put(store, *_texts(5))
        newest = store.latest()
        assert newest is not None
        metas = [one.file for one in store.context.manifests.read_entries(newest.delta_manifest_list)]
        embedded = [len(one.embedded_file_index or b"") for one in metas]
        return embedded, sorted(path.stat().st_size for path in root.rglob("*.index"))

    return see


def _without_its_file(root: Path, options: Options) -> object:
    """A read by a value that no row has, of a table whose data file is gone."""
    store = make_table(root, options={**_BITMAP, **options})
    put(store, row(1, "a"))
    for path in _data(root):
        path.unlink()
    plan = store.plan_scan()
    return _code(lambda: store.read_matching(plan, TextCondition("name = 'z'").bind(plan.schema)))


# --- upkeep -----------------------------------------------------------------------------------------------------


def _folded_by_writers(root: Path, options: Options) -> object:
    """Why the snapshots of twelve writes were made, and whether a compaction then finds something to do."""
    store = make_table(root, options=options)
    for number in range(12):
        put(store, row(number))
    kinds = [one.commit_kind for one in store.snapshots.list_all()]
    return kinds, store.compact().is_empty


def _kinds(root: Path, options: Options) -> object:
    """Why the snapshots of six writes were made."""
    store = make_table(root, options=options)
    for number in range(6):
        put(store, *(row(number * 100 + n) for n in range(50)))
    return [one.commit_kind.value for one in store.snapshots.list_all()]


def _remaining(later_ms: int) -> See:
    """Snapshots that are left of twelve, some time later."""

    def see(root: Path, options: Options) -> object:
        store = make_table(root, options=options)
        for number in range(12):
            put(store, row(number))
        later = open_table(root, runtime=seeded_runtime(start_ms=1_700_000_000_000 + later_ms))
        later.expire()
        return later.snapshots.list_ids()

    return see


def _tagged(*days: str, **base: str) -> See:
    """Tags after commits at noon of these days of November 2023, those whose time is over at the end left out."""

    def see(root: Path, options: Options) -> object:
        said = {key.replace("_", "-").replace("--", "."): text for key, text in base.items()}
        make_table(root, options={"tag.automatic-creation": "process-time", **said, **options})
        for number, day in enumerate(days):
            start = int(datetime.fromisoformat(f"2023-11-{day}+00:00").timestamp() * 1000)
            store = open_table(root, runtime=seeded_runtime(number, start_ms=start))
            put(store, row(number))
            rule = TableTraits(store.schema).tag_rule
            if rule is not None:
                make_due_tags(store.context, rule)
        expire_tags(store.context)
        return [(name, store.tags.get(name).time_retained) for name in store.tags.list_names()]

    return see


def _expired_by_a_write(root: Path, options: Options) -> object:
    """The same when only commits expire, on a table that we made."""
    forever = {
        "snapshot.num-retained.max": "2",
        "snapshot.num-retained.min": "1",
        "tablestore.expire-grace": "0",
    }
    engine = Engine(str(root))
    spec = WriteSpec(table=TableSpec(primary_key=("id",), options={**forever, **options}))
    for number in range(4):
        engine.write("demo.t", pa.table({"id": [number]}), spec)
    return engine.table("demo.t").snapshot_ids()


def _still_staged(root: Path, options: Options) -> object:
    """What is staged after three hours, and after eight days."""
    spec = WriteSpec(table=TableSpec(primary_key=("id",), options=options), stage="try")
    Engine(str(root), runtime=seeded_runtime()).write("demo.t", pa.table({"id": [1]}), spec)
    left = []
    for hours in (3, 8 * 24):
        runtime = seeded_runtime(start_ms=1_700_000_000_000 + hours * _HOUR_MS)
        gate = Engine(str(root), runtime=runtime).gate
        drop_expired(gate, gate.read_book("demo"))
        left.append([one.name for one in gate.read_book("demo").staged])
    return left


def _left_by_expiry(*values: Row, partitions: tuple[str, ...] = ("name",), **base: str) -> See:
    """Rows that an expiry of partitions leaves, or why it is refused; today is 2023-11-14."""

    def see(root: Path, options: Options) -> object:
        said = {key.replace("_", "-"): value for key, value in base.items()}
        common = {f"partition.{key}": value for key, value in said.items()}
        store = make_table(root, keys=(), partitions=partitions, options={**common, **options})
        put(store, *values)
        return _code(store.expire_partitions), rows_of(store)

    return see


def _looks(root: Path, options: Options) -> object:
    """Rows in old partitions after two commits of one process in one minute."""
    spec = WriteSpec(
        table=TableSpec(partition_by=("dt",), options={"partition.expiration-time": "7 d", **options})
    )
    engine = Engine(str(root))
    for number in range(2):
        engine.write("demo.t", pa.table({"id": [number], "dt": ["2020-01-01"]}), spec)
    return engine.table("demo.t").scan().to_arrow().num_rows


def _joined(root: Path, options: Options) -> object:
    """Data files of an append-only table after four small writes."""
    store = make_table(root, keys=(), options=options)
    for number in range(4):
        put(store, row(number))
    return len(store.plan_scan().files)


def _clustered(see: str, **base: str) -> See:
    """Rows in their order, or levels of files, after four appends, and after a full compaction of them."""

    def look(root: Path, options: Options) -> object:
        said = {key.replace("__", "."): text for key, text in base.items()}
        store = make_table(root, keys=(), options={"compaction.min.file-num": "2", **said, **options})
        for number in range(4):
            put(store, *(row(at, str(3 - number), at * number % 3) for at in range(number, number + 4)))
        if see == "levels":
            return sorted(file.meta.level for file in store.plan_scan().files)
        store.compact(full=True)
        return [tuple(one.values()) for one in store.read(store.plan_scan()).to_pylist()]

    return look


def _marked(**base: str) -> See:
    """What commits leave in folders, and send: two days are written, then somebody comes back much later."""

    def look(root: Path, options: Options) -> object:
        said = {key.replace("__", ".").replace("_", "-"): text for key, text in base.items()}
        columns = {"id": "BIGINT", "dt": "STRING"}
        store = make_table(root, keys=(), columns=columns, partitions=("dt",), options={**said, **options})
        sent: list[object] = []

        def post(url: str, body: Mapping[str, str | None]) -> str:
            sent.append((url, body["params"], body["partition"]))
            return '{"result": "success"}'

        with patch("tablestore_engine.store.expiry.done_partitions.post_json", post):
            for number, day in enumerate(("2023-11-10", "2023-11-14")):
                put(store, {"id": number, "dt": day})
                newest = store.latest()
                assert newest is not None
                mark_after_commit(store.context, "demo.t", newest)
            later = open_table(root, runtime=seeded_runtime(start_ms=1_700_000_000_000 + 2 * _HOUR_MS))
            put(later, {"id": 9, "dt": "2023-12-31"})
            newest = later.latest()
            assert newest is not None
            marks = mark_after_commit(later.context, "demo.t", newest)
        found = sorted(path.parent.name for path in (root / "demo.db/t").rglob("_SUCCESS"))
        return found, marks, sent

    return look


def _lost_once(root: Path, options: Options) -> object:
    """A commit that another writer overtakes once."""
    make_table(root, options=options)
    runtime = acting("commit.manifests", lambda: put(open_table(root), row(2)))
    return _code(lambda: put(open_table(root, runtime=runtime), row(1)))


def _overwritten(root: Path, options: Options) -> object:
    """Rows after INSERT OVERWRITE with rows of one of two partitions."""
    store = make_table(root, keys=(), partitions=("name",), options=options)
    put(store, row(1, "a"), row(2, "b"))
    statement = sql.Insert(sql.TableName("demo", "t"), "select 1", overwrite=True)
    put(store, row(3, "b"), mode=insert_mode(statement, store.schema))
    return rows_of(store)


# --- readers ----------------------------------------------------------------------------------------------------


def _told(root: Path, options: Options, words: Mapping[str, object]) -> object:
    """Rows of a reader that does not say where it begins, whose consumer has read the first of two snapshots."""
    store = make_table(root, options=options)
    put(store, row(1))
    if words:
        list(done := reader(store, "earliest", **words))
        done.commit()
    put(store, row(2))
    return told(reader(store, **words))


def _read_in_a_log(root: Path, options: Options) -> object:
    """The source that a reader's position names, and what an update is to it, of a table with an upsert log."""
    log = MemoryLog(make_table(root, options=options))
    for name in ("a", "b"):
        put(log.store, row(1, name))
        log.publish()
    stream = log_reader(log, "from-snapshot", snapshot_id=2, read_mode=None)
    is_log = decode_position(stream.position).part is Part.LOG
    return is_log, told(log_reader(log, "from-snapshot", snapshot_id=2))


def _held_by_an_idle_consumer(root: Path, options: Options) -> object:
    """Snapshots that an expiry leaves beside a consumer that did not move for two days."""
    at_once = {
        "snapshot.num-retained.min": "1",
        "snapshot.time-retained": "0",
        "tablestore.expire-grace": "0",
    }
    store = written(root, options={**at_once, **options})
    reader(store, "earliest", consumer_id="c").commit()
    path = Path(store.context.layout.consumer_path("c"))
    now_ms = store.runtime.now_ms()
    os.utime(path, (now_ms / 1000 - 2 * 86_400,) * 2)
    store.expire()
    return store.snapshots.list_ids(), path.exists()


# --- log --------------------------------------------------------------------------------------------------------


def _resolve(options: Options, *, is_keyed: bool = False) -> LogSettings:
    found = resolve_log({**_LOG, **options}, _PROFILE, table="demo.t", is_keyed=is_keyed)
    assert found is not None
    return found


def _log(look: Callable[[LogSettings], object]) -> See:
    """What follows from the settings of the log."""
    return lambda _, options: look(_resolve(options))


def _log_outcome(_: Path, options: Options) -> object:
    return _code(lambda: resolve_log({**_LOG, **options}, _PROFILE, table="demo.t", is_keyed=False))


def _messages(_: Path, options: Options) -> object:
    """Messages of one update."""
    schema = new_schema(pa.schema([pa.field("id", pa.int64(), nullable=False)]), primary_keys=["id"])
    rows = pa.table({"id": [1, 1], ROW_KIND_COLUMN: pa.array([1, 2], pa.int8())})
    return encode_rows(
        rows, plan_envelope(schema, _resolve({**options, "bucket": "1"}, is_keyed=True).mode)
    ).values


def _encoded(options: Options, *kinds: int, is_keyed: bool) -> EncodedRows:
    """Rows of one table with these kinds."""
    columns = pa.schema([pa.field("id", pa.int64(), nullable=False)])
    schema = new_schema(columns, primary_keys=["id"] if is_keyed else [])
    found = _resolve({**options, "bucket": "1" if is_keyed else "-1"}, is_keyed=is_keyed)
    rows = pa.table({"id": [1] * len(kinds), ROW_KIND_COLUMN: pa.array(kinds, pa.int8())})
    return encode_rows(rows, plan_envelope(schema, found.mode, found.formats))


def _values_of_a_row(_: Path, options: Options) -> object:
    return _encoded(options, 0, is_keyed=False).values


def _keys_of_a_row(_: Path, options: Options) -> object:
    return _encoded(options, 0, is_keyed=True).keys


def _messages_of_a_delete(_: Path, options: Options) -> object:
    return _encoded(options, 3, is_keyed=True).values


def _client(key: str) -> See:
    """What librdkafka is told."""

    def see(_: Path, options: Options) -> object:
        with patch.object(kafka_client, "Producer") as made:
            kafka_client.make_producer(
                _resolve(options).client, "id", lambda *_: None, kafka_client.Reasons()
            )
        return made.call_args.args[0].get(key)

    return see


def _after_null(root: Path, options: Options) -> object:
    """The value that is stored for NULL."""
    table = Engine(str(root)).create_table(
        "demo.t", pa.schema({"id": pa.int64(), "name": pa.string()}), primary_key=["id"], options=options
    )
    table.upsert([{"id": 1, "name": None}])
    return table.scan().to_arrow().to_pylist()


def _old_rows_gone(given: Options) -> See:
    """Rows after a compaction, which are old by n and new by m."""

    def see(root: Path, options: Options) -> object:
        columns = {"id": "BIGINT", "n": "INT", "m": "BIGINT"}
        store = make_table(root, columns=columns, options={**given, **options})
        put(store, {"id": 1, "n": 0, "m": 10**15})
        store.compact()
        return rows_of(store)

    return see


def _checked(root: Path, options: Options) -> object:
    """Refused where a table's options are read, or not at all."""
    return _code(lambda: check_options(options)), _outcome(row(1))(root, options)


EFFECTS: Mapping[str, tuple[tuple[str | None, ...], See]] = {
    "bucket": (("1", "3"), _buckets({})),
    "bucket-key": (("id", "name"), _buckets({"bucket": "3"}, keys=())),
    "bucket-function.type": ((None, "mod", "hive"), _buckets({"bucket": "3"})),
    "dynamic-bucket.target-row-num": (("3", "5"), _buckets({"bucket": "-1"})),
    "dynamic-bucket.max-buckets": (
        (None, "1", "2"),
        _buckets({"bucket": "-1", "dynamic-bucket.target-row-num": "3"}),
    ),
    "partition.default-name": ((None, "nothing"), _partition("name", None)),
    "partition.legacy-name": ((None, "false"), _partition("day", date(2026, 1, 1))),
    "merge-engine": ((None, "first-row"), _survivor({})),
    "ignore-delete": ((None, "true"), _rows_after_a_delete),
    "ignore-update-before": ((None, "true"), _rows_after_update_before),
    "rowkind.field": ((None, "name"), _rows_of_kinds),
    "fields.default-aggregate-function": ((None, "max"), _merged_row(_AGGREGATION)),
    "partial-update.remove-record-on-delete": ((None, "true"), _merged_row(_PARTIAL, deletes=True)),
    "partial-update.remove-record-on-sequence-group": (
        (None, "n"),
        _merged_row({**_PARTIAL, "fields.n.sequence-group": "name"}, deletes=True, n=10),
    ),
    "aggregation.remove-record-on-delete": (
        (None, "true"),
        _merged_row({**_AGGREGATION, **_SUM}, deletes=True),
    ),
    "sequence.field": ((None, "n"), _survivor({})),
    "sequence.field.sort-order": ((None, "descending"), _survivor({"sequence.field": "n"})),
    "changelog-producer": (("lookup", "none", "input"), _changelog),
    "changelog-producer.row-deduplicate-ignore-fields": (
        (None, "n"),
        _changelog_with({"changelog-producer.row-deduplicate": "true"}),
    ),
    "changelog-producer.row-deduplicate": ((None, "true"), _changelog),
    "deletion-vectors.enabled": (("true", "false"), _after_a_delete),
    "deletion-vectors.bitmap64": ((None, "true"), _vector_magic),
    "record-level.expire-time": ((None, "1 h"), _old_rows_gone({"record-level.time-field": "n"})),
    "record-level.time-field": (("n", "m"), _old_rows_gone({"record-level.expire-time": "1 h"})),
    "file.format": (("parquet", "orc"), _checked),
    "file.compression": (
        (None, "snappy", "gzip", "lz4", "none"),
        _files(lambda found: pq.read_metadata(found[0]).row_group(0).column(0).compression),
    ),
    "file.compression.per.level": (
        (None, "19:snappy", "0:none,19:gzip"),
        _files(
            lambda found: sorted(pq.read_metadata(one).row_group(0).column(0).compression for one in found)
        ),
    ),
    "file.compression.zstd-level": (
        ("1", "15"),
        _files(lambda found: sum(path.stat().st_size for path in found)),
    ),
    "target-file-size": ((None, "1 kb"), _files(len, **{"parquet.row-group-rows": "100"})),
    "parquet.row-group-rows": (
        (None, "100"),
        _files(lambda found: pq.read_metadata(found[0]).num_row_groups),
    ),
    "manifest.compression": (("zstd", "deflate", "null"), _codec_of_lists),
    "manifest.target-file-size": ((None, "1 b"), _rolled),
    "manifest.full-compaction-threshold-size": ((None, "1 b"), _after_removals),
    "manifest.merge-min-count": ((None, "3"), _after_commits),
    "metadata.stats-mode": ((None, "none", "counts", "truncate(3)", "full"), _statistics),
    "file-index.bloom-filter.columns": ((None, "name", "name,n"), _index_files({})),
    "file-index.bitmap.columns": ((None, "name", "name,n"), _index_files({})),
    "file-index.in-manifest-threshold": ((None, "1 b"), _index_files(_BITMAP)),
    "file-index.read.enabled": ((None, "false"), _without_its_file),
    "num-levels": (("20", "3"), _kinds),
    "num-sorted-run.compaction-trigger": ((None, "8"), lambda _, options: level_count(dict(options))),
    "compaction.max-size-amplification-percent": ((None, "50"), _kinds),
    "compaction.min.file-num": ((None, "2"), _joined),
    "partition.mark-done-action": (
        ("success-file", "http-report", "success-file,http-report"),
        _marked(
            partition__mark_done_action__http__url="http://127.0.0.1:1", partition__end_input_to_done="true"
        ),
    ),
    "partition.mark-done-action.http.url": (
        ("http://127.0.0.1:1/a", "http://127.0.0.1:1/b"),
        _marked(partition__mark_done_action="http-report", partition__end_input_to_done="true"),
    ),
    "partition.mark-done-action.http.params": (
        (None, "x"),
        _marked(
            partition__mark_done_action="http-report",
            partition__mark_done_action__http__url="http://127.0.0.1:1",
            partition__end_input_to_done="true",
        ),
    ),
    "partition.end-input-to-done": (("false", "true"), _marked()),
    "partition.idle-time-to-done": (("1 h", "3 h"), _marked(partition__time_interval="1 d")),
    "partition.time-interval": (("1 d", "9 d"), _marked(partition__idle_time_to_done="1 h")),
    "clustering.columns": ((None, "name", "n,id"), _clustered("rows")),
    "clustering.strategy": (
        ("order", "zorder", "hilbert"),
        _clustered("rows", clustering__columns="id,name"),
    ),
    "clustering.incremental": (("false", "true"), _clustered("levels", clustering__columns="id")),
    "snapshot.time-retained": ((None, "1 h"), _remaining(2 * _HOUR_MS)),
    "snapshot.num-retained.min": ((None, "3"), _remaining(99 * _HOUR_MS)),
    "snapshot.num-retained.max": ((None, "11"), _remaining(_HOUR_MS)),
    "snapshot.expire.limit": ((None, "1"), _remaining(99 * _HOUR_MS)),
    "tablestore.expire-on-commit": ((None, "false"), _expired_by_a_write),
    "tablestore.expire-grace": (
        ("2 h", "5 min"),
        lambda root, options: _remaining(_HOUR_MS)(root, {"snapshot.num-retained.max": "10", **options}),
    ),
    "tablestore.staged-retention": ((None, "2 h", "never"), _still_staged),
    "tag.automatic-creation": (("none", "process-time"), _tagged("02")),
    "tag.creation-period": ((None, "hourly", "two-hours"), _tagged("02T11:30")),
    "tag.creation-delay": ((None, "30 min"), _tagged("02", "03T00:10")),
    "tag.num-retained-max": ((None, "1"), _tagged("02", "03", "04")),
    "tag.default-time-retained": ((None, "36 h"), _tagged("02", "04")),
    "tag.time-expire-enabled": ((None, "false"), _tagged("02", "04", tag__default_time_retained="36 h")),
    "partition.expiration-time": (
        (None, "7 d", "30 d"),
        _left_by_expiry(row(1, "2023-11-01"), row(2, "2023-09-01")),
    ),
    "partition.expiration-check-interval": ((None, "0 ms"), _looks),
    "partition.expiration-max-num": (
        (None, "1"),
        _left_by_expiry(row(1, "2023-11-01"), row(2, "2023-09-01"), expiration_time="1 d"),
    ),
    "partition.expiration-strategy": ((None, "update-time"), _checked),
    "partition.timestamp-formatter": (
        (None, "yyyyMMdd"),
        _left_by_expiry(row(1, "2023-11-01"), row(2, "20231101"), expiration_time="1 d"),
    ),
    "partition.timestamp-pattern": (
        (None, "2023-11-0$n"),
        _left_by_expiry(
            row(1, "2023-11-01", 20), row(2, "x", 1), partitions=("name", "n"), expiration_time="1 d"
        ),
    ),
    "metadata.iceberg.storage": (("disabled", "table-location", "hadoop-catalog"), _iceberg),
    "metadata.iceberg.catalog": ((None, "prod"), _iceberg_trouble),
    "metadata.iceberg.format-version": (
        ("2", "3"),
        lambda root, options: _iceberg(root, {"metadata.iceberg.storage": "table-location", **options}),
    ),
    "tablestore.compaction": (("inline", "dedicated"), _folded_by_writers),
    "commit.max-retries": (("0", "3"), _lost_once),
    "dynamic-partition-overwrite": ((None, "false"), _overwritten),
    "scan.mode": (
        (None, "latest"),
        lambda root, options: _told(root, options, {}),
    ),
    "streaming-read-mode": ((None, "log"), _read_in_a_log),
    "scan.remove-normalize": ((None, "true"), _read_in_a_log),
    "consumer.ignore-progress": (
        (None, "true"),
        lambda root, options: _told(root, options, {"consumer_id": "c"}),
    ),
    "consumer.expiration-time": ((None, "1 d"), _held_by_an_idle_consumer),
    "log.system": (("none", "kafka"), _log_outcome),
    "log.consistency": (("transactional", "eventual"), _log_outcome),
    "log.changelog-mode": (("upsert", "all"), _messages),
    "log.format": (("debezium-json", "canal-json", "maxwell-json", "json", "avro"), _values_of_a_row),
    "log.key.format": (("json", "avro"), _keys_of_a_row),
    "log.ignore-delete": ((None, "true"), _messages_of_a_delete),
    "log.retention": ((None, "2 d"), _log(topic_settings.data_config)),
    "log.system.partitions": ((None, "4"), _log(lambda found: found.partitions)),
    "log.publish.shards": (
        (None, "2"),
        lambda _, options: _resolve({**options, "log.system.partitions": "2"}).own_partitions,
    ),
    "log.system.replication": (
        (None, "3"),
        _log(lambda found: kafka_topic._new_topic("t", 1, found, {}).replication_factor),
    ),
    "kafka.topic": (("one", "other"), _log(lambda found: found.marker_topic)),
    "kafka.compression.type": ((None, "gzip"), _client("compression.type")),
    "kafka.linger.ms": ((None, "7"), _client("linger.ms")),
    "kafka.batch.size": ((None, "5000"), _client("batch.size")),
    "kafka.message.max.bytes": ((None, "5000"), _client("message.max.bytes")),
    "kafka.transaction.timeout.ms": ((None, "5000"), _client("transaction.timeout.ms")),
    "tablestore.table-uuid": (("u1", "u2"), _log(lambda found: found.transactional_id)),
    "tablestore.duplicates": ((None, "last"), _outcome(row(1, "a"), row(1, "b"))),
}
# of one column: the key that is set, under the key of the table
EFFECTS_OF_A_COLUMN: Mapping[str, tuple[str, tuple[str | None, ...], See]] = {
    "file-index.bloom-filter.<column>.items": (
        "file-index.bloom-filter.name.items",
        (None, "100"),
        _index_files(_BLOOM),
    ),
    "file-index.bloom-filter.<column>.fpp": (
        "file-index.bloom-filter.name.fpp",
        (None, "0.01"),
        _index_files(_BLOOM),
    ),
    "fields.<column>.default-value": ("fields.name.default-value", (None, "new"), _after_null),
    "fields.<column>.stats-mode": ("fields.name.stats-mode", (None, "none", "counts"), _statistics),
    "fields.<column>.aggregate-function": (
        "fields.n.aggregate-function",
        (None, "sum", "product", "max"),
        _merged_row(_AGGREGATION),
    ),
    "fields.<column>.sequence-group": ("fields.n.sequence-group", (None, "name"), _merged_row(_PARTIAL)),
    "fields.<column>.ignore-retract": (
        "fields.n.ignore-retract",
        (None, "true"),
        _merged_row({**_AGGREGATION, **_SUM}, deletes=True),
    ),
    "fields.<column>.distinct": (
        "fields.name.distinct",
        (None, "true"),
        _merged_row({**_AGGREGATION, **_LISTAGG}),
    ),
    "fields.<column>.list-agg-delimiter": (
        "fields.name.list-agg-delimiter",
        (None, "; "),
        _merged_row({**_AGGREGATION, **_LISTAGG}),
    ),
    "fields.<column>.nested-key": (
        "fields.v.nested-key",
        (None, "k"),
        _nested_values("nested_update", _ROWS, [{"k": 1, "t": "a"}], [{"k": 1, "t": "b"}]),
    ),
    "fields.<column>.count-limit": (
        "fields.v.count-limit",
        (None, "1"),
        _nested_values("nested_update", _ROWS, [{"k": 1, "t": "a"}], [{"k": 2, "t": "b"}]),
    ),
    "fields.<column>.ts-field": (
        "fields.v.ts-field",
        (None, "k"),
        _nested_values(
            "merge_map_with_keytime",
            type_from_arrow(pa.map_(pa.int32(), pa.struct([("k", pa.string()), ("t", pa.string())]))),
            [(1, {"k": "2", "t": "1"})],
            [(1, {"k": "1", "t": "2"})],
        ),
    ),
}
