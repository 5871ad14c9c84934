"""Options and profile to settings: what is refused, what wins, what is never shown."""

from __future__ import annotations

import pytest

from tablestore_engine.errors import FixRequest, Unsupported
from tablestore_engine.log.envelope import ChangelogMode
from tablestore_engine.log.settings import LogSettings, resolve_log

TABLE = {
    "log.system": "kafka",
    "kafka.topic": "orders",
    "kafka.bootstrap.servers": "a:1",
    "tablestore.table-uuid": "u1",
    "bucket": "3",
}


def resolve(
    changes: dict[str, str] | None = None, profile: dict[str, str] | None = None, *, is_keyed: bool = True
) -> LogSettings:
    """TABLE with changes; an empty text takes an option out."""
    options = {key: value for key, value in {**TABLE, **(changes or {})}.items() if value}
    settings = resolve_log(options, profile, table="demo.orders", is_keyed=is_keyed)
    assert settings is not None
    return settings


def test_a_table_with_buckets() -> None:
    """Partitions are buckets, auto means upsert, both topics and the id are derived."""
    settings = resolve({"log.retention": "2 d", "log.system.replication": "3"})
    assert (settings.partitions, settings.mode, settings.replication) == (3, ChangelogMode.UPSERT, 3)
    assert (settings.marker_topic, settings.transactional_id) == ("orders__snapshots", "ts-u1")
    assert settings.retention_ms == 2 * 86_400_000
    assert settings.client == {"bootstrap.servers": "a:1"}


@pytest.mark.parametrize(
    ("changes", "is_keyed", "partitions"),
    [
        ({"bucket": "-1"}, False, 1),
        ({"bucket": "-1", "log.system.partitions": "4"}, False, 4),
        ({"bucket": ""}, True, 1),
        ({"log.system.partitions": "3"}, True, 3),
    ],
)
def test_partition_count(changes: dict[str, str], is_keyed: bool, partitions: int) -> None:
    """Only a table without buckets chooses its partitions; a keyed table has one bucket by default."""
    assert resolve(changes, is_keyed=is_keyed).partitions == partitions


def test_no_log() -> None:
    """Without log.system, or with none, there are no settings."""
    assert resolve_log({}, table="t", is_keyed=True) is None
    assert (
        resolve_log({"log.system": "none"}, {"kafka.bootstrap.servers": "a:1"}, table="t", is_keyed=True)
        is None
    )


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"kafka.topic": ""}, "kafka.topic"),
        ({"kafka.bootstrap.servers": ""}, "kafka.bootstrap.servers"),
        ({"tablestore.table-uuid": ""}, "tablestore.table-uuid"),
        ({"kafka.topic": "a/b"}, "cannot be a topic"),
        ({"kafka.topic": "x__snapshots"}, "cannot be a topic"),
        ({"log.system": "pulsar"}, "pulsar"),
        ({"log.system": "none"}, "without 'log.system'"),
        ({"log.system.partitions": "2"}, "3 buckets"),
        ({"kafka.transactional.id": "mine"}, "kafka.transactional.id"),
        ({"kafka.isolation.level": "read_uncommitted"}, "kafka.isolation.level"),
        ({"log.changelog-mode": "some"}, "auto, upsert and all"),
    ],
)
def test_contradictions_are_refused(changes: dict[str, str], said: str) -> None:
    """Each missing or contradicting option is TS1701 and is named."""
    with pytest.raises(FixRequest, match="TS1701") as caught:
        resolve_log(
            {key: value for key, value in {**TABLE, **changes}.items() if value},
            table="demo.orders",
            is_keyed=True,
        )
    assert said in str(caught.value)


def test_upsert_needs_a_key() -> None:
    """log.changelog-mode=upsert on a table without a key is TS1722."""
    with pytest.raises(FixRequest, match="TS1722"):
        resolve({"bucket": "-1", "log.changelog-mode": "upsert"}, is_keyed=False)


@pytest.mark.parametrize(
    ("key", "value"), [("log.consistency", "eventual"), ("log.format", "avro"), ("log.key.format", "avro")]
)
def test_what_is_not_built_is_refused_by_name(key: str, value: str) -> None:
    """eventual and other formats are TS1700."""
    with pytest.raises(Unsupported, match="TS1700") as caught:
        resolve({key: value})
    assert value in str(caught.value)


def test_table_wins_over_profile_and_secrets_stay_hidden() -> None:
    """The profile fills in what the table does not say; its password is in the client and nowhere else."""
    profile = {
        "kafka.bootstrap.servers": "b:2",
        "kafka.sasl.password": "hunter2",
        "kafka.security.protocol": "SASL_SSL",
    }
    settings = resolve(profile=profile)
    assert settings.client == {
        "bootstrap.servers": "a:1",
        "sasl.password": "hunter2",
        "security.protocol": "SASL_SSL",
    }
    assert resolve({"kafka.bootstrap.servers": ""}, profile).brokers == "b:2"
    assert "hunter2" not in repr(settings)
    assert settings.redact("bad password hunter2!") == "bad password ***!"
