"""dbt-tests-adapter, area simple_seed. The table to compare with is made by Spark SQL instead of Postgres'."""

from pathlib import Path

import pytest
from dbt.tests.adapter.simple_seed import fixtures, seeds, test_seed
from dbt.tests.adapter.simple_seed.test_seed import (
    BaseBasicSeedTests,
    BaseSeedConfigFullRefreshOff,
    BaseSeedConfigFullRefreshOn,
    BaseSeedCustomSchema,
    BaseSeedParsing,
    BaseSeedSpecificFormats,
    BaseSeedWithEmptyDelimiter,
    BaseSeedWithUniqueDelimiter,
    BaseSeedWithWrongDelimiter,
    BaseSimpleSeedEnabledViaConfig,
    BaseSimpleSeedWithBOM,
    BaseTestEmptySeed,
)
from dbt.tests.adapter.simple_seed.test_seed_type_override import BaseSimpleSeedColumnOverride
from dbt.tests.util import copy_file, run_dbt

EXPECTED = (
    seeds.seeds__expected_sql.replace("TIMESTAMP WITHOUT TIME ZONE", "TIMESTAMP")
    .replace("TEXT", "STRING")
    .replace("INTEGER", "BIGINT")
    .replace('"', "`")
)


class WithExpectedTable:
    """The table that every seed is compared with."""

    @pytest.fixture(scope="class", autouse=True)
    def setUp(self, project):
        """As the original, in Spark SQL."""
        project.run_sql(EXPECTED)


class KeepsDownstream:
    """A full refresh of a seed is one snapshot here."""

    differs = (
        "turned round: a full refresh of a seed keeps the models built on it, "
        "where Postgres' DROP … CASCADE takes them away"
    )

    def _check_relation_end_state(self, run_result, project, exists):
        super()._check_relation_end_state(run_result=run_result, project=project, exists=True)


class TestBasicSeedTests(WithExpectedTable, KeepsDownstream, BaseBasicSeedTests):
    """Seed, seed again, full refresh."""


class TestSeedConfigFullRefreshOn(WithExpectedTable, KeepsDownstream, BaseSeedConfigFullRefreshOn):
    """full_refresh: true."""


class TestSeedConfigFullRefreshOff(WithExpectedTable, BaseSeedConfigFullRefreshOff):
    """full_refresh: false."""


class TestSeedCustomSchema(WithExpectedTable, BaseSeedCustomSchema):
    """A schema of its own."""


class TestSeedWithUniqueDelimiter(WithExpectedTable, BaseSeedWithUniqueDelimiter):
    """Another delimiter."""


class TestSeedWithWrongDelimiter(WithExpectedTable, BaseSeedWithWrongDelimiter):
    """A delimiter the file does not have."""


class TestSeedWithEmptyDelimiter(WithExpectedTable, BaseSeedWithEmptyDelimiter):
    """No delimiter."""


class TestSimpleSeedEnabledViaConfig(BaseSimpleSeedEnabledViaConfig):
    """Enabled and disabled seeds."""


class TestSeedParsing(WithExpectedTable, BaseSeedParsing):
    """dbt run does not read seeds."""


class TestSimpleSeedWithBOM(BaseSimpleSeedWithBOM):
    """A byte order mark."""

    @pytest.fixture(scope="class", autouse=True)
    def setUp(self, project):
        """As the original, in Spark SQL; the file with the mark lies beside the original."""
        project.run_sql(EXPECTED)
        copy_file(
            Path(test_seed.__file__).parent,
            "seed_bom.csv",
            project.project_root / "seeds" / "seed_bom.csv",
            "",
        )


class TestSeedSpecificFormats(BaseSeedSpecificFormats):
    """Big, in Unicode, with dots in its name."""

    differs = (
        "a seed with dots in its name is refused by name (Paimon cuts identifiers at dots); two of three load"
    )

    def test_simple_seed(self, project):
        """As the original, and the third one fails by its name."""
        results = run_dbt(["seed"], expect_pass=False)
        assert sorted(str(result.status) for result in results) == ["error", "success", "success"]
        assert "TS14" in next(result.message for result in results if result.status == "error")


class TestEmptySeed(BaseTestEmptySeed):
    """A header only."""


class TestSimpleSeedColumnOverride(BaseSimpleSeedColumnOverride):
    """column_types."""

    @pytest.fixture(scope="class")
    def models(self):
        """Types are Spark's."""
        schema = fixtures.properties__schema_yml
        for theirs, ours in (
            ("type: text", "type: string"),
            ("type: integer", "type: bigint"),
            ("type: timestamp without time zone", "type: timestamp"),
        ):
            schema = schema.replace(theirs, ours)
        return {"schema.yml": schema}

    @staticmethod
    def seed_enabled_types():
        """Types are Spark's."""
        return {"seed_id": "string", "birthday": "date"}

    @staticmethod
    def seed_tricky_types():
        """Types are Spark's."""
        return {"seed_id_str": "string", "looks_like_a_bool": "string", "looks_like_a_date": "string"}
