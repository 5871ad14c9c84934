"""dbt-tests-adapter, area empty."""

import pytest
from dbt.tests.adapter.empty import _models
from dbt.tests.adapter.empty.test_empty import (
    BaseTestEmpty,
    BaseTestEmptyInlineSourceRef,
    BaseTestEmptySeedFlag,
    MetadataWithEmptyFlag,
)
from dbt.version import __version__


class TestEmpty(BaseTestEmpty):
    """--empty reads no rows."""


class TestEmptyInlineSourceRef(BaseTestEmptyInlineSourceRef):
    """Nor from names in the text."""


class TestMetadataWithEmptyFlag(MetadataWithEmptyFlag):
    """Metadata macros work on limited relations."""

    @pytest.fixture(scope="class")
    def models(self):
        """Spark's varchar needs a length."""
        return {
            "schema.yml": _models.SCHEMA,
            "control.sql": _models.CONTROL,
            "get_columns_in_relation.sql": _models.GET_COLUMNS_IN_RELATION,
            "alter_column_type.sql": _models.ALTER_COLUMN_TYPE.replace("varchar", "string"),
            "alter_relation_comment.sql": _models.ALTER_RELATION_COMMENT,
            "alter_column_comment.sql": _models.ALTER_COLUMN_COMMENT,
            "alter_relation_add_remove_columns.sql": _models.ALTER_RELATION_ADD_REMOVE_COLUMNS.replace(
                "varchar", "string"
            ),
            "truncate_relation.sql": _models.TRUNCATE_RELATION,
        }


@pytest.mark.skipif(__version__.startswith("1.11."), reason="dbt seed has --empty from dbt-core 1.12")
class TestEmptySeedFlag(BaseTestEmptySeedFlag):
    """dbt seed --empty."""
