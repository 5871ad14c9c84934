"""Which commands take brokers and Spark from the profile, whose profile it is, and when it is read."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tablestore_engine.api import Engine
from tablestore_engine.cli import profile_target, warehouse_choice
from tablestore_engine.cli.command_list import ENTRIES
from tablestore_engine.cli.main import find_registers, make_parser
from tablestore_engine.cli.profile_target import LazyTarget, project_words
from tablestore_engine.cli.warehouse_choice import open_engine
from tablestore_engine.errors import FixRequest
from tablestore_engine.spi import ReadWay

from .conftest import Run

PROFILE = {"--project-dir", "--profiles-dir", "--profile", "--target"}
# commands of servers, of dbt itself and of files alone: they open no warehouse
WITHOUT_WAREHOUSE = {"init", "session", "dbt", "completion", "broker", "s3", "cluster", "demo"}
OF_DBT = {"run-stream", "explain"}  # dbt reads its own profile


@dataclass
class Target:
    """What the adapter would answer."""

    location: str
    spark_master: str = "local[3]"
    spark_conf: tuple[tuple[str, str], ...] = (("spark.driver.memory", "1g"),)
    log: tuple[tuple[str, str], ...] = (("kafka.bootstrap.servers", "profile:1"),)
    read_way: ReadWay = ReadWay.PORTABLE
    fetches_connector: bool = False
    external_paths: tuple[str, ...] = ("/data/lake",)


@dataclass
class Reader:
    """Counts how often a profile is read, and with which words."""

    target: Target | None
    error: FixRequest | None = None

    def __post_init__(self) -> None:
        self.asked: list[Sequence[str]] = []

    def __call__(self, words: Sequence[str]) -> Target | None:
        """As the entry point."""
        self.asked.append(words)
        if self.error is not None:
            raise self.error
        return self.target


@pytest.fixture
def reader(warehouse: Path, monkeypatch: pytest.MonkeyPatch) -> Reader:
    """Instead of dbt's, in a project beside the warehouse."""
    (warehouse.parent / "dbt_project.yml").write_text("name: shop\n")
    monkeypatch.chdir(warehouse.parent)
    for name in ("TABLESTORE_WAREHOUSE", "TABLESTORE_KAFKA", "TABLESTORE_KAFKA_CONFIG", "DBT_PROJECT_DIR"):
        monkeypatch.delenv(name, raising=False)
    made = Reader(Target(str(warehouse)))
    monkeypatch.setattr(warehouse_choice, "installed_reader", lambda: made)
    return made


def opened(*words: str) -> Engine:
    """As a command with these words opens it."""
    parser = argparse.ArgumentParser()
    warehouse_choice.add_place(parser, name=None)
    warehouse_choice.add_brokers(parser)
    with open_engine(parser.parse_args(words)) as engine:
        return engine


def test_every_command_with_a_warehouse_takes_the_options_of_a_profile() -> None:
    """All commands are looked at: each opens a warehouse and has dbt's options, or is one of those that open none."""
    for name, register in find_registers().items():
        if ENTRIES[name].is_passed_on:
            assert name in WITHOUT_WAREHOUSE
            continue
        parser, _ = make_parser(name, register)
        flags = _flags(parser)
        if name in OF_DBT:
            assert flags >= PROFILE - {"--profile"}
        elif name in WITHOUT_WAREHOUSE:
            assert not flags & PROFILE
        else:
            assert flags >= {*PROFILE, "--warehouse"} or name == "connect", name


def _flags(parser: argparse.ArgumentParser) -> set[str]:
    found = set()
    for action in parser._actions:
        found |= set(action.option_strings)
        if isinstance(action, argparse._SubParsersAction):
            found |= set.intersection(*map(_flags, action.choices.values()))
    return found


def test_engine_in_a_project_has_the_brokers_and_spark_of_its_profile(reader: Reader) -> None:
    """The profile is below the environment and the flags of the command, key by key."""
    engine = opened()
    assert engine.clients["kafka.bootstrap.servers"] == "profile:1"
    settings = engine._warehouse.session.settings
    assert (settings.master, settings.read_way) == ("local[3]", ReadWay.PORTABLE)
    assert settings.conf["spark.driver.memory"] == "1g"
    assert len(reader.asked) == 1


