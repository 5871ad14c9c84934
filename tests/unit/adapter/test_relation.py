"""Names in SQL, and versions of them."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from dbt_common.exceptions import DbtRuntimeError
from jinja2 import Undefined

from dbt.adapters.tablestore.relation import TablestoreRelation, parse_version
from tablestore_engine.api import TableVersion
from tablestore_engine.errors import FixRequest

ORDERS = TablestoreRelation.create(schema="demo", identifier="orders", type="table")


@pytest.mark.parametrize(
    ("relation", "text"),
    [
        (ORDERS, "demo.orders"),
        (ORDERS.at(5), "`demo__at_snapshot_5`.`orders`"),
        (ORDERS.at(snapshot=5), "`demo__at_snapshot_5`.`orders`"),
        (ORDERS.at(tag="audited"), "`demo__at_tag_audited`.`orders`"),
        (ORDERS.at(branch="dbt_1"), "`demo__at_branch_dbt_1`.`orders`"),
        (ORDERS.at(timestamp="2026-01-31 14:00"), "`demo__at_ts_1769868000000`.`orders`"),
        (ORDERS.at(timestamp="2026-01-31T15:00:00+01:00"), "`demo__at_ts_1769868000000`.`orders`"),
        (ORDERS.at(timestamp=7), "`demo__at_ts_7`.`orders`"),
    ],
)
def test_a_version_is_rendered_as_a_schema_of_its_own(relation: TablestoreRelation, text: str) -> None:
    """Every way of naming a version ends in one name that the engine's resolver reads."""
    assert relation.render() == text
    assert str(relation) == text


def test_empty_runs_wrap_the_version() -> None:
    """--empty puts its limit around the versioned name, not beside it."""
    limited = TablestoreRelation.create(schema="demo", identifier="orders", type="table", limit=0).at(5)
    assert str(limited) == "(select * from `demo__at_snapshot_5`.`orders` where false limit 0)"


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"snapshot": 1, "tag": "a"},
        {"snapshot": "5"},
        {"snapshot": True},
        {"timestamp": "soon"},
        {"tag": "a-b"},
    ],
)
def test_at_needs_exactly_one_version(arguments: dict[str, object]) -> None:
    """Nothing, two things and wrong types are refused with an error that dbt prints."""
    with pytest.raises(DbtRuntimeError, match="TS180"):
        ORDERS.at(**arguments)


@pytest.mark.parametrize(
    ("value", "version"),
    [
        (5, TableVersion(snapshot=5)),
        ("5", TableVersion(snapshot=5)),
        ("audited", TableVersion(tag="audited")),
        ("2026-01-31", TableVersion(timestamp_ms=1769817600000)),
        ("2026-01-31 14:00", TableVersion(timestamp_ms=1769868000000)),
    ],
)
def test_versions_of_vars(value: object, version: TableVersion) -> None:
    """tablestore_as_of takes a number, a moment or a tag."""
    assert parse_version(value) == version


@pytest.mark.parametrize("value", [True, None, 1.5, ["a"]])
def test_wrong_versions_of_vars(value: object) -> None:
    """Anything else is refused."""
    with pytest.raises(FixRequest):
        parse_version(value)


def test_relations_survive_dbts_copies() -> None:
    """incorporate() and replace_path() keep the version, and equality sees it through render()."""
    copy = ORDERS.at(5).incorporate(type="view")
    assert copy.render() == "`demo__at_snapshot_5`.`orders`"
    assert hash(ORDERS.at(5)) != hash(ORDERS)


def test_a_template_without_a_value_names_nothing() -> None:
    """Packages hand Jinja's Undefined on, and write Spark's catalog or the schema where a database is asked for."""
    for database in (Undefined(), None, "", "spark_catalog", "Demo"):
        made = TablestoreRelation.create(database, "demo", "orders")
        assert (made.database, made.render()) == (None, "demo.orders")
    assert TablestoreRelation.create(schema=Undefined(), identifier="x").schema is None


@dataclass
class Source:
    """As much of dbt's as a relation is made of."""

    database: str | None
    name: str = "orders"
    schema: str = "demo"
    identifier: str = "orders"
    resource_type: str = "source"
    original_file_path: str = "models/sources.yml"
    catalog_name: str | None = None

    @property
    def quoting_dict(self) -> dict[str, bool]:
        """None said."""
        return {}

    @property
    def quoting(self) -> dict[str, bool]:
        """None said."""
        return {}


def test_a_source_of_another_database_is_refused_with_its_file() -> None:
    """There is one level above tables; what names it is fine."""
    fine = Source("spark_catalog")
    assert TablestoreRelation.create_from(fine, fine).render() == "demo.orders"  # type: ignore[arg-type]  # a stand-in
    other = Source("prod")
    with pytest.raises(
        DbtRuntimeError, match=r"TS1807 source orders \(models/sources.yml\) has the database 'prod'"
    ):
        TablestoreRelation.create_from(other, other)  # type: ignore[arg-type]  # a stand-in
    with pytest.raises(DbtRuntimeError, match="TS1807"):
        TablestoreRelation.create("prod", "demo", "orders")
