"""What a table's options mean for its rows and files: each option is read here or in row_traits, and nowhere else in
`store`.

CHANGE     the effect of an option on rows and files of a table
INVARIANT  a value like its schema: equal schemas have equal traits, wherever they are computed.
INVARIANT  absent on disk is not absent in our option table: what other engines decide by an absent option
           (`changelog-producer`, `deletion-vectors.enabled`) has the format's default here. Tables of ours name both.
WHY        parsed when asked: a strange value of an option that a reader does not need must not keep it from reading.
Elsewhere  which values are refused: format.capability, options.
"""

# ruff: noqa: PLC0415 - imports in functions: a table that needs none of it loads none of it (decision 0137)
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from tablestore_engine.format.data_file import key_value_schema
from tablestore_engine.store.row_traits import RowTraits

if TYPE_CHECKING:
    from tablestore_engine.format.file_index_columns import IndexedColumn
    from tablestore_engine.format.manifest_compaction import MergeLimits
    from tablestore_engine.options import StatsMode
    from tablestore_engine.store.retention import DoneRule, PartitionRule, Retention
    from tablestore_engine.store.tag_period import TagRule

KEYED_FILE_BYTES = 128 << 20
APPEND_FILE_BYTES = 256 << 20
APPEND_GROUP_ROWS = 131_072


def has_log(options: Mapping[str, str]) -> bool:
    """Whether a table of these options publishes its changelog."""
    return options.get("log.system", "none") != "none"


