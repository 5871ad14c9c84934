"""dbt-tests-adapter, area simple_snapshot."""

from datetime import UTC, datetime
from functools import partial
from types import SimpleNamespace

import pytest
from dbt.tests.adapter.simple_snapshot import (
    new_record_check_mode,
    new_record_dbt_valid_to_current,
    new_record_timestamp_mode,
    test_ephemeral_snapshot_hard_deletes,
    test_various_configs,
)
from dbt.tests.adapter.simple_snapshot.new_record_check_mode import BaseSnapshotNewRecordCheckMode
from dbt.tests.adapter.simple_snapshot.new_record_dbt_valid_to_current import (
    BaseSnapshotNewRecordDbtValidToCurrent,
)
from dbt.tests.adapter.simple_snapshot.new_record_timestamp_mode import BaseSnapshotNewRecordTimestampMode
from dbt.tests.adapter.simple_snapshot.test_ephemeral_snapshot_hard_deletes import (
    BaseSnapshotEphemeralHardDeletes,
    BaseSnapshotNewColumnSpecificCheckCols,
    BaseSnapshotNewColumnTimestampStrategy,
    BaseSnapshotNewColumnWithDeletes,
)
from dbt.tests.adapter.simple_snapshot.test_snapshot import BaseSimpleSnapshot, BaseSnapshotCheck
from dbt.tests.adapter.simple_snapshot.test_various_configs import (
    BaseSnapshotColumnNames,
    BaseSnapshotColumnNamesFromDbtProject,
    BaseSnapshotDbtValidToCurrent,
    BaseSnapshotInvalidColumnNames,
    BaseSnapshotMultiUniqueKey,
)
from dbt.tests.util import run_sql_with_adapter

from integration_tests.conformance.dialect import dialect


class TestSimpleSnapshot(BaseSimpleSnapshot):
    """Updates, inserts, deletes, revivals and new columns."""


class TestSnapshotCheck(BaseSnapshotCheck):
    """Only the columns that are checked make a version."""


class VariousConfigs:
    """Tables of the originals, made by Spark SQL."""

    spark_sql = dialect(test_various_configs)


class TestSnapshotColumnNames(VariousConfigs, BaseSnapshotColumnNames):
    """snapshot_meta_column_names."""


class TestSnapshotColumnNamesFromDbtProject(VariousConfigs, BaseSnapshotColumnNamesFromDbtProject):
    """The same from dbt_project.yml."""


class TestSnapshotInvalidColumnNames(VariousConfigs, BaseSnapshotInvalidColumnNames):
    """Renamed columns without a new table."""


class TestSnapshotDbtValidToCurrent(VariousConfigs, BaseSnapshotDbtValidToCurrent):
    """dbt_valid_to_current."""

    @pytest.fixture(scope="class", autouse=True)
    def as_a_heap_without_zones(self):
        """The original takes rows by their place in Postgres' heap, and moments without a zone for UTC."""

        def run_in_order(adapter, sql, fetch):
            table = "{schema}.snapshot_actual"
            version = "row_number() over (partition by id order by test_valid_from) as version"
            versions = f"(select *, {version} from {table}) order by version, id"
            return run_sql_with_adapter(adapter, sql.replace(table, versions), fetch)

        with pytest.MonkeyPatch.context() as patch:
            utc = SimpleNamespace(datetime=partial(datetime, tzinfo=UTC))
            patch.setattr(test_various_configs, "datetime", utc)
            patch.setattr(test_various_configs, "run_sql_with_adapter", run_in_order)
            yield


class TestSnapshotMultiUniqueKey(VariousConfigs, BaseSnapshotMultiUniqueKey):
    """A key of two columns."""


class TestSnapshotNewRecordTimestampMode(BaseSnapshotNewRecordTimestampMode):
    """hard_deletes: new_record."""

    spark_sql = dialect(new_record_timestamp_mode)


class TestSnapshotNewRecordCheckMode(BaseSnapshotNewRecordCheckMode):
    """And with the check strategy."""

    spark_sql = dialect(new_record_timestamp_mode, new_record_check_mode)


class TestSnapshotNewRecordDbtValidToCurrent(BaseSnapshotNewRecordDbtValidToCurrent):
    """And with dbt_valid_to_current."""

    spark_sql = dialect(new_record_dbt_valid_to_current)


class HardDeletes:
    """Tables of the originals, made by Spark SQL."""

    spark_sql = dialect(test_ephemeral_snapshot_hard_deletes)

    @pytest.fixture(scope="class")
    def source_alter_sql(self):
        """A default that stored rows would not get is refused here; its way out is the UPDATE."""
        table = "{schema}.src_customers"
        return f"alter table {table} add column dummy_column string; update {table} set dummy_column = 'dummy_value'"


class TestSnapshotEphemeralHardDeletes(HardDeletes, BaseSnapshotEphemeralHardDeletes):
    """Of an ephemeral model."""


class TestSnapshotNewColumnTimestampStrategy(HardDeletes, BaseSnapshotNewColumnTimestampStrategy):
    """A new column in the source."""


class TestSnapshotNewColumnSpecificCheckCols(HardDeletes, BaseSnapshotNewColumnSpecificCheckCols):
    """A new column that is not checked."""


class TestSnapshotNewColumnWithDeletes(HardDeletes, BaseSnapshotNewColumnWithDeletes):
    """A new column and a deleted row in one run."""
