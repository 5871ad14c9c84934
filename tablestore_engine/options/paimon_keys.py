"""Keys that the engine neither reads nor refuses: Paimon's own, and those that other programs own by a prefix.

Source     docs/generated of Apache Paimon: core_, orc_, flink_connector_ and spark_connector_configuration.html of the
           releases 1.0.0, 1.2.0, 1.4.1, 1.4.2 and 2.0.0, and two of the Kafka log of Flink Table Store (0.2, 0.3)
INVARIANT  what stands in table_options.py or not_built.py is not repeated here.
"""

from __future__ import annotations

_KEYS = """
add-column-before-partition alter-column-null-to-not-null.disabled async-file-write auto-create
blob-as-descriptor blob-compaction.enabled blob-descriptor-field blob-descriptor.source-table
blob-external-storage-field blob-external-storage-path blob-field blob-view-field blob-view.resolve.enabled
blob-write-null-on-fetch-failure blob-write-null-on-missing-file blob.copy-buffer-size blob.split-by-file-size
blob.target-file-size bucket-append-ordered cache-page-size chain-table.chain-partition-keys chain-table.enabled
chain-table.split.key-range-enabled chain-table.streaming.merge-snapshot changelog-file.compression
changelog-file.format changelog-file.prefix changelog-file.stats-mode changelog.precommit-compact
changelog.precommit-compact.thread-num commit.custom-listeners commit.discard-duplicate-files
commit.force-compact commit.force-create-snapshot commit.max-retry-wait commit.min-retry-wait
commit.strict-mode.last-safe-snapshot commit.timeout commit.user-prefix compaction.bucket-distribution-strategy
compaction.delete-ratio-threshold compaction.file-num-limit compaction.force-rewrite-all-files
compaction.force-up-level-0 compaction.incremental-size-threshold compaction.max.file-num
compaction.offpeak-ratio compaction.offpeak.end.hour compaction.offpeak.start.hour
compaction.optimization-interval compaction.size-ratio compaction.skip-expired-partitions
compaction.small-file-ratio compaction.total-size-threshold consumer.changelog-only consumer.mode
continuous.discovery-interval cross-partition-upsert.bootstrap-parallelism cross-partition-upsert.index-ttl
data-evolution.compaction.rewrite-row-ids data-evolution.enabled data-evolution.merge-into.file-pruning
data-evolution.merge-into.source-persist data-evolution.reassign.skip-contiguous-row-count
data-evolution.row-id-conflict-rewrite.max-size data-evolution.row-sidecar.enabled
data-evolution.row-sidecar.max-selected-rows data-evolution.row-sidecar.max-selection-ratio
data-file.external-paths data-file.external-paths.specific-fs data-file.external-paths.strategy
data-file.external-paths.weights data-file.path-directory data-file.prefix data-file.thin-mode
delete-file.thread-num delete.force-produce-changelog deletion-vector.index-file.target-size
deletion-vectors.merge-on-read deletion-vectors.modifiable
disable-explicit-type-casting dynamic-bucket.assigner-parallelism dynamic-bucket.initial-buckets
end-input.watermark file-operation.thread-num
file-reader-async-threshold file.block-size file.format.per.level
file.suffix.include.compression filesystem.job-level-settings.enabled force-lookup
format-table.commit-hive-sync-url format-table.file.compression format-table.implementation
format-table.partition-path-only-value format-table.scan.list-parallelism full-compaction.delta-commits
full-text-index.search-mode incremental-to-auto-tag
legacy-timestamp-mapping.enabled local-kv-db.block-size local-merge-buffer-size local-sort.max-num-file-handles
log.system.auto-register log.system.auto-register-timeout lookup-compact lookup-compact.max-interval lookup-wait
lookup.async lookup.async-thread-number lookup.blob-as-descriptor lookup.bootstrap-parallelism lookup.cache
lookup.cache-file-retention lookup.cache-max-disk-size lookup.cache-max-memory-size lookup.cache-rows
lookup.cache-spill-compression lookup.cache.bloom.filter.enabled lookup.cache.bloom.filter.fpp
lookup.cache.high-priority-pool-ratio lookup.continuous.discovery-interval lookup.dynamic-partition
lookup.dynamic-partition.refresh-interval lookup.dynamic-partition.refresh.async lookup.hash-load-factor
lookup.local-file-type lookup.merge-buffer-size lookup.merge-records-threshold lookup.refresh.async
lookup.refresh.async.pending-snapshot-count lookup.refresh.full-load-threshold
lookup.refresh.time-periods-blacklist lookup.remote-file.enabled lookup.remote-file.level-threshold
manifest-sort.enabled manifest-sort.max-rewrite-size manifest-sort.partition-field
manifest.delete-file-drop-stats metadata.stats-dense-store metadata.stats-keep-first-n-columns
metadata.stats-mode.per.level num-sorted-run.stop-trigger object-location overwrite-upgrade page-size
partition.idle-time-to-report-statistic partition.sink-strategy partition.timestamp-format.strict
pk-bitmap.index.columns pk-btree.index.columns pk-clustering-override pk-full-text.index.columns
pk-vector.index.columns postpone.batch-write-fixed-bucket postpone.batch-write-fixed-bucket.max-parallelism
postpone.default-bucket-num postpone.merge-on-read postpone.target-row-num-per-bucket
postpone.target-size-per-bucket precommit-compact query-auth.enabled read.allow.fullScan read.batch-size
read.changelog read.shuffle-bucket-with-partition read.stream.maxBytesPerTrigger read.stream.maxFilesPerTrigger
read.stream.maxRowsPerTrigger read.stream.maxTriggerDelayMs read.stream.minRowsPerTrigger
requiredSparkConfsCheck.enabled row-tracking.enabled
row-tracking.partition-group-on-commit scalar-index.search-mode scan.bounded
scan.bounded.watermark scan.bucket scan.creation-time-millis scan.dedicated-split-generation
scan.fallback-branch scan.fallback-branch.read-fail-fast scan.fallback-delta-branch
scan.fallback-snapshot-branch scan.file-creation-time-millis scan.ignore-corrupt-files scan.ignore-lost-files
scan.infer-parallelism scan.infer-parallelism.max scan.manifest.parallelism scan.max-snapshot.count
scan.max-splits-per-task scan.parallelism scan.partitions scan.plan-auto-tag-for-read.time-retained
scan.plan-sort-partition scan.primary-branch scan.split-enumerator.batch-size scan.split-enumerator.mode
scan.tag-name scan.timestamp scan.watermark scan.watermark.alignment.group scan.watermark.alignment.max-drift
scan.watermark.alignment.update-interval scan.watermark.emit.strategy scan.watermark.idle-timeout
sequence.snapshot-ordering sink.clustering.sample-factor
sink.clustering.sort-in-cluster sink.committer-cpu sink.committer-memory
sink.committer-operator-chaining sink.coordinator-commit.enabled sink.cross-partition.managed-memory
sink.key-only-deletes.enabled sink.managed.writer-buffer-memory sink.operator-uid.suffix sink.parallelism
sink.process-time-zone sink.savepoint.auto-tag sink.use-managed-memory-allocator sink.watermark-time-zone
sink.writer-coordinator.cache-expire-after-access sink.writer-coordinator.cache-memory
sink.writer-coordinator.cache-soft-values sink.writer-coordinator.enabled sink.writer-coordinator.page-size
sink.writer-coordinator.prefetch-manifests sink.writer-cpu sink.writer-memory sink.writer-refresh-detectors
snapshot.clean-empty-directories snapshot.ignore-empty-commit snapshot.watermark-idle-timeout
sort-compaction.local-sample.magnification sort-compaction.range-strategy sort-engine sort-spill-buffer-size
sort-spill-threshold source.checkpoint-align.enabled source.checkpoint-align.timeout source.operator-uid.suffix
source.split.open-file-cost source.split.target-size source.split.target-size-with-column-pruning
spill-compression spill-compression.zstd-level streaming-read.shuffle-bucket-with-partition
streaming.read.snapshot.delay table-read.sequence-number.enabled target-file-row-num type
unaware-bucket.compaction.parallelism unaware-bucket.no-shuffle upsert-key variant.inferShreddingSchema
variant.shredding.adaptive.maxInferBufferRow variant.shredding.adaptive.retentionRatio
variant.shredding.inferenceMode variant.shredding.maxInferBufferRow variant.shredding.maxSchemaDepth
variant.shredding.maxSchemaWidth variant.shredding.minFieldCardinalityRatio variant.shreddingSchema vector-field
vector-index.search-mode vector-search.distribute.enabled vector-search.lateral-join.batch-size
vector-search.lateral-join.parallelism vector.file.format vector.target-file-size
visibility-callback.check-interval visibility-callback.enabled visibility-callback.timeout
write-buffer-for-append write-buffer-size write-buffer-spill.max-disk-size write-buffer-spillable
write-manifest-cache write-max-writers-to-spill write.batch-memory write.batch-size
write.data-evolution.update-conflict-retry.max-attempts write.data-evolution.update-conflict-retry.wait-ms
write.merge-schema write.merge-schema.explicit-cast write.merge-schema.type-widening
write.sequence-number-init-mode write.use-v2-write zorder.var-length-contribution
"""
PAIMON_KEYS = frozenset(_KEYS.split())
# of formats, which Paimon hands to their libraries; of engines; of the catalogs of Spark; of dbt; a user's own notes
PREFIXES = (
    *("parquet.", "orc.", "avro.", "blob-descriptor."),
    *("flink.", "spark.", "hive.", "trino.", "presto.", "starrocks.", "doris.", "paimon."),
    *("option.", "dbt.", "meta."),
)
# what the catalogs of Spark and Hive write beside the options of a table
CATALOG_KEYS = frozenset({"comment", "owner", "transient_lastDdlTime"})


def is_kept(key: str) -> bool:
    """Whether a key without a reader may be stored: another program reads it."""
    return key in PAIMON_KEYS or key in CATALOG_KEYS or key.startswith(PREFIXES)
