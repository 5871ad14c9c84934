"""dbt-tests-adapter, area simple_copy."""

import pytest
from dbt.tests.adapter.simple_copy.test_copy_uppercase import BaseSimpleCopyUppercase
from dbt.tests.adapter.simple_copy.test_simple_copy import EmptyModelsArentRunBase, SimpleCopyBase
from dbt_common.exceptions import DbtRuntimeError


class TestSimpleCopy(SimpleCopyBase):
    """A seed through each materialization, twice."""

    differs = (
        "there are no materialized views: that the statement is refused by name is checked in that place"
    )

    def test_simple_copy_with_materialized_views(self, project):
        """No materialized view, so nothing of one can be in the way."""
        with pytest.raises(DbtRuntimeError, match="TS1502"):
            project.run_sql(f"create materialized view {project.test_schema}.unrelated as select 1 as id")


class TestEmptyModelsArentRun(EmptyModelsArentRunBase):
    """An empty file is no model."""

    @pytest.fixture(scope="class", autouse=True)
    def listing(self, project):
        """What is in the schema, from the adapter: there is no information_schema."""
        project.get_tables_in_schema = lambda: {
            relation.identifier: relation.type
            for relation in project.adapter.list_relations(project.database, project.test_schema)
        }


class TestSimpleCopyUppercase(BaseSimpleCopyUppercase):
    """Models in capitals."""

    @pytest.fixture(scope="class")
    def dbt_profile_target(self, tablestore_target):
        """The profile of this suite instead of Postgres'."""
        return tablestore_target
