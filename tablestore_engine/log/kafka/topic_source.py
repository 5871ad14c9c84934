"""A topic that others write, as messages with a position: the port of log/message_source.py over a consumer.

Position   {"topic_id", "offsets": {partition: next offset}}; a partition that it does not know is one that the topic
           got later, and is read from its beginning
Steps      check: the topic's id, the first offset of each partition → read: where the last call ended the consumer goes
           on, else it is assigned anew → messages as they come, control records passed by
INVARIANT  messages that retention took are an error (TS1425), never a gap: auto.offset.reset is `error`.
INVARIANT  no consumer group: nothing is committed to the brokers, nobody is rebalanced.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # not in its __all__
    AdminClient,
    TopicDescription,
)

from tablestore_engine.errors import (
    BrokersUnreachable,
    FixRequest,
    KafkaRequestFailed,
    NotFound,
    RetryError,
    TablestoreError,
)
from tablestore_engine.log.kafka.access_errors import RIGHTS
from tablestore_engine.log.kafka.client_config import ClientConfig, profile_config
from tablestore_engine.log.kafka.kafka_client import code_of, make_admin, make_consumer, said
from tablestore_engine.log.kafka.leader_wait import LeaderWait, refresh_by
from tablestore_engine.log.kafka.partition_ends import find_ends
from tablestore_engine.log.kafka.partition_reader import read_span
from tablestore_engine.log.kafka.schema_registry import SchemaRegistry
from tablestore_engine.log.message_source import RawMessages
from tablestore_engine.runtime.outside_world import Runtime

_TAKE = 1_000  # more at once is slower: measured
_LOOK_SECONDS = 0.05
_ASK_AGAIN_MS = 5_000
_GONE = frozenset({KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE})
_UNKNOWN = frozenset(
    {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION}
)


@dataclass
class _TopicFollow:
    """What the consumer is at: `places` behind what was given, `ended`: partitions with nothing more for now."""

    consumer: Consumer
    places: dict[int, int]
    ended: set[int] = field(default_factory=set)


class TopicSource:
    """Not thread-safe. Connects at once."""

    def __init__(self, topic: str, profile: Mapping[str, str], runtime: Runtime) -> None:
        """`profile`: settings of the clients, with their prefixes. Raises NotFound TS1430, RetryError TS1433,
        FixRequest TS1434, TS1436, TS1701, TS1713, TS1751, TS1752.
        """
        self._topic = topic
        self._client = profile_config(
            profile, subject=f"source topic {topic}", group_id=f"tablestore-ingest-{topic}"
        )
        self._runtime = runtime
        with _Told(topic, self._client, "asking the brokers"):
            self._admin: AdminClient = make_admin(self._client, self._topic)
            self._topic_id, self._count = self._describe()
        self._asked_ms = runtime.now_ms()
        self._follow: _TopicFollow | None = None
        self._registry: SchemaRegistry | None = None

    @property
    def source_id(self) -> str:
        """`kafka:` and the topic."""
        return f"kafka:{self._topic}"

    @property
    def title(self) -> str:
        return f"topic {self._topic}"

    @property
    def incarnation(self) -> str:
        return self._topic_id

    def begin(self) -> str:
        """As MessageSource: the first message that retention has left."""
        with _Told(self._topic, self._client, "asking for the beginning"):
            return self._text({partition: self._span(partition)[0] for partition in range(self._count)})

    def ends(self) -> str:
        with _Told(self._topic, self._client, "asking for the ends"):
            topic_id, self._count = self._describe()
            self._check_id(topic_id)
            places = [(self._topic, partition) for partition in range(self._count)]
            found = find_ends(self._admin, places, LeaderWait(self._client, self._runtime))
        return self._text({partition: end for (_, partition), end in found.items()})

    def check(self, position: str) -> None:
        """As MessageSource. Raises FixRequest TS1424, TS1426, NotFound TS1425."""
        places = self._places(position)
        with _Told(self._topic, self._client, "asking for the beginning"):
            for partition, offset in places.items():
                low, high = self._span(partition)
                if not low <= offset <= high:
                    raise self._gone(partition, offset, low)

    def is_at(self, position: str, end: str) -> bool:
        at, ends = self._offsets(position), self._offsets(end)
        return all(at.get(partition, 0) >= offset for partition, offset in ends.items())

    def is_one_line(self) -> bool:
        return self._count == 1

    def read(
        self, position: str, rows_max: int, bytes_max: int, wait_s: float, most_s: float | None = None
    ) -> RawMessages:
        """As MessageSource. Raises NotFound TS1425, TS1430, FixRequest TS1424, RetryError TS1433."""
        places = self._places(position)
        if self._follow is None or self._follow.places != places:
            self._assign(places)
        follow = self._follow
        assert follow is not None
        found: list[Message] = []
        size, begin = 0, self._runtime.now_ms()
        idle_at = begin + int(wait_s * 1000)
        with _Told(self._topic, self._client, "reading"):
            while len(found) < rows_max and size < bytes_max:
                arrived = follow.consumer.consume(min(_TAKE, rows_max - len(found)), timeout=_LOOK_SECONDS)
                if arrived:
                    size += self._arrived(follow, arrived, found)
                    if most_s is not None and found and self._runtime.now_ms() >= begin + most_s * 1000:
                        break
                elif self._is_idle(follow, idle_at, has_any=bool(found)):
                    break
            self._ask_again(has_any=bool(found))
        return self._messages(found, follow)

    def find_schema(self, number: int) -> str:
        """The text of a schema of the registry. Raises ValueError for an unknown one, TS1767, TS1768, TS1770-TS1772."""
        if self._registry is None:
            self._registry = SchemaRegistry(self._client)
        return self._registry.find_schema(number)

    def close(self) -> None:
        if self._follow is not None:
            with suppress(KafkaException, RuntimeError):
                self._follow.consumer.close()
        if self._registry is not None:
            self._registry.close()
        self._follow = self._registry = None

    # positions -----------------------------------------------------------------------------------

    def _text(self, offsets: Mapping[int, int]) -> str:
        named = {str(partition): offset for partition, offset in sorted(offsets.items())}
        return json.dumps({"topic_id": self._topic_id, "offsets": named}, separators=(",", ":"))

    def _offsets(self, position: str) -> dict[int, int]:
        """Raises FixRequest TS1424, TS1426."""
        try:
            said_of = json.loads(position)
            offsets = {int(partition): int(offset) for partition, offset in said_of["offsets"].items()}
            topic_id = str(said_of["topic_id"])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise FixRequest(
                "TS1426",
                f"the position in topic {self._topic} is not understood",
                why=f"expected topic_id and offsets, got {position[:200]!r}",
                fix="the table was filled by another program under this name: ingest into a new table",
            ) from error
        self._check_id(topic_id)
        return offsets

    def _places(self, position: str) -> dict[int, int]:
        """All partitions; those that the topic got later from their beginning."""
        return {**dict.fromkeys(range(self._count), 0), **self._offsets(position)}

    def _check_id(self, topic_id: str) -> None:
        if topic_id != self._topic_id:
            raise FixRequest(
                "TS1424",
                f"topic {self._topic} is another one than before",
                why=f"one has id {topic_id}, the other {self._topic_id}: it was deleted and created again, or these "
                "are other brokers",
                fix="ingest into a new table, or drop this one and ingest again: its position means the old topic",
            )

    # the client ----------------------------------------------------------------------------------

    def _describe(self) -> tuple[str, int]:
        """Id and partitions. Raises KafkaException."""
        wait = LeaderWait(self._client, self._runtime)
        found = wait.ask(self._ask_description, refresh_by(self._admin))
        return str(found.topic_id), len(found.partitions)

    def _ask_description(self, seconds: float) -> TopicDescription:
        asked = self._admin.describe_topics(TopicCollection([self._topic]), request_timeout=seconds)
        found: TopicDescription = asked[self._topic].result()
        return found

    def _ask_again(self, *, has_any: bool) -> None:
        """Whether it is still this topic, and how many partitions it has: those that came are read from then on.

        Asked with each batch, since the brokers go on with a new topic at the old one's offsets.
        """
        now = self._runtime.now_ms()
        if has_any or now - self._asked_ms > _ASK_AGAIN_MS:
            topic_id, self._count = self._describe()
            self._asked_ms = now
            self._check_id(topic_id)

    def _span(self, partition: int) -> tuple[int, int]:
        place = TopicPartition(self._topic, partition)
        return read_span(self._open().consumer, place, self._client, self._runtime)

    def _open(self) -> _TopicFollow:
        if self._follow is None:
            self._follow = _TopicFollow(make_consumer(self._client, reset="error"), {})
        return self._follow

    def _assign(self, places: Mapping[int, int]) -> None:
        follow = self._open()
        follow.places, follow.ended = dict(places), set()
        topic = self._topic
        follow.consumer.assign([TopicPartition(topic, one, offset) for one, offset in places.items()])

    def _is_idle(self, follow: _TopicFollow, idle_at: int, *, has_any: bool) -> bool:
        """Whether there is nothing to wait for. Raises KafkaException where the brokers do not answer."""
        now = self._runtime.now_ms()
        if now < idle_at:
            return len(follow.ended) == len(follow.places) and has_any
        if has_any or len(follow.ended) == len(follow.places):
            return True
        if now > idle_at + int(self._client.timeout_s * 1000):
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "no answer while reading"))
        return False

    def _arrived(self, follow: _TopicFollow, arrived: list[Message], found: list[Message]) -> int:
        """Keeps messages, notes ends; the bytes of the messages."""
        events = [message for message in arrived if message.error() is not None]
        kept = [message for message in arrived if message.error() is None] if events else arrived
        partitions = np.fromiter((message.partition() or 0 for message in kept), np.int64, len(kept))
        for at in (*np.flatnonzero(np.diff(partitions)).tolist(), *([len(kept) - 1] if kept else [])):
            partition = int(partitions[at])
            follow.places[partition] = (kept[at].offset() or 0) + 1
            follow.ended.discard(partition)
        for event in events:  # an end lies behind all messages of its partition that came before it
            self._event(follow, event)
        found += kept
        return sum(map(len, kept))

    def _event(self, follow: _TopicFollow, message: Message) -> None:
        error, partition = message.error(), message.partition() or 0
        assert error is not None
        if error.code() == KafkaError._PARTITION_EOF:
            follow.places[partition] = max(follow.places[partition], message.offset() or 0)
            follow.ended.add(partition)
        elif error.code() in _GONE:
            raise self._gone(partition, follow.places.get(partition, 0), None)
        elif error.code() != KafkaError.GROUP_AUTHORIZATION_FAILED:  # nobody here asks its coordinator
            raise KafkaException(error)

    def _messages(self, found: list[Message], follow: _TopicFollow) -> RawMessages:
        count = len(found)
        return RawMessages(
            np.fromiter((one.partition() or 0 for one in found), np.int64, count),
            np.fromiter((one.offset() or 0 for one in found), np.int64, count),
            [one.key() for one in found],
            [one.value() for one in found],
            self._text(follow.places),
        )

    def _gone(self, partition: int, offset: int, first: int | None) -> NotFound:
        left = "" if first is None else f", the first that is left is {first}"
        return NotFound(
            "TS1425",
            f"messages of topic {self._topic} are gone that were not read yet",
            why=f"partition {partition} has nothing at offset {offset} any more{left}: retention deleted it, or "
            "records were deleted",
            fix="ingest again into a new table, from a snapshot of the source; a longer retention.ms of the topic "
            "prevents it",
        )


class _Told:
    """A client's errors in our words."""

    def __init__(self, topic: str, client: ClientConfig, doing: str) -> None:
        self._topic, self._client, self._doing = topic, client, doing

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, KafkaException):
            raise self._translate(error) from error
        if isinstance(error, BrokersUnreachable | KafkaRequestFailed):  # their next step is a publisher's
            raise self._no_answer(error.why) from error

    def _translate(self, error: KafkaException) -> TablestoreError:
        code, topic = code_of(error), self._topic
        why = self._client.redact(said(error))
        if code in _UNKNOWN:
            return NotFound(
                "TS1430",
                f"there is no topic {topic}",
                why=f"the brokers at {self._client.brokers} do not know it",
                fix="correct the name, or kafka.bootstrap.servers (--bootstrap)",
            )
        if code in RIGHTS:
            return FixRequest(
                "TS1434",
                f"topic {topic} may not be read",
                why=why,
                fix=f"give this user the operations DESCRIBE and READ on topic {topic}",
            )
        return self._no_answer(why)

    def _no_answer(self, why: str) -> RetryError:
        return RetryError(
            "TS1433",
            f"topic {self._topic} cannot be read, {self._doing}",
            why=f"brokers at {self._client.brokers}: {why}",
            fix="start the brokers or correct kafka.bootstrap.servers, then run it again: it resumes after the last "
            "commit",
        )
