"""Data files outside of the table: each operation reads them or refuses, and none of them changes or deletes one.

World      one warehouse whose data and changelog files were moved to `lake`, as Paimon's data-file.external-paths does,
           and whose manifests name them there; each case works on a copy of the warehouse, over the same lake.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import tablestore_engine
from tablestore_engine.api import Engine, TablestoreError, WriteMode, WriteSpec
from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.datasource.open_table import open_store
from tablestore_engine.datasource.source_options import TableAddress
from tablestore_engine.errors import EngineBug, FixRequest, Unsupported
from tablestore_engine.fileio.external_folders import ExternalFolder, ExternalFolders
from tablestore_engine.format.schema import decode_schema, encode_schema
from tablestore_engine.store.read import scan
from tablestore_engine.store.retention import Retention
from tests.unit.api.external_world import KEYED, PARTS, build, files_of, rows

NEWEST = Retention(1, 1, 0, 0, None)
NAME = "data-1.parquet"
Act = Callable[[Engine], object]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of external_world.build."""
    top = tmp_path_factory.mktemp("outside")
    build(top)
    return top


@pytest.fixture
def copied(world: Path, tmp_path: Path) -> Iterator[Path]:
    """A copy of the warehouse; afterwards the lake is as it was."""
    before = files_of(world / "lake")
    shutil.copytree(world / "warehouse", tmp_path / "w")
    yield tmp_path / "w"
    assert files_of(world / "lake") == before


def _ids(rows: pa.Table) -> list[int]:
    return sorted(rows["id"].to_pylist())


def _with_iceberg(engine: Engine) -> object:
    _set_options(engine, {"metadata.iceberg.storage": "table-location"})
    return engine.table(PARTS).sync_iceberg()


def _convert(engine: Engine) -> object:
    _set_options(engine, {"deletion-vectors.enabled": "false"})
    if engine.table(KEYED).list_tags():
        engine.table(KEYED).delete_tag("first")
    return engine.table(KEYED).convert(2)


def _set_options(engine: Engine, options: Mapping[str, str]) -> None:
    """Into the newest schema of both tables, as another engine would have."""
    for name in (KEYED, PARTS):
        store = engine.table(name).store
        path = Path(store.context.layout.schema_path(store.schema.id))
        found = decode_schema(path.read_bytes())
        path.write_bytes(encode_schema(replace(found, options={**found.options, **options})))


