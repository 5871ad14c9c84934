"""ALTER TABLE as a change of the schema: what is applied, and what is refused instead of being left out."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from tablestore_engine.errors import FixRequest, Unsupported
from tablestore_engine.format.data_type import INT, DataField
from tablestore_engine.format.schema import new_schema
from tablestore_engine.sql.statement import AddColumns, ColumnDefinition, SetProperties, UnsetProperties
from tablestore_engine.warehouse.statements.alter_statement import alter_schema

SCHEMA = new_schema(pa.schema([("id", pa.int64())]), primary_keys=["id"], options={"bucket": "1"})


def test_a_default_that_stored_rows_would_not_get_is_refused() -> None:
    """ADD COLUMN … DEFAULT is not taken for ADD COLUMN: stored rows would be NULL; the error names the way."""
    added = (DataField(0, "plain", INT), DataField(0, "rank", INT, default_value="7"))
    action = AddColumns((ColumnDefinition("plain", "int"), ColumnDefinition("rank", "int", default="7")))
    with pytest.raises(Unsupported, match="UPDATE") as refused:
        alter_schema(SCHEMA, action, added)
    assert refused.value.code == "TS1061"
    assert "'rank'" in refused.value.what


def test_a_column_without_default_is_added() -> None:
    """The same statement without DEFAULT adds the column."""
    changed = alter_schema(
        SCHEMA, AddColumns((ColumnDefinition("plain", "int"),)), (DataField(0, "plain", INT),)
    )
    assert changed.field_names == ("id", "plain")


def test_set_properties_that_would_close_the_table_is_refused() -> None:
    """An option that keeps this engine from the table is refused when it is set, and may be removed where it is."""
    pair = ("row-tracking.enabled", "true")
    with pytest.raises(Unsupported, match="row tracking"):
        alter_schema(SCHEMA, SetProperties((pair,)), ())
    theirs = replace(SCHEMA, options={**SCHEMA.options, **dict([pair])})
    assert pair[0] not in alter_schema(theirs, UnsetProperties((pair[0],)), ()).options
    assert alter_schema(theirs, SetProperties((("snapshot.num-retained.min", "7"),)), ()).options


@pytest.mark.parametrize(
    ("key", "if_exists", "code"),
    [
        ("primary-key", False, "TS1573"),
        ("primary-key", True, "TS1573"),
        ("partition", False, "TS1573"),
        ("bucket", False, "TS1022"),
        ("nosuch", False, "TS1141"),
    ],
)
def test_unset_of_what_is_no_option_of_the_table_is_refused(key: str, if_exists: bool, code: str) -> None:
    """UNSET says no where SET does, and where the table lacks the key, instead of doing nothing."""
    with pytest.raises((FixRequest, Unsupported)) as refused:
        alter_schema(SCHEMA, UnsetProperties((key,), if_exists), ())
    assert refused.value.code == code


@pytest.mark.parametrize(("keys", "fix"), [(("id",), "tablestore convert"), ((), "build a new table")])
def test_deletion_vectors_are_switched_on_by_a_conversion(keys: tuple[str, ...], fix: str) -> None:
    """A keyed table that merges on read has a command for it; a table without a key has no vectors to switch on."""
    theirs = replace(SCHEMA, primary_keys=keys, options={"bucket": "1"})
    with pytest.raises(FixRequest, match="TS1022") as refused:
        alter_schema(theirs, SetProperties((("deletion-vectors.enabled", "true"),)), ())
    assert fix in str(refused.value)


def test_unset_if_exists_of_a_missing_option_changes_nothing() -> None:
    """The table's options stay."""
    assert alter_schema(SCHEMA, UnsetProperties(("nosuch",), if_exists=True), ()).options == SCHEMA.options
