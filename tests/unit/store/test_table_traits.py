"""table_traits: one answer per option; absent keeps the format's meaning; nobody in store reads options by himself."""

from __future__ import annotations

import ast
import pickle
from pathlib import Path

import pytest

from tablestore_engine.errors import FixRequest
from tablestore_engine.format.data_type import DataField
from tablestore_engine.format.schema import TableSchema, new_schema
from tablestore_engine.format.type_text import parse_type
from tablestore_engine.lsm.changelog_producer import PRODUCERS
from tablestore_engine.lsm.merge_engine_registry import Deduplicate
from tablestore_engine.options import OPTIONS
from tablestore_engine.store import table_traits
from tablestore_engine.store.table_traits import TableTraits


def _schema(keys: tuple[str, ...] = ("id",), **options: str) -> TableSchema:
    named = {key.replace("__", ".").replace("_", "-"): value for key, value in options.items()}
    return new_schema([DataField(0, "id", parse_type("INT"))], primary_keys=keys, options=named)


def test_absent_on_disk_is_what_the_format_says() -> None:
    """A table of another engine without these options has no vectors and no changelog, whatever ours get by default."""
    traits = TableTraits(_schema())
    assert (OPTIONS["deletion-vectors.enabled"].default, OPTIONS["changelog-producer"].default) == (
        "true",
        "lookup",
    )
    assert (traits.has_vectors, traits.has_inbox, traits.changelog_producer) == (
        False,
        False,
        PRODUCERS["none"],
    )
    assert (traits.merge_engine, traits.has_log, traits.bucket_function) == (Deduplicate(), False, "default")


@pytest.mark.parametrize("keys", [("id",), ()])
def test_an_inbox_needs_a_key(keys: tuple[str, ...]) -> None:
    """Vectors count for both kinds of table, level 0 is an inbox of keyed ones only; other spellings of true count."""
    traits = TableTraits(_schema(keys, deletion_vectors__enabled=" TRUE ", changelog_producer="lookup"))
    assert (traits.has_vectors, traits.has_inbox) == (True, bool(keys))
    assert traits.changelog_producer == PRODUCERS["lookup"]


def test_a_write_may_say_otherwise() -> None:
    """Options of one write go before the table's, also in a task that was sent somewhere."""
    schema = _schema(tablestore__duplicates="refuse")
    traits = TableTraits(schema, {"tablestore.duplicates": "last"})
    assert not TableTraits(schema).last_wins
    assert traits.last_wins
    assert (
        pickle.loads(pickle.dumps(traits)) == traits == TableTraits(schema, {"tablestore.duplicates": "last"})
    )


def test_a_strange_value_stops_only_who_asks() -> None:
    """A reader asks for vectors and gets its answer; the writer that needs levels is refused."""
    traits = TableTraits(_schema(num_levels="many", deletion_vectors__enabled="true"))
    assert traits.has_inbox
    with pytest.raises(FixRequest, match="TS1651"):
        _ = traits.level_count


_READERS = ("table_traits.py", "row_traits.py")


def test_nobody_else_in_store_reads_options() -> None:
    """`schema.options` is asked for a key in these two only, and no package of the store parses options."""
    for path in Path(table_traits.__file__).parent.rglob("*.py"):
        names = {node.id for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Name)}
        assert "OptionSet" not in names or path.name in _READERS, path
    for path in Path(table_traits.__file__).parent.glob("*.py"):
        if path.name in _READERS:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Attribute)
                and node.attr == "get"
                and isinstance(node.value, ast.Attribute)
            ):
                assert node.value.attr != "options", f"{path.name}:{node.lineno}"
