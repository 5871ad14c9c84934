"""Options: values that cannot be read are refused when a table is created or altered, not at its first commit."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from tablestore_engine.errors import FixRequest, Unsupported
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.options import (
    OPTIONS,
    OptionSet,
    StatsMode,
    check_options,
    is_credential,
    parse_stats_mode,
)
from tablestore_engine.sql.statement import SetProperties
from tablestore_engine.warehouse.statements.alter_statement import alter_schema
from tablestore_engine.warehouse.write.incoming_rows import from_arrow
from tablestore_engine.warehouse.write.target_schema import plan_target
from tablestore_engine.warehouse.write.write_spec import OnSchemaChange, TableSpec

FIELDS = from_arrow(pa.schema([("id", pa.int64()), ("name", pa.string())]).empty_table()).fields


def _create(options: dict[str, str], current: TableSchema | None = None) -> TableSchema:
    spec = TableSpec(("id",), options=options)
    return plan_target(current, FIELDS, spec, OnSchemaChange.IGNORE, table="d.t", new_uuid="u").schema


WAYS: list[Callable[[dict[str, str]], object]] = [
    _create,
    lambda options: _create(options, _create({})),
    lambda options: alter_schema(_create({}), SetProperties(tuple(options.items())), ()),
]


@pytest.mark.parametrize("way", WAYS, ids=["create", "write", "alter"])
@pytest.mark.parametrize(
    ("key", "text", "code"),
    [
        ("metadata.stats-mode", "all", "TS1130"),
        ("metadata.stats-mode", "", "TS1130"),
        ("fields.name.stats-mode", "truncate", "TS1130"),
        ("fields.a.b.stats-mode", "truncate(0)", "TS1130"),
        ("file.compression", "lzo", "TS1007"),
        ("manifest.compression", "snappy", "TS1007"),
        ("manifest.compression", "none", "TS1007"),  # pypaimon 2.1.0 opens no table with it
        ("manifest.compression", "ZSTD", "TS1007"),
    ],
)
def test_wrong_values_never_reach_a_table(
    way: Callable[[dict[str, str]], object], key: str, text: str, code: str
) -> None:
    """CREATE, a write with options and ALTER refuse the value with the key in the message."""
    with pytest.raises(FixRequest, match=key) as caught:
        way({key: text})
    assert caught.value.code == code


def test_good_values_pass() -> None:
    """Every mode, for the table and for a column, and every compression that can be written."""
    for text in ("none", "counts", "full", "truncate(8)", "truncate( 4 )"):
        check_options({"metadata.stats-mode": text, "fields.name.stats-mode": text})
    for text in OPTIONS["manifest.compression"].values:
        check_options({"manifest.compression": text})


def test_a_column_may_have_a_mode_of_its_own() -> None:
    """The others have the table's, and without an option the default; a wrong value names its own key."""
    options = OptionSet({"metadata.stats-mode": "counts", "fields.b.stats-mode": "full"})
    assert options.stats_mode("a") == StatsMode(counts=True, bounds=False)
    assert options.stats_mode("b") == StatsMode(counts=True, bounds=True)
    assert OptionSet({}).stats_mode("a") == StatsMode(counts=True, bounds=True, length=16)
    with pytest.raises(FixRequest, match=r"fields\.b\.stats-mode"):
        OptionSet({"fields.b.stats-mode": ""}).stats_mode("b")


def test_mode_names() -> None:
    """Blanks are allowed inside truncate, as in Java; anything else is refused by name."""
    assert parse_stats_mode("k", "truncate( 4 )") == StatsMode(counts=True, bounds=True, length=4)
    for text in ("truncate(0)", "truncate", "all", ""):
        with pytest.raises(FixRequest) as caught:
            parse_stats_mode("k", text)
        assert caught.value.code == "TS1130"


@pytest.mark.parametrize(
    "key",
    [
        "fs.azure.account.key.acme.dfs.core.windows.net", "ssl.keystore.key", "sasl.jaas.config", "kafka.sasl.username",
        "s3.secret-key", "s3.access-key", "AccountKey", "SASL_PASSWORD", "sslKeyPem", "fs.s3a.session.token", "apiKey",
        "private_key", "kafka.ssl.ca.location", "KAFKA.SASL.MECHANISM", "connection-string", "my.pwd",
        "\uff33\uff33\uff2c.key",
    ],
)  # fmt: skip
def test_credentials_in_any_spelling_are_no_options(key: str) -> None:
    """TS1005 before anything is written; the message has the key and no value."""
    assert is_credential(key)
    with pytest.raises(FixRequest, match="TS1005") as caught:
        check_options({key: "hunter2"})
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "key",
    [*OPTIONS, "access.list", "process.log", "class.loader", "max_tokens", "unique_key", "bypass", "key", "compass"],
)  # fmt: skip
def test_harmless_words_are_not_taken_for_credentials(key: str) -> None:
    """No option of ours, and no word that only contains the letters."""
    assert not is_credential(key)


