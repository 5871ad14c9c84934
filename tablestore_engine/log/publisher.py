"""The outbox: committed snapshots → their changelog in Kafka, each exactly once and in order.

Names      Publisher   one per table; `publish_pending` is the only thing it does
Steps      open     1 brokers answer 2 new producer, init: fences others, decides what was open 3 P from the markers
                    4 topic, owner and history are the ones expected
           publish  for each snapshot P+1 … latest: begin · rows · wait for every report · marker · commit
           error    throw the producer away, back off, open again: P says what really happened
Empty      a snapshot without changes needs no transaction of its own: the next one with changes covers it, and only
           when the newest ones are empty a transaction with nothing but a marker moves P up to them.
Chunks     a big snapshot becomes several transactions (LogSettings.chunk_rows, chunk_ms); the marker counts the
           messages per partition, so that the next publisher goes on behind them: still once and in order.
CRASH      log.begin, log.rows, log.marker: nothing is visible, the next open aborts it · log.committed: P knows
Return     when publish_pending returns, read_committed consumers see what it sent
INVARIANT  rows become visible only after their snapshot exists, since they are read from it (P2).
INVARIANT  an unknown outcome is read back as P, never guessed (P4).
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from tablestore_engine.errors import OutcomeUnknown, RetryError
from tablestore_engine.log.beginning import open_progress
from tablestore_engine.log.changes import PublishReport, ReadChanges
from tablestore_engine.log.client import FENCED, code_of, make_admin, said, translate
from tablestore_engine.log.decided import await_visible, marker_place
from tablestore_engine.log.marker import Marker, Progress
from tablestore_engine.log.producer import LogProducer
from tablestore_engine.log.settings import LogSettings
from tablestore_engine.log.topic import check_topics, find_topics
from tablestore_engine.log.transactions import (
    Session,
    Tally,
    history_differs,
    publish_marker,
    publish_snapshot,
)
from tablestore_engine.runtime.system import SYSTEM, Runtime

_TROUBLES_MAX = 3
_FENCES_MAX = 5
FindCommit = Callable[[int], str | None]


class Publisher:
    """Keeps its producer between calls, so that a small commit costs one round trip. Not thread-safe."""

    def __init__(self, settings: LogSettings, *, runtime: Runtime = SYSTEM) -> None:
        self._settings = settings
        self._runtime = runtime
        self._session: Session | None = None

    def __enter__(self) -> Publisher:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give the producer up; what is pending stays pending."""
        self._drop(abort=False)

    def publish_pending(
        self, latest_id: int, read_changes: ReadChanges, *, find_commit: FindCommit | None = None
    ) -> PublishReport:
        """Publish every snapshot up to `latest_id` that is not in the log yet.

        `find_commit` gives "user:identifier" of a snapshot that still exists: with it a table that was rolled back
        behind the log is noticed. Raises TS1702-TS1714; after RetryError and OutcomeUnknown simply call again.
        """
        tally = Tally()
        while True:
            try:
                session = self._open(latest_id, find_commit, tally)
                self._publish_all(session, latest_id, read_changes, find_commit, tally=tally)
                self._await_visible(session, tally)
                return PublishReport(session.progress.published, tally.snapshots, tally.rows, tally.offsets)
            except KafkaException as error:
                reasons = self._session.producer.reasons if self._session is not None else None
                self._drop(abort=False)
                wait_s = self._plan_retry(
                    error, tally, translate(error, self._settings, doing="publishing", reasons=reasons)
                )
                self._runtime.sleep(wait_s)
            except BaseException:
                self._drop(abort=True)
                raise

    def _await_visible(self, session: Session, tally: Tally) -> None:
        following = {(self._settings.topic, part): end for part, (_, end) in tally.offsets.items()}
        following[marker_place(self._settings)] = session.producer.marker_end
        await_visible(session.admin, following, self._settings, self._runtime)

    def _plan_retry(self, error: KafkaException, tally: Tally, final: Exception) -> float:
        """Seconds to wait before the next attempt; raises `final` when there is none."""
        is_fenced = code_of(error) in FENCED
        tally.fences += is_fenced
        tally.troubles += not is_fenced
        is_worth_it = isinstance(final, RetryError) or is_fenced
        if is_worth_it and tally.troubles <= _TROUBLES_MAX and tally.fences <= _FENCES_MAX:
            return float(0.1 * 2 ** (tally.troubles + tally.fences) * (0.5 + self._runtime.random.random()))
        if tally.in_doubt is not None:
            raise _outcome_unknown(self._settings, tally.in_doubt[0], said(error)) from error
        raise final from error

    def _open(self, latest_id: int, find_commit: FindCommit | None, tally: Tally) -> Session:
        """The session at hand, else a new one; its topic is checked either way."""
        session = self._session
        if session is not None:
            check_topics(
                self._settings, find_topics(session.admin, self._settings), session.progress.topic_id
            )
        else:
            admin = self._make_admin(tally)
            producer = LogProducer(self._settings, self._settings.transactional_id)
            session = self._session = Session(admin, producer, Progress(0, None, ""))
            session.progress, newest = open_progress(admin, producer, self._settings, self._runtime)
            tally.settle(newest)
        _check_history(self._settings, session.progress, latest_id, find_commit)
        return session

    def _make_admin(self, tally: Tally) -> AdminClient:
        try:
            return make_admin(self._settings)
        except RetryError as error:
            if tally.in_doubt is None:
                raise
            raise _outcome_unknown(self._settings, tally.in_doubt[0], error.why) from error

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
    ) -> None:
        for snapshot_id in range(session.progress.published + 1, latest_id + 1):
            changes = read_changes(snapshot_id)
            if changes is not None:
                publish_snapshot(session, changes, self._settings, self._runtime, tally)
            elif session.progress.partial and snapshot_id == session.progress.published + 1:
                raise history_differs(
                    self._settings, f"rows of snapshot {snapshot_id} are visible, it has none now"
                )
        if session.progress.published < latest_id:
            commit = (find_commit(latest_id) if find_commit is not None else None) or ""
            publish_marker(session, latest_id, commit, self._settings, self._runtime)


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


def _outcome_unknown(settings: LogSettings, marker: Marker, why: str) -> OutcomeUnknown:
    return OutcomeUnknown(
        "TS1712",
        f"whether snapshot {marker.snapshot_id} of {settings.table} is in topic {settings.topic} is not known",
        why=f"the commit was sent, its answer was lost, and the brokers cannot be asked: {settings.redact(why)}",
        fix="publish again when the brokers are back: it reads what happened and never sends a row twice",
    )
