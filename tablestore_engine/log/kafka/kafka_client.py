"""Making Kafka clients, and saying in our words what their errors mean.

CHANGE     the Kafka clients
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

from tablestore_engine.errors import BrokersUnreachable, FixRequest, KafkaRequestFailed, TablestoreError
from tablestore_engine.log.kafka.access_errors import LOGIN, explain_no_answer, login_error
from tablestore_engine.log.kafka.client_config import ClientConfig

TRANSACTION_TIMEOUT_MS = 120_000
_EARLY_QUEUE, _EARLY_QUEUE_KB = 50_000, 65_536  # time in the queue counts: what waits longer is given up
_LOOK_SECONDS = 1.0
_NO_TOPIC = "*"  # no topic can have this name: brokers answer, and none of them creates it
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


def make_admin(config: ClientConfig, topic: str = _NO_TOPIC) -> AdminClient:
    """A client whose brokers have answered, within `timeout_s`. Raises BrokersUnreachable TS1702, KafkaRequestFailed
    TS1711, FixRequest TS1713, TS1721, TS1751, TS1752.

    `topic`: the one that it will be used for. A client that asked here about another name keeps the leader epoch of
    this one when the brokers restart: its requests fail with FENCED_LEADER_EPOCH
    (integration_tests/kafka/test_followed_trouble.py::test_a_broker_that_stops_and_starts).
    """
    reasons = Reasons()
    try:
        admin = open_admin(config, reasons)
    except KafkaException as error:
        raise _bad_config(error, config) from error
    _await_answer(admin, config, topic, reasons)
    return admin


def open_admin(config: ClientConfig, reasons: Reasons) -> AdminClient:
    """A client that has asked nothing yet. Raises KafkaException."""
    return AdminClient(_properties(config, reasons))  # type: ignore[arg-type]  # its stub forgets callbacks


def _await_answer(admin: AdminClient, config: ClientConfig, topic: str, reasons: Reasons) -> None:
    """Look by look: the client itself goes on trying what can never succeed. Raises as make_admin."""
    left, looks = config.timeout_s, 0
    while True:
        look = min(left, _LOOK_SECONDS)
        left, looks = left - look, looks + 1
        try:
            admin.list_topics(topic=topic, timeout=look)
        except KafkaException as error:
            admin.poll(0)
            final = client_error(error, config, doing="asking the brokers", reasons=reasons)
            is_over = left <= 0 or reasons.find_login_failure() is not None
            if not reasons.is_refused_user() and (looks == 1 or is_over):
                explained = explain_no_answer(config, final.what, is_over=is_over)
                final, is_over = explained or final, is_over or explained is not None
            if is_over:
                raise final from error
        else:
            return


def make_producer(
    config: ClientConfig, transactional_id: str | None, on_delivery: DeliveryReport, reasons: Reasons
) -> Producer:
    """A transactional producer, not yet initialised; with None one whose messages count at once, and which gives them
    up after ClientConfig.timeout_s. Raises FixRequest TS1721.
    """
    defaults: dict[str, object] = {
        "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS,
        "delivery.timeout.ms": int(config.delivery_s * 1000),
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
        owned["delivery.timeout.ms"] = int(config.timeout_s * 1000)
        owned["queue.buffering.max.messages"] = _EARLY_QUEUE
        owned["queue.buffering.max.kbytes"] = _EARLY_QUEUE_KB
    try:
        properties = {**defaults, **_properties(config, reasons), **owned}
        if transactional_id is None:
            del properties["transaction.timeout.ms"]
        return Producer(properties)
    except KafkaException as error:
        raise _bad_config(error, config) from error


def make_consumer(
    config: ClientConfig, *, isolation: str = "read_committed", reset: str = "earliest"
) -> Consumer:
    """A consumer that is assigned partitions by hand and never commits offsets. Raises FixRequest TS1721."""
    owned: dict[str, object] = {
        "group.id": config.group_id,
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "auto.offset.reset": reset,
        "isolation.level": isolation,
        "fetch.wait.max.ms": 20,  # an empty answer is how the end is learned: do not let it wait
        "fetch.queue.backoff.ms": 20,  # the default stops for a second whenever its queue is full: a fifth of the speed
    }
    try:
        return Consumer({**_properties(config, Reasons()), **owned})
    except KafkaException as error:
        raise _bad_config(error, config) from error


def _properties(config: ClientConfig, reasons: Reasons) -> dict[str, object]:
    return {
        "client.id": "tablestore",
        "reconnect.backoff.max.ms": 1000,
        **config.properties,
        "logger": _LOGGER,
        "error_cb": reasons,
    }


def kafka_error(error: KafkaException) -> KafkaError | None:
    """The KafkaError inside, which the client gives as the only argument; None for the rare exception without one."""
    inner = error.args[0] if error.args else None
    return inner if isinstance(inner, KafkaError) else None


def code_of(error: KafkaException) -> int:
    """The numeric code of the KafkaError inside; 0 for the rare exception without one."""
    inner = kafka_error(error)
    return 0 if inner is None else inner.code()


def said(error: KafkaException) -> str:
    """The text of the KafkaError inside."""
    inner = kafka_error(error)
    return str(error) if inner is None else f"{inner.name()}: {inner.str()}"


def why_of(error: KafkaException, config: ClientConfig, reasons: Reasons | None) -> str:
    """The text of the error and of what the client said in the background, without secrets."""
    background = reasons.text() if reasons is not None else ""
    return config.redact(said(error) + (f" ({background})" if background else ""))


def client_error(
    error: KafkaException, config: ClientConfig, *, doing: str, reasons: Reasons | None = None
) -> TablestoreError:
    """TS1713 for a log-in, TS1721 wrong setting, TS1702 unreachable, else TS1711."""
    code, why = code_of(error), why_of(error, config, reasons)
    what = f"{config.subject} failed while {doing}"
    if code in LOGIN or (reasons is not None and reasons.find_login_failure() is not None):
        return login_error(what, why)
    if code in _WRONG_SETTING:
        return _bad_config(error, config)
    if code in _UNREACHABLE:
        return BrokersUnreachable(
            "TS1702",
            what,
            why=f"the brokers at {config.brokers} gave no answer within {config.timeout_s:.0f} s: {why}",
            fix="start the broker (`tablestore broker start`), or correct its address (`brokers` of the profile, "
            "--bootstrap, TABLESTORE_KAFKA); then run the command again",
        )
    return KafkaRequestFailed(
        "TS1711",
        what,
        why=why,
        fix="publish again: what is pending comes from the table, nothing is lost and nothing comes twice",
    )


def _bad_config(error: KafkaException, config: ClientConfig) -> FixRequest:
    return FixRequest(
        "TS1721",
        f"the Kafka settings of {config.subject} are not accepted",
        why=config.redact(said(error)),
        fix="correct `log:` of the profile, or the kafka.* options of the table; brokers have limits of their own, "
        "as transaction.max.timeout.ms for kafka.transaction.timeout.ms",
    )