READS: dict[str, tuple[Act, object]] = {
    "all rows": (lambda one: _ids(one.table(KEYED).to_arrow()), list(range(8))),
    "values of the newest": (
        lambda one: sorted(one.table(KEYED).to_arrow()["v"].to_pylist()),
        ["t0"] * 2 + ["t1"] * 2 + ["t2"] * 4,
    ),
    "rows that vectors hide": (
        lambda one: sum(file.dead_count for file in one.table(KEYED).store.plan_scan().files) > 0,
        True,
    ),
    "partitions": (lambda one: len(_ids(one.table(PARTS).to_arrow())), 11),
    "a past state": (lambda one: _ids(one.table(KEYED).to_arrow(snapshot=1)), [0, 1, 2, 3]),
    "a tag": (lambda one: _ids(one.table(KEYED).to_arrow(tag="first")), [0, 1, 2, 3]),
    "a filter": (lambda one: _ids(one.table(PARTS).scan().filter("id = 21").to_arrow()), [21]),
    "the changelog": (lambda one: one.table(KEYED).changelog().num_rows, 4 + 2 * 2 + 2 + 2 * 2 + 2),
    "changes": (lambda one: _ids(one.table(KEYED).changes(2)), [4, 4, 5, 5, 6, 7]),
    "changes by vectors": (lambda one: _ids(one.table(PARTS).changes(3)), [1]),
    "a stream": (
        lambda one: sum(batch.num_rows for batch in one.table(KEYED).stream(until="now")) > 0,
        True,
    ),
    "the files of DuckDB": (
        lambda one: one.query_duckdb(f"select count(*), max(v) from {KEYED}").rows,
        ((8, "t2"),),
    ),
    "a look-up of keys": (
        lambda one: (
            one.table(KEYED)
            .store.find_rows(one.table(KEYED).store.latest(), pa.table({"id": [7]}))["v"]
            .to_pylist()
        ),
        ["t2"],
    ),
    "count": (lambda one: one.table(KEYED).count(), 8),
    "verify": (lambda one: (one.table(KEYED).verify(), one.table(PARTS).verify()), ((), ())),
    "statistics": (lambda one: one.table(KEYED).analyze().row_count, 8),
}
OF_METADATA: dict[str, tuple[Act, object]] = {
    "the system table of files": (
        lambda one: all(
            "/lake/" in path for path in one.table(KEYED).system_table("files")["file_path"].to_pylist()
        ),
        True,
    ),
    "a tag more": (lambda one: one.table(KEYED).create_tag("new"), None),
    "a tag less": (lambda one: one.table(KEYED).delete_tag("first"), None),
    "a branch": (lambda one: one.table(KEYED).create_branch("b"), None),
    "orphan files": (
        lambda one: (
            {file.kind for file in one.table(KEYED).orphans(delete=True, older_than_ms=0).found} <= {"folder"}
        ),
        True,
    ),
    "expire of snapshots that removed no file": (
        lambda one: one.table(PARTS).store.expire(NEWEST).end,
        4,
    ),
    "rollback": (lambda one: one.table(KEYED).rollback(1), None),
    "rename": (lambda one: one.rename(KEYED, "demo.other"), None),
    "drop": (lambda one: one.drop_table(KEYED), None),
    "drop of the database": (lambda one: one.drop_database("demo", cascade=True), None),
}
CHANGES: dict[str, Act] = {
    "upsert": lambda one: one.table(KEYED).upsert(rows(1, 2, "x")),
    "append": lambda one: one.table(PARTS).append(rows(1, 2, "x")),
    "delete": lambda one: one.table(KEYED).delete("id = 1"),
    "overwrite": lambda one: one.table(KEYED).overwrite(rows(1, 2, "x")),
    "overwrite of partitions": lambda one: one.table(PARTS).overwrite(rows(1, 2, "x"), partitions=True),
    "truncate": lambda one: one.truncate(PARTS),
    "compact": lambda one: one.table(KEYED).compact(full=True),
    "compact of append files": lambda one: one.table(PARTS).compact(full=True),
    "rescale": lambda one: one.table(KEYED).rescale(2),
    "convert": _convert,
    "restore": lambda one: one.table(KEYED).restore(1),
    "a staged write": lambda one: one.table(KEYED).write(
        rows(1, 2, "x"), WriteSpec(mode=WriteMode.UPSERT, stage="s")
    ),
    "drop of a partition": lambda one: one.table(PARTS).drop_partitions("p = 'p1'"),
    "clone": lambda one: one.clone(KEYED, "demo.cloned"),
    "expire": lambda one: one.table(KEYED).store.expire(NEWEST),
    "Iceberg metadata": _with_iceberg,
}


@pytest.mark.parametrize("work", READS)
def test_reads_of_external_files(work: str, world: Path, copied: Path) -> None:
    """Each read gives the rows where the folder is allowed, and TS1191 where it is not; no file of the lake changes."""
    act, expected = READS[work]
    with Engine(copied, external_paths=[str(world / "lake")]) as engine:
        assert act(engine) == expected
    with Engine(copied) as engine:
        if work == "verify":
            assert all("TS1191" in str(found) for found in act(engine))  # type: ignore[attr-defined]
        else:
            with pytest.raises(TablestoreError, match="TS1191"):
                act(engine)


@pytest.mark.parametrize("work", OF_METADATA)
def test_work_on_metadata_of_tables_with_external_files(work: str, world: Path, copied: Path) -> None:
    """What opens no data file needs no folder: it is done, and no file of the lake goes with its table."""
    act, expected = OF_METADATA[work]
    assert files_of(world / "lake")
    with Engine(copied) as engine:
        assert expected is None or act(engine) == expected
        if expected is None:
            act(engine)