def test_environment_wins_over_the_profile_and_flags_leave_it_out(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """--bootstrap names other brokers, to which no password of the profile is sent."""
    assert reader.target is not None
    reader.target.log = (("kafka.bootstrap.servers", "profile:1"), ("kafka.sasl.password", "x"))
    monkeypatch.setenv("TABLESTORE_KAFKA", "env:2")
    assert dict(opened().clients) == {"kafka.bootstrap.servers": "env:2", "kafka.sasl.password": "x"}
    assert dict(opened("--bootstrap", "flag:3").clients) == {"kafka.bootstrap.servers": "flag:3"}


@pytest.mark.parametrize(
    "words", [("show",), ("head", "demo.orders"), ("compact", "demo.orders"), ("log", "show")]
)
def test_command_that_needs_no_log_reads_no_profile(run: Run, reader: Reader, words: Sequence[str]) -> None:
    """Nothing is asked of dbt, whose import takes seconds."""
    assert run(*words).status == 0
    assert reader.asked == []


def test_profile_of_another_warehouse_is_not_used(
    reader: Reader, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tables of one warehouse are never published to the brokers of another one; a line says why."""
    assert reader.target is not None
    reader.target.location = str(tmp_path / "lake")
    assert dict(opened().clients) == {}
    assert f"its warehouse is {tmp_path / 'lake'}" in capsys.readouterr().err


def test_profile_names_the_warehouse_with_an_option_or_where_none_is_near(
    reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """--target goes before the folder `warehouse` and the variable, --warehouse before both."""
    assert reader.target is not None
    reader.target.location = str(tmp_path / "lake")
    near = str(tmp_path / "warehouse")
    assert opened().warehouse == near
    assert opened("--target", "prod").warehouse == str(tmp_path / "lake")
    assert reader.asked[-1] == ["--target", "prod"]
    assert opened("--target", "prod", "--warehouse", near).warehouse == near
    (tmp_path / "warehouse").rename(tmp_path / "elsewhere")
    assert opened().warehouse == str(tmp_path / "lake")


def test_unreadable_profile_is_an_error_where_no_brokers_are_named(
    reader: Reader, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With TABLESTORE_KAFKA the command goes on, and says so."""
    reader.error = FixRequest("TS1945", "the profile cannot be read", why="no target nope", fix="correct it")
    with pytest.raises(FixRequest, match="TS1945"):
        dict(opened().clients)
    monkeypatch.setenv("TABLESTORE_KAFKA", "env:2")
    assert dict(opened().clients) == {"kafka.bootstrap.servers": "env:2"}
    assert "no target nope" in capsys.readouterr().err


def test_project_is_where_dbt_finds_it_else_beside_the_warehouse(tmp_path: Path) -> None:
    """Here, above, by a variable or an option; from elsewhere as if dbt ran in the folder of the warehouse."""
    project = tmp_path / "shop"
    (project / "models").mkdir(parents=True)
    (project / "dbt_project.yml").touch()
    warehouse = str(project / "warehouse")
    for here in (project, project / "models"):
        assert project_words([], {}, here, None) == []
    assert project_words([], {}, tmp_path, warehouse) == ["--project-dir", str(project)]
    assert project_words([], {"DBT_PROJECT_DIR": "x"}, tmp_path, warehouse) == []
    (project / "profiles.yml").touch()
    place = ["--project-dir", str(project)]
    assert project_words([], {}, tmp_path, warehouse) == [*place, "--profiles-dir", str(project)]
    assert project_words([], {"DBT_PROFILES_DIR": "x"}, tmp_path, warehouse) == place
    for elsewhere in (str(tmp_path / "other" / "warehouse"), "s3://bucket/shop", None):
        assert project_words([], {}, tmp_path, elsewhere) is None


def test_target_of_an_object_store_counts_whatever_its_settings(tmp_path: Path) -> None:
    """Bucket and prefix are the place; how it is reached may be said by the variable or the profile."""
    target = Target("s3://bucket/shop?endpoint=http://127.0.0.1:9000")
    assert LazyTarget([], "s3://bucket/shop", lambda: lambda _: target).find() is target
    assert LazyTarget([], "s3://bucket/other", lambda: lambda _: target).find() is None
    assert LazyTarget(None, "s3://bucket/shop", lambda: lambda _: target).find() is None
    assert profile_target.GROUP == "tablestore.profile"


def test_external_paths_of_the_profile_are_asked_for_late(reader: Reader, warehouse: Path) -> None:
    """The profile is read when the first file outside is met, and only that of this warehouse counts."""
    found = opened()._warehouse.catalog.external
    assert found is not None
    assert (list(reader.asked), found.folders, len(reader.asked)) == ([], ("/data/lake",), 1)
    reader.target = Target(f"{warehouse}-other")
    other = opened("--warehouse", str(warehouse))._warehouse.catalog.external
    assert other is not None
    assert other.folders == ()
