"""Java Paimon 1.4.2 through its own API: reader, stream reader and writer.

Reads      a snapshot is read by `scan.snapshot-id`, with the schema of that snapshot, as Java does it.
Changes    `changelog` is the batch query `incremental-between` over `$audit_log`; `stream` plans `newStreamScan` of
           `$audit_log` (the table's own scan, plus the kind as a column) until it has passed the newest snapshot.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from integration_tests.interop.jvm import Jvm
from integration_tests.interop.rows import Change, Row, plain_changes, plain_rows
from integration_tests.interop.schemas import Schema

_SMALL = {
    "write-buffer-size": "2 mb",
    "lookup.cache-max-memory-size": "4 mb",
}  # buffers are zeroed for each commit
_HIDDEN = ("rowkind", "_SEQUENCE_NUMBER")


class JavaPaimon:
    """One per session; every call opens the table anew, so it sees what others wrote."""

    name = "java 1.4.2"

    def __init__(self, folder: Path) -> None:
        """Starts the JVM."""
        self.jvm = Jvm(folder)
        self._paimon = self.jvm.paimon

    def close(self) -> None:
        """Stop the JVM."""
        self.jvm.close()

    # -- tables

    def create(self, location: Path, schema: Schema) -> None:
        """A new table, checked by Java's own rules."""
        self._schemas(location).createTable(
            self._paimon.schema.TableSchema.fromJson(schema.json()).toSchema()
        )

    def create_json(self, location: Path, declared: Mapping[str, Any]) -> None:
        """A new table of a schema that `Schema` does not describe."""
        made = self._paimon.schema.TableSchema.fromJson(json.dumps(declared)).toSchema()
        self._schemas(location).createTable(made)

    def variant(self, text: str) -> dict[str, bytes]:
        """The VARIANT that Java makes of JSON."""
        made = self._paimon.data.variant.GenericVariant.fromJson(text)
        return {"value": bytes(made.value()), "metadata": bytes(made.metadata())}

    def alter(self, location: Path, *changes: tuple[Any, ...]) -> None:
        """Each is ('add', name, type), ('rename', old, new), ('drop', name), ('type', name, type) or ('option', …)."""
        change = self._paimon.schema.SchemaChange
        made = self.jvm.java.util.ArrayList()
        for what, *words in changes:
            if what == "add":
                made.add(change.addColumn(words[0], self._type(words[1])))
            elif what == "rename":
                made.add(change.renameColumn(words[0], words[1]))
            elif what == "drop":
                made.add(change.dropColumn(words[0]))
            elif what == "default":
                names = self.jvm.strings(words[0])
                made.add(change.updateColumnDefaultValue(names, words[1]))
            elif what == "type":
                made.add(change.updateColumnType(words[0], self._type(words[1])))
            else:
                made.add(change.setOption(words[0], words[1]))
        self._schemas(location).commitChanges(made)

    def table(self, location: Path, options: Mapping[str, str] | None = None) -> Any:
        """The FileStoreTable with dynamic options."""
        opened = self._paimon.table.FileStoreTableFactory.create(self.jvm.files, self.jvm.path(location))
        return opened.copy(dict(options)) if options else opened

    # -- reading

    def read(
        self, location: Path, snapshot: int | None = None, options: Mapping[str, str] | None = None
    ) -> list[Row]:
        """Rows at a snapshot, the newest when none is given."""
        return plain_rows(self.read_arrow(location, snapshot, options))

    def read_arrow(
        self, location: Path, snapshot: int | None = None, options: Mapping[str, str] | None = None
    ) -> pa.Table:
        """The same as Arrow."""
        chosen = {**(options or {}), **({"scan.snapshot-id": str(snapshot)} if snapshot is not None else {})}
        table = self.table(location, chosen)
        builder = self._paimon.table.source.ReadBuilderImpl(table)
        reader = self._open(builder, builder.newScan().plan().splits())
        return self.jvm.load(reader, self._row_type(table))

    def filter(self, location: Path, column: str, test: str, value: str | None = None) -> list[Row]:
        """Rows that pass `test` (equal, lessOrEqual, isNull …) of a column against a value given as text."""
        table = self.table(location)
        row_type = self._row_type(table)
        predicate = self._predicate(row_type, column, test, value)
        builder = self._paimon.table.source.ReadBuilderImpl(table).withFilter(predicate)
        read = builder.newRead().executeFilter()
        splits = ("java.util.List", builder.newScan().plan().splits())
        reader = self.jvm.call(read, "table.source.TableRead", "createReader", splits=splits)
        return plain_rows(self.jvm.load(reader, row_type))

    def system_table(self, location: Path, name: str) -> pa.Table:
        """All rows of `$files`, `$snapshots`, …"""
        table = self._paimon.table.system.SystemTableLoader.load(name, self.table(location))
        builder = self._paimon.table.source.ReadBuilderImpl(table)
        reader = self._open(builder, builder.newScan().plan().splits())
        return self.jvm.load(reader, table.rowType())

    def count(self, location: Path, snapshot: int | None = None) -> int | None:
        """How many rows the metadata tell, as Spark counts them; None when they do not say."""
        options = {"scan.snapshot-id": str(snapshot)} if snapshot is not None else None
        total = 0
        builder = self._paimon.table.source.ReadBuilderImpl(self.table(location, options))
        for split in builder.newScan().plan().splits():
            merged = split.mergedRowCount()
            if not merged.isPresent():
                return None
            total += merged.getAsLong()
        return total

    def changelog(self, location: Path, since: int, until: int, mode: str = "changelog") -> list[Change]:
        """Changes of the snapshots (since, until]."""
        options = {"incremental-between": f"{since},{until}", "incremental-between-scan-mode": mode}
        audit = self._audit(location, options)
        builder = self._paimon.table.source.ReadBuilderImpl(audit)
        return self.load_changes(builder, audit, builder.newScan().plan().splits())

    def load_changes(self, builder: Any, audit: Any, splits: Any) -> list[Change]:
        """Rows with kinds of some splits of `$audit_log`."""
        table = self.jvm.load(self._open(builder, splits), audit.rowType())
        return plain_changes(table, "rowkind", [name for name in table.column_names if name not in _HIDDEN])

    def stream(self, location: Path, *, columns_of_today: bool = False, **options: str) -> JavaStream:
        """A streaming scan that starts by `options` (`scan__mode='latest'` means scan.mode=latest).

        Rows have the columns of the snapshot that it begins with, or those of today.
        """
        named = {key.replace("__", ".").replace("_", "-"): value for key, value in options.items()}
        audit = self._audit(location, named)
        if columns_of_today:
            plain = self.table(location).copyWithoutTimeTravel(named)
            audit = self._paimon.table.system.AuditLogTable(plain)
        return JavaStream(self, audit, self._paimon.table.source.ReadBuilderImpl(audit))

    def snapshots(self, location: Path) -> list[tuple[int, str]]:
        """(id, kind) of every snapshot, oldest first."""
        manager = self.table(location).snapshotManager()
        first, last = manager.earliestSnapshotId(), manager.latestSnapshotId()
        if last is None:
            return []
        return [(n, manager.snapshot(n).commitKind().toString()) for n in range(first, last + 1)]

    # -- writing

    def write(
        self,
        location: Path,
        rows: pa.Table,
        kinds: Sequence[str] | None = None,
        *,
        overwrite: Mapping[str, Any] | None = None,
        options: Mapping[str, str] | None = None,
    ) -> None:
        """One batch commit of rows with their kinds (all '+I' when not given)."""
        self.prepare(location, rows, kinds, overwrite=overwrite, options=options).commit()

    def prepare(
        self,
        location: Path,
        rows: pa.Table,
        kinds: Sequence[str] | None = None,
        *,
        overwrite: Mapping[str, Any] | None = None,
        options: Mapping[str, str] | None = None,
    ) -> Prepared:
        """Files written and messages ready; nothing is visible before `commit()`."""
        table = self.table(location, {**_SMALL, **(options or {})})
        builder = self._paimon.table.sink.BatchWriteBuilderImpl(table)
        if overwrite is not None:
            builder.withOverwrite({key: str(value) for key, value in overwrite.items()})
        write = self._writer(builder)
        listed = list(kinds) if kinds is not None else ["+I"] * rows.num_rows
        mode = self._bucket_mode(table)
        if mode == "HASH_DYNAMIC":
            self._write_dynamic(table, write, rows, listed)
        elif mode == "KEY_DYNAMIC":
            self._write_across(table, write, rows, listed)
        else:
            self.jvm.feed(rows, listed, self._row_type(table), write)
        return Prepared(builder, write, write.prepareCommit())

    def compact(self, location: Path) -> None:
        """Full compaction of every bucket, write-only or not."""
        table = self.table(location, {"write-only": "false"})
        if self._bucket_mode(table) == "BUCKET_UNAWARE":
            return self._compact_append(table)
        builder = self._paimon.table.sink.BatchWriteBuilderImpl(table)
        write = self._writer(builder)
        for entry in table.newSnapshotReader().bucketEntries():
            write.compact(entry.partition(), entry.bucket(), True)
        Prepared(builder, write, write.prepareCommit()).commit()
        return None

    def tag(self, location: Path, name: str, snapshot: int) -> None:
        """Name a snapshot."""
        self.table(location).createTag(name, snapshot)

    def expire(self, location: Path, keep: int) -> int:
        """Expire all but the newest `keep` snapshots; how many went."""
        config = self._paimon.options.ExpireConfig.builder()
        config = (
            config.snapshotRetainMax(keep)
            .snapshotRetainMin(keep)
            .snapshotTimeRetain(self.jvm.java.time.Duration.ofMillis(0))
        )
        return int(self.table(location).newExpireSnapshots().config(config.build()).expire())

    def options(self) -> list[Any]:
        """The ConfigOptions of tables."""
        return list(self._paimon.CoreOptions.getOptions())

    # -- parts

    def _writer(self, builder: Any) -> Any:
        return builder.newWrite().withIOManager(self._io_manager())

    def _write_dynamic(self, table: Any, write: Any, rows: pa.Table, kinds: list[str]) -> None:
        """Dynamic buckets: the bucket comes from Java's own assigner over the table's hash index."""
        options = table.coreOptions()
        assigner = self._paimon.index.HashBucketAssigner(
            table.snapshotManager(),
            "interop",
            table.store().newIndexFileHandler(),
            1,
            1,
            0,
            options.dynamicBucketTargetRowNum(),
            -1,
        )
        extractor = table.createRowKeyExtractor()
        for row in self.jvm.rows(rows, kinds, self._row_type(table)):
            extractor.setRecord(row)
            bucket = assigner.assign(extractor.partition(), extractor.trimmedPrimaryKey().hashCode())
            write.write(row, bucket)

    def _write_across(self, table: Any, write: Any, rows: pa.Table, kinds: list[str]) -> None:
        """Keys across partitions: Java's own assigner, with the keys of the newest snapshot, as its batch jobs do."""
        assigner = self._paimon.crosspartition.GlobalIndexAssigner(table)
        assigner.open(1 << 20, self._io_manager(), 1, 0, self.jvm.writer_of_buckets(write))
        keys = self._paimon.crosspartition.IndexBootstrap(table)
        keys.bootstrap(
            1, 0, self.jvm.consumer("crosspartition.GlobalIndexAssigner", "bootstrapKey", assigner)
        )
        for row in self.jvm.rows(rows, kinds, self._row_type(table)):
            assigner.processInput(row)
        assigner.endBoostrap(True)
        assigner.close()

    def _compact_append(self, table: Any) -> None:
        builder = self._paimon.table.sink.BatchWriteBuilderImpl(table)
        write = self._writer(builder)
        tasks = self._paimon.append.AppendCompactCoordinator(table, False).run()
        messages = self.jvm.java.util.ArrayList()
        for task in tasks:
            messages.add(task.doCompact(table, write.getWrite()))
        Prepared(builder, write, messages).commit()

    def _audit(self, location: Path, options: Mapping[str, str]) -> Any:
        return self._paimon.table.system.AuditLogTable(self.table(location, options))

    def _predicate(self, row_type: Any, column: str, test: str, value: str | None) -> Any:
        builder = self._paimon.predicate.PredicateBuilder(row_type)
        position = builder.indexOf(column)
        if value is None:
            return getattr(builder, test)(position)
        return self.jvm.compare(builder, test, (position, row_type.getTypeAt(position)), value)

    def _open(self, builder: Any, splits: Any) -> Any:
        read = builder.newRead().withIOManager(self._io_manager())
        return self.jvm.call(
            read, "table.source.TableRead", "createReader", splits=("java.util.List", splits)
        )

    def _io_manager(self) -> Any:
        return self._paimon.disk.IOManager.create(str(self.jvm.folder))

    def _row_type(self, table: Any) -> Any:
        return self.jvm.call(table, "table.FileStoreTable", "rowType")

    def _bucket_mode(self, table: Any) -> str:
        return str(self.jvm.call(table, "table.FileStoreTable", "bucketMode").toString())

    def _schemas(self, location: Path) -> Any:
        return self._paimon.schema.SchemaManager(self.jvm.files, self.jvm.path(location))

    def _type(self, text: str) -> Any:
        return self._paimon.types.DataTypeJsonParser.parseAtomicTypeSQLString(text)


