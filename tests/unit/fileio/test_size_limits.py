"""Files that are read whole have a size that is checked before their bytes are read."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

from tablestore_engine.api import Engine, TableSpec, WriteSpec
from tablestore_engine.errors import FixData
from tablestore_engine.fileio.local import LocalFileIO
from tablestore_engine.fileio.size_limits import _KINDS, _OTHER, check_size, limit_of

NAMES = {
    "snapshot hint": "LATEST",
    "schema": "schema-0",
    "snapshot": "snapshot-12",
    "tag": "tag-monthly",
    "consumer": "consumer-app",
    "manifest list": "manifest-list-0a-crc32-00000000",
    "index manifest": "index-manifest-0a",
    "manifest": "manifest-0a",
    "index file": "index-0a",
    "statistics file": "statistics-0a",
    "JSON file": "view.json",
    "metadata file": "sweep-0a",
}


def test_kinds_of_files_have_an_example() -> None:
    """A new kind needs one here; each name is of the kind that it stands for."""
    assert set(NAMES) == {kind for _, kind, _ in _KINDS} | {_OTHER[0]}
    assert {kind: limit_of(f"/w/{name}")[0] for kind, name in NAMES.items()} == {kind: kind for kind in NAMES}


@pytest.mark.parametrize("kind", NAMES)
def test_file_over_the_limit_of_its_kind_is_not_read(tmp_path: Path, kind: str) -> None:
    """20 GB of each kind: TS1293 names the file, its size and the limit; at the limit it is read."""
    path = tmp_path / NAMES[kind]
    path.touch()
    os.truncate(path, 20 << 30)
    limit = limit_of(str(path))[1]
    with pytest.raises(FixData, match="TS1293") as error:
        LocalFileIO(str(tmp_path)).read(str(path))
    assert all(word in str(error.value) for word in (str(path), kind, str(20 << 30), str(limit)))
    check_size(str(path), limit)


def test_files_of_a_table_are_of_known_kinds(tmp_path: Path) -> None:
    """The names that the engine gives are those of the table of limits, but for data files and changelogs."""
    with Engine(str(tmp_path)) as engine:
        for value in ("a", "b"):
            rows = pa.table({"id": [1, 2], "value": [value] * 2})
            engine.write("demo.t", rows, WriteSpec(TableSpec(primary_key=("id",))))
        engine.table("demo.t").tag("monthly", 1)
        engine.create_view("demo.v", "select 1 as one")
    files = [one for one in tmp_path.rglob("*") if one.is_file() and one.suffix != ".parquet"]
    kinds = {limit_of(str(one))[0] for one in files}
    assert kinds >= {"schema", "snapshot", "tag", "manifest list", "manifest", "index manifest", "index file"}
    assert kinds <= set(NAMES) - {"metadata file"}, [one for one in files if limit_of(str(one)) == _OTHER]
