"""dbt-tests-adapter, area constraints. Types and DDL are Spark's; not_null, check and primary key are enforced."""

import pytest
from dbt.tests.adapter.constraints import fixtures
from dbt.tests.adapter.constraints.test_constraints import (
    BaseConstraintQuotedColumn,
    BaseConstraintsRollback,
    BaseConstraintsRuntimeDdlEnforcement,
    BaseIncrementalConstraintsColumnsEqual,
    BaseIncrementalConstraintsRollback,
    BaseIncrementalConstraintsRuntimeDdlEnforcement,
    BaseIncrementalContractSqlHeader,
    BaseIncrementalForeignKeyConstraint,
    BaseModelConstraintsRuntimeEnforcement,
    BaseTableConstraintsColumnsEqual,
    BaseTableContractSqlHeader,
    BaseViewConstraintsColumnsEqual,
)


def in_spark(yaml: str) -> str:
    """The fixtures' schema files with Spark's types and quotes."""
    return (
        yaml.replace("data_type: text", "data_type: string")
        .replace("data_type: integer", "data_type: int")
        .replace('\\"from\\"', "`from`")
        .replace('"from"', "`from`")
    )


class SparkTypes:
    """What the preflight check of contracts compares."""

    @pytest.fixture
    def string_type(self):
        """Spark's name."""
        return "string"

    @pytest.fixture
    def int_type(self):
        """Spark's name."""
        return "int"

    @pytest.fixture
    def schema_string_type(self, string_type):
        """The same in YAML."""
        return string_type

    @pytest.fixture
    def schema_int_type(self, int_type):
        """The same in YAML."""
        return int_type

    @pytest.fixture
    def data_types(self):
        """(value, type in YAML, type in the message)."""
        return [
            ["1", "int", "int"],
            ["'1'", "string", "string"],
            ["true", "boolean", "boolean"],
            ["date '2013-11-03'", "date", "date"],
            ["timestamp '2013-11-03 00:00:00-07'", "timestamp", "timestamp"],
            ["array('1', '2')", "array<string>", "array"],
            ["cast(1.5 as decimal(10,2))", "decimal(10,2)", "decimal"],
        ]


def models(**names: str) -> dict[str, str]:
    """Files of a project from the fixtures, with Spark's types."""
    return {file.replace("__", "."): in_spark(getattr(fixtures, fixture)) for file, fixture in names.items()}


class TestTableConstraintsColumnsEqual(SparkTypes, BaseTableConstraintsColumnsEqual):
    """Contract of a table."""

    @pytest.fixture(scope="class")
    def models(self):
        """Spark's types."""
        return models(
            my_model_wrong_order__sql="my_model_wrong_order_sql",
            my_model_wrong_name__sql="my_model_wrong_name_sql",
            constraints_schema__yml="model_schema_yml",
        )


class TestViewConstraintsColumnsEqual(SparkTypes, BaseViewConstraintsColumnsEqual):
    """Contract of a view."""

    @pytest.fixture(scope="class")
    def models(self):
        """Spark's types."""
        return models(
            my_model_wrong_order__sql="my_model_view_wrong_order_sql",
            my_model_wrong_name__sql="my_model_view_wrong_name_sql",
            constraints_schema__yml="model_schema_yml",
        )


class TestIncrementalConstraintsColumnsEqual(SparkTypes, BaseIncrementalConstraintsColumnsEqual):
    """Contract of an incremental model."""

    @pytest.fixture(scope="class")
    def models(self):
        """Spark's types."""
        return models(
            my_model_wrong_order__sql="my_model_incremental_wrong_order_sql",
            my_model_wrong_name__sql="my_model_incremental_wrong_name_sql",
            constraints_schema__yml="model_schema_yml",
        )


SUBQUERY = """
as
select id, color, date_day
from (
    -- depends_on: <foreign_key_model_identifier>
    select 'blue' as color, 1 as id, '2019-01-01' as date_day
) as model_subq
"""


class ConstraintDdl:
    """The statement in target/run: key and checks as the table has them."""

    @pytest.fixture(scope="class")
    def expected_sql(self):
        """What is enforced, and nothing else."""
        return (
            """
            create or replace table <model_identifier> (
              `id` int not null, `color` string, `date_day` string,
              primary key (`id`),
              constraint id_check_3 check ((id > 0)), constraint id_check_4 check (id >= 1)
            )
            using tablestore
            tblproperties ('primary-key' = 'id')
            """
            + SUBQUERY
        )


class TestTableConstraintsRuntimeDdlEnforcement(ConstraintDdl, BaseConstraintsRuntimeDdlEnforcement):
    """DDL of a table with constraints."""

    @pytest.fixture(scope="class")
    def models(self):
        """Spark's types."""
        return models(
            my_model__sql="my_model_wrong_order_depends_on_fk_sql",
            foreign_key_model__sql="foreign_key_model_sql",
            constraints_schema__yml="model_fk_constraint_schema_yml",
        )


