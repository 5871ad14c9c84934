"""Config of a Python model: frames, packages, and what needs SQL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from dbt.adapters.tablestore.config.keys_of_other_adapters import explain_ignored
from dbt.adapters.tablestore.python_models.python_config import PythonConfig, read_python_config
from dbt.adapters.tablestore.python_submission import check_packages
from tablestore_engine.errors import FixRequest, Unsupported
from tablestore_engine.spi import FrameKind


def read(config: Mapping[str, Any], **node: Any) -> PythonConfig:
    """Of a table called m."""
    return read_python_config({"name": "m", "config": {"materialized": "table", **config}, **node})


def test_defaults_are_spark_and_no_packages() -> None:
    """A model without config."""
    assert read({}) == PythonConfig(FrameKind.SPARK, ())


@pytest.mark.parametrize(
    "config", [{"dataframe": "polars"}, {"meta": {"tablestore": {"dataframe": "polars"}}}]
)
def test_kind_of_frame_is_read_in_both_places(config: Mapping[str, Any]) -> None:
    """As every key of this adapter."""
    assert read({**config, "packages": ["a", "b>=1"]}) == PythonConfig(FrameKind.POLARS, ("a", "b>=1"))


@pytest.mark.parametrize(
    "config", [{"dataframe": "panda"}, {"dataframe": 1}, {"packages": [1]}, {"packages": 5}]
)
def test_wrong_value_is_refused(config: Mapping[str, Any]) -> None:
    """TS1891 with what is expected."""
    with pytest.raises(FixRequest, match="TS1891"):
        read(config)


@pytest.mark.parametrize(
    "config",
    [
        {"materialized": "view"},
        {"materialized": "materialized_view"},
        {"materialized": "incremental", "incremental_strategy": "microbatch"},
        {"materialized": "tablestore", "incremental_strategy": "changed_keys"},
    ],
)
def test_what_needs_sql_is_refused(config: Mapping[str, Any]) -> None:
    """TS1893, by name."""
    with pytest.raises(Unsupported, match="TS1893"):
        read(config)


def test_changed_keys_needs_a_declaration() -> None:
    """In either place of the config."""
    config = {"materialized": "incremental", "incremental_strategy": "changed_keys"}
    for more in ({"affected_by": {"a": "b"}}, {"meta": {"tablestore": {"affected_by": {"a": "b"}}}}):
        assert read({**config, **more}).packages == ()


def test_strategy_of_the_project_is_nothing_to_a_table() -> None:
    """As for SQL models."""
    assert read({"incremental_strategy": "microbatch"}).dataframe is FrameKind.SPARK


def test_ephemeral_parent_is_refused_by_name() -> None:
    """dbt would write its SQL into the Python text."""
    with pytest.raises(Unsupported, match="ephemeral model src"):
        read({}, extra_ctes=[{"id": "model.shop.src", "sql": None}])


def test_installed_packages_pass() -> None:
    """By the name of the distribution, by that of a module, by a marker that does not hold."""
    check_packages("m", ["pyarrow", "PyArrow>=1", "dateutil", "not-there; python_version < '3'"])


def test_missing_packages_are_named_with_the_command() -> None:
    """All of them at once."""
    with pytest.raises(FixRequest, match="TS1892") as caught:
        check_packages("m", ["not-there", "pyarrow>=9999", "pyarrow"])
    assert caught.value.fix.startswith("run `pip install not-there 'pyarrow>=9999'`")
    assert "not-there is missing; pyarrow has version" in caught.value.why


@pytest.mark.parametrize("text", ["a b", "a=1", "", "git+https://example.org/x"])
def test_text_that_is_no_requirement_is_refused(text: str) -> None:
    """TS1894."""
    with pytest.raises(FixRequest, match="TS1894"):
        check_packages("m", [text])


def test_submission_options_say_that_the_model_runs_here() -> None:
    """A warning for those of others; none where the value says the same."""
    config = {"submission_method": "job_cluster", "cluster_id": "c"}
    assert set(explain_ignored(config)) == set(config)
    assert explain_ignored({"submission_method": "session"}) == {}