class Prepared:
    """A Java write whose files exist and whose commit is still to come."""

    def __init__(self, builder: Any, write: Any, messages: Any) -> None:
        """All three are Java objects of one write."""
        self._builder, self._write, self._messages = builder, write, messages

    def commit(self) -> None:
        """Make it visible."""
        commit = self._builder.newCommit()
        commit.commit(self._messages)
        commit.close()
        self._write.close()


class JavaStream:
    """One streaming read; `poll` goes on where the last one ended."""

    def __init__(self, java: JavaPaimon, audit: Any, builder: Any) -> None:
        """`audit` is the AuditLogTable that `builder` reads."""
        self._java, self._audit, self._builder = java, audit, builder
        self._scan = builder.newStreamScan()

    def keep_progress(self) -> int:
        """Write the progress of the stream's consumer, as a checkpoint does; its next snapshot."""
        following = self._scan.checkpoint()
        self._scan.notifyCheckpointComplete(following)
        return int(following)

    def poll(self) -> list[tuple[int, list[Change]]]:
        """(snapshot, changes) of every plan with rows, until the newest snapshot is behind the stream."""
        newest = self._audit.snapshotManager().latestSnapshotId()
        batches: list[tuple[int, list[Change]]] = []
        while newest is not None:
            splits = self._scan.plan().splits()
            following = self._scan.checkpoint()
            if not splits.isEmpty():
                batches.append(
                    ((following or 1) - 1, self._java.load_changes(self._builder, self._audit, splits))
                )
            if following is not None and following > newest:
                break
        return batches
