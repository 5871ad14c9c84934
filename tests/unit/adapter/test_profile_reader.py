"""A target is read as dbt reads it."""

from __future__ import annotations

import os
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from dbt.adapters.tablestore.profile_reader import read_target
from tablestore_engine.api import FixRequest

PROFILES = """
shop:
  target: "{{ env_var('SHOP_TARGET', 'dev') }}"
  outputs:
    dev:
      type: tablestore
      warehouse: ./warehouse
      schema: demo
      brokers: "{{ env_var('SHOP_BROKERS') }}"
      log: {kafka.security.protocol: SASL_SSL}
      spark: {master: "local[2]", read_way: portable, conf: {spark.driver.memory: 1g}}
    prod: {type: tablestore, warehouse: ./lake, schema: demo}
    broken: {type: tablestore, schema: demo}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with its profile in another folder, and the current folder below the project."""
    for name in [name for name in os.environ if name.startswith(("DBT_", "TABLESTORE_KAFKA"))]:
        monkeypatch.delenv(name)
    (tmp_path / "dbt_project.yml").write_text("name: shop\nversion: '1'\nprofile: shop\n")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "profiles.yml").write_text(PROFILES)
    (tmp_path / "models").mkdir()
    monkeypatch.chdir(tmp_path / "models")
    monkeypatch.setenv("DBT_PROFILES_DIR", str(tmp_path / "home"))
    monkeypatch.setenv("SHOP_BROKERS", "kafka:9092")
    return tmp_path


def test_target_is_rendered_by_dbt(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables of the environment name brokers and target; a relative warehouse lies beside the project."""
    found = read_target([])
    assert found is not None
    assert found.location == str(project / "warehouse")
    assert dict(found.log) == {
        "kafka.bootstrap.servers": "kafka:9092",
        "kafka.security.protocol": "SASL_SSL",
    }
    assert (found.spark_master, found.read_way) == ("local[2]", "portable")
    assert found.spark_conf == (("spark.driver.memory", "1g"),)
    monkeypatch.setenv("SHOP_TARGET", "prod")
    other = read_target([])
    assert other is not None
    assert (other.location, other.log) == (str(project / "lake"), ())
    assert read_target(["--target", "dev"]) == found


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--target", "nope"], "nope"),
        (["--target", "broken"], "TS1801"),
        (["--profile", "nope"], "nope"),
        (["--profiles-dir", "/nowhere"], "profile named 'shop'"),
    ],
)
def test_unreadable_profile_is_refused_with_the_reason_of_dbt(
    project: Path, words: list[str], why: str
) -> None:
    """TS1945, for a target, profile or folder that is not there, and for an output that lacks a key."""
    with pytest.raises(FixRequest, match=f"(?s)TS1945.*{why}"):
        read_target(words)


def test_variable_that_is_not_set_is_refused(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As dbt does, and only where the chosen target asks for it."""
    monkeypatch.delenv("SHOP_BROKERS")
    with pytest.raises(FixRequest, match=r"(?s)TS1945.*SHOP_BROKERS"):
        read_target([])
    assert read_target(["--target", "prod"]) is not None


def test_reader_is_the_entry_point_of_the_package() -> None:
    """The command line finds it without importing the adapter."""
    (found,) = entry_points(group="tablestore.profile")
    assert found.value == f"{read_target.__module__}:{read_target.__name__}"
