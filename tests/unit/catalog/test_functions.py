"""Functions of a warehouse as files: found by any case, replaced in one step, content of their schema."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from tablestore_engine.catalog.filesystem import FilesystemCatalog
from tablestore_engine.catalog.functions import FunctionDefinition, decode_function, encode_function
from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.catalog.name_lookup import NameLookup
from tablestore_engine.catalog.open_tables import OpenTables
from tablestore_engine.catalog.resolved_names import ResolvedFunction
from tablestore_engine.errors import FixData, FixRequest
from tablestore_engine.fileio.base import FileIO
from tablestore_engine.fileio.local import LocalFileIO
from tablestore_engine.runtime.outside_world import SYSTEM
from tests.doubles.memory_store import MemoryFileIO

F = Identifier("demo", "Price")
ONE, TWO = (FunctionDefinition(f"(x int) returns int return x + {n}", n) for n in (1, 2))


@pytest.fixture(params=["local", "object store"])
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> FilesystemCatalog:
    """A warehouse with the empty schema demo."""
    place = str(tmp_path)
    store: FileIO = LocalFileIO(place)
    if request.param == "object store":
        place = "mem://warehouse"
        store = MemoryFileIO(place, itertools.count(1_700_000_000_000).__next__)
    made = FilesystemCatalog(store, place, SYSTEM)
    made.create_database("demo")
    return made


def test_function_is_found_by_its_name_in_any_case(catalog: FilesystemCatalog) -> None:
    """Stored in lower case; replaced; dropped, also when it is gone."""
    functions = catalog.functions
    assert functions.find(F) is None
    functions.put(F, ONE)
    assert functions.find(Identifier("demo", "PRICE")) == ONE
    functions.put(Identifier("demo", "price"), TWO)
    assert (functions.find(F), functions.list_names("demo")) == (TWO, ("price",))
    functions.drop(F)
    functions.drop(F)
    assert functions.list_names("demo") == ()


def test_function_is_content_of_its_schema(catalog: FilesystemCatalog) -> None:
    """RESTRICT refuses, CASCADE removes it."""
    catalog.functions.put(F, ONE)
    with pytest.raises(FixRequest, match=r"(?s)TS1404.*price"):
        catalog.drop_database("demo", cascade=False)
    catalog.drop_database("demo", cascade=True)
    catalog.create_database("demo")
    assert catalog.functions.find(F) is None


def test_lookup_knows_own_and_volatile_functions(catalog: FilesystemCatalog) -> None:
    """By the text; a schema at a past state has no functions; names of schemas have a case."""
    names = NameLookup(catalog, OpenTables(catalog))
    catalog.functions.put(F, FunctionDefinition("() returns int not deterministic return 1"))
    assert names.find_function("demo", "PRICE") == ResolvedFunction(
        "() returns int not deterministic return 1", is_volatile=True
    )
    names.note_own_text("() returns int not deterministic return 1")
    found = names.find_function("DEMO", "price")
    assert found is not None
    assert found.is_own
    for database, name in (
        ("demo", "other"),
        ("gone", "price"),
        ("demo__at_snapshot_1", "price"),
        ("a b", "c"),
    ):
        assert names.find_function(database, name) is None


@pytest.mark.parametrize(
    "sql", ["(x int) returns int", "(x int) returns int language java return 1", "nothing"]
)
def test_file_that_is_no_sql_function_is_damaged(sql: str) -> None:
    """Whoever wrote it: its text is read as a statement is."""
    with pytest.raises(FixData, match="TS1458"):
        decode_function(encode_function(FunctionDefinition(sql)), "f.json", F)


def test_changed_file_is_damaged() -> None:
    """By its checksum."""
    data = encode_function(ONE)
    assert decode_function(data, "f.json", F) == ONE
    with pytest.raises(FixData, match="TS1160"):
        decode_function(data.replace(b"x + 1", b"x + 9"), "f.json", F)
