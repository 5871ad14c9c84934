"""Options and profile to settings: what is refused, what wins, what is never shown."""

from __future__ import annotations

import re
from itertools import product

import pytest

from tablestore_engine.errors import FixRequest, Unsupported
from tablestore_engine.log.kafka.settings import LogSettings, resolve_log
from tablestore_engine.log.log_formats import ValueFormat
from tablestore_engine.log.message_envelope import ChangelogMode

TABLE = {
    "log.system": "kafka",
    "kafka.topic": "orders",
    "tablestore.table-uuid": "u1",
    "changelog-producer": "lookup",
    "bucket": "3",
}
PROFILE = {"kafka.bootstrap.servers": "a:1"}


def resolve(
    changes: dict[str, str] | None = None, profile: dict[str, str] | None = None, *, is_keyed: bool = True
) -> LogSettings:
    """TABLE with changes; an empty text takes an option out."""
    options = {key: value for key, value in {**TABLE, **(changes or {})}.items() if value}
    settings = resolve_log(options, profile or PROFILE, table="demo.orders", is_keyed=is_keyed)
    assert settings is not None
    return settings


def test_a_table_with_buckets() -> None:
    """Partitions are buckets, auto means upsert, both topics and the id are derived."""
    settings = resolve({"log.retention": "2 d", "log.system.replication": "3"})
    assert (settings.partitions, settings.mode, settings.replication) == (3, ChangelogMode.UPSERT, 3)
    assert (settings.marker_topic, settings.transactional_id) == ("orders__snapshots", "ts-u1")
    assert settings.retention_ms == 2 * 86_400_000
    assert settings.client.properties == {"bootstrap.servers": "a:1"}


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


def test_shards_of_a_log() -> None:
    """One publisher for everything, or some with identities of their own; they share one topic."""
    assert resolve().all_shards() == (resolve(),)
    assert resolve().own_partitions == (0, 1, 2)
    found = resolve({"log.publish.shards": "2"}).all_shards()
    assert [one.transactional_id for one in found] == ["ts-u1-0", "ts-u1-1"]
    assert [one.own_partitions for one in found] == [(0, 2), (1,)]
    assert {one.topic for one in found} == {"orders"}


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"log.publish.shards": "2", "log.consistency": "eventual"}, "TS1774"),
        ({"log.publish.shards": "4"}, "TS1775"),
        ({"log.publish.shards": "0"}, "TS1008"),
        ({"log.publish.shards": "two"}, "TS1003"),
    ],
)
def test_shards_that_do_not_fit(changes: dict[str, str], code: str) -> None:
    """An eventual log has nothing to share out, and a partition has one publisher."""
    with pytest.raises(FixRequest, match=code):
        resolve(changes)
    assert resolve({"log.publish.shards": "3"}).shards == 3


@pytest.mark.parametrize(("bucket", "is_keyed"), [("-1", True), ("0", True), ("-2", True), ("-2", False)])
def test_buckets_that_come_with_rows_have_no_partitions(bucket: str, is_keyed: bool) -> None:
    """TS1778, before a topic is made; only a table without a key and without buckets has partitions all the same."""
    with pytest.raises(FixRequest, match="TS1778"):
        resolve({"bucket": bucket}, is_keyed=is_keyed)


def test_reading_in_a_log_needs_one() -> None:
    """TS1701; reading in files does not."""
    with pytest.raises(FixRequest, match="streaming-read-mode"):
        resolve_log({"streaming-read-mode": "log"}, table="t", is_keyed=True)
    assert resolve_log({"streaming-read-mode": "file"}, table="t", is_keyed=True) is None
    assert resolve({"streaming-read-mode": "log"}).partitions == 3


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
        ({"tablestore.table-uuid": ""}, "tablestore.table-uuid"),
        ({"kafka.topic": "a/b"}, "cannot be a topic"),
        ({"kafka.topic": "x__snapshots"}, "cannot be a topic"),
        ({"log.system": "pulsar"}, "pulsar"),
        ({"log.system": "none"}, "without 'log.system'"),
        ({"log.system.partitions": "2"}, "3 buckets"),
        ({"log.changelog-mode": "some"}, "auto, upsert and all"),
    ],
)
def test_contradictions_are_refused(changes: dict[str, str], said: str) -> None:
    """Each missing or contradicting option is TS1701 and is named."""
    with pytest.raises(FixRequest, match="TS1701") as caught:
        resolve_log(
            {key: value for key, value in {**TABLE, **changes}.items() if value},
            PROFILE,
            table="demo.orders",
            is_keyed=True,
        )
    assert said in str(caught.value)


