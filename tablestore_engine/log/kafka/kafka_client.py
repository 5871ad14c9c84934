"""Making Kafka clients, and saying in our words what their errors mean.

Names      Reasons         what a client said in the background (refused connections, failed log-ins)
           make_admin()    an AdminClient whose brokers have answered, within LogSettings.timeout_s
           make_producer(), make_consumer()   clients with the engine's settings
           translate()     KafkaException → one of our errors, by what the caller must do
INVARIANT  a client is silent: what it would print comes as `why` of an error, without secrets.
INVARIANT  keep the AdminClient in a variable while its futures run: a temporary one dies under them.
"""

from __future__ import annotations

import logging
import re
from collections import deque
from collections.abc import Callable

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient

from tablestore_engine.errors import Fenced, FixRequest, RetryError, TablestoreError
from tablestore_engine.log.kafka.access_errors import (
    LOGIN,
    RIGHTS,
    explain_no_answer,
    login_error,
    rights_error,
)
from tablestore_engine.log.kafka.settings import LogSettings

TRANSACTION_TIMEOUT_MS = 120_000
_EARLY_QUEUE, _EARLY_QUEUE_KB = 50_000, 65_536  # time in the queue counts: what waits longer is given up
_LOOK_SECONDS = 1.0
_PASSING_WORDS = re.compile(
    r" \(after \d+ms in state \w+(?:, \d+ identical error\(s\) suppressed)?\)|^\S+://\S+: "
)
_UNREACHABLE = frozenset(
    {
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._TRANSPORT,
        KafkaError._RESOLVE,
        KafkaError._TIMED_OUT,
        KafkaError._TIMED_OUT_QUEUE,
        KafkaError._MSG_TIMED_OUT,
    }
)
_WRONG_SETTING = frozenset(
    {KafkaError.INVALID_TRANSACTION_TIMEOUT, KafkaError._INVALID_ARG, KafkaError.INVALID_CONFIG}
)
FENCED = frozenset({KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED})
_LOGGER = logging.getLogger("tablestore_engine.kafka")
_LOGGER.addHandler(logging.NullHandler())  # silent unless someone listens
_LOGGER.propagate = False
DeliveryReport = Callable[[KafkaError | None, Message], None]


class Reasons:
    """The last things a client complained about, newest last."""

    def __init__(self) -> None:
        self._seen: deque[KafkaError] = deque(maxlen=8)

    def __call__(self, error: KafkaError) -> None:
        """The client's error callback."""
        self._seen.append(error)

    def find_login_failure(self) -> KafkaError | None:
        """A refused log-in or TLS failure: librdkafka itself only goes on trying."""
        return next((error for error in self._seen if error.code() in LOGIN), None)

    def is_refused_user(self) -> bool:
        """Whether a broker was reached and said no to the log-in."""
        return any(error.code() in LOGIN and error.code() != KafkaError._SSL for error in self._seen)

    def find_last(self) -> KafkaError | None:
        """What was said last: a client that is fenced says so here."""
        return self._seen[-1] if self._seen else None

    def text(self) -> str:
        """Different complaints, joined; where and after how many milliseconds each was made says nothing."""
        return "; ".join(dict.fromkeys(_PASSING_WORDS.sub("", error.str()) for error in self._seen))


def make_admin(settings: LogSettings) -> AdminClient:
    """A client whose brokers answer. Raises RetryError TS1702, FixRequest TS1713, TS1721, TS1750-TS1752."""
    reasons = Reasons()
    try:
        admin = AdminClient(_config(settings, reasons))  # type: ignore[arg-type]  # its stub forgets callbacks
    except KafkaException as error:
        raise _bad_config(error, settings) from error
    _await_answer(admin, settings, reasons)
    return admin


def _await_answer(admin: AdminClient, settings: LogSettings, reasons: Reasons) -> None:
    """Look by look: the client itself goes on trying what can never succeed. Raises as make_admin."""
    left, looks = settings.timeout_s, 0
    while True:
        look = min(left, _LOOK_SECONDS)
        left, looks = left - look, looks + 1
        try:
            admin.list_topics(topic=settings.topic, timeout=look)
        except KafkaException as error:
            admin.poll(0)
            final = translate(error, settings, doing="asking the brokers", reasons=reasons)
            is_over = left <= 0 or reasons.find_login_failure() is not None
            if not reasons.is_refused_user() and (looks == 1 or is_over):
                explained = explain_no_answer(settings, final.what, is_over=is_over)
                final, is_over = explained or final, is_over or explained is not None
            if is_over:
                raise final from error
        else:
            return