class TestIncrementalConstraintsRuntimeDdlEnforcement(
    ConstraintDdl, BaseIncrementalConstraintsRuntimeDdlEnforcement
):
    """DDL of an incremental model with constraints."""

    @pytest.fixture(scope="class")
    def models(self):
        """Spark's types."""
        return models(
            my_model__sql="my_model_incremental_wrong_order_depends_on_fk_sql",
            foreign_key_model__sql="foreign_key_model_sql",
            constraints_schema__yml="model_fk_constraint_schema_yml",
        )


class TestModelConstraintsRuntimeEnforcement(BaseModelConstraintsRuntimeEnforcement):
    """Constraints of the whole model."""

    @pytest.fixture(scope="class")
    def models(self):
        """Spark's types."""
        return models(
            my_model__sql="my_model_wrong_order_depends_on_fk_sql",
            foreign_key_model__sql="foreign_key_model_sql",
            constraints_schema__yml="constrained_model_schema_yml",
        )

    @pytest.fixture(scope="class")
    def expected_sql(self):
        """Unique and foreign keys are no part of the statement."""
        return (
            """
            create or replace table <model_identifier> (
              `id` int not null, `color` string, `date_day` string,
              primary key (`id`),
              constraint <model_identifier> check ((id > 0)), constraint <model_identifier> check (id >= 1)
            )
            using tablestore
            tblproperties ('primary-key' = 'id')
            """
            + SUBQUERY
        )


class TestConstraintQuotedColumn(BaseConstraintQuotedColumn):
    """A column called from."""

    @pytest.fixture(scope="class")
    def models(self):
        """Spark's types and quotes."""
        return models(
            my_model__sql="my_model_with_quoted_column_name_sql",
            constraints_schema__yml="model_quoted_column_schema_yml",
        )

    @pytest.fixture(scope="class")
    def expected_sql(self):
        """Backticks."""
        return """
            create or replace table <model_identifier> (
              `id` int not null, `from` string not null, `date_day` string,
              constraint <model_identifier> check ((`from` = 'blue'))
            )
            using tablestore
            as
            select id, `from`, date_day
            from ( select 'blue' as `from`, 1 as id, '2019-01-01' as date_day ) as model_subq
            """


class NotNullError:
    """The message of a NULL in a column that has none."""

    @pytest.fixture(scope="class")
    def expected_error_messages(self):
        """The column is named."""
        return ["id", "NULL"]


class TestTableConstraintsRollback(NotNullError, BaseConstraintsRollback):
    """A failing run leaves the table as it was."""

    @pytest.fixture(scope="class")
    def models(self):
        """Spark's types."""
        return models(my_model__sql="my_model_sql", constraints_schema__yml="model_schema_yml")


class TestIncrementalConstraintsRollback(NotNullError, BaseIncrementalConstraintsRollback):
    """And so for incremental models."""

    @pytest.fixture(scope="class")
    def models(self):
        """Spark's types."""
        return models(my_model__sql="my_incremental_model_sql", constraints_schema__yml="model_schema_yml")


HEADER = """
{{ config(materialized="%s", on_schema_change="append_new_columns") }}
{%% call set_sql_header(config) %%}
set spark.sql.session.timeZone = Asia/Kolkata;
{%%- endcall %%}
select current_timezone() as column_name
"""
HEADER_SCHEMA = fixtures.model_contract_header_schema_yml.replace("data_type: text", "data_type: string")


class SqlHeader:
    """The setting goes back afterwards: the session is shared."""

    @pytest.fixture(scope="class", autouse=True)
    def reset(self, project):
        """UTC is the engine's default."""
        yield
        project.run_sql("set spark.sql.session.timeZone = UTC")


class TestTableContractSqlHeader(SqlHeader, BaseTableContractSqlHeader):
    """A contract with a header."""

    @pytest.fixture(scope="class")
    def models(self):
        """Spark's setting."""
        return {"my_model_contract_sql_header.sql": HEADER % "table", "constraints_schema.yml": HEADER_SCHEMA}


class TestIncrementalContractSqlHeader(SqlHeader, BaseIncrementalContractSqlHeader):
    """And so for incremental models."""

    @pytest.fixture(scope="class")
    def models(self):
        """Spark's setting."""
        return {
            "my_model_contract_sql_header.sql": HEADER % "incremental",
            "constraints_schema.yml": HEADER_SCHEMA,
        }


class TestIncrementalForeignKeyConstraint(BaseIncrementalForeignKeyConstraint):
    """A foreign key is documentation: the table is built, and built again."""

    @pytest.fixture(scope="class")
    def models(self):
        """Spark's types."""
        return models(
            schema__yml="incremental_foreign_key_schema_yml",
            raw_numbers__sql="incremental_foreign_key_model_raw_numbers_sql",
            stg_numbers__sql="incremental_foreign_key_model_stg_numbers_sql",
        )
