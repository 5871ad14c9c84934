"""dbt-tests-adapter, area ephemeral."""

import re
from pathlib import Path

from dbt.tests.adapter.ephemeral.test_ephemeral import (
    BaseEphemeralErrorHandling,
    BaseEphemeralMulti,
    BaseEphemeralNested,
)
from dbt.tests.util import check_relations_equal, run_dbt


def statement(name: str) -> str:
    """What was run, without white space and without the numbers in the schema's name."""
    text = Path(f"target/run/test/models/{name}.sql").read_text()
    return "".join(re.sub(r"\d+", "", text).split())


class TestEphemeralMulti(BaseEphemeralMulti):
    """Several ephemeral models in one."""

    differs = "the statement that is compared is this adapter's CREATE VIEW, not Postgres'"

    def test_ephemeral_multi(self, project):
        """As the original, with this adapter's CREATE VIEW."""
        run_dbt(["seed"])
        assert len(run_dbt(["run"])) == 3
        for name in ("dependent", "double_dependent", "super_dependent"):
            check_relations_equal(project.adapter, ["seed", name])
        assert statement("double_dependent").startswith(
            "createorreplaceviewtest_test_ephemeral.double_dependentas"
            "with__dbt__cte__baseas(select*fromtest_test_ephemeral.seed),__dbt__cte__base_copyas("
        )


class TestEphemeralNested(BaseEphemeralNested):
    """Ephemeral on ephemeral."""

    differs = "the statement that is compared is this adapter's CREATE VIEW, not Postgres'"

    def test_ephemeral_nested(self, project):
        """As the original, with this adapter's CREATE VIEW."""
        assert len(run_dbt(["run"])) == 2
        assert statement("root_view") == (
            "createorreplaceviewtest_test_ephemeral.root_viewas"
            "with__dbt__cte__ephemeral_level_twoas(select*fromtest_test_ephemeral.source_table),"
            "__dbt__cte__ephemeralas(select*from__dbt__cte__ephemeral_level_two)select*from__dbt__cte__ephemeral"
        )


class TestEphemeralErrorHandling(BaseEphemeralErrorHandling):
    """A broken ephemeral model is reported."""
