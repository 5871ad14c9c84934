"""dbt-tests-adapter, area catalog."""

import pytest
from dbt.tests.adapter.catalog import files
from dbt.tests.adapter.catalog.relation_types import CatalogRelationTypes


class TestCatalogRelationTypes(CatalogRelationTypes):
    """Kinds of relations in the docs catalog."""

    differs = "kinds are called table and view, as the original asks adapters to say; a materialized view is a table"

    @pytest.fixture(scope="class", autouse=True)
    def models(self):
        """What can be made here."""
        return {"my_table.sql": files.MY_TABLE, "my_view.sql": files.MY_VIEW}

    @pytest.mark.parametrize(
        ("node_name", "relation_type"),
        [("seed.test.my_seed", "table"), ("model.test.my_table", "table"), ("model.test.my_view", "view")],
    )
    def test_relation_types_populate_correctly(self, docs, node_name, relation_type):
        """The original, with this adapter's words, as its docstring asks for."""
        super().test_relation_types_populate_correctly(docs, node_name, relation_type)
