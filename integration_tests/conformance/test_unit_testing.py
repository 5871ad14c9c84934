"""dbt-tests-adapter, area unit_testing."""

import pytest
from dbt.tests.adapter.unit_testing.test_case_insensitivity import BaseUnitTestCaseInsensivity
from dbt.tests.adapter.unit_testing.test_invalid_input import BaseUnitTestInvalidInput
from dbt.tests.adapter.unit_testing.test_quoted_reserved_word_column_names import (
    BaseUnitTestQuotedReservedWordColumnNames,
    my_model_sql,
    test_my_model_csv_fixtures_yml,
)
from dbt.tests.adapter.unit_testing.test_types import (
    BaseUnitTestingTypes,
    BaseUnitTestingVarcharFixtureNoTruncation,
)


class TestCaseInsensitivity(BaseUnitTestCaseInsensivity):
    """Column names have no case."""


class TestInvalidInput(BaseUnitTestInvalidInput):
    """Columns that are not there."""


class TestQuotedReservedWord(BaseUnitTestQuotedReservedWordColumnNames):
    """A column called GROUP, quoted as Spark does."""

    @pytest.fixture(scope="class")
    def models(self):
        """Backticks instead of double quotes."""
        return {
            "my_model.sql": my_model_sql,
            "my_upstream_model.sql": "select 1 as `GROUP`",
            "unit_tests.yml": test_my_model_csv_fixtures_yml,
        }


class TestTypes(BaseUnitTestingTypes):
    """Values of each type in fixtures."""

    @pytest.fixture
    def data_types(self):
        """Spark's types."""
        return [
            ["1", "1"],
            ["cast(9007199254740993 as bigint)", "9007199254740993"],
            ["2.0", "2.0"],
            ["'12345'", "12345"],
            ["'string'", "string"],
            ["true", "true"],
            ["date '2011-11-11'", "2011-11-11"],
            ["timestamp '2013-11-03 00:00:00-0'", "2013-11-03 00:00:00-0"],
            ["cast(1.5 as double)", "1.5"],
            ["cast('1.23' as decimal(10,2))", "1.23"],
        ]


class TestVarcharFixtureNoTruncation(BaseUnitTestingVarcharFixtureNoTruncation):
    """Fixtures are not cut."""
