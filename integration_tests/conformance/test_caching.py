"""dbt-tests-adapter, area caching."""

from dbt.tests.adapter.caching.test_caching import (
    BaseCachingLowercaseModel,
    BaseCachingSelectedSchemaOnly,
    BaseCachingUppercaseModel,
    BaseNoPopulateCache,
)
from dbt.tests.util import run_dbt


class WithoutDatabase:
    """The original lowers the name of the database, which is None on Spark."""

    differs = "schema and name are compared, the database is not: Spark has none"

    def run_and_inspect_cache(self, project, run_args=None):
        """As the original: one relation in the cache after a run, and the same one, listed, after the next."""
        found = []
        for _ in range(2):
            run_dbt(run_args)
            (relation,) = project.adapter.cache.relations
            assert relation.schema == project.test_schema == relation.schema.lower()
            found.append((relation.database, relation.schema.lower(), relation.identifier.lower()))
        assert found[0] == found[1]


class TestCachingLowercaseModel(WithoutDatabase, BaseCachingLowercaseModel):
    """What the cache holds after a run, and after the next one."""


class TestCachingUppercaseModel(WithoutDatabase, BaseCachingUppercaseModel):
    """A model in capitals."""


class TestCachingSelectedSchemaOnly(WithoutDatabase, BaseCachingSelectedSchemaOnly):
    """--cache-selected-only."""


class TestNoPopulateCache(WithoutDatabase, BaseNoPopulateCache):
    """--no-populate-cache."""