@pytest.mark.parametrize("work", CHANGES)
def test_changes_of_tables_with_external_files(work: str, world: Path, copied: Path) -> None:
    """Each change is refused by name before a snapshot is made or a file goes, in the warehouse or the lake: by the
    file, and by the option where the table has it.
    """
    with Engine(copied, external_paths=[str(world / "lake")]) as engine:
        newest = {name: engine.table(name).latest_snapshot_id() for name in (KEYED, PARTS)}
        with pytest.raises(Unsupported, match=r"TS1229|TS1380"):
            CHANGES[work](engine)
        assert {name: engine.table(name).latest_snapshot_id() for name in newest} == newest
        assert len(engine.table(PARTS).to_arrow()) == 11
        assert _ids(engine.table(KEYED).to_arrow(snapshot=1)) == [0, 1, 2, 3]
        assert not engine.exists("demo.cloned")
    with Engine(copied, external_paths=[str(world / "lake")]) as engine:
        _set_options(
            engine, {"data-file.external-paths": "file:/lake", "data-file.external-paths.strategy": "x"}
        )
        with pytest.raises(Unsupported, match=r"TS1127|TS1229|TS1380"):
            CHANGES[work](engine)


LAKE = ExternalFolders(["/data/lake", "file:///mnt/a b/"])
ALLOWED = {
    f"file:/data/lake/bucket-0/{NAME}": "/data/lake",
    f"file:///data/lake/p=a%2Fb/{NAME}": "/data/lake",
    f"FILE://localhost/data/lake/{NAME}": "/data/lake",
    f"/mnt/a b/bucket-0/{NAME}": "/mnt/a b",
}


@pytest.mark.parametrize("address", ALLOWED)
def test_addresses_in_an_allowed_folder(address: str) -> None:
    """A file is found as it is written, percent signs and spaces too, by the folder that allows it."""
    path, folder = LAKE.open(address, NAME)
    assert address.endswith(path)
    assert (folder.root, path.startswith(f"{folder.root}/")) == (ALLOWED[address], True)


@pytest.mark.parametrize(
    "address",
    [
        f"file:/data/lakes/{NAME}",
        f"file:/data/lake2/bucket-0/{NAME}",
        f"file:/data/{NAME}",
        f"file:/data/lake/../secret/{NAME}",
        f"file:/data/lake/./{NAME}",
        f"file:/data/lake//{NAME}",
        f"file:/data/lake/%2e%2e/../{NAME}",
        f"file:data/lake/{NAME}",
        f"data/lake/{NAME}",
        f"file://other/data/lake/{NAME}",
        f"s3://data/lake/{NAME}",
        f"hdfs:/data/lake/{NAME}",
        f"file:/data/lake/x\0/{NAME}",
        "file:/data/lake/other.parquet",
        "file:/data/lake",
        "/data/lake/",
        "",
    ],
)
def test_addresses_outside_of_allowed_folders(address: str) -> None:
    """Another folder of the same beginning, `..`, another machine, another store and another name are refused."""
    with pytest.raises(Unsupported, match="TS1191"):
        LAKE.open(address, NAME)


@pytest.mark.parametrize(
    "named",
    [
        "lake",
        "./lake",
        "/a/../b",
        "s3://bucket/x",
        "hdfs:/x",
        "/",
        "",
        "file://host/x",
        "/wh",
        "/wh/demo.db",
        "/w",
    ],
)
def test_folders_that_cannot_be_allowed(named: str, tmp_path: Path) -> None:
    """A folder is absolute, plain, of this machine, and has no file in common with the warehouse, also by a link."""
    top = tmp_path / "w"
    (top / "wh" / "demo.db").mkdir(parents=True)
    inside = str(tmp_path) + named if named.startswith("/w") else named
    with pytest.raises(FixRequest, match="TS1227"):
        Engine(top / "wh", external_paths=[inside.replace("/wh", "/w/wh")])
    (tmp_path / "link").symlink_to(top)
    with pytest.raises(FixRequest, match="TS1227"):
        Engine(top / "wh", external_paths=[str(tmp_path / "link")])
    with pytest.raises(FixRequest, match="TS1227"):
        Engine(top / "wh", external_paths=str(tmp_path / "lake"))


