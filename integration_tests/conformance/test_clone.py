"""dbt-tests-adapter, area dbt_clone."""

import pytest
from dbt.tests.adapter.dbt_clone.test_dbt_clone import (
    BaseClonePossible,
    BaseCloneSameSourceAndTarget,
    BaseCloneSameTargetAndState,
)


class TestClonePossible(BaseClonePossible):
    """Tables become tables."""


class TestCloneSameSourceAndTarget(BaseCloneSameSourceAndTarget):
    """A relation is not cloned onto itself."""

    differs = "names in its SQL are without the database, which is None on Spark"

    @pytest.fixture(scope="class")
    def project(self, project):
        """`None.schema.table` becomes `schema.table` in the SQL of the original."""
        run_sql = project.run_sql
        project.run_sql = lambda sql, fetch=None: run_sql(
            sql.replace(f"{project.database}.", ""), fetch=fetch
        )
        return project


class TestCloneSameTargetAndState(BaseCloneSameTargetAndState):
    """A state that is the target folder is told, and what was never built cannot be cloned onto itself."""
