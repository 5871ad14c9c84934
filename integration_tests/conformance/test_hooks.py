"""dbt-tests-adapter, area hooks. Double quotes are texts in Spark and a profile has no host, so the checks are ours."""

import os

import pytest
from dbt.tests.adapter.hooks import test_model_hooks as base
from dbt.tests.adapter.hooks.test_run_hooks import BaseAfterRunHooks, BasePrePostRunHooks

FIELDS = (
    "test_state", "target_dbname", "target_host", "target_name", "target_schema", "target_threads", "target_type",
    "target_user", "target_pass", "run_started_at", "invocation_id", "thread_id",
)  # fmt: skip
COLUMNS = """
    test_state string, target_dbname string, target_host string, target_name string, target_schema string,
    target_type string, target_user string, target_pass string, target_threads int, run_started_at string,
    invocation_id string, thread_id string
"""


def check_row(row, project, state):
    """What a hook wrote is what dbt knew."""
    assert row["test_state"] == state
    assert row["target_name"] == "default"
    assert row["target_schema"] == project.test_schema
    assert row["target_threads"] in (2, 4)
    assert row["target_type"] == "tablestore"
    assert row["target_user"] == "dbt"
    assert row["target_pass"] == ""
    assert row["run_started_at"]
    assert row["invocation_id"]
    assert row["thread_id"].startswith(("Thread-", "MainThread", "ThreadPoolExecutor"))


# of every class that checks with check_row
DIFFERS = (
    "what a hook wrote is compared with this adapter's profile (its type, user and schema; it has no host, port and "
    "database), where the original compares Postgres'"
)


class ModelHooks:
    """The table that model hooks write."""

    differs = DIFFERS

    @pytest.fixture(scope="class", autouse=True)
    def setUp(self, project):
        """As data/seed_model.sql, in Spark SQL."""
        project.run_sql(f"create or replace table {project.test_schema}.on_model_hook ({COLUMNS})")

    def get_ctx_vars(self, state, count, project):
        """Names without double quotes."""
        table = f"{project.test_schema}.on_model_hook"
        rows = project.run_sql(
            f"select {', '.join(FIELDS)} from {table} where test_state = '{state}'", fetch="all"
        )
        assert len(rows) == count
        return [dict(zip(FIELDS, row, strict=True)) for row in rows]

    def check_hooks(self, state, project, host, count=1):
        """As the original, for this adapter's profile."""
        for row in self.get_ctx_vars(state, count=count, project=project):
            check_row(row, project, state)


def without_vacuum(kind="pre-hook", other="post-hook"):
    """VACUUM is Postgres'; an outside-transaction hook that Spark knows stands in."""
    outside = {"sql": "select 1", "transaction": False}
    return {
        "models": {"test": {kind: [base.MODEL_PRE_HOOK, outside], other: [outside, base.MODEL_POST_HOOK]}}
    }


class TestPrePostModelHooks(ModelHooks, base.BasePrePostModelHooks):
    """Hooks from the project, in and outside transactions."""

    @pytest.fixture(scope="class")
    def project_config_update(self):
        """Without VACUUM."""
        return without_vacuum()


class TestPrePostModelHooksUnderscores(ModelHooks, base.BasePrePostModelHooks):
    """The other spelling."""

    @pytest.fixture(scope="class")
    def project_config_update(self):
        """Without VACUUM."""
        return without_vacuum("pre_hook", "post_hook")


class TestHookRefs(ModelHooks, base.BaseHookRefs):
    """Hooks with ref()."""


class TestPrePostModelHooksOnSeeds(base.BasePrePostModelHooksOnSeeds):
    """Hooks of seeds alter and update the table."""

    @pytest.fixture(scope="class")
    def project_config_update(self):
        """cast() instead of ::."""
        hooks = [
            "alter table {{ this }} add column new_col int",
            "update {{ this }} set new_col = 1",
            "select cast(null as {{ dbt.type_int() }}) as id",
        ]
        return {"seed-paths": ["seeds"], "models": {}, "seeds": {"post-hook": hooks, "quote_columns": False}}


class TestHooksRefsOnSeeds(base.BaseHooksRefsOnSeeds):
    """ref() in a seed's hook is an error."""


class TestPrePostModelHooksOnSeedsPlusPrefixed(base.BasePrePostModelHooksOnSeedsPlusPrefixed):
    """+post-hook."""


class TestPrePostModelHooksOnSeedsPlusPrefixedWhitespace(
    base.BasePrePostModelHooksOnSeedsPlusPrefixedWhitespace
):
    """+post-hook with spaces."""


class TestPrePostModelHooksOnSnapshots(base.BasePrePostModelHooksOnSnapshots):
    """Hooks of snapshots."""


class TestPrePostModelHooksInConfig(ModelHooks, base.BasePrePostModelHooksInConfig):
    """Hooks in config()."""


class TestPrePostModelHooksInConfigWithCount(ModelHooks, base.BasePrePostModelHooksInConfigWithCount):
    """Hooks of project and config() add up."""

    @pytest.fixture(scope="class")
    def project_config_update(self):
        """Without VACUUM."""
        return without_vacuum()


class TestPrePostModelHooksInConfigKwargs(ModelHooks, base.BasePrePostModelHooksInConfigKwargs):
    """Hooks as arguments."""


class TestPrePostSnapshotHooksInConfigKwargs(base.BasePrePostSnapshotHooksInConfigKwargs):
    """Hooks of snapshots as arguments."""


class TestDuplicateHooksInConfigs(base.BaseDuplicateHooksInConfigs):
    """The same hook twice."""


class TestPrePostRunHooks(BasePrePostRunHooks):
    """on-run-start and on-run-end."""

    differs = f"{DIFFERS}; the database of a used schema is None"

    @pytest.fixture
    def setUp(self, project):
        """As data/seed_run.sql, in Spark SQL."""
        schema = project.test_schema
        for name in ("schemas", "db_schemas", "on_run_hook"):
            project.run_sql(f"drop table if exists {schema}.{name}")
        project.run_sql(f"create table {schema}.on_run_hook ({COLUMNS})")
        os.environ["TERM_TEST"] = "TESTING"

    @pytest.fixture(scope="class")
    def project_config_update(self):
        """string instead of text."""
        update = super().project_config_update.__wrapped__(self)  # type: ignore[attr-defined]
        update["on-run-end"] = [hook.replace(" text", " string") for hook in update["on-run-end"]]
        return update

    def get_ctx_vars(self, state, project):
        """Names without double quotes."""
        table = f"{project.test_schema}.on_run_hook"
        rows = project.run_sql(
            f"select {', '.join(FIELDS)} from {table} where test_state = '{state}'", fetch="all"
        )
        assert len(rows) == 1
        return dict(zip(FIELDS, rows[0], strict=True))

    def check_hooks(self, state, project, host):
        """As the original, for this adapter's profile."""
        check_row(self.get_ctx_vars(state, project), project, state)

    def assert_used_schemas(self, project):
        """Spark has no databases, so dbt gives None."""
        assert project.run_sql(f"select * from {project.test_schema}.schemas", fetch="all") == [
            (project.test_schema,)
        ]
        rows = project.run_sql(f"select * from {project.test_schema}.db_schemas", fetch="all")
        assert rows == [("None", project.test_schema)]


class TestAfterRunHooks(BaseAfterRunHooks):
    """A hook that fails."""
