"""What is asked while a leader dies or is new: asked again, never answered wrongly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from tablestore_engine.log.kafka.client_config import ClientConfig
from tablestore_engine.log.kafka.leader_wait import MOVING, LeaderWait, refresh_by
from tablestore_engine.log.kafka.partition_ends import check_offsets
from tablestore_engine.log.kafka.partition_reader import read_range
from tablestore_engine.log.kafka.replica_lag import describe_lag
from tablestore_engine.runtime.outside_world import Runtime

CLIENT = ClientConfig({}, timeout_s=10.0)
NO_OFFSET = -1001


@dataclass
class Clock:
    """Time passes by sleeping and by `spend`."""

    now_ms: int = 0

    def spend(self, seconds: float) -> None:
        """So long."""
        self.now_ms += int(seconds * 1000)

    @property
    def runtime(self) -> Runtime:
        """With this clock."""
        return Runtime(now_ms=lambda: self.now_ms, sleep=self.spend)


@dataclass
class Admin:
    """Counts how often its metadata is asked for; `fails`: it has no answer."""

    fails: bool = False
    refreshed: int = 0

    def list_topics(self, timeout: float) -> None:
        """Timeout is not looked at."""
        self.refreshed += 1
        if self.fails:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))


def failing(clock: Clock, times: int, code: int, looks: list[float]) -> Callable[[float], str]:
    """Uses all its time and fails so often; then it answers at once."""

    def ask(seconds: float) -> str:
        looks.append(seconds)
        if len(looks) > times:
            return "answer"
        clock.spend(seconds)
        raise KafkaException(KafkaError(code))

    return ask


@pytest.mark.parametrize("code", sorted(MOVING))
@pytest.mark.parametrize("fails", [False, True])
def test_each_try_waits_longer_and_asks_for_metadata_before(code: int, fails: bool) -> None:
    """1, 2, 4 seconds: a client asks a dead leader until its time is over, and learns of another by its metadata."""
    clock, looks, admin = Clock(), list[float](), Admin(fails)
    wait = LeaderWait(CLIENT, clock.runtime)
    asked = wait.ask(failing(clock, 2, code, looks), refresh_by(admin))  # type: ignore[arg-type]  # a fake
    assert asked == "answer"
    assert (looks, admin.refreshed) == ([1.0, 2.0, 4.0], 2)


def test_a_leader_that_never_comes_is_an_error_in_time() -> None:
    """The last error is raised when ClientConfig.timeout_s is over."""
    clock, looks = Clock(), list[float]()
    with pytest.raises(KafkaException):
        LeaderWait(CLIENT, clock.runtime).ask(failing(clock, 99, KafkaError.NOT_LEADER_FOR_PARTITION, looks))
    assert 10_000 <= clock.now_ms <= 10_500


def test_what_no_leader_heals_is_raised_at_once() -> None:
    """A missing right is no reason to ask again."""
    clock, looks = Clock(), list[float]()
    with pytest.raises(KafkaException):
        LeaderWait(CLIENT, clock.runtime).ask(failing(clock, 1, KafkaError.TOPIC_AUTHORIZATION_FAILED, looks))
    assert len(looks) == 1


def test_an_offset_that_is_none_is_no_end() -> None:
    """librdkafka gives -1001 without an error for a leader that is dead: an error that names the partition."""
    good = {("t", 0): 0, ("t", 1): 7}
    assert check_offsets(good) == good
    with pytest.raises(KafkaException, match=r"t\[1\]") as caught:
        check_offsets({**good, ("t", 1): NO_OFFSET})
    assert caught.value.args[0].code() in MOVING


@dataclass
class Record:
    """A message, or an end of partition."""

    at: int
    ends: bool = False

    def error(self) -> KafkaError | None:
        """As Message."""
        return KafkaError(KafkaError._PARTITION_EOF) if self.ends else None

    def offset(self) -> int:
        """As Message."""
        return self.at


@dataclass
class Consumer:
    """Gives one record each time, then nothing."""

    records: list[Record] = field(default_factory=list)

    def assign(self, _: object) -> None:
        """Nothing."""

    def unassign(self) -> None:
        """Nothing."""

    def consume(self, _: int, timeout: float) -> list[Record]:
        """The next one."""
        return [self.records.pop(0)] if self.records else []


def read(*records: Record) -> list[int]:
    """Offsets from 0 up to 4; the clock goes on with every look."""
    ticks = iter(range(0, 10**9, 100))
    runtime = Runtime(now_ms=lambda: next(ticks), sleep=lambda _: None)
    found = read_range(Consumer(list(records)), TopicPartition("t", 0), (0, 4), runtime, 1.0)  # type: ignore[arg-type]
    return [one.offset() or 0 for one in found]


def test_an_end_before_the_wanted_one_is_not_believed() -> None:
    """A replica that has just become the leader shows less than was acknowledged: what is missing still comes."""
    assert read(Record(0), Record(1, ends=True), Record(1), Record(2), Record(3)) == [0, 1, 2, 3]
    with pytest.raises(KafkaException):
        read(Record(0), Record(1, ends=True))


def test_an_end_at_or_behind_the_wanted_one_is_the_end() -> None:
    """The last offsets may be control records, which nobody gets."""
    assert read(Record(0), Record(2), Record(4, ends=True)) == [0, 2]
    assert read(Record(0), Record(9, ends=True)) == [0]


def test_partitions_that_take_no_row_are_named() -> None:
    """With what they have and what they need; none where all have enough."""
    wanted, whole = {"t": 2, "m": 1}, {"t": {0: (2, 3), 1: (3, 3)}, "m": {0: (1, 1)}}
    assert describe_lag(wanted, whole) is None
    found = describe_lag(wanted, {**whole, "t": {0: (2, 3), 1: (1, 3)}})
    assert found == "t[1] has 1 replica(s) in sync of 3, min.insync.replicas is 2"