def test_a_commit_removes_no_external_file(
    world: Path, copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Were a writer to plan the removal of one, its commit would refuse before a manifest says so."""
    monkeypatch.setattr(scan, "refuse_external", lambda *_: None)
    with Engine(copied, external_paths=[str(world / "lake")]) as engine:
        newest = engine.table(KEYED).latest_snapshot_id()
        with pytest.raises(Unsupported, match="TS1229"):
            engine.table(KEYED).compact(full=True)
        assert engine.table(KEYED).latest_snapshot_id() == newest
        assert engine.table(KEYED).verify() == ()


def test_workers_of_spark_have_no_folders(copied: Path) -> None:
    """A table that format(tablestore) opens by its address reads no external file."""
    store = open_store(TableAddress(str(copied), Identifier.parse(KEYED)))
    with pytest.raises(Unsupported, match="TS1191"):
        store.read()


def test_a_link_in_an_allowed_folder_is_not_followed(world: Path, copied: Path, tmp_path: Path) -> None:
    """A folder of the lake that is a link, and a file that is one, are refused where the real ones are read."""
    other = tmp_path / "lake"
    shutil.copytree(world / "lake", other)
    (other / "bucket-0").rename(tmp_path / "real")
    (other / "bucket-0").symlink_to(tmp_path / "real")
    name = next(iter(files_of(tmp_path / "real")))
    folder = ExternalFolder(str(other))
    with pytest.raises(TablestoreError, match="TS1290"):
        folder.read(f"{other}/bucket-0/{name}")
    (other / "bucket-0").unlink()
    (other / "bucket-0").mkdir()
    (other / "bucket-0" / name).symlink_to(tmp_path / "real" / name)
    for look in (folder.read, folder.open_input, folder.size):
        with pytest.raises(TablestoreError, match="TS1290"):
            look(f"{other}/bucket-0/{name}")


def test_nothing_is_changed_in_an_allowed_folder(tmp_path: Path) -> None:
    """Each method of a folder that could change something raises, and reading goes on."""
    (tmp_path / "file").write_bytes(b"x")
    folder, path = ExternalFolder(str(tmp_path)), f"{tmp_path}/file"
    reads = {"read", "open_input", "list", "list_hidden", "exists", "exists_file", "size", "run_together"}
    names = (
        {name for name in dir(folder) if not name.startswith("_")}
        - reads
        - {"folders", "conditional", "root"}
    )
    assert names == {
        "mkdirs", "write", "copy", "write_many", "replace", "create_exclusive", "open_output", "rename", "delete",
        "delete_many", "delete_tree",
    }  # fmt: skip
    for name in names:
        with pytest.raises(EngineBug, match="TS1228"):
            getattr(folder, name)(path, b"")
    assert folder.read(path) == b"x"


PLACES = {  # who makes the path of a data file, and what it does with one outside
    "catalog/system_tables/file_tables.py": "shows the path of the entry",
    "format/layout.py": "defines it",
    "spark/task_outcomes.py": "deletes files of an own task, which are never outside",
    "store/clone.py": "TS1380",
    "store/commit/orphan_notice.py": "leaves it out",
    "store/commit/snapshot_files.py": "lists files of an own commit, which are never outside",
    "store/expiry/referenced_files.py": "TS1229",
    "store/files/data_files.py": "names new files",
    "store/files/stored_file.py": "reads it",
    "store/iceberg_metadata/iceberg_snapshots.py": "TS1229",
}


def test_who_makes_paths_of_data_files() -> None:
    """No other module makes the path of a data file from its name: such a path would not be where the file lies."""
    top = Path(tablestore_engine.__file__).parent
    word = re.compile(r"\.(data_file|bucket_dir)\(|def data_file\(")
    found = [path for path in top.rglob("*.py") if word.search(path.read_text())]
    assert sorted(str(path.relative_to(top)) for path in found) == sorted(PLACES)
    assert all(PLACES.values())