def make_producer(
    settings: LogSettings, transactional_id: str | None, on_delivery: DeliveryReport, reasons: Reasons
) -> Producer:
    """A transactional producer, not yet initialised; with None one whose messages count at once, and which gives them
    up after LogSettings.timeout_s. Raises FixRequest TS1721.
    """
    defaults: dict[str, object] = {
        "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS,
        "delivery.timeout.ms": int(settings.delivery_s * 1000),
        "linger.ms": 20,
        "batch.size": 1_000_000,
        "compression.type": "lz4",
        "queue.buffering.max.messages": 400_000,
        "queue.buffering.max.kbytes": 262_144,
    }
    owned: dict[str, object] = {"enable.idempotence": True, "acks": "all", "on_delivery": on_delivery}
    if transactional_id is not None:
        owned["transactional.id"] = transactional_id
    else:
        owned["delivery.timeout.ms"] = int(settings.timeout_s * 1000)
        owned["queue.buffering.max.messages"] = _EARLY_QUEUE
        owned["queue.buffering.max.kbytes"] = _EARLY_QUEUE_KB
    try:
        config = {**defaults, **_config(settings, reasons), **owned}
        if transactional_id is None:
            del config["transaction.timeout.ms"]
        return Producer(config)
    except KafkaException as error:
        raise _bad_config(error, settings) from error


def make_consumer(
    settings: LogSettings, *, isolation: str = "read_committed", reset: str = "earliest"
) -> Consumer:
    """A consumer that is assigned partitions by hand and never commits offsets. Raises FixRequest TS1721."""
    owned: dict[str, object] = {
        "group.id": f"tablestore-{settings.table_uuid}",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "auto.offset.reset": reset,
        "isolation.level": isolation,
        "fetch.wait.max.ms": 20,  # an empty answer is how the end is learned: do not let it wait
        "fetch.queue.backoff.ms": 20,  # the default stops for a second whenever its queue is full: a fifth of the speed
    }
    try:
        return Consumer({**_config(settings, Reasons()), **owned})
    except KafkaException as error:
        raise _bad_config(error, settings) from error


def _config(settings: LogSettings, reasons: Reasons) -> dict[str, object]:
    return {
        "client.id": "tablestore",
        "reconnect.backoff.max.ms": 1000,
        **settings.client,
        "logger": _LOGGER,
        "error_cb": reasons,
    }


def code_of(error: KafkaException) -> int:
    """The numeric code of the KafkaError inside; 0 for the rare exception without one."""
    inner = error.args[0] if error.args else None
    return inner.code() if isinstance(inner, KafkaError) else 0


def said(error: KafkaException) -> str:
    """The text of the KafkaError inside."""
    inner = error.args[0] if error.args else None
    return f"{inner.name()}: {inner.str()}" if isinstance(inner, KafkaError) else str(error)


def translate(
    error: KafkaException, settings: LogSettings, *, doing: str, reasons: Reasons | None = None
) -> TablestoreError:
    """TS1713 for a log-in, TS1750 rights, TS1721 wrong setting, TS1702 unreachable, TS1710 fenced, else TS1711."""
    code = code_of(error)
    background = reasons.text() if reasons is not None else ""
    why = settings.redact(said(error) + (f" ({background})" if background else ""))
    what = f"the log of {settings.table} (topic {settings.topic}) failed while {doing}"
    if code in RIGHTS:
        return rights_error(code, settings, why, doing=doing, config=_config(settings, Reasons()))
    if code in LOGIN or (reasons is not None and reasons.find_login_failure() is not None):
        return login_error(what, why)
    if code in _WRONG_SETTING:
        return _bad_config(error, settings)
    if code in _UNREACHABLE:
        return RetryError(
            "TS1702",
            what,
            why=f"the brokers at {settings.brokers} gave no answer within {settings.timeout_s:.0f} s: {why}",
            fix="start the broker (`tablestore broker start`) or correct kafka.bootstrap.servers in `log:` of the "
            "profile (or --bootstrap), then publish again",
        )
    if code in FENCED:
        return Fenced(
            "TS1710",
            what,
            why=f"another publisher of this table took over: {why}",
            fix="run one publisher of a table at a time; what it did not publish, the next run does",
        )
    return RetryError(
        "TS1711",
        what,
        why=why,
        fix="publish again: what is pending comes from the table, nothing is lost and nothing comes twice",
    )


def _bad_config(error: KafkaException, settings: LogSettings) -> FixRequest:
    return FixRequest(
        "TS1721",
        f"the Kafka settings of {settings.table} are not accepted",
        why=settings.redact(said(error)),
        fix="correct `log:` of the profile, or the kafka.* options of the table; brokers have limits of their own, "
        "as transaction.max.timeout.ms for kafka.transaction.timeout.ms",
    )
