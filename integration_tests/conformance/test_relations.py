"""dbt-tests-adapter, area relations."""

from dbt.tests.adapter.relations.test_changing_relation_type import BaseChangeRelationTypeValidator
from dbt.tests.adapter.relations.test_dropping_schema_named import BaseDropSchemaNamed


class TestChangeRelationType(BaseChangeRelationTypeValidator):
    """View, table, view, incremental, table."""


class TestDropSchemaNamed(BaseDropSchemaNamed):
    """drop_schema_named."""
