"""dbt-tests-adapter, area functions: SQL functions; other languages and aggregates are refused by name."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.artifacts.schemas.results import RunStatus
from dbt.events.types import JinjaLogWarning, RunResultError
from dbt.tests.adapter.functions import files
from dbt.tests.adapter.functions.test_udafs import BasicSQLUDAF
from dbt.tests.adapter.functions.test_udfs import (
    CanFindScalarFunctionRelation,
    DeterministicUDF,
    ErrorForUnsupportedType,
    NonDeterministicUDF,
    PythonUDFEntryPointRequired,
    PythonUDFNotSupported,
    PythonUDFRuntimeVersionRequired,
    SqlUDFDefaultArgSupport,
    StableUDF,
    UDFsBasic,
)
from dbt.tests.util import run_dbt
from dbt_common.events.event_catcher import EventCatcher


def _refused(feature: str) -> None:
    """`dbt build` of one function fails with TS1884, which names it."""
    caught = EventCatcher(RunResultError)
    result: Any = run_dbt(["build", "--debug"], expect_pass=False, callbacks=[caught.catch])
    errors = [one for one in result.results if one.status == RunStatus.Error]
    assert len(errors) == 1
    message = caught.caught_events[0].data.msg
    assert "TS1884" in message
    assert feature in message


class TestUDFs(UDFsBasic):
    """A scalar function."""


class TestUDFsExpression(UDFsBasic):
    """Its body is an expression."""

    @pytest.fixture(scope="class")
    def functions(self) -> dict[str, str]:
        """Without SELECT."""
        return {"price_for_xlarge.sql": "price * 2", "price_for_xlarge.yml": files.MY_UDF_YML}


class TestDeterministicUDF(DeterministicUDF):
    """Spark's word."""

    differs = "the word that is compared is Spark's DETERMINISTIC, not IMMUTABLE"

    def check_function_volatility(self, sql: str) -> None:
        """In the statement that dbt sent."""
        assert "DETERMINISTIC" in sql
        assert "NOT DETERMINISTIC" not in sql


class TestStableUDF(StableUDF):
    """Spark has none: a warning."""

    differs = "Spark has no word for it: dbt's warning is compared"

    def check_function_volatility(self, sql: str) -> None:
        """In the statement that dbt sent."""
        assert "DETERMINISTIC" not in sql

    def test_udfs(self, project: Any, sql_event_catcher: Any) -> None:
        """As the original, and dbt's warning."""
        warned = EventCatcher(JinjaLogWarning)
        run_dbt(["parse", "--no-partial-parse"])
        run_dbt(["build"], callbacks=[warned.catch])
        assert any("Found `stable` volatility" in one.data.msg for one in warned.caught_events)
        super().test_udfs(project, sql_event_catcher)


class TestNonDeterministicUDF(NonDeterministicUDF):
    """Spark's words."""

    differs = "the words that are compared are Spark's NOT DETERMINISTIC, not VOLATILE"

    def check_function_volatility(self, sql: str) -> None:
        """In the statement that dbt sent."""
        assert "NOT DETERMINISTIC" in sql


class TestErrorForUnsupportedType(ErrorForUnsupportedType):
    """dbt's own error: it has no macro for table functions."""


class TestSqlUDFDefaultArgSupport(SqlUDFDefaultArgSupport):
    """DEFAULT."""

    expect_default_arg_support = True


class TestCanFindScalarFunctionRelation(CanFindScalarFunctionRelation):
    """Listed among the relations of its schema."""


class TestPythonUDFRuntimeVersionRequired(PythonUDFRuntimeVersionRequired):
    """dbt's check comes first."""


class TestPythonUDFEntryPointRequired(PythonUDFEntryPointRequired):
    """dbt's check comes first."""


class TestPythonUDFNotSupported(PythonUDFNotSupported):
    """The error is an error of ours."""

    differs = "the error names the feature (TS1884), in place of a missing macro of dbt"

    def test_udfs(self, project: Any, sql_event_catcher: Any) -> None:
        """The feature by its name, in place of dbt's missing macro."""
        _refused("a Python function")


class TestSQLUDAFNotSupported(BasicSQLUDAF):
    """Refused by name."""

    differs = "an aggregate function is refused by name (TS1884)"

    def test_udaf(self, project: Any, sql_event_catcher: Any) -> None:
        """The feature by its name."""
        _refused("an aggregate function")
