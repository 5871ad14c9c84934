"""The outbox: committed snapshots → their changelog in Kafka, each exactly once and in order.

CHANGE     the steps of a publication; the requests to a schema registry before rows
Steps      open     1 brokers answer 2 new producer, init: fences others, decides what was open 3 P from the markers
                    4 topic, owner and history are the ones expected
           publish  for each snapshot P+1 … latest: begin · rows · wait for every report · marker · commit
           error    throw the producer away, back off, open again: P says what really happened; bounded in tries and
                    in time, and what is left in the end is an error
Empty      a snapshot without changes needs no transaction of its own: the next one with changes covers it, and only
           when the newest ones are empty a transaction with nothing but a marker moves P up to them.
Chunks     a big snapshot becomes several transactions (LogSettings.chunk_rows, chunk_ms); the marker counts the
           messages per partition, so that the next publisher goes on behind them: still once and in order.
CRASH      log.begin, log.rows, log.marker: nothing is visible, the next open aborts it · log.committed: P knows
Return     when publish_pending returns, read_committed consumers see what it sent
INVARIANT  rows become visible only after their snapshot exists, since they are read from it (P2).
INVARIANT  an unknown outcome is read back as P, never guessed (P4).
CHANGE     how often, and after which pause, a publication is retried
Rule       an error that another try may heal, or another publisher that took over; within the time of the call; at most
           TROUBLES_MAX errors and FENCES_MAX takeovers
Pause      exponential backoff with jitter: 0.1 s times 2 for each failed try, times a factor of 0.5 to 1.5
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType, TracebackType

from confluent_kafka import KafkaException

from tablestore_engine.errors import FixRequest, OutcomeUnknown, RetryError, TablestoreError
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.log.avro_schema import SchemaIds, avro_schemas
from tablestore_engine.log.changes import PublishReport, ReadChanges, ReadState, SnapshotChanges
from tablestore_engine.log.kafka.commit_marker import CommitMarker, Progress
from tablestore_engine.log.kafka.eventual_log import EventualCall, publish_eventual
from tablestore_engine.log.kafka.kafka_client import FENCED, code_of
from tablestore_engine.log.kafka.kafka_log import KafkaLog
from tablestore_engine.log.kafka.kafka_producer import LogProducer
from tablestore_engine.log.kafka.kafka_topic import check_topics, check_use, find_settled_topics
from tablestore_engine.log.kafka.log_errors import translate
from tablestore_engine.log.kafka.log_lifecycle import open_progress
from tablestore_engine.log.kafka.publish_progress import PublishProgress, silent
from tablestore_engine.log.kafka.schema_registry import SchemaRegistry
from tablestore_engine.log.kafka.settings import LogSettings
from tablestore_engine.log.kafka.transactional_publish import (
    Forget,
    Session,
    Tally,
    history_differs,
    publish_marker,
    publish_snapshot,
)
from tablestore_engine.log.kafka.unconfirmed_records import KafkaTopic
from tablestore_engine.log.sink import FindCommit, PrepublishedCommit

TROUBLES_MAX = 3
FENCES_MAX = 5
_PAUSE_SECONDS = 0.1


@dataclass
class PublisherRetry:
    """Of one call. `troubles`: tries that failed by an error; `fences`: by another publisher that took over."""

    troubles: int = 0
    fences: int = 0

    def next_pause(
        self, error: Exception, final: TablestoreError, *, is_in_time: bool, jitter: float
    ) -> float | None:
        """Counts the error. Seconds before the next try, None where there is none and `final` is the answer.

        `jitter`: from 0 to 1.
        """
        is_fenced = isinstance(error, KafkaException) and code_of(error) in FENCED
        self.fences += is_fenced
        self.troubles += not is_fenced
        is_worth_it = isinstance(final, RetryError) or is_fenced
        if not (is_worth_it and is_in_time and self.troubles <= TROUBLES_MAX and self.fences <= FENCES_MAX):
            return None
        return _PAUSE_SECONDS * 2.0 ** (self.troubles + self.fences) * (0.5 + jitter)


class Publisher:
    """Keeps its producer between calls, so that a small commit costs one round trip. Not thread-safe."""

    def __init__(self, log: KafkaLog, *, say: Callable[[str], None] = silent) -> None:
        self._log = log
        self._say = say
        self._session: Session | None = None
        self._registry: SchemaRegistry | None = None

    def __enter__(self) -> Publisher:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give the producer up; what is pending stays pending."""
        self._drop(abort=False)
        if self._registry is not None:
            self._registry.close()
            self._registry = None

    def publish_pending(
        self,
        latest_id: int,
        read_changes: ReadChanges,
        *,
        find_commit: FindCommit | None = None,
        read_state: ReadState | None = None,
        early: Mapping[int, PrepublishedCommit] = MappingProxyType({}),
    ) -> PublishReport:
        """Publish every snapshot up to `latest_id` that is not in the log yet.

        `find_commit` gives "user:identifier" of a snapshot that still exists: with it a table that was rolled back
        behind the log is noticed, and a gap. `read_state`: the table at a snapshot, needed where rows go out early;
        `early`: what this process knows of such rows, by snapshot. Raises TS1702-TS1714, TS1730, TS1731, TS1733,
        TS1750-TS1753; after RetryError and OutcomeUnknown simply call again.
        """
        deadline_ms = self._log.runtime.now_ms() + int(self._log.settings.client.delivery_s * 1000)

        def send(session: Session, tally: Tally) -> None:
            def outbox(forget: Forget | None = None) -> None:
                self._publish_all(session, latest_id, read_changes, find_commit, tally=tally, forget=forget)

            def read(snapshot_id: int) -> SnapshotChanges | None:
                self._check_there(snapshot_id, find_commit)
                return read_changes(snapshot_id)

            if read_state is None or not (self._log.settings.is_eventual or session.progress.early):
                outbox()
                return
            topic = KafkaTopic(session.log)
            call = EventualCall(latest_id, read, read_state, find_commit, outbox, early)
            publish_eventual(session, topic, call, tally)

        session, tally = self._repeat(send, latest_id, find_commit, deadline_ms)
        return PublishReport(session.progress.published, tally.snapshots, tally.rows, tally.offsets)

    def check(self, latest_id: int, *, find_commit: FindCommit | None = None) -> int:
        """P, after everything that publishing would meet first: brokers, rights, topics, history, schema registry.
        Sends nothing.

        For the moment before a commit: what is wrong with the log is said while nothing is written yet.
        Raises TS1702-TS1708, TS1710-TS1713, TS1730, TS1731, TS1733, TS1750-TS1753, TS1767-TS1772.
        """

        def look(session: Session, _: Tally) -> None:
            first = session.progress.published + 1
            if first <= latest_id:
                self._check_there(first, find_commit)
            if self._log.settings.client.registry:
                self._open_registry().check(self._log.settings.schemas, self._log.settings.topic)

        deadline_ms = self._log.deadline_ms()
        return self._repeat(look, latest_id, find_commit, deadline_ms)[0].progress.published

    def _repeat(
        self,
        work: Callable[[Session, Tally], None],
        latest_id: int,
        find_commit: FindCommit | None,
        deadline_ms: int,
    ) -> tuple[Session, Tally]:
        """Do it with an open session; what another try may heal is tried again, each time with a new producer."""
        runtime = self._log.runtime
        progress = PublishProgress(self._log.settings.table, runtime.now_ms, self._say, runtime.progress)
        tally = Tally(progress=progress)
        try:
            return self._repeat_with(tally, work, latest_id, find_commit, deadline_ms)
        finally:
            progress.end()

    def _repeat_with(
        self,
        tally: Tally,
        work: Callable[[Session, Tally], None],
        latest_id: int,
        find_commit: FindCommit | None,
        deadline_ms: int,
    ) -> tuple[Session, Tally]:
        retry = PublisherRetry()
        while True:
            try:
                session = self._open(latest_id, find_commit, tally)
                work(session, tally)
            except KafkaException as error:
                reasons = self._session.producer.reasons if self._session is not None else None
                final = translate(error, self._log.settings, doing="publishing", reasons=reasons)
                self._retry_or_raise(error, final, retry, tally, deadline_ms)
            except RetryError as error:
                self._retry_or_raise(error, error, retry, tally, deadline_ms)
            except BaseException:
                self._drop(abort=True)
                raise
            else:
                return session, tally

    def _retry_or_raise(
        self,
        error: Exception,
        final: TablestoreError,
        retry: PublisherRetry,
        tally: Tally,
        deadline_ms: int,
    ) -> None:
        """Drop the producer and wait before the next try; raises `final` when there is none."""
        self._drop(abort=False)
        is_in_time = self._log.runtime.now_ms() < deadline_ms
        pause = retry.next_pause(
            error, final, is_in_time=is_in_time, jitter=self._log.runtime.random.random()
        )
        if pause is not None:
            self._log.runtime.sleep(pause)
            return
        if tally.in_doubt is not None:
            raise _outcome_unknown(self._log.settings, tally.in_doubt[0], final.why) from error
        if final is error:
            raise final
        raise final from error

    def _open(self, latest_id: int, find_commit: FindCommit | None, tally: Tally) -> Session:
        """The session at hand, else a new one; its topics are checked either way."""
        if self._session is not None and not self._fits(self._session):
            self._drop(abort=True)  # a new one says what is wrong, or finds what others have set right since
        session = self._session
        if session is None:
            log = self._log.connected()
            producer = LogProducer(self._log.settings, self._log.settings.transactional_id)
            session = self._session = Session(log, producer, Progress(0, None, ""))
            session.progress, newest = open_progress(log, producer)
            tally.settle(newest)
            topics = find_settled_topics(log)
            check_use(log, topics)
            session.marker_id = "" if topics.marker is None else topics.marker.topic_id
        _check_history(self._log.settings, session.progress, latest_id, find_commit)
        return session

    def _fits(self, session: Session) -> bool:
        """Whether the topics are those that it was opened on."""
        topics = find_settled_topics(session.log)
        try:
            check_topics(self._log.settings, topics, session.progress.topic_id)
        except TablestoreError:
            return False
        return topics.marker is not None and topics.marker.topic_id == session.marker_id

    def _drop(self, *, abort: bool) -> None:
        if self._session is not None:
            self._session.producer.abandon(abort=abort)
            self._session = None

    def _publish_all(
        self,
        session: Session,
        latest_id: int,
        read_changes: ReadChanges,
        find_commit: FindCommit | None,
        *,
        tally: Tally,
        forget: Forget | None = None,
    ) -> None:
        for snapshot_id in range(session.progress.published + 1, latest_id + 1):
            self._check_there(snapshot_id, find_commit)
            changes = read_changes(snapshot_id)
            if changes is not None:
                ids = self._register(changes.schema)
                tally.progress.begin(snapshot_id, latest_id, changes.count_rows)
                publish_snapshot(session, changes, tally, ids=ids, forget=forget)
            elif session.progress.partial and snapshot_id == session.progress.published + 1:
                raise history_differs(
                    self._log.settings, f"rows of snapshot {snapshot_id} are visible, it has none now"
                )
        if session.progress.published < latest_id:
            commit = (find_commit(latest_id) if find_commit is not None else None) or ""
            publish_marker(session, latest_id, commit)

    def _register(self, schema: TableSchema) -> SchemaIds:
        """Numbers of the Avro schemas of a snapshot, before its transaction begins. Raises TS1767-TS1772."""
        if not self._log.settings.client.registry:
            return SchemaIds()
        schemas = avro_schemas(schema, self._log.settings.topic, self._log.settings.formats)
        return self._open_registry().register(schemas, self._log.settings.topic)

    def _open_registry(self) -> SchemaRegistry:
        if self._registry is None:
            self._registry = SchemaRegistry(self._log.settings.client)
        return self._registry

    def _check_there(self, snapshot_id: int, find_commit: FindCommit | None) -> None:
        """Raises FixRequest TS1733 when the next snapshot to publish does not exist any more."""
        if find_commit is not None and find_commit(snapshot_id) is None:
            raise FixRequest(
                "TS1733",
                f"the log of {self._log.settings.table} has a gap",
                why=f"it ends at snapshot {snapshot_id - 1}, and snapshot {snapshot_id} does not exist any more: it "
                "expired or was deleted before it was published, or the table got its log after that",
                fix="state where the log resumes with `tablestore publish --reset N`: snapshots after N are sent, the "
                "changes up to N never; consumers that need them read the table first",
            )


def _check_history(
    settings: LogSettings, progress: Progress, latest_id: int, find_commit: FindCommit | None
) -> None:
    """A table that was rolled back behind its log would skip snapshots. Raises FixRequest TS1708.

    A log that is ahead of `latest_id` is fine while its snapshot exists: another publisher was quicker.
    """
    commit = None if find_commit is None else find_commit(progress.published)
    if commit is None and latest_id < progress.published:
        raise history_differs(
            settings, f"the log has snapshot {progress.published}, the table ends at {latest_id}"
        )
    if commit is not None and progress.commit and commit != progress.commit:
        raise history_differs(
            settings, f"snapshot {progress.published} is of commit {commit}, the log has {progress.commit}"
        )


def _outcome_unknown(settings: LogSettings, marker: CommitMarker, why: str) -> OutcomeUnknown:
    return OutcomeUnknown(
        "TS1712",
        f"whether snapshot {marker.snapshot_id} of {settings.table} is in topic {settings.topic} is not known",
        why=f"the commit was sent, its answer was lost, and the brokers cannot be asked: {settings.client.redact(why)}",
        fix="publish again when the brokers are back: it reads what happened and never sends a row twice",
    )