@dataclass(frozen=True)
class TableTraits(RowTraits):
    """With those of row_traits. Answers raise what OptionSet raises."""

    @cached_property
    def stored_schema(self) -> pa.Schema:
        """Columns of the files of a keyed table, made once for all files of a commit."""
        return key_value_schema(self.schema)

    @cached_property
    def amplification_max(self) -> int | None:
        """Percent: upper runs with more bytes than this share of the lowest are compacted into it."""
        return self._options.find_integer("compaction.max-size-amplification-percent")

    @cached_property
    def leaves_compaction(self) -> bool:
        """Whether writers leave compaction to dedicated runs."""
        return self._options.text("tablestore.compaction") == "dedicated"

    @cached_property
    def joined_files_min(self) -> int:
        """So many small files of an append-only table are joined."""
        return self._options.integer("compaction.min.file-num")

    @cached_property
    def indexed_columns(self) -> tuple[IndexedColumn, ...]:
        """Columns whose new data files get an index."""
        from tablestore_engine.format.file_index_columns import indexed_columns

        return indexed_columns(self.schema)

    @cached_property
    def reads_indexes(self) -> bool:
        """Whether readers leave files out by their indexes."""
        return self._options.boolean("file-index.read.enabled")

    @cached_property
    def embedded_index_bytes(self) -> int:
        """The indexes of a file are in its manifest entry up to this size."""
        return self._options.size_bytes("file-index.in-manifest-threshold")

    @cached_property
    def retention(self) -> Retention:
        """How long snapshots stay."""
        from tablestore_engine.store.retention import Retention

        return Retention(
            keep_min=self._options.integer("snapshot.num-retained.min"),
            keep_max=self._options.find_integer("snapshot.num-retained.max"),
            retained_ms=self._options.duration_ms("snapshot.time-retained"),
            grace_ms=self._options.duration_ms("tablestore.expire-grace"),
            limit=self._options.integer("snapshot.expire.limit"),
            consumer_idle_ms=self._options.find_duration_ms("consumer.expiration-time"),
        )

    @cached_property
    def staged_retention_ms(self) -> int | None:
        """How long a staged snapshot is kept that nobody publishes; None: without end."""
        return self._options.find_duration_ms("tablestore.staged-retention")

    @cached_property
    def scan_mode(self) -> str:
        """Where readers that follow the table begin."""
        return self._options.text("scan.mode")

    @cached_property
    def read_mode(self) -> str | None:
        """Where readers that follow the table find changes: file or log; None: as fits its log."""
        return self._options.find("streaming-read-mode")

    @cached_property
    def is_eventual(self) -> bool:
        """Whether its log has changes before their snapshot."""
        return has_log(self.schema.options) and self._options.text("log.consistency") == "eventual"

    @cached_property
    def normalizes(self) -> bool:
        """Whether readers of an upsert log get changes instead of messages."""
        return not self._options.boolean("scan.remove-normalize")

    @cached_property
    def ignores_progress(self) -> bool:
        """Whether consumers begin as the mode says, though they have been here before."""
        return self._options.boolean("consumer.ignore-progress")

    @cached_property
    def partition_rule(self) -> PartitionRule | None:
        """Which partitions expire; None: none does. Raises Unsupported TS1136, TS1137 for rules that are not built."""
        from tablestore_engine.options import check_expiration_strategy
        from tablestore_engine.store.retention import PartitionRule

        if self._options.find("partition.expiration-time") is None or not self.schema.partition_keys:
            return None
        check_expiration_strategy(self._options)
        return PartitionRule(
            retained_ms=self._options.duration_ms("partition.expiration-time"),
            pattern=self._options.find("partition.timestamp-pattern"),
            time_format=self._options.time_format("partition.timestamp-formatter"),
            most=self._options.integer("partition.expiration-max-num"),
        )

    @property
    def done_rule(self) -> DoneRule:
        """Whether it makes sense: expiry.done_rule."""
        from tablestore_engine.store.retention import DoneRule

        options = self._options
        return DoneRule(
            tuple(one.strip() for one in options.text("partition.mark-done-action").split(",")),
            options.find("partition.mark-done-action.http.url"),
            options.find("partition.mark-done-action.http.params"),
            on_commit=options.boolean("partition.end-input-to-done"),
            idle_ms=options.find_duration_ms("partition.idle-time-to-done"),
            interval_ms=options.find_duration_ms("partition.time-interval"),
            pattern=options.find("partition.timestamp-pattern"),
            time_format=options.time_format("partition.timestamp-formatter"),
        )

    @cached_property
    def tag_rule(self) -> TagRule | None:
        """Which tags commits make; None: none. Raises FixRequest TS1376."""
        options = self._options
        if options.text("tag.automatic-creation") == "none":
            return None
        from tablestore_engine.store.tag_period import make_rule

        return make_rule(
            options.text("tag.creation-period"),
            options.duration_ms("tag.creation-delay"),
            options.find_integer("tag.num-retained-max"),
            self.tag_retained,
        )

    @cached_property
    def tag_retained(self) -> timedelta | None:
        """How long a new tag stays; None: until it is deleted."""
        found = self._options.find_duration_ms("tag.default-time-retained")
        return None if found is None else timedelta(milliseconds=found)

    @cached_property
    def expires_tags(self) -> bool:
        """Whether a tag goes when the time for which it was to be kept is over."""
        return self._options.boolean("tag.time-expire-enabled")

    @cached_property
    def partition_interval_ms(self) -> int:
        """How long a process lets pass between two looks for expired partitions; 0: none."""
        return self._options.duration_ms("partition.expiration-check-interval")

    @cached_property
    def expires_on_commit(self) -> bool:
        """Whether each commit takes away what is due. `write-only` of another engine's table says that a job does."""
        said = self._options.find("tablestore.expire-on-commit")
        if said is not None:
            return self._options.boolean("tablestore.expire-on-commit")
        is_ours = "tablestore.table-uuid" in self.schema.options
        return is_ours or not self._is_stored("write-only")

    # ---- metadata of other formats -------------------------------------------------------------------------

    @cached_property
    def iceberg_storage(self) -> str | None:
        """Where Iceberg metadata is written; None: nowhere. Raises FixRequest TS1004 for a place that is not known."""
        storage = self._options.text("metadata.iceberg.storage")
        return None if storage == "disabled" else storage

    @cached_property
    def iceberg_catalog(self) -> str | None:
        """The catalog of pyiceberg's configuration that has an entry of the table; None: no one."""
        return self._options.find("metadata.iceberg.catalog") or None

    @cached_property
    def iceberg_format(self) -> int:
        return int(self._options.text("metadata.iceberg.format-version"))

    # ---- places --------------------------------------------------------------------------------------------

    @cached_property
    def bucket_function(self) -> str:
        """Which hash finds the bucket of a row."""
        return self._stored("bucket-function.type", "default")

    @cached_property
    def bucket_rows_target(self) -> int:
        """Dynamic buckets: how many keys a bucket gets."""
        return self._options.integer("dynamic-bucket.target-row-num")

    @cached_property
    def dynamic_buckets_max(self) -> int | None:
        """Dynamic buckets: at most so many in a partition; None: no bound of the table's."""
        most = self._options.integer("dynamic-bucket.max-buckets")
        return most if most > 0 else None

    @cached_property
    def has_log(self) -> bool:
        """Whether changes go to a log, which has one partition per bucket."""
        return has_log(self.schema.options)

    @cached_property
    def log_takes_inserts_only(self) -> bool:
        """Whether the log cannot say that a row is gone, and may not keep silent about it either."""
        is_plain = self._options.text("log.format") == "json"
        has_tombstones = self.schema.is_keyed and self._options.text("log.changelog-mode") != "all"
        silent = has_tombstones or self._options.boolean("log.ignore-delete")
        return self.has_log and is_plain and not silent

    @cached_property
    def log_start_snapshot(self) -> int | None:
        """The snapshot whose rows the log begins with, if it began so."""
        key = "tablestore.log-start-snapshot"
        return self._options.integer(key) if self._options.find(key) else None

    @cached_property
    def retries_max(self) -> int:
        """How often a commit that others overtook is planned again."""
        return self._options.integer("commit.max-retries")

    # ---- manifests -----------------------------------------------------------------------------------------

    @cached_property
    def manifest_compression(self) -> str:
        return self._options.text("manifest.compression")

    @cached_property
    def manifest_bytes(self) -> int:
        """Size at which a manifest is closed."""
        return self._options.size_bytes("manifest.target-file-size")

    @cached_property
    def manifest_limits(self) -> MergeLimits:
        """When manifests of the base list are written anew."""
        from tablestore_engine.format.manifest_compaction import MergeLimits

        return MergeLimits(
            target_bytes=self.manifest_bytes,
            full_bytes=self._options.size_bytes("manifest.full-compaction-threshold-size"),
            merge_min_count=self._options.integer("manifest.merge-min-count"),
        )

    # ---- files ---------------------------------------------------------------------------------------------

    @cached_property
    def target_bytes(self) -> int:
        """Size at which a file is closed: option `target-file-size`, 128 MB for keyed and 256 MB for append tables."""
        if self._options.find("target-file-size") is None:
            return KEYED_FILE_BYTES if self.schema.is_keyed else APPEND_FILE_BYTES
        return self._options.size_bytes("target-file-size")

    @cached_property
    def group_rows(self) -> int:
        """Rows of a row group: few where single keys are looked up."""
        return self._options.integer("parquet.row-group-rows") if self.schema.is_keyed else APPEND_GROUP_ROWS

    @cached_property
    def level_codecs(self) -> Mapping[int, str]:
        """Codecs of data files of the levels that have one of their own."""
        given = (self._options.find("file.compression.per.level") or "").split(",")
        pairs = (one.split(":") for one in given if one)
        return {int(level): codec for level, codec in pairs}

    def compression_of(self, level: int) -> tuple[str, int | None]:
        """Codec of data files of a level of the LSM tree, and the codec's own level where it has one."""
        codec = self.level_codecs.get(level) or self._options.text("file.compression")
        return codec, self._options.integer("file.compression.zstd-level") if codec == "zstd" else None

    @cached_property
    def stats_modes(self) -> tuple[StatsMode, ...]:
        """How much of each column's values goes into the metadata, in the order of the columns."""
        return tuple(self._options.stats_mode(column.name) for column in self.schema.fields)
