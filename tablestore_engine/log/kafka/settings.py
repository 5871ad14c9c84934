"""Table options `log.*`, `kafka.*` and the profile's `log:` block → one frozen LogSettings.

CHANGE     the log settings of a table (options log.consistency, log.changelog-mode, log.system.partitions,
           kafka.topic)
Order      the engine's own client settings > the table's few harmless ones > the profile's > our defaults.
Trust      a table may have been written by anybody: it names its topic and tunes messages, by the kafka.* rows of the
           table of options. Brokers, security, files and plugins come from the profile (or --bootstrap) alone; any
           other kafka.* in a table is refused. kafka.bootstrap.servers, which versions before kept there, is not read.
Registry   `schema.registry.*` of the same places, without the prefix what Confluent's client takes: url,
           basic.auth.user.info, ssl.… A table names no registry, as it names no brokers.
INVARIANT  secrets are in `client` alone (log/kafka/client_config.py).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from tablestore_engine.errors import FixRequest
from tablestore_engine.log.avro_schema import AvroSchemas
from tablestore_engine.log.kafka.client_config import (
    BROKERS,
    KAFKA_PREFIX,
    REGISTRY_PREFIX,
    ClientConfig,
    answer_seconds,
    client_properties,
    options_conflict,
    registry_settings,
)
from tablestore_engine.log.log_formats import LogFormats, resolve_formats
from tablestore_engine.log.message_envelope import ChangelogMode, resolve_mode
from tablestore_engine.options import OptionSet, check_options, parse_duration_ms

MARKER_SUFFIX = "__snapshots"
_IGNORED = "changelog-producer.row-deduplicate-ignore-fields"
_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,238}")


@dataclass(frozen=True)
class LogSettings:
    """One table's log; `client`: how its brokers and its schema registry are reached, `place`: where the table is.

    `schemas`: what Avro has of the table's schema.
    `replication`: None for the brokers' default.
    `is_eventual`: rows go out before their snapshot exists. `shards`: how many publishers share the partitions,
    of which these are the settings of number `shard` (own_partitions).
    """

    table: str
    table_uuid: str
    topic: str
    partitions: int
    mode: ChangelogMode
    client: ClientConfig
    replication: int | None = None
    retention_ms: int | None = None
    chunk_rows: int = 5_000_000
    chunk_ms: int = 60_000
    place: str = ""
    formats: LogFormats = LogFormats()  # noqa: RUF009 - frozen
    schemas: AvroSchemas = AvroSchemas()  # noqa: RUF009 - frozen
    is_eventual: bool = False
    shards: int = 1
    shard: int = 0

    def of_shard(self, number: int) -> LogSettings:
        """The same log, as another of its publishers sees it."""
        return replace(self, shard=number)

    def all_shards(self) -> tuple[LogSettings, ...]:
        return tuple(self.of_shard(number) for number in range(self.shards))

    def has_partition(self, partition: int) -> bool:
        """Whether this publisher sends it; partitions that a topic gets later change nothing for the others."""
        return partition % self.shards == self.shard

    @property
    def own_partitions(self) -> tuple[int, ...]:
        return tuple(range(self.shard, self.partitions, self.shards))

    @property
    def marker_topic(self) -> str:
        """The compacted topic that says which snapshots are published."""
        return self.topic + MARKER_SUFFIX

    @property
    def transactional_id(self) -> str:
        """One publisher per table and shard: a second one with this id fences the first."""
        return f"ts-{self.table_uuid}" + (f"-{self.shard}" if self.shards > 1 else "")


def resolve_log(
    options: Mapping[str, str],
    profile: Mapping[str, str] | None = None,
    *,
    table: str,
    is_keyed: bool,
    place: str = "",
) -> LogSettings | None:
    """The log of a table, None for none. Raises Unsupported TS1700, FixRequest TS1701, TS1737, TS1740-TS1742, TS1762,
    TS1766, TS1774, TS1775, TS1778 and those of options.
    """
    values = OptionSet(options)
    if values.text("log.system") == "none":
        _check_no_log(options, table)
        return None
    if values.text("log.system") != "kafka":
        raise options_conflict(
            table, f"'log.system' knows none and kafka, got {options['log.system']!r}", "set one of them"
        )
    _check_built(values, table)
    check_options({key: text for key, text in options.items() if _is_of_log(key)})
    _check_changelog(values, table, is_keyed=is_keyed)
    mode = resolve_mode(ChangelogMode(values.text("log.changelog-mode")), is_keyed=is_keyed)
    formats = resolve_formats(values, table, is_keyed=is_keyed, upserts=mode is ChangelogMode.UPSERT)
    is_eventual = values.text("log.consistency") == "eventual"
    if is_eventual:
        _check_eventual(table, mode, formats, is_keyed=is_keyed)
    partitions, shards = _partitions(values, table, is_keyed=is_keyed), values.integer("log.publish.shards")
    _check_shards(table, shards, partitions, is_eventual=is_eventual)
    retention = values.find("log.retention")
    table_uuid = _needed(values, "tablestore.table-uuid", table)
    topic = _topic_name(_needed(values, "kafka.topic", table), table)
    return LogSettings(
        table=table,
        table_uuid=table_uuid,
        topic=topic,
        partitions=partitions,
        mode=mode,
        client=replace(
            _client(options, profile or {}, table, with_registry=formats.needs_registry(is_keyed=is_keyed)),
            subject=f"the log of {table} (topic {topic})",
            group_id=f"tablestore-{table_uuid}",
        ),
        replication=values.find_integer("log.system.replication"),
        retention_ms=None if retention is None else parse_duration_ms("log.retention", retention),
        place=place,
        formats=formats,
        is_eventual=is_eventual,
        shards=shards,
    )


def _client(
    options: Mapping[str, str], profile: Mapping[str, str], table: str, *, with_registry: bool
) -> ClientConfig:
    return ClientConfig(
        client_properties(options, profile, table),
        _registry(profile, table) if with_registry else {},
        timeout_s=answer_seconds(profile, table),
    )


def _is_of_log(key: str) -> bool:
    is_client = key.startswith((KAFKA_PREFIX, REGISTRY_PREFIX)) and key != BROKERS
    return key.startswith("log.") or is_client or key == "tablestore.table-uuid"


def _check_changelog(values: OptionSet, table: str, *, is_keyed: bool) -> None:
    """A topic has every change with the row before and after it, or there is no topic. Raises FixRequest TS1737."""
    producer = values.values.get("changelog-producer", "").strip().lower() or "none"  # absent is none on disk
    ignored = values.values.get(_IGNORED)
    why = {
        "none": "deletes and overwrites would never reach the topic",
        "input": "the topic would have the rows as they were written: late rows, repeated keys, deletes of nothing",
        "full-compaction": "changes would come with full compactions only; Paimon refuses it with deletion vectors",
    }.get(producer, f"updates of {ignored} alone would never reach the topic" if ignored else "")
    if is_keyed and why:
        key, value = (_IGNORED, ignored) if producer == "lookup" else ("changelog-producer", producer)
        raise FixRequest(
            "TS1737",
            f"{table} cannot have a log without a complete changelog",
            why=f"'{key}' = '{value}' with 'log.system' = 'kafka': {why}",
            fix=f"leave '{key}' out (changelog-producer is lookup by default), or build the table without a log",
        )


def _check_no_log(options: Mapping[str, str], table: str) -> None:
    stray = sorted(
        key
        for key in options
        if key.startswith(("log.", KAFKA_PREFIX)) and key != "log.system" and not key.startswith("log.scan")
    )  # log.scan*: old names of options of readers, which need no log
    if options.get("streaming-read-mode") == "log":
        stray.append("streaming-read-mode")
    if stray:
        raise options_conflict(
            table,
            f"{', '.join(map(repr, stray))} without 'log.system' = 'kafka'",
            "set 'log.system' = 'kafka', or leave these options out",
        )


def _check_built(values: OptionSet, table: str) -> None:
    if values.text("log.changelog-mode") not in set(ChangelogMode):
        raise options_conflict(table, "'log.changelog-mode' knows auto, upsert and all", "set one of them")


def _check_eventual(table: str, mode: ChangelogMode, formats: LogFormats, *, is_keyed: bool) -> None:
    """Rows may come twice, and some are taken back: only the last of a key means something. Raises TS1740-TS1742."""
    if not is_keyed:
        raise FixRequest(
            "TS1740",
            f"'log.consistency' = 'eventual' does not fit {table}",
            why="the table has no primary key: rows that come twice, or that are taken back, could not be recognized",
            fix="give the table a primary key, or set 'log.consistency' = 'transactional'",
        )
    if mode is ChangelogMode.ALL:
        raise FixRequest(
            "TS1741",
            f"'log.changelog-mode' = 'all' does not fit the eventual log of {table}",
            why="the row before a change means nothing where rows may come twice and some are taken back",
            fix="leave 'log.changelog-mode' out (upsert: the last message of a key is its row), or set "
            "'log.consistency' = 'transactional'",
        )
    if formats.needs_registry(is_keyed=True) or formats.ignore_delete:
        asked = "Avro" if formats.needs_registry(is_keyed=True) else "'log.ignore-delete'"
        raise FixRequest(
            "TS1742",
            f"{asked} does not fit the eventual log of {table}",
            why="a row that is taken back is sent as its key in JSON and a tombstone, before its schema is registered",
            fix="take a JSON format with keys in JSON and without 'log.ignore-delete', or set 'log.consistency' = "
            "'transactional'",
        )


def _check_shards(table: str, shards: int, partitions: int, *, is_eventual: bool) -> None:
    """Raises FixRequest TS1774, TS1775."""
    if shards > 1 and is_eventual:
        raise FixRequest(
            "TS1774",
            f"'log.publish.shards' = {shards} does not fit the eventual log of {table}",
            why="its rows are sent by the tasks that compute them, before there is anything to share out",
            fix="leave 'log.publish.shards' out, or set 'log.consistency' = 'transactional'",
        )
    if shards > partitions:
        raise FixRequest(
            "TS1775",
            f"'log.publish.shards' = {shards} does not fit {table}",
            why=f"its topic has {partitions} partition(s), one per bucket, and each is sent by one shard",
            fix=f"take at most {partitions}, or give the table more buckets ('log.system.partitions' without buckets)",
        )


def _needed(values: OptionSet, key: str, table: str) -> str:
    text = values.find(key)
    if not text:
        raise options_conflict(table, f"'log.system' = 'kafka' needs {key!r}", f"set {key!r}")
    return text


def _topic_name(name: str, table: str) -> str:
    if not _TOPIC_NAME.fullmatch(name) or name in {".", ".."} or name.endswith(MARKER_SUFFIX):
        raise options_conflict(
            table,
            f"'kafka.topic' = {name!r} cannot be a topic",
            f"use 1 to 238 of the characters a-z A-Z 0-9 . _ - and not the ending {MARKER_SUFFIX}",
        )
    return name


def _partitions(values: OptionSet, table: str, *, is_keyed: bool) -> int:
    """A topic partition is a bucket; only tables without buckets may choose."""
    default = 1 if is_keyed else -1
    buckets = values.integer("bucket") if values.find("bucket") else default
    wanted = values.integer("log.system.partitions") if values.find("log.system.partitions") else None
    if buckets < 1 and (is_keyed or buckets != -1):
        raise FixRequest(
            "TS1778",
            f"'bucket' = {buckets} does not fit the log of {table}",
            why="each bucket is one topic partition, and a table with this value gets buckets as its rows come",
            fix="give the table a fixed number of buckets",
        )
    if buckets < 1:
        return wanted or 1
    if wanted is not None and wanted != buckets:
        raise options_conflict(
            table,
            f"'log.system.partitions' = {wanted} with {buckets} buckets: each bucket is one topic partition",
            "leave 'log.system.partitions' out",
        )
    return buckets


def _registry(profile: Mapping[str, str], table: str) -> dict[str, str]:
    """Settings of the schema registry, without their prefix. Raises FixRequest TS1766."""
    found = registry_settings(profile)
    if not found.get("url"):
        raise FixRequest(
            "TS1766",
            f"the log of {table} has 'log.format' or 'log.key.format' = 'avro', and no schema registry is named",
            why="readers ask one for the schema that a message names; a table's own options are not asked for it",
            fix=f"add {REGISTRY_PREFIX}url to `log:` of the profile, or to the file of TABLESTORE_KAFKA_CONFIG",
        )
    return found
