"""Kafka as the place of changelogs: the port of log/sink.py, over a topic and its marker topic for each table.

CHANGE     the log of a table in Kafka; which topics go with a table (option tablestore.managed-topic); the requests
           to a schema registry before a commit
Steps      options and client settings → LogSettings (log/kafka/settings.py) → KafkaLog (log/kafka/kafka_log.py) →
           lifecycle, publisher, reader; a log with Avro in it also asks its schema registry (schema_registry.py)
INVARIANT  `tablestore.managed-topic` says that the engine made the topic: only such a one goes with its table.
INVARIANT  one producer per sink, kept between calls: a second one of the same table and shard fences the first.
"""

# ruff: noqa: PLC0415 - imports in functions: a table that needs none of it loads none of it (decision 0137)
from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from tablestore_engine.format.schema import TableSchema
from tablestore_engine.log.kafka.publish_progress import silent
from tablestore_engine.runtime.outside_world import SYSTEM, Runtime

if TYPE_CHECKING:
    from tablestore_engine.log.changes import ReadChanges, ReadState
    from tablestore_engine.log.decode import LogMessage
    from tablestore_engine.log.kafka.kafka_follower import KafkaFollower
    from tablestore_engine.log.kafka.kafka_log import KafkaLog
    from tablestore_engine.log.kafka.message_limit import MessageLimit
    from tablestore_engine.log.kafka.prepublish_producer import PrepublishProducer, PrepublishRows
    from tablestore_engine.log.kafka.publisher import Publisher
    from tablestore_engine.log.sink import (
        FindCommit,
        LoggedTable,
        LogRemains,
        LogState,
        PrepublishedCommit,
        SentChanges,
    )

_SYSTEM = "kafka"
_MANAGED = "tablestore.managed-topic"


@dataclass
class _TopicSink(ABC):
    """What each log does alike, however many producers publish it."""

    log: KafkaLog

    @abstractmethod
    def close(self) -> None:
        """Give the producers up."""

    def prepare(self, after_snapshot: int) -> Mapping[str, str]:
        """Topic and marker topic; whether the topic is ours. Raises as prepare_log and check_schema."""
        from tablestore_engine.log.kafka.log_lifecycle import prepare_log

        self.check_schema()
        made = prepare_log(self.log, after_snapshot=after_snapshot)
        return {_MANAGED: str(made.is_ours).lower()}

    def check_schema(self) -> None:
        """Whether a registry would take the table's schema. Raises TS1767-TS1772."""
        from tablestore_engine.log.kafka.schema_registry import SchemaRegistry

        if self.log.settings.client.registry:
            with SchemaRegistry(self.log.settings.client) as registry:
                registry.check(self.log.settings.schemas, self.log.settings.topic)

    def reset(self, after_snapshot: int) -> int:
        """As reset_log; rows of a transaction that never ended are dropped."""
        from tablestore_engine.log.kafka.log_lifecycle import reset_log

        self.close()
        return reset_log(self.log, after_snapshot=after_snapshot).dropped

    def drop(self) -> None:
        """Both topics, as far as they are still this table's."""
        from tablestore_engine.log.kafka.log_lifecycle import drop_log

        self.close()
        drop_log(self.log)

    def find_remains(self) -> LogRemains:
        """As find_remains of former_topics."""
        from tablestore_engine.log.kafka.former_topics import find_remains

        return find_remains(self.log)

    def delete_remains(self) -> LogRemains:
        """As delete_remains of former_topics."""
        from tablestore_engine.log.kafka.former_topics import delete_remains

        self.close()
        return delete_remains(self.log)

    def read(self) -> list[LogMessage]:
        """All committed messages of the topic."""
        from tablestore_engine.log.kafka.bounded_reader import read_messages

        return list(read_messages(self.log))

    def decode(self, messages: Sequence[LogMessage], schema: TableSchema) -> pa.Table:
        """As decode_rows; a registry is asked for the schemas that messages name."""
        from tablestore_engine.log.decode import decode_rows
        from tablestore_engine.log.kafka.schema_registry import SchemaRegistry

        formats = self.log.settings.formats
        if not self.log.settings.client.registry:
            return decode_rows(messages, schema, formats)
        with SchemaRegistry(self.log.settings.client) as registry:
            return decode_rows(messages, schema, formats, registry.find_schema)

    def look(self) -> LogState:
        """As read_log_state; it may be asked while another thread publishes."""
        from tablestore_engine.log.kafka.log_state import read_log_state

        return read_log_state(self.log)

    def follow(self) -> KafkaFollower:
        """A reader's own connection. Raises as KafkaFollower."""
        from tablestore_engine.log.kafka.kafka_follower import KafkaFollower

        return KafkaFollower(self.log)

    def row_limit(self) -> MessageLimit:
        """What the client refuses to produce."""
        from tablestore_engine.log.kafka.message_limit import message_limit

        return message_limit(self.log.settings)


