"""dbt-tests-adapter, area aliases."""

import pytest
from dbt.tests.adapter.aliases import fixtures
from dbt.tests.adapter.aliases.test_aliases import BaseAliasErrors, BaseAliases, BaseSameAliasDifferentSchemas


class SparkCast:
    """A macro of the fixtures casts to Postgres' text."""

    @pytest.fixture(scope="class")
    def macros(self):
        """string instead of text."""
        return {
            "cast.sql": fixtures.MACROS__CAST_SQL.replace("::text", "::string"),
            "expect_value.sql": fixtures.MACROS__EXPECT_VALUE_SQL,
        }


class TestAliases(SparkCast, BaseAliases):
    """An alias decides the relation's name."""


class TestAliasErrors(SparkCast, BaseAliasErrors):
    """Two models with one alias in one schema."""


class TestSameAliasDifferentSchemas(SparkCast, BaseSameAliasDifferentSchemas):
    """One alias in several schemas."""
