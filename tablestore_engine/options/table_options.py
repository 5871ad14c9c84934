"""THE table of options: one row each, from which parsing, validation and docs/options.md come.

CHANGE     a table option, its default or its documentation
INVARIANT  an option that the engine reads stands here; one that stands here is read, or REFUSED
           (tests/house/test_options.py). Keys and defaults of Paimon's own options are Paimon's
           (format.md#options) unless the row says otherwise.
INVARIANT  nothing here may hold a secret: table options are stored in schema files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from tablestore_engine.options.field_options import AGGREGATE_FUNCTIONS


class OptionType(StrEnum):
    STRING = "string"
    BOOLEAN = "boolean"
    INTEGER = "integer"
    SIZE = "size"  # 8 mb, 128MB, 1024
    DURATION = "duration"  # 1 h, 30 min, 7 d
    ENUM = "enum"
    COLUMNS = "columns"  # comma-separated column names
    STATS_MODE = "none / counts / truncate(n) / full"


class Scope(StrEnum):
    LAYOUT = "layout"  # where rows lie: cannot change once data exists
    MERGE = "merge"  # how versions of a row become one
    WRITE = "write"  # how files are written
    MAINTENANCE = "maintenance"  # compaction and expiry
    READ = "read"  # readers that follow the table
    LOG = "log"  # the Kafka side
    ENGINE = "engine"  # our own bookkeeping


MERGE_ENGINES = ("deduplicate", "first-row", "aggregation", "partial-update")


@dataclass(frozen=True)
class Option:
    """One row of the table; `default` is text, None means absent; `values`: words of an enum, or instead of a number."""

    key: str
    type: OptionType
    default: str | None
    scope: Scope
    mutable: bool
    doc: str
    values: tuple[str, ...] = ()
    least: int | None = None  # of integers, sizes (bytes) and durations (ms)
    most: int | None = None
    pattern: str | None = None  # what the whole text of a string must match
    old_keys: tuple[
        str, ...
    ] = ()  # earlier names; the first that is set counts where the key itself is absent


_S, _B, _I = OptionType.STRING, OptionType.BOOLEAN, OptionType.INTEGER
_Z, _D, _E, _C = OptionType.SIZE, OptionType.DURATION, OptionType.ENUM, OptionType.COLUMNS
_M = OptionType.STATS_MODE
_LEVEL_CODEC = r"[0-9]{1,3}:(zstd|snappy|gzip|lz4|none)"

# fmt: off
_ROWS = (  # one option, one row
    Option("bucket", _I, None, Scope.LAYOUT, False, "Number of buckets per partition. More buckets write and read in parallel, each costs files per commit. -1: an append-only table has no buckets; one with a primary key gets buckets as keys come (dynamic buckets), found by a hash index. Keyed tables default to 1 here. auto, at creation: one bucket for each 256 MB of a partition of the first write, 1 to 64; 1 for an empty table, -1 without keys. The schema stores the number.", ("auto",)),
    Option("bucket-key", _C, None, Scope.LAYOUT, False, "Columns whose hash picks the bucket; default: the primary key without partition columns."),
    Option("bucket-function.type", _E, "default", Scope.LAYOUT, False, "Hash function of the bucket.", ("default", "mod", "hive")),
    Option("dynamic-bucket.target-row-num", _I, "2000000", Scope.LAYOUT, True, "bucket = -1 with a primary key: new keys go to buckets with fewer keys than this, else to new buckets.", least=1),
    Option("dynamic-bucket.max-buckets", _I, "-1", Scope.LAYOUT, True, "bucket = -1 with a primary key: at most this many buckets in a partition; then they take more keys. -1: no maximum.", least=-1, most=32767),
    Option("partition.default-name", _S, "__DEFAULT_PARTITION__", Scope.LAYOUT, False, "Folder value of a NULL or blank partition value.", pattern=r"(?=.{1,60}\Z)[^\x00-\x1f\x7f]*[^\x00-\x20\x7f][^\x00-\x1f\x7f]*"),
    Option("partition.legacy-name", _B, "true", Scope.LAYOUT, False, "true: DATE partitions are folders named by day number, as Paimon does by default."),
    Option("merge-engine", _E, "deduplicate", Scope.MERGE, False, f"How versions of one key become one row. Built so far: {', '.join(MERGE_ENGINES)}. deduplicate: the newest version. first-row: the first one, for ever; such a table has no deletion vectors. aggregation: each column is an aggregate. partial-update: of each column the newest value that is not NULL.", ("deduplicate", "partial-update", "aggregation", "first-row")),
    Option("fields.<column>.aggregate-function", _E, None, Scope.MERGE, True, "aggregation: how the values of the column become one. Stored rows are not aggregated again after a change.", AGGREGATE_FUNCTIONS),
    Option("fields.default-aggregate-function", _E, None, Scope.MERGE, True, "The same for columns without their own; absent: last_non_null_value.", AGGREGATE_FUNCTIONS),
    Option("fields.<column>.ignore-retract", _B, "false", Scope.MERGE, True, "aggregation: retractions (-U, -D) leave the column as it is."),
    Option("fields.<column>.distinct", _B, "false", Scope.MERGE, True, "listagg and collect: equal parts or elements count once."),
    Option("fields.<column>.list-agg-delimiter", _S, ",", Scope.MERGE, True, "listagg: what stands between two texts."),
    Option("fields.<column>.nested-key", _C, None, Scope.MERGE, True, "nested_update: columns of the rows in the array of which each value is kept once, the newest."),
    Option("fields.<column>.count-limit", _I, None, Scope.MERGE, True, "nested_update without nested-key: rows that come to an array of this length are left out.", least=0),
    Option("fields.<column>.ts-field", _S, None, Scope.MERGE, True, "merge_map_with_keytime: the column of the map's rows that orders them, a STRING. Absent: the last one."),
    Option("fields.<column>.sequence-group", _C, None, Scope.MERGE, True, "partial-update: columns whose newest values are those of the rows with the largest value of this column. Several columns, separated by commas, order together: fields.a,b.sequence-group."),
    Option("fields.<column>.default-value", _S, None, Scope.WRITE, True, "The value that a write stores for NULL, given or missing: a literal of the column's type. It becomes the default of the column in the schema, as DEFAULT in CREATE TABLE. An empty text takes the default away. Rows that are stored stay."),
    Option("partial-update.remove-record-on-delete", _B, "false", Scope.MERGE, False, "partial-update without sequence groups: a -D removes the row of its key. pypaimon refuses tables with it."),
    Option("partial-update.remove-record-on-sequence-group", _C, None, Scope.MERGE, False, "partial-update: a -D that is not late in the sequence group of these columns removes the row."),
    Option("aggregation.remove-record-on-delete", _B, "false", Scope.MERGE, False, "aggregation: a -D removes the row of its key instead of taking its values back. pypaimon refuses tables with it."),
    Option("ignore-delete", _B, "false", Scope.MERGE, False, "true: rows that retract (-U, -D) are left out when they are written, and passed over where they are stored. DELETE and overwrites still take rows away.", old_keys=("first-row.ignore-delete", "deduplicate.ignore-delete", "partial-update.ignore-delete")),
    Option("ignore-update-before", _B, "false", Scope.MERGE, False, "true: rows -U are left out when they are written."),
    Option("rowkind.field", _C, None, Scope.MERGE, False, "Tables with a primary key: the STRING column whose value, +I, -U, +U or -D, says what a row that is written does to its key. The column is stored, too. DELETE, UPDATE and MERGE do not ask it."),
    Option("sequence.field", _C, None, Scope.MERGE, False, "Columns that order versions of a key: a row with an older value never replaces a newer one."),
    Option("sequence.field.sort-order", _E, "ascending", Scope.MERGE, False, "Which end of the sequence field is newest.", ("ascending", "descending")),
    Option("changelog-producer", _E, "lookup", Scope.MERGE, False, "lookup writes the complete changelog with each commit (our default for keyed tables); input writes the rows as they came; none writes none. full-compaction is read only. ALTER TABLE may change it while nothing waits in level 0.", ("none", "input", "lookup", "full-compaction")),
    Option("changelog-producer.row-deduplicate", _B, "false", Scope.MERGE, True, "true: an update with equal values is no change. All columns are compared, which costs time."),
    Option("changelog-producer.row-deduplicate-ignore-fields", _C, None, Scope.MERGE, True, "With row-deduplicate: an update of these columns alone is stored and has no changelog."),
    Option("deletion-vectors.enabled", _B, "true", Scope.MERGE, False, "Mark replaced rows instead of merging at read: reads stay raw. Always true for keyed tables we create, but for first-row, which needs none; append-only tables get it too, so that deletes mark rows instead of rewriting files."),
    Option("deletion-vectors.bitmap64", _B, "false", Scope.MERGE, True, "Write deletion vectors in the 64-bit form, which Paimon's Java readers from 1.0 and Flink know, and pypaimon does not. Readers know both forms."),
    Option("write-only", _B, "true", Scope.MERGE, True, "true: writers of other engines do not compact. They write level 0, which no reader shows before our next commit or compaction. false: they compact, and no other writer may commit meanwhile (engines.md). Our own writers follow tablestore.compaction.", old_keys=("write.compaction-skip",)),
    Option("file.format", _E, "parquet", Scope.WRITE, True, "Format of data files.", ("parquet",)),
    Option("file.compression", _E, "zstd", Scope.WRITE, True, "Parquet codec of data files.", ("zstd", "snappy", "gzip", "lz4", "none")),
    Option("file.compression.per.level", _S, None, Scope.WRITE, True, "Codecs of single levels, as 0:lz4,19:zstd: files that are soon compacted can be written faster than those that stay. Other levels have file.compression.", pattern=rf"{_LEVEL_CODEC}(,{_LEVEL_CODEC})*"),
    Option("file.compression.zstd-level", _I, "1", Scope.WRITE, True, "zstd level: higher is smaller and slower.", least=1, most=22),
    Option("target-file-size", _Z, None, Scope.WRITE, True, "A file is closed at about this size: 128 MB for keyed tables, 256 MB for append-only ones.", least=1),
    Option("parquet.row-group-rows", _I, "8192", Scope.WRITE, True, "Rows per row group of keyed files (ours). Small groups make upserts and point reads cheap, large ones full scans.", least=1),
    Option("manifest.compression", _E, "zstd", Scope.WRITE, True, "Avro codec of manifests; null: not compressed. Only these are known to all engines.", ("zstd", "deflate", "null")),
    Option("manifest.target-file-size", _Z, "8 mb", Scope.MAINTENANCE, True, "Manifests are rolled at this size.", least=1),
    Option("manifest.full-compaction-threshold-size", _Z, "16 mb", Scope.MAINTENANCE, True, "Small manifests and those with deletes are rewritten together when their size reaches this, and a quarter of the size of the others."),
    Option("manifest.merge-min-count", _I, "30", Scope.MAINTENANCE, True, "Small manifests are merged when there are this many."),
    Option("metadata.stats-mode", _M, "truncate(16)", Scope.WRITE, True, "Statistics kept per file and column: none, null counts, also bounds with texts cut at n, or whole bounds. Bounds let readers skip files and are stored in manifests. Those of the key are always kept."),
    Option("fields.<column>.stats-mode", _M, None, Scope.WRITE, True, "The same for one column; absent: as metadata.stats-mode says."),
    Option("file-index.bloom-filter.columns", _C, None, Scope.WRITE, True, "Columns with a bloom filter for each new data file: readers leave out files under = and IN. 600 KB for each file and column by default."),
    Option("file-index.bloom-filter.<column>.items", _I, "1000000", Scope.WRITE, True, "Different values of a file that the filter of the column is made for.", least=1, most=100_000_000),
    Option("file-index.bloom-filter.<column>.fpp", _S, "0.1", Scope.WRITE, True, "Share of values that the filter of the column wrongly takes for its own, between 0 and 1.", pattern=r"0?\.[0-9]{1,9}(?<=[1-9])0*"),
    Option("file-index.bitmap.columns", _C, None, Scope.WRITE, True, "Columns with the rows of each value as bitmaps, exact and for columns of few values: readers leave out files under = and IN."),
    Option("file-index.in-manifest-threshold", _Z, "500 b", Scope.WRITE, True, "Indexes of a file up to this size are in the manifest, larger ones in a file beside the data file (.index)."),
    Option("file-index.read.enabled", _B, "true", Scope.READ, True, "false: readers do not use file indexes."),
    Option("num-levels", _I, "20", Scope.MAINTENANCE, False, "Levels of the LSM tree. Paimon's default is 6; ours is 20 so that compactions are rare."),
    Option("num-sorted-run.compaction-trigger", _I, "5", Scope.MAINTENANCE, True, "Runs of a bucket at which Paimon compacts; we read it only on tables that others made."),
    Option("compaction.max-size-amplification-percent", _I, None, Scope.MAINTENANCE, True, "A bucket whose upper runs are larger than this share of the lowest one, in percent of bytes, is compacted into one run. Absent: off, the number of runs and of deleted rows decide; Paimon's default is 200.", least=1),
    Option("compaction.min.file-num", _I, "5", Scope.MAINTENANCE, True, "Append-only tables: small files are compacted when there are this many; in fixed buckets only neighbours, so that rows keep their order.", least=2),
    Option("clustering.columns", _C, None, Scope.MAINTENANCE, True, "Append tables with bucket = -1: a full compaction sorts the rows of each partition along these columns, so that a filter of them reads fewer files and row groups.", old_keys=("sink.clustering.by-columns",)),
    Option("clustering.strategy", _E, "auto", Scope.MAINTENANCE, True, "How clustering.columns order the rows: order (one after the other), zorder, or hilbert. auto: order for one column, zorder for two to four, hilbert for more.", ("auto", "order", "zorder", "hilbert"), old_keys=("sink.clustering.strategy",)),
    Option("clustering.incremental", _B, "false", Scope.MAINTENANCE, True, "true: commits sort small new files, too, once there are compaction.min.file-num of them, with the sorted files that are hardly larger."),
    Option("tablestore.compaction", _E, "inline", Scope.MAINTENANCE, True, "inline: a commit first compacts what is due. dedicated: writers leave that to `tablestore compact` and compact only a bucket that has no level left; reads open more files until it ran.", ("inline", "dedicated")),
    Option("commit.max-retries", _I, "100", Scope.WRITE, True, "How often a commit that lost the race is planned again on the new snapshot. Paimon's default is 10.", least=0),
    Option("snapshot.time-retained", _D, "1 d", Scope.MAINTENANCE, True, "A snapshot expires with the next commit when it has not been the newest one for this time. Paimon's default is 1 h. A tag keeps a state for longer."),
    Option("snapshot.num-retained.min", _I, "10", Scope.MAINTENANCE, True, "This many of the newest snapshots are kept, whatever their age.", least=1),
    Option("snapshot.num-retained.max", _I, None, Scope.MAINTENANCE, True, "At most this many snapshots are kept, also within snapshot.time-retained. Absent: no maximum.", least=1),
    Option("snapshot.expire.limit", _I, "50", Scope.MAINTENANCE, True, "Maximum number of snapshots that one commit expires.", least=1),
    Option("tablestore.expire-on-commit", _B, None, Scope.MAINTENANCE, True, "true: commits expire snapshots and partitions. false: only `tablestore expire` does. Absent: true for tables of this engine; for tables of other engines the opposite of their write-only."),
    Option("tablestore.expire-grace", _D, "10 min", Scope.MAINTENANCE, True, "A snapshot that was the newest one within this time never expires, because a query may still read it."),
    Option("tablestore.staged-retention", _D, "7 d", Scope.MAINTENANCE, True, "How long a staged snapshot is kept after its newest write. Later it is dropped, with everything that was built from it: by the next dbt command that stages, publishes or tests a model in its database, by `tablestore expire`, `tablestore gc` or `Table.expire`. never: until you drop it. With publish='manual' it is kept as well when all its tests have passed.", ("never",), least=3_600_000),
    Option("partition.expiration-time", _D, None, Scope.MAINTENANCE, True, "Partitions whose time is longer ago than this expire: their rows are deleted in one commit, after a commit or by `tablestore expire --partitions`. Times are UTC. Absent: none does.", least=1),
    Option("partition.expiration-check-interval", _D, "1 h", Scope.MAINTENANCE, True, "How long a process waits, table by table, before a commit looks for expired partitions again; its first commit looks at once (in Paimon none does before the interval is over)."),
    Option("partition.expiration-max-num", _I, "100", Scope.MAINTENANCE, True, "How many partitions expire at once, the oldest first.", least=1),
    Option("partition.expiration-strategy", _E, "values-time", Scope.MAINTENANCE, True, "values-time: the time of a partition is in its values. update-time is refused: deletion vectors and compactions leave no exact time of an update in the metadata.", ("values-time", "update-time")),
    Option("partition.mark-done-action", _S, "success-file", Scope.MAINTENANCE, True, "How `tablestore partition mark-done` and commits mark a partition as done: success-file writes _SUCCESS into its folder, http-report posts to partition.mark-done-action.http.url; both with a comma.", pattern=r"(success-file|http-report)(\s*,\s*(success-file|http-report))*"),
    Option("partition.mark-done-action.http.url", _S, None, Scope.MAINTENANCE, True, "http-report: the address that gets table, path, partition and params as JSON, and answers with a result SUCCESS."),
    Option("partition.mark-done-action.http.params", _S, None, Scope.MAINTENANCE, True, "http-report: the text under params of each report."),
    Option("partition.end-input-to-done", _B, "false", Scope.MAINTENANCE, True, "true: each commit marks the partitions that it wrote as done."),
    Option("partition.idle-time-to-done", _D, None, Scope.MAINTENANCE, True, "Commits mark each partition whose interval has passed and that nothing came to for this time; once, until it changes. Times are UTC."),
    Option("partition.time-interval", _D, None, Scope.MAINTENANCE, True, "How long the time of a partition lasts, from what partition.timestamp-formatter reads: 1 d for days."),
    Option("partition.timestamp-formatter", _S, None, Scope.MAINTENANCE, True, "How the time is written, as Java's DateTimeFormatter says it: yyyy, uuuu, MM, M, dd, d, HH, H, mm, m, ss, s and literals. Absent: yyyy-MM-dd, or yyyy-MM-dd HH:mm:ss."),
    Option("partition.timestamp-pattern", _S, None, Scope.MAINTENANCE, True, "From which partition columns the time is put together, as in $dt or $year-$month-$day $hour:00:00. Absent: the first one."),
    Option("record-level.expire-time", _D, None, Scope.MAINTENANCE, True, "Tables with a primary key: `tablestore compact` and OPTIMIZE delete rows whose time field is longer ago than this. Until then every reader shows them."),
    Option("record-level.time-field", _S, None, Scope.MAINTENANCE, True, "The column that says how old a row is: INT (seconds since 1970), BIGINT (seconds, or milliseconds from 10^12 on) or TIMESTAMP. A row with NULL does not expire."),
    Option("tag.automatic-creation", _E, "none", Scope.MAINTENANCE, True, "process-time: the first commit after the end of a period makes a tag of that period, as in 2026-01-31. Periods are of UTC (in Paimon of the zone of the JVM).", ("none", "process-time")),
    Option("tag.creation-period", _E, "daily", Scope.MAINTENANCE, True, "The period of a tag that a commit makes.", ("daily", "hourly", "two-hours")),
    Option("tag.creation-delay", _D, "0 ms", Scope.MAINTENANCE, True, "How long after the end of a period its tag is made; shorter than the period. Rows that come late are in it."),
    Option("tag.num-retained-max", _I, None, Scope.MAINTENANCE, True, "This many of the tags that commits made are kept; a commit that makes a tag deletes the oldest. Absent: all.", least=1),
    Option("tag.default-time-retained", _D, None, Scope.MAINTENANCE, True, "A new tag is deleted when it is older than this: by a commit that makes a tag, or by `tablestore expire`. Absent: tags stay until they are deleted.", least=1),
    Option("tag.time-expire-enabled", _B, "true", Scope.MAINTENANCE, True, "false: tags stay although the time for which they were to be kept is over."),
    Option("dynamic-partition-overwrite", _B, "true", Scope.WRITE, True, "INSERT OVERWRITE without a partition clause replaces only the partitions that occur in the rows."),
    Option("scan.mode", _E, "latest-full", Scope.READ, True, "Default startup mode of streams. latest-full (also default, full): all rows, then the changes. latest: only later changes. Modes with a snapshot or a time can only be set for one reader, because in a table they would change every batch query of other engines.", ("default", "latest-full", "full", "latest"), old_keys=("log.scan",)),
    Option("streaming-read-mode", _E, None, Scope.READ, True, "Where a reader that follows the table finds changes: file (the table's files, when their snapshot is there) or log. Absent: log for an eventual log, file for all others.", ("file", "log")),
    Option("scan.remove-normalize", _B, "false", Scope.READ, True, "true: a reader of an upsert log gets its messages as they are (the newest row of a key, the key of a deleted one). Else it gets changes: -U +U +I -D, nothing twice.", old_keys=("log.scan.remove-normalize",)),
    Option("consumer.expiration-time", _D, None, Scope.MAINTENANCE, True, "A consumer without progress for this time is deleted when snapshots expire. Absent: consumers are kept until you delete them.", least=1),
    Option("consumer.ignore-progress", _B, "false", Scope.READ, True, "true: a reader with a consumer id starts by its startup mode and ignores the stored progress."),
    Option("log.system", _E, "none", Scope.LOG, False, "kafka: publish each snapshot's changelog to a topic. none: files only.", ("none", "kafka")),
    Option("log.consistency", _E, "transactional", Scope.LOG, True, "transactional: visible only after the snapshot, exactly once. eventual: at once, at least once; the last message of a key is its row. Tables with a key only.", ("transactional", "eventual")),
    Option("log.changelog-mode", _E, "auto", Scope.LOG, False, "upsert: one message per changed key, deletes as tombstones. all: also the row before an update. auto: upsert for keyed tables, all without a key.", ("auto", "all", "upsert")),
    Option("log.format", _E, "debezium-json", Scope.LOG, False, "Encoding of the value. json is the row alone: in mode upsert, where deletes are tombstones, for tables without a key that only grow, else with log.ignore-delete. avro is Debezium's envelope in the wire format of a schema registry, which the profile names.", ("debezium-json", "canal-json", "maxwell-json", "json", "avro")),
    Option("log.key.format", _E, "json", Scope.LOG, False, "Encoding of the key, where the table has one. avro needs a schema registry.", ("json", "avro")),
    Option("log.ignore-delete", _B, "false", Scope.LOG, False, "true: the log has no deletes and no rows before an update. Consumers get inserts only, and are not informed of deleted rows."),
    Option("log.retention", _D, None, Scope.LOG, True, "retention.ms of the topic; a change reaches it with the next publish. Absent: the topic keeps what it has, a new one the broker's default."),
    Option("log.system.partitions", _I, None, Scope.LOG, False, "Topic partitions of a table without buckets; with buckets the topic has one partition per bucket.", least=1, most=100_000),
    Option("log.system.replication", _I, None, Scope.LOG, False, "Replication factor of topics the engine creates; from 3 on they also get min.insync.replicas=2, with 1 it is 1. Absent: the brokers' defaults of both.", least=1, most=32_767),
    Option("log.publish.shards", _I, "1", Scope.LOG, False, "Number of shards that publish the topic's partitions: partition p belongs to shard p modulo this number. Each shard has its own transactions and progress. Spark tasks send large changelogs, one shard each. 1: the driver sends everything. Transactional logs only; at most one shard per partition.", least=1, most=1_000),
    Option("kafka.topic", _S, None, Scope.LOG, False, "The table's topic; its marker topic is <topic>__snapshots. Brokers and everything else that clients need are in the profile (`log:`), never in a table."),
    Option("kafka.compression.type", _E, None, Scope.LOG, True, "Compression of the topic's messages; absent: as the profile says, else lz4.", ("none", "gzip", "snappy", "lz4", "zstd")),
    Option("kafka.linger.ms", _I, None, Scope.LOG, True, "How long the publisher waits to fill a batch; absent: as the profile says, else 20.", least=0, most=900_000),
    Option("kafka.batch.size", _I, None, Scope.LOG, True, "Bytes of a batch; absent: as the profile says, else 1000000.", least=1, most=2_147_483_647),
    Option("kafka.message.max.bytes", _I, None, Scope.LOG, True, "Largest message that the publisher sends, in bytes; absent: as the profile says, else 1000000. The topic's max.message.bytes must allow it too.", least=1_000, most=1_000_000_000),
    Option("kafka.transaction.timeout.ms", _I, None, Scope.LOG, True, "When brokers abort a transaction by themselves; absent: as the profile says, else 120000. At most the brokers' transaction.max.timeout.ms.", least=1_000, most=2_147_483_647),
    Option("metadata.iceberg.storage", _E, "disabled", Scope.MAINTENANCE, True, "Iceberg metadata beside each snapshot, for readers that know Iceberg and not Paimon. table-location: in the folder `metadata` of the table. hadoop-catalog: in `iceberg/<database>/<table>/metadata` of the warehouse. disabled: none.", ("disabled", "table-location", "hadoop-catalog")),
    Option("metadata.iceberg.format-version", _E, "3", Scope.MAINTENANCE, True, "Version of the Iceberg format. 3 has deletion vectors and row ids. 2 has position deletes, a row for each deleted row, for readers without version 3; it is Paimon's default.", ("2", "3")),
    Option("metadata.iceberg.catalog", _S, None, Scope.MAINTENANCE, True, "Name of a catalog in the configuration of pyiceberg. Each commit registers the newest Iceberg metadata there, under the table's name. Needs the extra `iceberg`. Absent: no catalog."),
    Option("tablestore.table-uuid", _S, None, Scope.ENGINE, False, "Identity of the table, given at creation; the Kafka transactional.id is made from it.", pattern="[A-Za-z0-9._-]{1,200}"),
    Option("tablestore.managed-topic", _B, None, Scope.ENGINE, True, "true when the engine created the topic, and so may delete it with the table."),
    Option("tablestore.log-start", _E, "earliest", Scope.ENGINE, True, "First messages of a log that is added to an existing table. earliest: the changes of all snapshots, none of which may have expired. latest: only later changes. latest-full: the current rows, each as +I, then later changes.", ("earliest", "latest", "latest-full")),
    Option("tablestore.log-start-snapshot", _I, None, Scope.ENGINE, True, "Set by the engine for latest-full: the snapshot whose rows are the first messages.", least=1),
    Option("tablestore.duplicates", _E, "refuse", Scope.ENGINE, True, "Two rows of one key in a batch with nothing to order them: refuse them, or let the last one win.", ("refuse", "last")),
)
# fmt: on

# key → why: known, read by nothing, and so accepted from nobody
REFUSED: Mapping[str, str] = MappingProxyType(
    {
        "snapshot.expire.execution-mode": "snapshots expire within the commit, never behind its back; "
        "tablestore.expire-on-commit=false leaves it to `tablestore expire`",
        "partition.expiration-batch-size": "what expires at once is one commit; partition.expiration-max-num bounds it",
        "end-input.check-partition-expire": "the first commit of a process looks for expired partitions anyway",
        **dict.fromkeys(
            ("scan.snapshot-id", "scan.timestamp-millis", "log.scan.timestamp-millis"),
            "every batch query of other engines would read the table as it was then; a reader that follows the table "
            "says it itself: Table.stream(snapshot_id=…, timestamp_ms=…), tablestore tail --snapshot, --timestamp",
        ),
        "tablestore.check": "constraints of a table are not kept; those of a model's contract hold for each of its builds",
    }
)
OPTIONS: Mapping[str, Option] = MappingProxyType({row.key: row for row in _ROWS})
_OLD_KEYS = {old: row for row in _ROWS for old in row.old_keys}
GIVEN_ONCE = frozenset({"tablestore.table-uuid", "tablestore.managed-topic", "tablestore.log-start-snapshot"})
_OF_COLUMN = re.compile(
    r"fields\..+\.(default-value|stats-mode|aggregate-function|ignore-retract|distinct|list-agg-delimiter|sequence-group)"
)
_OF_INDEX = re.compile(r"file-index\.(bloom-filter)\.(.+)\.(items|fpp)")


def find_option(key: str) -> Option | None:
    """The row of `key`, also of its old name; `fields.name.stats-mode` has that of `fields.<column>.stats-mode`."""
    of_column, of_index = _OF_COLUMN.fullmatch(key), _OF_INDEX.fullmatch(key)
    if key in _OLD_KEYS:
        return _OLD_KEYS[key]
    if of_index is not None:
        key = f"file-index.{of_index[1]}.<column>.{of_index[3]}"
    return OPTIONS.get(key if of_column is None else f"fields.<column>.{of_column[1]}")


def is_of_log(key: str) -> bool:
    """Those of all logs, and those of one system alone."""
    return key.startswith(("log.", "kafka."))


def column_of_index_option(key: str) -> tuple[str, str] | None:
    """Index type and column of an option of one column's file index; None for other keys."""
    found = _OF_INDEX.fullmatch(key)
    return None if found is None else (found[1], found[2])
