"""Profiles: three keys suffice, mistakes are named, secrets stay inside."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from click.testing import CliRunner
from dbt.task.init import InitTask
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.tablestore.connections import get_engine
from dbt.adapters.tablestore.credentials import TablestoreCredentials, describe_warehouse, locate_warehouse
from dbt.include.tablestore import PACKAGE_PATH
from tablestore_engine.api import FixRequest
from tablestore_engine.cli import broker


def credentials(**values: Any) -> TablestoreCredentials:
    """As dbt makes them from a profile."""
    data = {"warehouse": "./wh", "schema": "demo", **values}
    TablestoreCredentials.validate(data)
    return TablestoreCredentials.from_dict(data)


def test_three_keys_suffice() -> None:
    """type, warehouse, schema; the database of dbt's two-level names is absent."""
    made = credentials()
    assert (made.type, made.database, made.unique_field) == ("tablestore", None, "./wh")


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({"warehouse": ""}, "TS1801"),
        ({"schema": ""}, "TS1801"),
        ({"database": "other"}, "TS1802"),
        ({"brokers": "a:1", "log": {"kafka.bootstrap.servers": "b:1"}}, "TS1821"),
        ({"spark": {"mastr": "local"}}, "TS1803 .*(?s:.)*write spark.master"),
        ({"broker": "a:1"}, "TS1803 .* key broker\n(?s:.)*write brokers"),
        ({"Brokers": "a:1"}, "write brokers"),
        ({"schemas": "x"}, "write schema"),
        ({"host": "x"}, "TS1803"),
        ({"spark": {"read_way": "fast"}}, "TS1803"),
        ({"spark": {"connector": "download"}}, "TS1803"),
    ],
)
def test_wrong_profiles_are_refused_in_dbts_words(values: dict[str, Any], code: str) -> None:
    """dbt prints the error without a stack."""
    with pytest.raises(DbtRuntimeError, match=code):
        credentials(**values)


def test_a_relative_warehouse_lies_beside_the_project(tmp_path: Path) -> None:
    """The shell's directory does not matter; absolute paths stay."""
    assert locate_warehouse("./wh", str(tmp_path)) == str(tmp_path / "wh")
    assert locate_warehouse(str(tmp_path), "/x") == str(tmp_path)


def test_secrets_are_neither_printed_nor_shown() -> None:
    """dbt debug and repr() of the engine's settings know nothing of `log:`."""
    made = credentials(log={"kafka.sasl.password": "hunter2"})
    assert "hunter2" not in str(dict(made.connection_info()))
    assert "hunter2" not in repr(describe_warehouse(made, "."))


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ({"brokers": " a:1,b:2 "}, "a:1,b:2"),
        ({"brokers": "a:1", "log": {"kafka.bootstrap.servers": "a:1", "kafka.linger.ms": 7}}, "a:1"),
        ({"brokers": "none"}, None),
        ({"brokers": ""}, None),
        ({}, None),
    ],
)
def test_brokers_are_those_of_the_log(values: dict[str, Any], found: str | None) -> None:
    """What `dbt init` asks for; the rest of `log:` stays."""
    log = dict(describe_warehouse(credentials(**values), ".", {}).log)
    assert log.get("kafka.bootstrap.servers") == found
    assert log.get("kafka.linger.ms") == (str(values["log"]["kafka.linger.ms"]) if "log" in values else None)


def test_dbt_init_says_how_to_get_the_address_of_a_broker() -> None:
    """dbt takes defaults from a file alone, so the prompt names commands. They exist; Enter means no brokers."""
    template = yaml.safe_load((Path(PACKAGE_PATH) / "profile_template.yml").read_text())
    answers: dict[str, Any] = {}

    @click.command()
    def init() -> None:
        answers.update(InitTask.generate_target_from_input(InitTask.__new__(InitTask), template["prompts"]))

    prompts = CliRunner().invoke(init, input="\n" * 4).output
    (line,) = [one for one in prompts.splitlines() if one.startswith("brokers")]
    assert re.findall("`tablestore ([a-z]+ [a-z]+)`", line) == ["broker start", "broker url"]
    parser = argparse.ArgumentParser()
    broker.add_arguments(parser)
    assert {parser.parse_args([word]).action for word in ("start", "url")} == {"start", "url"}
    assert answers["brokers"] == "none"


