"""dbt-tests-adapter, area incremental."""

import pytest
from dbt.tests.adapter.incremental.test_incremental_merge_exclude_columns import BaseMergeExcludeColumns
from dbt.tests.adapter.incremental.test_incremental_microbatch import BaseMicrobatch
from dbt.tests.adapter.incremental.test_incremental_on_schema_change import BaseIncrementalOnSchemaChange
from dbt.tests.adapter.incremental.test_incremental_predicates import BaseIncrementalPredicates
from dbt.tests.adapter.incremental.test_incremental_unique_id import BaseIncrementalUniqueKey
from dbt.tests.util import run_dbt


class TestIncrementalUniqueKey(BaseIncrementalUniqueKey):
    """Keys with several rows and NULLs."""

    differs = (
        "run with delete+insert: under the default strategy a unique_key is an enforced primary key, so the three "
        "cases with repeated or NULL keys are refused; a key column that does not exist fails the first run "
        "already, before anything is written"
    )

    @pytest.fixture(scope="class")
    def project_config_update(self):
        """A primary key would refuse these rows."""
        return {"models": {"+incremental_strategy": "delete+insert"}}

    def fail_to_build_inc_missing_unique_key_column(self, incremental_model_name):
        """Here the first run fails already: a missing key column is told before anything is written."""
        run_dbt(["seed", "--select", "seed", "--full-refresh"])
        result = run_dbt(["run", "--select", incremental_model_name], expect_pass=False).results[0]
        return result.status, result.message


class TestIncrementalPredicatesDeleteInsert(BaseIncrementalPredicates):
    """incremental_predicates limit what is deleted."""


class TestPredicatesDeleteInsert(BaseIncrementalPredicates):
    """The old name of the same config."""

    @pytest.fixture(scope="class")
    def project_config_update(self):
        """predicates instead of incremental_predicates."""
        return {"models": {"+predicates": ["id != 2"], "+incremental_strategy": "delete+insert"}}


class TestMergeExcludeColumns(BaseMergeExcludeColumns):
    """Columns that an upsert leaves alone."""


class TestIncrementalOnSchemaChange(BaseIncrementalOnSchemaChange):
    """ignore, append_new_columns, sync_all_columns, fail."""


class TestMicrobatch(BaseMicrobatch):
    """Intervals of event time."""