def test_upsert_needs_a_key() -> None:
    """log.changelog-mode=upsert on a table without a key is TS1722."""
    with pytest.raises(FixRequest, match="TS1722"):
        resolve({"bucket": "-1", "log.changelog-mode": "upsert"}, is_keyed=False)


@pytest.mark.parametrize(
    "more",
    [
        {"log.format": "avro"},
        {"log.key.format": "avro"},
        {"log.ignore-delete": "true"},
        {"log.format": "json", "log.ignore-delete": "true"},
    ],
)
def test_an_eventual_log_tells_deletes_by_json_keys(more: dict[str, str]) -> None:
    """What is taken back is a tombstone under a key in JSON: TS1742 for Avro, and where deletes are left out."""
    with pytest.raises(FixRequest, match="TS1742"):
        resolve({"log.consistency": "eventual", **more})


def test_an_eventual_log_needs_a_key_and_no_row_before() -> None:
    """Rows may come twice: TS1740 without a key, TS1741 for log.changelog-mode=all; else it is taken."""
    eventual = {"log.consistency": "eventual"}
    with pytest.raises(FixRequest, match="TS1740"):
        resolve({"bucket": "-1", **eventual}, is_keyed=False)
    with pytest.raises(FixRequest, match="TS1741"):
        resolve({"log.changelog-mode": "all", **eventual})
    assert resolve(eventual).is_eventual
    assert not resolve({}).is_eventual


def test_brokers_and_security_are_the_profiles_alone() -> None:
    """A table that names brokers (old ones do) is not asked for them; the password goes where the profile says."""
    profile = {
        "kafka.bootstrap.servers": "b:2",
        "kafka.sasl.password": "hunter2",
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.linger.ms": "5",
        "kafka.compression.type": "zstd",
    }
    settings = resolve({"kafka.bootstrap.servers": "evil:1", "kafka.linger.ms": "7"}, profile)
    assert settings.client.properties == {
        "bootstrap.servers": "b:2",
        "sasl.password": "hunter2",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "linger.ms": "7",
        "compression.type": "zstd",
    }
    assert "hunter2" not in repr(settings)
    assert settings.client.redact("bad password hunter2!") == "bad password ***!"


def test_without_brokers_in_the_profile_a_tables_own_are_not_used() -> None:
    """TS1701 says where brokers are named."""
    options = {**TABLE, "kafka.bootstrap.servers": "evil:1"}
    with pytest.raises(FixRequest, match="TS1701") as caught:
        resolve_log(options, {"kafka.linger.ms": "1"}, table="demo.orders", is_keyed=True)
    assert "--bootstrap" in str(caught.value)


@pytest.mark.parametrize(
    ("key", "code"),
    [
        ("kafka.plugin.library.paths", "TS1071"),
        ("kafka.security.protocol", "TS1071"),
        ("kafka.debug", "TS1071"),
        ("kafka.transactional.id", "TS1071"),
        ("kafka.isolation.level", "TS1071"),
        ("kafka.stats_cb", "TS1071"),
        ("kafka.enabled_sasl_mechanisms", "TS1005"),
        ("kafka.SSL.ca.location", "TS1005"),
        ("kafka.sasl_password", "TS1005"),
        ("schema.registry.url", "TS1071"),
        ("log.scan.remove-normalize", "TS1002"),
        ("log.whatever", "TS1006"),
    ],
)
def test_a_stored_table_cannot_configure_our_client(key: str, code: str) -> None:
    """A table written by somebody else is refused by the key, whatever it hoped to load or to send."""
    with pytest.raises((FixRequest, Unsupported), match=re.escape(key)) as caught:
        resolve({key: "x"})
    assert caught.value.code == code