def test_the_environment_wins_over_the_profile(tmp_path: Path) -> None:
    """Key by key: profile < file of the environment < TABLESTORE_KAFKA; the rest of the profile stays."""
    made = credentials(log={"kafka.bootstrap.servers": "profile:1", "kafka.linger.ms": 7})
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=file:2\nsasl.password=hunter2\n")
    for environ, brokers in (
        ({}, "profile:1"),
        ({"TABLESTORE_KAFKA_CONFIG": str(file)}, "file:2"),
        ({"TABLESTORE_KAFKA_CONFIG": str(file), "TABLESTORE_KAFKA": "env:3"}, "env:3"),
    ):
        log = dict(describe_warehouse(made, ".", environ).log)
        assert (log["kafka.bootstrap.servers"], log["kafka.linger.ms"]) == (brokers, "7")
        assert log.get("kafka.sasl.password") == ("hunter2" if environ else None)
    with pytest.raises(DbtRuntimeError, match="TS1097"):
        describe_warehouse(made, ".", {"TABLESTORE_KAFKA_CONFIG": str(tmp_path / "none")})


def test_a_run_keeps_the_settings_that_it_began_with(tmp_path: Path) -> None:
    """A file that changes or goes under a run gives it no second engine, and no error on Ctrl-C."""
    file = tmp_path / "kafka.properties"
    file.write_text("security.protocol=SASL_SSL\n")
    made, environ = credentials(), {"TABLESTORE_KAFKA_CONFIG": str(file)}
    before = describe_warehouse(made, ".", environ)
    file.unlink()
    assert describe_warehouse(made, ".", environ) == before
    assert "_log_settings" not in made.to_dict()


def test_equal_settings_share_an_engine() -> None:
    """The comparable form does not depend on the order of keys, and booleans are Spark's."""
    one = describe_warehouse(credentials(spark={"master": "local[2]", "conf": {"b": True, "a": 1}}), "/x")
    two = describe_warehouse(credentials(spark={"conf": {"a": "1", "b": "true"}, "master": "local[2]"}), "/x")
    assert one == two
    assert dict(one.spark_conf) == {"a": "1", "b": "true"}


@pytest.mark.parametrize("warehouse", ["hdfs://n/wh", "ftp://b/wh"])
def test_a_profile_of_another_store_is_refused(warehouse: str) -> None:
    """The profile names a store that there is no code for: dbt stops before it connects."""
    with pytest.raises(DbtRuntimeError, match="TS1060"):
        credentials(warehouse=warehouse)


def test_a_file_address_in_the_profile(tmp_path: Path) -> None:
    """`file:` is the local disk."""
    assert locate_warehouse(f"file://{tmp_path}/wh", "/elsewhere") == str(tmp_path / "wh")


def test_trusted_sql_reaches_the_engine() -> None:
    """The profile's `trusted_sql` is off by default, on when said, and two settings have two engines."""
    plain = describe_warehouse(credentials(), "/p")
    trusting = describe_warehouse(credentials(trusted_sql=True), "/p")
    assert (plain.trusted_sql, trusting.trusted_sql) == (False, True)
    assert plain != trusting


def test_external_paths_reach_the_engine(tmp_path: Path) -> None:
    """The profile's folders are those of the engine, none by default; one text, or one that overlaps, is refused."""
    assert describe_warehouse(credentials(), "/p").external_paths == ()
    named = describe_warehouse(
        credentials(warehouse=str(tmp_path / "w"), external_paths=[f"file://{tmp_path}/lake"]), "/p"
    )
    found = get_engine(named)._warehouse.catalog.external
    assert found is not None
    assert found.folders == (f"{tmp_path}/lake",)
    inside = describe_warehouse(credentials(warehouse="/w", external_paths=["/w/lake"]), "/p")
    with pytest.raises(FixRequest, match="TS1227"):
        get_engine(inside)
    with pytest.raises(Exception, match="external_paths"):
        credentials(external_paths="/data/lake")
