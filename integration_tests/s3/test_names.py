"""DROP, CLONE and the swap of a table on a real S3 server: by holds of a name and compare-and-set (decision 0064)."""

from __future__ import annotations

from itertools import count

import pyarrow as pa
import pytest

from integration_tests.s3.warehouses import address, open_files
from tablestore_engine.catalog.filesystem import FilesystemCatalog
from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.catalog.table_swap import REPLACES
from tablestore_engine.devservers.s3_server import S3ServerInfo
from tablestore_engine.errors import RetryError
from tablestore_engine.format.schema import new_schema
from tablestore_engine.runtime.outside_world import SYSTEM
from tests.unit.catalog.test_flat_store import OPTIONS, late
from tests.unit.store.table_world import put, row, rows_of

NAME, COPY = Identifier("demo", "t"), Identifier("demo", "copy")
ARROW = pa.schema([pa.field("id", pa.int64(), nullable=False), ("name", pa.string()), ("n", pa.int32())])
_NUMBERS = count()


@pytest.fixture
def names(bucket: str, s3_server: S3ServerInfo, credentials: None) -> FilesystemCatalog:
    """A warehouse of its own, with a database."""
    prefix = f"names {next(_NUMBERS)}"
    made = FilesystemCatalog(
        open_files(address(bucket, prefix, s3_server.url)), f"s3://{bucket}/{prefix}", SYSTEM
    )
    made.create_database("demo")
    return made


def make(names: FilesystemCatalog, *ids: int, name: Identifier = NAME, **request: object) -> None:
    """A table with these keys."""
    names.create_table(name, new_schema(ARROW, primary_keys=["id"], options=OPTIONS))
    put(names.store(name), *map(row, ids), **request)


def ids(names: FilesystemCatalog, name: Identifier = NAME) -> list[int]:
    """The keys of a table that is whole."""
    assert names.store(name).verify() == ()
    return sorted(int(str(one["id"])) for one in rows_of(names.store(name)))


def test_names_on_a_server(names: FilesystemCatalog) -> None:
    """A clone outlives its source; a replacement takes the place of the clone; DROP leaves no object."""
    make(names, 1, 2)
    names.clone_flat(names.store(NAME).context, COPY)
    names.drop_table(NAME)
    assert (names.list_tables("demo"), ids(names, COPY)) == (("copy",), [1, 2])
    make(names, 7, name=COPY.replacement, properties={REPLACES: names.table_swap(COPY).state()})
    names.table_swap(COPY).take_place()
    put(names.store(COPY), row(8))
    assert ids(names, COPY) == [7, 8]
    names.table_swap(COPY).clear()
    names.drop_table(COPY)
    assert names.list_tables("demo") == ()
    assert names.fileio.list(f"{names.warehouse}/demo.db") == []


def test_a_late_claim_on_a_server(names: FilesystemCatalog) -> None:
    """The check passes, the table is dropped and created, the put lands: TS1365, and the new table goes on."""
    make(names, 1)

    def made_anew() -> None:
        names.drop_table(NAME)
        make(names, 7)

    slow = late(names.fileio, "snapshot-2", made_anew)  # type: ignore[arg-type]  # any store
    with pytest.raises(RetryError, match="TS1365"):
        put(FilesystemCatalog(slow, names.warehouse, SYSTEM).store(NAME), row(2))
    assert ids(names) == [7]
    put(names.store(NAME), row(8))
    assert ids(names) == [7, 8]
