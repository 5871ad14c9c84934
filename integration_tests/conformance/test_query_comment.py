"""dbt-tests-adapter, area query_comment."""

from dbt.tests.adapter.query_comment.test_query_comment import (
    BaseEmptyQueryComments,
    BaseMacroArgsQueryComments,
    BaseMacroInvalidQueryComments,
    BaseMacroQueryComments,
    BaseNullQueryComments,
    BaseQueryComments,
)


class TestQueryComments(BaseQueryComments):
    """A text."""


class TestMacroQueryComments(BaseMacroQueryComments):
    """A macro."""


class TestMacroArgsQueryComments(BaseMacroArgsQueryComments):
    """A macro with arguments."""


class TestMacroInvalidQueryComments(BaseMacroInvalidQueryComments):
    """A broken macro fails."""


class TestNullQueryComments(BaseNullQueryComments):
    """No comment."""


class TestEmptyQueryComments(BaseEmptyQueryComments):
    """An empty comment."""
