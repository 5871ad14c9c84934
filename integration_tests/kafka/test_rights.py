"""Rights on a real broker with ACLs: the list of log/kafka_rights.py is enough, and nothing of it is too much."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from integration_tests.kafka.acl_lines import acl_lines
from integration_tests.kafka.secure import LoggedTable, Realm, User
from integration_tests.kafka.topics import topics_left
from tablestore_engine.devservers.kafka_broker import BrokerInfo
from tablestore_engine.errors import FixRequest, PublishPending
from tablestore_engine.log.kafka_rights import RIGHTS, Resource, Right
from tablestore_engine.runtime.outside_world import Runtime
from tests.doses import cases

_ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def realm(secure_broker: BrokerInfo) -> Realm:
    """See Realm."""
    return Realm(secure_broker)


def life_of(table: LoggedTable, user: User) -> list[Callable[[], object]]:
    """Everything that is done with a log: made, written, changed, grown, read back, dropped."""
    log = user.settings
    return [
        lambda: table.write(log, **{"log.retention": "2 d"}),
        lambda: table.write(log, **{"log.retention": "3 d"}),
        lambda: table.rescale(log, 2),
        lambda: table.published(log),
        lambda: table.drop(log),
    ]


def test_with_exactly_these_rights_everything_works(realm: Realm, tmp_path: Path) -> None:
    """A table is made, written, its retention and its buckets change, it is read back and dropped with both topics."""
    user = realm.new_user()
    table = LoggedTable(tmp_path, user.topic)
    make, change, grow, read, drop = life_of(table, user)
    make()
    change()
    grow()
    assert read() == [1, 2]
    drop()
    assert not topics_left(realm.admin, user.topic)


def tried(
    step: Callable[[], object], again: Callable[[], object]
) -> tuple[FixRequest | None, Callable[[], object]]:
    """How a step is refused, and what is to be done once it is not; what is committed is not done again."""
    try:
        done = step()
    except FixRequest as error:
        return error, step
    except PublishPending as pending:
        if not isinstance(pending.__cause__, FixRequest):
            raise
        return pending.__cause__, again
    return None, lambda: done


def check_refusal(error: FixRequest, user: User, right: Right) -> None:
    """It says which right, on what, and what an administrator types."""
    assert error.code == "TS1750"
    assert f"{right.operation} on " in error.why
    assert f"--operation {right.operation} --" in error.fix
    assert f"User:{user.name}" in error.fix
    if right.resource is not Resource.TRANSACTIONS:
        name = user.topic + ("__snapshots" if right.resource is Resource.MARKER else "")
        assert f"on topic {name}" in error.why


@pytest.mark.parametrize(
    "right", cases(RIGHTS, 1), ids=lambda right: f"{right.resource.name} {right.operation}"
)
def test_without_one_right_its_error(realm: Realm, tmp_path: Path, right: Right) -> None:
    """TS1750 names the operation and the topic, the table is as it was, and with the right given it goes on, once."""
    user = realm.new_user([one for one in RIGHTS if one != right])
    table = LoggedTable(tmp_path, user.topic)
    refused = 0
    for step in life_of(table, user):
        before = table.ids()
        error, rest = tried(step, lambda: table.publish(user.settings))
        if error is not None:
            refused += 1
            check_refusal(error, user, right)
            assert table.ids() == before
            realm.give(user, [right])
        done = rest()
        if isinstance(done, list):
            assert done == [1, 2]
    assert refused == 1
    could_not_see = (right.resource, right.operation) == (Resource.MARKER, "Read")
    assert could_not_see or not topics_left(realm.admin, user.topic), (
        "a refused creation left its topics, which are nobody's now"
    )


@pytest.mark.parametrize("resource", cases([Resource.DATA, Resource.MARKER], 1), ids=lambda one: one.name)
def test_a_right_that_goes_behind_the_commit(realm: Realm, tmp_path: Path, resource: Resource) -> None:
    """TS1070 with TS1750: the rows are committed, their log is pending; with the right back it is published, once."""
    user = realm.new_user()
    table = LoggedTable(tmp_path, user.topic)
    write = next(one for one in RIGHTS if one.resource is resource and one.operation == "Write")
    table.write(user.settings)
    taken = Runtime(on_crash_point=lambda name: realm.take(user, write) if name == "commit.done" else None)
    with pytest.raises(PublishPending, match="TS1750") as pending:
        table.write(user.settings, taken)
    assert "TS1070" in str(pending.value)
    assert (table.rows, table.published(user.settings)) == ([1, 2], [1])
    with pytest.raises(FixRequest, match="TS1750"):
        table.publish(user.settings)
    realm.give(user, [write])
    table.publish(user.settings)
    table.publish(user.settings)
    assert table.published(user.settings) == [1, 2]


def test_the_user_of_the_development_broker_has_enough(realm: Realm, tmp_path: Path) -> None:
    """What `broker start --secure` prints for clients makes, publishes and drops a table."""
    table = LoggedTable(tmp_path, "of-the-least")
    table.write(realm.least)
    assert table.published(realm.least) == [1]
    table.drop(realm.least)


def test_the_page_lists_exactly_these_rights() -> None:
    """docs/log-system.md says to an administrator what the tests above have shown."""
    text = (_ROOT / "docs" / "log-system.md").read_text()
    for line in acl_lines("User:publisher", "orders", "orders__snapshots"):
        assert f"kafka-acls.sh {line}" in text
    for right in RIGHTS:
        assert f"| {right.resource} | {right.operation} | {right.purpose} |" in text