@pytest.mark.parametrize(
    "key",
    [
        "scan.tag-name",
        "log.system.auto-register", "log.system.auto-register-timeout",
    ],
)  # fmt: skip
@pytest.mark.parametrize("way", WAYS, ids=["create", "write", "alter"])
def test_options_without_an_effect_are_refused_by_name(
    way: Callable[[dict[str, str]], object], key: str
) -> None:
    """TS1072 instead of a silent promise."""
    with pytest.raises(Unsupported, match="TS1072") as caught:
        way({key: "true"})
    assert key in str(caught.value)


@pytest.mark.parametrize("key", ["scan.snapshot-id", "scan.timestamp-millis", "log.scan.timestamp-millis"])
@pytest.mark.parametrize("way", WAYS, ids=["create", "write", "alter"])
def test_a_place_in_the_past_is_a_readers_to_say(way: Callable[[dict[str, str]], object], key: str) -> None:
    """In a table it would send the batch queries of other engines there: TS1161 says where it belongs."""
    with pytest.raises(FixRequest, match="TS1161") as caught:
        way({key: "1"})
    assert "tablestore tail" in str(caught.value)


@pytest.mark.parametrize("key", ["scan.mode", "log.scan"])
def test_a_mode_in_the_past_is_refused_under_both_names(key: str) -> None:
    """What leads to the newest snapshot may be a table's default, under the old name too."""
    for word in ("default", "latest-full", "full", "latest"):
        check_options({key: word})
        assert OptionSet({key: word}).text("scan.mode") == word
    for word in ("from-timestamp", "from-snapshot", "compacted-full", "earliest", "Latest"):
        with pytest.raises(FixRequest, match="TS1007"):
            check_options({key: word})
    assert OptionSet({"scan.mode": "latest", "log.scan": "full"}).text("scan.mode") == "latest"


@pytest.mark.parametrize("way", WAYS, ids=["create", "write", "alter"])
@pytest.mark.parametrize("key", ["kafka.bootstrap.servers", "kafka.plugin.library.paths", "kafka.client.id"])
def test_a_table_says_nothing_about_brokers_and_clients(
    way: Callable[[dict[str, str]], object], key: str
) -> None:
    """TS1071 names the few keys that a table may set, and the places for the others."""
    with pytest.raises(FixRequest, match="TS1071") as caught:
        way({key: "x"})
    assert "kafka.topic" in str(caught.value)
    assert "--bootstrap" in str(caught.value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("metadata.iceberg.hadoop-conf-dir", "conf"),
        ("manifest.format", "orc"),
        ("index-file-in-data-file-dir", "true"),
        ("file-index.bsi.columns", "v"),
        ("file-index.bitmap.v.version", "1"),
        ("tag.automatic-completion", "true"),
        ("tag.batch.customized-name", "x"),
        ("tag.period-formatter", "without_dashes"),
        ("commit.callbacks", "com.example.Told"),
        ("commit.callback.com.example.Told.param", "x"),
        ("changelog.time-retained", "7 d"),
        ("fields.v.nested-sequence-field", "id"),
        ("partition.mark-done-action.custom.class", "com.example.Told"),
        ("metastore.partitioned-table", "true"),
        ("primary-key", "id"),
        ("branch", "other"),
    ],
)
def test_option_of_paimon_without_effect_is_refused(key: str, value: str) -> None:
    """TS1573 with the reason instead of a stored promise."""
    with pytest.raises(Unsupported, match="TS1573") as caught:
        check_options({key: value})
    assert key in caught.value.what
    assert "without effect" in caught.value.why


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("metadata.iceberg.storage", "disabled"),
        ("tag.create-success-file", "false"),
        ("manifest.format", "avro"),
        ("metastore.partitioned-table", "false"),
        ("branch", "main"),
        ("write-buffer-size", "64 mb"),
        ("read.batch-size", "2048"),
    ],
)
def test_option_of_paimon_that_asks_for_nothing_is_kept(key: str, value: str) -> None:
    """The value that turns a feature off, and tuning of other engines, are stored."""
    check_options({key: value})
