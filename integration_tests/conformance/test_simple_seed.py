"""dbt-tests-adapter, area simple_seed. The table to compare with is made by Spark SQL instead of Postgres'."""

import pytest
from dbt.tests.adapter.simple_seed import fixtures, seeds
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
from dbt.tests.util import check_relations_equal, run_dbt

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
    """A full refresh of a seed is one snapshot here: models built on it stay, where Postgres drops them."""

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

    def test_seed_with_wrong_delimiter(self, project):
        """Postgres cannot parse the header as one column's name; here it is one column, and no row is lost."""
        run_dbt(["seed"])
        columns = project.adapter.engine.columns(f"{project.test_schema}.seed_pipe_separated")
        assert [column.name for column in columns] == ["seed_id|first_name|email|ip_address|birthday"]


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
        """As the original, in Spark SQL."""
        project.run_sql(EXPECTED)

    @pytest.fixture(scope="class")
    def seeds(self):
        """The file is written here; the original one lies beside the original test."""
        return {"seed_bom.csv": "\ufeff" + seeds.seed__actual_csv.lstrip()}

    def test_simple_seed(self, project):
        """The mark is no part of the first column's name."""
        assert len(run_dbt(["seed"])) == 1
        check_relations_equal(project.adapter, ["seed_expected", "seed_bom"])


class TestSeedSpecificFormats(BaseSeedSpecificFormats):
    """Big, in Unicode; names with dots are no names of Spark and are refused."""

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