@dataclass
class KafkaSink(_TopicSink):
    """A log that one producer publishes, or one shard of a log; keeps its producer open between calls. Not
    thread-safe. Pickled it is the same log without a connection, as another process opens it.
    """

    say: Callable[[str], None] = field(default=silent, compare=False)
    _publisher: Publisher | None = field(default=None, compare=False)
    _early: PrepublishProducer | None = field(default=None, compare=False)

    def __reduce__(self) -> tuple[object, ...]:
        return KafkaSink, (self.log,)

    def shards(self) -> tuple[KafkaSink, ...]:
        """As ChangelogSink; a log that is shared out is a ShardedSink."""
        return (self,)

    def takes(self, bucket: int) -> bool:
        return bucket < 0 or self.log.settings.has_partition(bucket)

    def check(self, latest_id: int, find_commit: FindCommit) -> int:
        return self._open().check(latest_id, find_commit=find_commit)

    def publish(
        self,
        latest_id: int,
        read_changes: ReadChanges,
        find_commit: FindCommit,
        read_state: ReadState,
        early: Mapping[int, PrepublishedCommit],
    ) -> SentChanges:
        """As Publisher.publish_pending; offsets by topic partition."""
        from tablestore_engine.log.sink import LogPosition, SentChanges

        report = self._open().publish_pending(
            latest_id, read_changes, find_commit=find_commit, read_state=read_state, early=early
        )
        return SentChanges(report.published, LogPosition(_SYSTEM, self.log.settings.topic, report.offsets))

    def receive_early(self) -> PrepublishRows | None:
        """Of an eventual log; its producer is kept for the next write."""
        from tablestore_engine.log.kafka.prepublish_producer import PrepublishProducer, PrepublishRows

        if not self.log.settings.is_eventual:
            return None
        if self._early is None:
            self._early = PrepublishProducer(self.log.settings)
        return PrepublishRows(self.log, self._early)

    def _open(self) -> Publisher:
        from tablestore_engine.log.kafka.publisher import Publisher

        if self._publisher is None:
            self._publisher = Publisher(self.log, say=self.say)
        return self._publisher

    def close(self) -> None:
        if self._publisher is not None:
            self._publisher.close()
            self._publisher = None
        if self._early is not None:
            self._early.drop()


@dataclass
class ShardedSink(_TopicSink):
    """A log whose partitions several producers share; what is one for all of them, it does with the first `log`."""

    parts: tuple[KafkaSink, ...]

    def shards(self) -> tuple[KafkaSink, ...]:
        return self.parts

    def check(self, latest_id: int, find_commit: FindCommit) -> int:
        """The smallest of all; each producer is opened, so that whoever published before is fenced from all."""
        return min(part.check(latest_id, find_commit) for part in self.parts)

    def receive_early(self) -> None:
        """It is no eventual log (TS1774)."""

    def close(self) -> None:
        for part in self.parts:
            part.close()


@dataclass(frozen=True)
class KafkaSystem:
    """`client`: settings of the Kafka client with the prefix `kafka.`, of a schema registry with `schema.registry.`;
    secrets stay in memory.

    `say` gets a line now and then while publishing takes long.
    """

    client: Mapping[str, str] = field(default_factory=dict, repr=False)
    runtime: Runtime = SYSTEM
    say: Callable[[str], None] = silent

    @property
    def needs(self) -> tuple[str, ...]:
        """A table's own part; brokers are the client's."""
        return ("log.system", "kafka.topic")

    @property
    def flags(self) -> str:
        """What names brokers on the command line."""
        return "--bootstrap, and --kafka-config where brokers ask for a log-in"

    def find_name(self, schema: TableSchema) -> str | None:
        return schema.options.get("kafka.topic") if schema.options.get("log.system") == _SYSTEM else None

    def find_sink(self, table: LoggedTable) -> KafkaSink | ShardedSink | None:
        """Raises Unsupported TS1163, TS1700, TS1764, FixRequest TS1701, TS1737, TS1762, TS1763, TS1766, TS1774,
        TS1775.
        """
        if table.schema.options.get("log.system") == _SYSTEM:
            from tablestore_engine.log.log_formats import check_types

            check_types(table.schema.fields, table.name)
        return self._sink(table)

    def _sink(self, table: LoggedTable) -> KafkaSink | ShardedSink | None:
        from tablestore_engine.log.kafka.settings import resolve_log

        options, is_keyed = table.schema.options, table.schema.is_keyed
        settings = resolve_log(options, self.client, table=table.name, is_keyed=is_keyed, place=table.place)
        if settings is None:
            return None
        from tablestore_engine.log.avro_schema import avro_schemas
        from tablestore_engine.log.kafka.kafka_log import KafkaLog  # with Kafka's client

        schemas = avro_schemas(table.schema, settings.topic, settings.formats)
        log = KafkaLog(replace(settings, schemas=schemas), self.runtime)
        found = tuple(KafkaSink(shard, self.say) for shard in log.all_shards())
        return found[0] if len(found) == 1 else ShardedSink(found[0].log, found)

    def find_owned(self, table: LoggedTable) -> KafkaSink | ShardedSink | None:
        """Of topics that the engine made."""
        return self.find_former(table) if table.schema.options.get(_MANAGED) == "true" else None

    def find_former(self, table: LoggedTable) -> KafkaSink | ShardedSink | None:
        """As ChangelogSystem. Raises FixRequest TS1701."""
        options = table.schema.options
        # a table that could not be published any more (TS1737, TS1766, TS1775) must still be droppable
        any_log = {"changelog-producer": "lookup", "log.format": "debezium-json", "log.key.format": "json"}
        any_log["log.publish.shards"] = "1"
        schema = replace(table.schema, options={**options, **any_log})
        return self._sink(replace(table, schema=schema))

    def check_reachable(self) -> str | None:
        """Whether the brokers answer. Raises what publishing would raise (TS17xx)."""
        from tablestore_engine.log.kafka.broker_check import check_brokers, check_registry
        from tablestore_engine.log.kafka.client_config import REGISTRY_PREFIX

        servers = self.client.get("kafka.bootstrap.servers")
        if not servers:
            return None
        check_brokers(self.client)
        if REGISTRY_PREFIX + "url" not in self.client:
            return f"brokers {servers} answer"
        return f"brokers {servers} answer, schema registry {check_registry(self.client)} too"
