"""dbt-tests-adapter, area persist_docs."""

from dbt.tests.adapter.persist_docs.test_persist_docs import (
    BasePersistDocs,
    BasePersistDocsAllColumnsMissing,
    BasePersistDocsColumnMissing,
    BasePersistDocsCommentOnQuotedColumn,
    BasePersistDocsQuotedColumnCaseSensitive,
    BasePersistDocsQuotedDescriptionNotAppliedOnMismatch,
)


class TestPersistDocs(BasePersistDocs):
    """Comments of tables, views and columns."""


class TestPersistDocsColumnMissing(BasePersistDocsColumnMissing):
    """A documented column that is not there."""


class TestPersistDocsAllColumnsMissing(BasePersistDocsAllColumnsMissing):
    """None of them there."""


class TestPersistDocsQuotedColumnCaseSensitive(BasePersistDocsQuotedColumnCaseSensitive):
    """quote: true compares with case."""


class TestPersistDocsQuotedDescriptionNotAppliedOnMismatch(
    BasePersistDocsQuotedDescriptionNotAppliedOnMismatch
):
    """And does not document another column."""


class TestPersistDocsCommentOnQuotedColumn(BasePersistDocsCommentOnQuotedColumn):
    """A column whose name needs quotes."""