@pytest.mark.parametrize("key", ["kafka.transactional.id", "kafka.isolation.level", "kafka.acks"])
def test_what_makes_exactly_once_is_not_the_profiles_either(key: str) -> None:
    """TS1701 names the key."""
    with pytest.raises(FixRequest, match="TS1701") as caught:
        resolve(profile={**PROFILE, key: "1"})
    assert key in str(caught.value)


@pytest.mark.parametrize("producer", ["none", ""])
def test_a_log_needs_a_changelog(producer: str) -> None:
    """changelog-producer none, or absent on disk, would lose deletes and overwrites: TS1737, in any mode."""
    for mode in ("auto", "all", "upsert"):
        with pytest.raises(FixRequest, match="TS1737"):
            resolve({"changelog-producer": producer, "log.changelog-mode": mode})
    assert resolve({"changelog-producer": producer, "bucket": "-1"}, is_keyed=False).partitions == 1


@pytest.mark.parametrize(
    ("key", "text", "code"),
    [
        ("bucket", "many", "TS1003"),
        ("log.system.partitions", "three", "TS1003"),
        ("log.system.partitions", "0", "TS1008"),
        ("log.system.replication", "40000", "TS1073"),
        ("log.retention", "soon", "TS1001"),
        ("log.format", "protobuf", "TS1007"),
        ("log.key.format", "canal-json", "TS1007"),
        ("log.ignore-delete", "yes", "TS1002"),
        ("kafka.linger.ms", "x", "TS1003"),
        ("kafka.message.max.bytes", "10", "TS1008"),
        ("kafka.compression.type", "lzma", "TS1007"),
    ],
)
def test_no_value_gives_a_raw_error(key: str, text: str, code: str) -> None:
    """Every option text that cannot be read has a code and the key."""
    with pytest.raises(FixRequest, match=key) as caught:
        resolve({key: text})
    assert caught.value.code == code


REGISTRY = {
    **PROFILE,
    "schema.registry.url": "http://me:hunter3@r:8081",
    "schema.registry.basic.auth.user.info": "me:hunter2",
}
KEYED_JSON = ("debezium-json", "canal-json", "maxwell-json", "json")
# key, consistency, mode, ignore-delete → the formats that a log may have, and the refusals of the others
LOGS: dict[tuple[bool, str, str, bool], tuple[tuple[str, ...], dict[str, str]]] = {
    (True, "transactional", "upsert", False): ((*KEYED_JSON, "avro"), {}),
    (True, "transactional", "upsert", True): ((*KEYED_JSON, "avro"), {}),
    (True, "transactional", "all", False): ((*KEYED_JSON[:3], "avro"), {"json": "TS1762"}),
    (True, "transactional", "all", True): ((*KEYED_JSON, "avro"), {}),
    (True, "eventual", "upsert", False): (KEYED_JSON, {"avro": "TS1742"}),
    (True, "eventual", "upsert", True): ((), dict.fromkeys((*KEYED_JSON, "avro"), "TS1742")),
    (True, "eventual", "all", False): ((), {**dict.fromkeys((*KEYED_JSON[:3], "avro"), "TS1741"), "json": "TS1762"}),
    (True, "eventual", "all", True): ((), dict.fromkeys((*KEYED_JSON, "avro"), "TS1741")),
    (False, "transactional", "all", False): ((*KEYED_JSON, "avro"), {}),
    (False, "transactional", "all", True): ((*KEYED_JSON, "avro"), {}),
    (False, "transactional", "upsert", False): ((), dict.fromkeys((*KEYED_JSON, "avro"), "TS1722")),
    (False, "transactional", "upsert", True): ((), dict.fromkeys((*KEYED_JSON, "avro"), "TS1722")),
    (False, "eventual", "all", False): ((), dict.fromkeys((*KEYED_JSON, "avro"), "TS1740")),
    (False, "eventual", "all", True): ((), dict.fromkeys((*KEYED_JSON, "avro"), "TS1740")),
    (False, "eventual", "upsert", False): ((), dict.fromkeys((*KEYED_JSON, "avro"), "TS1722")),
    (False, "eventual", "upsert", True): ((), dict.fromkeys((*KEYED_JSON, "avro"), "TS1722")),
}  # fmt: skip


