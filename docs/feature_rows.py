"""What tables of Apache Paimon can have, and which of it this engine writes, reads or refuses: a row for each feature.

INVARIANT  every refusal of capability.py and not_built.py stands in exactly one row, and every row that is not refused
           names a test that shows the feature: tests/house/test_features.py. Who removes a refusal says here what
           proves the feature; who adds one says here which feature it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class State(Enum):
    """What this engine does with a feature."""

    SUPPORTED = "supported"
    READABLE = "readable"  # tables of other engines that have it are read, and not written
    OTHER = "another way"  # its option is refused; the note names what takes its place
    REFUSED = "refused"


@dataclass(frozen=True)
class Feature:
    """`tests`: ``path::function`` from the root; `refusals`: names of capability.py and keys of not_built.py."""

    name: str
    state: State
    note: str = ""
    tests: tuple[str, ...] = ()
    refusals: tuple[str, ...] = ()


IT, UNIT, STORE = "integration_tests", "tests/unit", "tests/unit/store"
_REFUSED = f"{UNIT}/format/test_capability.py::test_refused_options"


def _has(name: str, *tests: str, note: str = "", refusals: tuple[str, ...] = ()) -> Feature:
    return Feature(name, State.SUPPORTED, note, tests, refusals)


def _reads(name: str, note: str, *refusals: str, test: str = _REFUSED) -> Feature:
    return Feature(name, State.READABLE, note, (test,), refusals)


def _other(name: str, note: str, *refusals: str) -> Feature:
    return Feature(name, State.OTHER, note, (), refusals)


def _refuses(name: str, note: str, *refusals: str) -> Feature:
    return Feature(name, State.REFUSED, note, (_REFUSED,), refusals)


FEATURES: dict[str, tuple[Feature, ...]] = {
    "Reads": (
        _has(
            "newest state",
            f"{IT}/interop/test_theirs_read_by_us.py::test_java_tables_read_equal_at_every_snapshot",
        ),
        _has(
            "time travel by snapshot, tag and time",
            f"{IT}/spark/test_resolver.py::test_time_travel",
            f"{STORE}/test_tags.py::test_a_tag_names_a_snapshot_and_reads_it",
        ),
        _has(
            "changes between two snapshots or tags, with row kinds",
            f"{IT}/spark/test_change_views.py::test_every_range_of_a_keyed_table",
            f"{UNIT}/cli/test_diff.py::test_changelog_of_tags",
        ),
        _has(
            "streaming from the newest or a past snapshot",
            f"{IT}/interop/test_streaming_reads.py::test_a_reader_gets_what_javas_stream_gets",
        ),
        _has("hybrid reads", f"{IT}/kafka/test_trouble.py::test_hybrid_read_at_every_snapshot"),
        _has(
            "merge-on-read, under every merge engine",
            f"{STORE}/test_scan.py::test_merge_on_read_tables_of_others_show_the_newest_rows",
            f"{IT}/interop/test_merge_engines.py::test_java_s_table_that_merges_on_read_is_read_and_converted",
        ),
        _has(
            "consumers that hold back expiry",
            f"{IT}/interop/test_streaming_reads.py::test_we_honour_javas_consumer",
            f"{IT}/interop/test_streaming_reads.py::test_java_honours_our_consumer",
        ),
        _has(
            "filters that leave out partitions, files and row groups",
            f"{STORE}/test_group_pruning.py::test_each_type_is_pruned_or_refused",
            f"{IT}/spark/test_skipping.py::test_random_conditions_answer_as_all_files_do",
        ),
        _has(
            "count, sum, min and max of whole tables answered without Spark",
            "tests/unit/warehouse/test_aggregate_answer.py::test_random_tables_answer_as_all_their_rows_do",
            f"{IT}/spark/test_data_tests_without_spark.py::test_aggregates_of_columns_are_those_of_spark",
        ),
        _has(
            "queries of keys answered without Spark",
            "tests/unit/warehouse/test_key_answer.py::test_random_tables_answer_as_all_their_rows_do",
            f"{IT}/spark/test_key_reads.py::test_random_texts_of_keys_are_answered_without_spark_as_spark_does",
        ),
        _has("look-up of keys", f"{STORE}/test_key_lookup.py::test_filter_of_one_key_decodes_one_row_group"),
        _has(
            "system tables, also `$audit_log`, `$binlog`, `$ro`",
            f"{IT}/interop/test_system_tables.py::test_a_table_of_java_shows_the_same_here",
            f"{IT}/interop/test_system_tables.py::test_a_table_of_ours_shows_the_same_in_java",
        ),
        _has(
            "time travel to a watermark",
            "tests/unit/catalog/test_watermarks.py::test_the_first_snapshot_that_has_reached_it_is_read",
            f"{IT}/interop/test_watermarks.py::test_java_reads_the_same_snapshot_for_a_watermark",
        ),
        _other(
            "options that make every read one of the past, of a range or of a branch",
            "the read itself names the state: `.at(…)`, `VERSION AS OF`, `$branch_x`",
            "fixed scan position",
            "scan mode in the past",
            "incremental scan",
            "fallback branch",
            r"incremental-between.*",
            r"branch",
        ),
        _other("consumer-id as an option of the table", "a reader gives its own", r"consumer-id"),
        _other(
            "readers that pass overwrites over",
            "readers that follow a table always get the changes of an overwrite",
            r"streaming-read-(overwrite|append-overwrite)",
        ),
    ),
    "Writes": (
        _has(
            "insert, upsert, delete, update, merge",
            f"{IT}/spark/test_statement_runner.py::test_merge",
            f"{IT}/interop/test_through_spark.py::test_sql_of_ours_is_read_by_others",
        ),
        _has(
            "static and dynamic overwrite",
            f"{STORE}/test_write.py::test_dynamic_overwrite_touches_only_partitions_in_the_rows",
            f"{STORE}/test_write.py::test_static_overwrite_fills_in_and_checks_its_partition",
        ),
        _has(
            "writers at once, and a compaction beside them",
            f"{IT}/kills/test_killed_writers.py::test_killed_writers_lose_and_double_nothing",
            f"{STORE}/test_compaction.py::test_a_writer_leaves_folds_to_a_dedicated_compaction",
        ),
        _has(
            "CDC from Debezium, Canal and Maxwell, whole databases",
            f"{IT}/ingest/test_topics.py::test_histories_of_each_format",
            f"{IT}/ingest/test_databases.py::test_rows_and_changes_of_all_tables",
        ),
        _has("streaming writes of Spark", f"{IT}/spark/test_sink.py::test_a_table_is_followed_into_another"),
        _other(
            "keys and partitions as options",
            "`PRIMARY KEY (…)` and `PARTITIONED BY (…)`, or `primary_key` and `partition_by`",
            r"primary-key|partition",
        ),
    ),
    "Merge engines": (
        _has("deduplicate", f"{IT}/interop/test_in_turns.py::test_java_writes_fully_in_turns_with_us"),
        _has(
            "first-row, aggregation, partial-update with sequence groups",
            f"{IT}/interop/test_merge_engines.py::test_our_tables_and_java_s_have_equal_rows",
            f"{IT}/interop/test_merge_engines.py::test_a_table_written_in_turns_has_the_rows_of_java_alone",
        ),
        _has(
            "sequence.field, also of several columns",
            "tests/laws/test_merge_engine_laws.py::test_the_sequence_field_orders_what_meets",
        ),
        _has(
            "ignore-delete, also under its older names",
            f"{STORE}/test_first_row.py::test_retraction_is_refused_or_ignored",
        ),
        _refuses(
            "aggregate functions rbm64 and sketches",
            "their bytes are those of a Java library",
            "aggregate function",
        ),
        _other(
            "options of aggregate functions that are not built",
            "another function",
            r"fields\..+\.(nested-key-null-strategy|nested-sequence-field)",
        ),
        _has(
            "row kinds from a column, ignored updates",
            f"{STORE}/test_kind_column.py::test_the_column_says_what_a_row_does",
            f"{IT}/interop/test_merge_engines.py::test_our_tables_and_java_s_have_equal_rows",
        ),
        _reads(
            "row kinds from a column without a key",
            "rows without a key only add",
            "row kind column of another kind",
        ),
        _refuses("nullable primary keys", "keys are NOT NULL here", "nullable primary key"),
        _has(
            "record-level.expire-time",
            f"{STORE}/test_record_expiry.py::test_expired_rows_are_deletes_of_a_compaction",
            f"{IT}/interop/test_row_rules.py::test_both_expire_the_same_records",
            note="by a requested compaction",
        ),
        _has(
            "defaults of columns, fields.*.default-value",
            f"{UNIT}/api/test_column_defaults.py::test_null_becomes_the_default_in_each_write",
            f"{IT}/interop/test_row_rules.py::test_both_write_the_same_defaults",
        ),
        _reads(
            "defaults of nested and zoned columns",
            "their texts mean different values in different engines",
            "default of another engine",
        ),
    ),
    "Changelog and log system": (
        _has(
            "producers none, input and lookup, and changes between them",
            f"{IT}/interop/test_changelog.py::test_java_sees_each_of_our_changes_once",
            f"{IT}/interop/test_changelog_producers.py::test_our_changelog_is_java_s",
        ),
        _has(
            "row-deduplicate, with ignored columns",
            "tests/unit/store/test_task_runner.py::test_identical_row",
            f"{STORE}/test_changelog_producers.py::test_ignored_columns_are_stored_and_not_told",
        ),
        _reads("producer full-compaction", "Paimon refuses it beside deletion vectors", "changelog producer"),
        _has(
            "Kafka as log system: transactional, exactly once",
            f"{IT}/kafka/test_exactly_once.py::test_kill_at_every_point_then_run_again",
        ),
        _has(
            "Kafka as log system: eventual, normalized by the reader",
            f"{IT}/kafka/test_eventual.py::test_rows_are_visible_before_their_snapshot",
        ),
        _has(
            "log.format json and avro, log.changelog-mode, retention",
            f"{IT}/kafka/test_registry.py::test_a_history_comes_back_from_each_format",
            f"{IT}/interop/test_flink_formats.py::test_flink_reads_every_type_and_kind_of_json",
        ),
        _reads(
            "changelogs that outlive snapshots",
            "keep snapshots for longer",
            "changelogs that outlive snapshots",
            r"changelog\.(num-retained\.(min|max)|time-retained)",
        ),
    ),
    "Layout and files": (
        _has("partitions", f"{IT}/interop/test_in_turns.py::test_partitions_of_both_are_one"),
        _has(
            "fixed buckets, bucket functions default, mod and hive",
            f"{IT}/interop/test_in_turns.py::test_both_put_every_type_of_key_into_the_same_bucket",
        ),
        _has(
            "append tables with and without buckets",
            f"{IT}/interop/test_in_turns.py::test_append_table_in_turns",
        ),
        _has(
            "dynamic buckets, the number of buckets chosen at creation",
            f"{IT}/interop/test_in_turns.py::test_both_assign_dynamic_buckets_in_turns",
        ),
        _has(
            "keys across partitions, with fixed and dynamic buckets",
            f"{STORE}/test_key_moves.py::test_random_history_has_each_key_once",
            f"{IT}/interop/test_keys_across_partitions.py::test_both_move_keys_in_turns",
            note="not with sequence.field, nor (deduplicate) with ignore-delete; index-ttl has no effect",
        ),
        _reads(
            "a Kafka log of keys across partitions",
            "the delete in the old partition and the new row may come in any order",
            "log of keys across partitions",
            test=f"{UNIT}/format/test_capability.py::test_shapes_that_are_only_read",
        ),
        _reads(
            "fixed buckets without a key",
            "Paimon makes no such table, and its versions disagree on the bucket of a row",
            "fixed buckets without key",
            test=f"{IT}/interop/test_append_layout.py::test_java_refuses_fixed_buckets_without_a_key",
        ),
        _reads("bucket functions of others", "the bucket of a row is not known", "bucket function"),
        _reads(
            "postponed buckets",
            "rows wait for a compaction of Flink; no engine shows them before",
            "postponed bucket",
        ),
        _refuses(
            "merge engines and bucket counts that Paimon does not have",
            "what they mean is not known",
            "merge engine",
            "bucket count",
        ),
        _has("rescale", f"{IT}/interop/test_lifecycle.py::test_rescaled_tables_go_on"),
        _has(
            "deletion vectors of 32 and 64 bits",
            f"{STORE}/test_vector_forms.py::test_new_vectors_have_the_form_of_the_option",
            f"{IT}/interop/test_append_deletes.py::test_deletes_of_all_engines_in_turns",
        ),
        _reads(
            "vectors with level 0 merged at read",
            "writers here take level 0 in, so that no reader has to merge",
            "merge on read of level 0",
            test=f"{IT}/interop/test_row_rules.py::test_level_zero_is_merged_into_vectors_as_after_a_compaction",
        ),
        _has("compaction", f"{STORE}/test_maintenance.py::test_runs_of_a_bucket_stay_bounded"),
        _has(
            "compaction of append tables, with buckets and without",
            f"{STORE}/test_append_compaction.py::test_random_histories_have_the_rows_of_a_list",
            f"{IT}/interop/test_append_layout.py::test_both_compact_the_buckets_of_an_append_table",
        ),
        _has(
            "clustering of append tables: order, zorder, hilbert, incremental",
            f"{STORE}/test_clustering.py::test_a_filter_of_any_clustered_column_reads_fewer_files",
            f"{STORE}/test_clustering.py::test_random_tables_have_the_same_rows_and_right_filters",
            f"{IT}/interop/test_append_layout.py::test_both_cluster_an_append_table",
        ),
        _other(
            "clustering by writers, the order of keys",
            "rows are sorted by compactions, or have the order of the key",
            r"clustering\.(?!(columns|strategy|incremental)\Z).+",
            "clustered keys",
        ),
        _has(
            "Parquet with every codec, also by level", f"{STORE}/test_data_files.py::test_every_type_survives"
        ),
        _has(
            "ORC and Avro data files, formats by level: read",
            f"{IT}/interop/test_theirs_read_by_us.py::test_java_tables_read_equal_at_every_snapshot",
            f"{IT}/interop/test_in_turns.py::test_table_of_another_format_is_written_once_it_says_parquet",
            note="not ORC with timestamps (TS1377)",
        ),
        _reads(
            "ORC and Avro data files: written",
            "set `file.format` to parquet: older files stay readable",
            "file format",
            "changelog file format",
            "format per level",
        ),
        _reads(
            "data files in folders outside of the table (data-file.external-paths)",
            "where the profile allows the folder: `external_paths`",
            "external data files",
            test=f"{IT}/interop/test_external_paths.py::test_javas_external_files_are_read",
        ),
        _refuses(
            "data and index files in other folders of the table",
            "only bucket folders are read",
            "data directory",
            "index files beside data",
            r"index-file-in-data-file-dir",
        ),
        _refuses(
            "manifests that are not Avro",
            "manifests are read as Avro",
            "manifest format",
            r"manifest\.format",
        ),
        _refuses(
            "maps in another layout", "tables of Paimon 2, whose maps no reader here knows", "map layout"
        ),
        _has(
            "bloom-filter and bitmap file indexes",
            f"{IT}/interop/test_file_indexes.py::test_java_finds_rows_by_our_indexes_and_reads_them",
        ),
        _refuses(
            "other file indexes and global indexes",
            "file indexes are bloom filters and bitmaps",
            r"file-index\.(?!(bloom-filter\.(columns|.+\.(items|fpp))|bitmap\.columns|in-manifest-threshold|"
            r"read\.enabled)\Z).+",
            r"global-index\..+",
            "primary key index",
        ),
    ),
    "Snapshots and maintenance": (
        _has("expiry", f"{IT}/interop/test_in_turns.py::test_java_reads_what_we_expired"),
        _has(
            "orphan files, dry run",
            f"{STORE}/test_orphans.py::test_what_nobody_names_goes_and_all_the_rest_reads_as_before",
        ),
        _has("manifest compaction", f"{STORE}/test_maintenance.py::test_manifests_are_merged"),
        _has("rollback and restore", f"{IT}/interop/test_lifecycle.py::test_restored_tables_go_on"),
        _has("tags made by hand", f"{IT}/interop/test_in_turns.py::test_tags_of_java_are_ours"),
        _has(
            "tags made by commits for each period, tags with a retention",
            f"{STORE}/test_automatic_tags.py::test_random_histories_have_the_tags_of_a_walk_over_all_snapshots",
            f"{STORE}/test_automatic_tags.py::test_tags_go_when_their_time_is_over",
        ),
        _reads(
            "tags by watermark or batch, or named by numbers; callbacks",
            "commits make tags by the time of their snapshot, and call no Java class",
            "tags by another rule",
            "commit callbacks",
            r"(commit|tag)\.callbacks?(\..+)?|commit\.callback\..+",
            r"tag\.(period-formatter|creation-period-duration)",
            r"tag\.(automatic-completion|batch\..+|create-success-file|callback.*)",
        ),
        _has(
            "branches, fast-forward",
            f"{IT}/interop/test_branches.py::test_a_branch_is_made_written_and_brought_to_main_by_both",
            f"{IT}/spark/test_branch_writes.py::test_statements_change_the_branch_alone",
            f"{IT}/adapter/test_branch_runs.py::test_a_build_on_a_branch_leaves_main_and_comes_to_it_by_fast_forward",
        ),
        _has("expiry of partitions", f"{IT}/interop/test_partition_expiry.py::test_java_sees_the_same_times"),
        _has(
            "partitions dropped by a condition",
            f"{STORE}/test_drop_partitions.py::test_partitions_of_each_type_are_dropped",
        ),
        _has(
            "partitions marked as done: success-file, http-report, idle time",
            f"{STORE}/test_done_partitions.py::test_commits_mark_what_is_idle_once",
            f"{STORE}/test_done_partitions.py::test_a_report_goes_to_the_server",
        ),
        _other(
            "partitions marked in a metastore, or by a Java class",
            "a snapshot with its tests says that rows are complete (publishing.md)",
            r"partition\.mark-done(-action\.(custom\.class|mode)|\.recover-from-state)",
        ),
        _has(
            "conversion of tables of others",
            f"{IT}/interop/test_conversion.py::test_converted_table_of_java_is_written_in_turns",
        ),
    ),
    "Catalogs, stores and readers": (
        _has("file system catalog", f"{IT}/interop/test_lifecycle.py::test_system_tables_of_java_read_ours"),
        _other(
            "Hive, JDBC and REST catalogs of Paimon",
            "a table is found by its folder in the warehouse, and so are tables by readers with such a catalog",
        ),
        _other(
            "HDFS, OSS and other stores of Hadoop", "local folders, S3-compatible stores, gs:// and az://"
        ),
        _has(
            "S3 without a lock service",
            f"{IT}/s3/test_races.py::test_of_32_racing_claims_of_two_processes_one_wins",
        ),
        _has(
            "ANALYZE: rows, distinct values, NULLs, bounds and lengths in `$statistics`",
            f"{STORE}/test_analyze.py::test_random_tables_are_counted_as_an_oracle_counts_them",
            f"{IT}/interop/test_watermarks.py::test_java_reads_our_statistics_and_keeps_them",
        ),
        _has(
            "Iceberg metadata, also in a catalog",
            f"{IT}/interop/test_iceberg.py::test_iceberg_in_java_reads_every_snapshot",
            f"{IT}/interop/test_iceberg_catalog.py::test_readers_of_the_catalog_see_each_commit",
        ),
        _reads(
            "Iceberg metadata in a catalog of Java, other options of it",
            "no Hive or REST catalog of Java is updated",
            "Iceberg metadata in a catalog",
            r"metadata\.iceberg\.(?!(storage|format-version|catalog)\Z).+",
        ),
        _reads(
            "partitions in a metastore",
            "no metastore is informed",
            "partitions in a metastore",
            r"metastore\..+",
        ),
        _has(
            "read by Java, Flink, Hive, paimon-spark, pypaimon, Rust",
            f"{IT}/interop/test_ours_read_by_others.py::test_java_reads_ours_at_every_snapshot",
            f"{IT}/interop/test_ours_read_by_others.py::test_python_and_rust_read_ours_at_every_snapshot",
            f"{IT}/interop/test_flink_tables.py::test_flink_reads_ours_at_every_snapshot",
            f"{IT}/interop/test_hive.py::test_hive_reads_the_newest_state",
        ),
        _refuses(
            "rows and columns filtered by a server", "its answer is not known here", "authorised queries"
        ),
    ),
    "Columns and types": (
        _has("every type of Paimon but those below", f"{STORE}/test_data_files.py::test_every_type_survives"),
        _has(
            "schema evolution, also inside of rows, arrays and maps",
            f"{IT}/interop/test_in_turns.py::test_schema_changes_of_both_are_followed",
            f"{IT}/spark/test_nested_columns.py::test_fields_of_structs_are_added_renamed_retyped_and_dropped",
        ),
        _has(
            "VARIANT",
            f"{IT}/spark/test_variant.py::test_statements_read_and_write_variants",
            f"{IT}/interop/test_fine_types.py::test_both_write_variants_and_nanoseconds_in_turns",
            note="not published to Kafka (TS1163); shredded files by SQL alone (TS1162)",
        ),
        _has(
            "timestamps finer than microseconds, by Python",
            "tests/unit/store/test_int96.py::test_keys_in_nanoseconds_are_written_and_found",
            f"{IT}/interop/test_fine_types.py::test_both_write_variants_and_nanoseconds_in_turns",
            note="from 1677 to 2262 (TS1164); SQL reads and writes the other columns (TS1575)",
        ),
        _reads(
            "timestamps of two units in one nested column",
            "years beyond those of nanoseconds could not be read again",
            "timestamps of two units in one column",
        ),
        _refuses(
            "BLOB, VECTOR",
            "BLOB needs data evolution, and Java has no Parquet form of VECTOR",
            "BLOB or VECTOR column",
        ),
        _refuses(
            "partitions by binary columns",
            "Java gives the folder another name in each write",
            "binary partition column",
        ),
        _reads(
            "partitions by floating columns",
            "the folder's name differs between versions of Java",
            "floating partition column",
        ),
        _refuses(
            "rows with ids, rows over several files, other numbers of versions, chains",
            "tables of Paimon 2 that other engines write",
            "row tracking",
            "data evolution",
            "snapshot ordering",
            "sequence number mode",
            "chain table",
        ),
        _refuses("object, format and materialized tables", "they hold no rows in this layout", "table type"),
    ),
}
