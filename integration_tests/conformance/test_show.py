"""dbt-tests-adapter, area dbt_show."""

from dbt.tests.adapter.dbt_show.test_dbt_show import (
    BaseShowDoesNotHandleDoubleLimit,
    BaseShowLimit,
    BaseShowSqlHeader,
)


class TestShowLimit(BaseShowLimit):
    """--limit."""


class TestShowSqlHeader(BaseShowSqlHeader):
    """A header before the query."""


class TestShowDoesNotHandleDoubleLimit(BaseShowDoesNotHandleDoubleLimit):
    """A query with a limit of its own."""

    DATABASE_ERROR_MESSAGE = "Syntax error at or near 'limit'"