@pytest.mark.parametrize(
    ("is_keyed", "consistency", "mode", "ignores"),
    list(LOGS),
)
def test_log_of_each_format_consistency_and_mode_is_built_or_refused(
    is_keyed: bool, consistency: str, mode: str, ignores: bool
) -> None:
    """The table above has every combination and every format; auto is the same as the mode it stands for."""
    built, refused = LOGS[is_keyed, consistency, mode, ignores]
    assert {*built, *refused} == set(ValueFormat)
    chosen = {"log.consistency": consistency, "log.ignore-delete": str(ignores).lower()}
    modes = (mode, "auto") if (mode == "upsert") == is_keyed else (mode,)
    for value, said in product(ValueFormat, modes):
        options = {
            **chosen,
            "log.format": value,
            "log.changelog-mode": said,
            "bucket": "1" if is_keyed else "-1",
        }
        if value in refused:
            with pytest.raises(FixRequest, match=refused[value]):
                resolve(options, REGISTRY, is_keyed=is_keyed)
        else:
            found = resolve(options, REGISTRY, is_keyed=is_keyed)
            assert (found.formats.value, found.mode) == (value, mode)


def test_plain_json_without_tombstones_takes_inserts_only() -> None:
    """Partitions that expire need another format, or ignore-delete: TS1762."""
    plain = {"log.format": "json"}
    expiring = {**plain, "bucket": "-1", "partition.expiration-time": "7 d"}
    with pytest.raises(FixRequest, match="TS1762"):
        resolve(expiring, is_keyed=False)
    assert resolve({**expiring, "log.ignore-delete": "true"}, is_keyed=False).formats.ignore_delete


def test_time_that_brokers_have_to_answer_is_the_profiles() -> None:
    """In milliseconds, by Java's name, and not handed on to librdkafka; 10 s where a profile has none."""
    assert resolve().client.timeout_s == 10.0
    client = resolve(profile={**PROFILE, "kafka.default.api.timeout.ms": "2500"}).client
    assert (client.timeout_s, client.properties) == (2.5, {"bootstrap.servers": "a:1"})
    for wrong in ("0", "-1", "soon", "1.5"):
        with pytest.raises(FixRequest, match=r"(?s)TS1701.*'kafka\.default\.api\.timeout\.ms' is") as refused:
            resolve(profile={**PROFILE, "kafka.default.api.timeout.ms": wrong})
        assert repr(wrong) in str(refused.value)


@pytest.mark.parametrize("key", ["log.format", "log.key.format"])
def test_avro_needs_a_registry_of_the_profile(key: str) -> None:
    """TS1766 without one; its settings lose their prefix, and no text of ours shows a password."""
    with pytest.raises(FixRequest, match="TS1766"):
        resolve({key: "avro"})
    settings = resolve({key: "avro"}, REGISTRY)
    assert settings.client.registry == {
        "url": "http://me:hunter3@r:8081",
        "basic.auth.user.info": "me:hunter2",
    }
    assert "hunter" not in repr(settings)
    said = settings.client.redact("me:hunter2 at http://me:hunter3@r:8081/subjects")
    assert said == "*** at http://***@r:8081/subjects"


def test_a_log_without_avro_knows_no_registry() -> None:
    """Its settings do not change with the registry, so that its producer stays; without a key there is no Avro key."""
    assert resolve({}, REGISTRY).client.registry == {}
    assert resolve({"log.key.format": "avro", "bucket": "-1"}, is_keyed=False).client.registry == {}
