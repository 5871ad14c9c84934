"""dbt-tests-adapter, area basic."""

import pytest
from dbt.tests.adapter.basic.expected_catalog import (
    base_expected_catalog,
    expected_references_catalog,
)
from dbt.tests.adapter.basic.test_adapter_methods import BaseAdapterMethod
from dbt.tests.adapter.basic.test_base import BaseSimpleMaterializations
from dbt.tests.adapter.basic.test_docs_generate import BaseDocsGenerate, BaseDocsGenReferences
from dbt.tests.adapter.basic.test_empty import BaseEmpty
from dbt.tests.adapter.basic.test_ephemeral import BaseEphemeral
from dbt.tests.adapter.basic.test_generic_tests import BaseGenericTests
from dbt.tests.adapter.basic.test_incremental import (
    BaseIncremental,
    BaseIncrementalBadStrategy,
    BaseIncrementalNotSchemaChange,
)
from dbt.tests.adapter.basic.test_singular_tests import BaseSingularTests
from dbt.tests.adapter.basic.test_singular_tests_ephemeral import BaseSingularTestsEphemeral
from dbt.tests.adapter.basic.test_snapshot_check_cols import BaseSnapshotCheckCols
from dbt.tests.adapter.basic.test_snapshot_timestamp import BaseSnapshotTimestamp
from dbt.tests.adapter.basic.test_table_materialization import BaseTableMaterialization
from dbt.tests.adapter.basic.test_validate_connection import BaseValidateConnection


class TestSimpleMaterializations(BaseSimpleMaterializations):
    """Views, tables and their swap."""


class TestSingularTests(BaseSingularTests):
    """Singular tests."""


class TestSingularTestsEphemeral(BaseSingularTestsEphemeral):
    """Singular tests over ephemeral models."""


class TestEmpty(BaseEmpty):
    """An empty project."""


class TestEphemeral(BaseEphemeral):
    """Ephemeral models."""


class TestIncremental(BaseIncremental):
    """Incremental append."""


class TestIncrementalNotSchemaChange(BaseIncrementalNotSchemaChange):
    """A column of the incremental branch only is no schema change."""


class TestIncrementalBadStrategy(BaseIncrementalBadStrategy):
    """A strategy that does not exist fails on the first run."""


class TestGenericTests(BaseGenericTests):
    """Generic tests on models and sources."""


class TestSnapshotCheckCols(BaseSnapshotCheckCols):
    """Snapshots by columns."""


class TestSnapshotTimestamp(BaseSnapshotTimestamp):
    """Snapshots by time."""


class TestAdapterMethod(BaseAdapterMethod):
    """Methods of the adapter object."""


class TestTableMaterialization(BaseTableMaterialization):
    """Configs of other adapters do nothing."""


class TestValidateConnection(BaseValidateConnection):
    """dbt debug's query."""


NO_STATS = {
    "has_stats": {
        "id": "has_stats",
        "label": "Has Stats?",
        "value": False,
        "description": "Indicates whether there are statistics for this table",
        "include": False,
    }
}


class TableStats(dict):
    """Facts of a snapshot differ from run to run: that they are there is compared, their values are not."""

    def __eq__(self, other):
        return {"snapshot_id", "rows", "files", "bytes", "last_commit", "has_stats"} <= set(other)

    def __ne__(self, other):
        return not self == other

    __hash__ = None


class TestDocsGenerate(BaseDocsGenerate):
    """The docs catalog; statistics are ours and not compared."""

    @pytest.fixture(scope="class")
    def expected_catalog(self, project):
        """As dbt expects it, with Spark's types."""
        return base_expected_catalog(
            project,
            role="dbt",
            id_type="bigint",
            text_type="string",
            time_type="timestamp",
            view_type="view",
            table_type="table",
            model_stats=NO_STATS,
            seed_stats=TableStats(),
        )


class TestDocsGenReferences(BaseDocsGenReferences):
    """The docs catalog of a project with references."""

    @pytest.fixture(scope="class")
    def expected_catalog(self, project):
        """As dbt expects it, with Spark's types."""
        return expected_references_catalog(
            project,
            role="dbt",
            id_type="bigint",
            text_type="string",
            time_type="timestamp",
            bigint_type="bigint",
            view_type="view",
            table_type="table",
            model_stats=TableStats(),
            seed_stats=TableStats(),
            view_summary_stats=NO_STATS,
        )
