"""What a query remembers: one file for each state, which comes back as it was, or not at all."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path

import pyarrow as pa
import pytest

from tablestore_engine.api import Engine, TableVersion, WriteSpec
from tablestore_engine.catalog.filesystem import FilesystemCatalog
from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.catalog.orphan_folders import list_orphan_folders
from tablestore_engine.errors import FixRequest
from tablestore_engine.fileio.local import LocalFileIO
from tablestore_engine.runtime.outside_world import SYSTEM
from tablestore_engine.spi import PositionStep
from tablestore_engine.warehouse.streaming_state_files import KEPT, POSITION, StreamingStateFiles


@pytest.fixture
def states(tmp_path: Path) -> StreamingStateFiles:
    """Of one table, which is not there."""
    root = str(tmp_path / "warehouse")
    os.mkdir(root)
    return StreamingStateFiles(
        FilesystemCatalog(LocalFileIO(root), root, SYSTEM), Identifier("demo", "totals")
    )


def folder(path: Path, **files: bytes) -> Path:
    """With these files, one of them hidden."""
    (path / "state/0").mkdir(parents=True)
    for name, data in files.items():
        (path / "state/0" / name).write_bytes(data)
    (path / ".metadata.crc").write_bytes(b"sum")
    return path


def kept(states: StreamingStateFiles) -> list[str]:
    """Names, the oldest first."""
    place = Path(states.catalog.warehouse) / ".tablestore/states/demo.totals"
    found = sorted(place.iterdir(), key=lambda one: one.stat().st_mtime_ns)
    return [one.name.removesuffix(".tar") for one in found]


def test_a_state_comes_back_byte_for_byte(states: StreamingStateFiles, tmp_path: Path) -> None:
    """Hidden files too; what is done to the folder later changes no state."""
    name = states.pack(folder(tmp_path / "run", a=b"1", b=b"\x00" * 5000))
    (tmp_path / "run/state/0/a").write_bytes(b"2")
    target = tmp_path / "next"
    target.mkdir()
    states.unpack(name, target)
    assert (target / "state/0/a").read_bytes() == b"1"
    assert (target / "state/0/b").read_bytes() == b"\x00" * 5000
    assert (target / ".metadata.crc").read_bytes() == b"sum"


def test_a_state_that_is_gone_is_told(states: StreamingStateFiles, tmp_path: Path) -> None:
    """TS1455, and the folder stays empty."""
    with pytest.raises(FixRequest) as error:
        states.unpack("nowhere", tmp_path)
    assert error.value.code == "TS1455"


def test_only_the_newest_stay_and_those_that_are_named(states: StreamingStateFiles, tmp_path: Path) -> None:
    """However old these are."""
    names = []
    for number in range(KEPT + 3):
        names.append(states.pack(folder(tmp_path / str(number))))
        path = Path(states.catalog.warehouse) / f".tablestore/states/demo.totals/{names[-1]}.tar"
        os.utime(path, (1_000_000 + number, 1_000_000 + number))
    states.clean(names[:2])
    assert kept(states) == [*names[:2], *names[3:]]
    states.clean([])
    assert kept(states) == names[3:]


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    """demo.totals, whose snapshots 1 to 7 go on from states of their own."""
    made = Engine(str(tmp_path / "warehouse"))
    for number in range(1, 8):
        write(made, number, remember(made, tmp_path / str(number)))
    return made


def remember(engine: Engine, path: Path, table: str = "totals") -> str:
    """A state that nobody has named yet."""
    return StreamingStateFiles(engine._warehouse.catalog, Identifier("demo", table)).pack(folder(path))


def write(engine: Engine, number: int, state: str | None, table: str = "totals") -> None:
    """A commit."""
    before = engine.table(f"demo.{table}").positions().get(POSITION) if number > 1 else None
    steps = {} if state is None else {POSITION: PositionStep(before, state)}
    engine.write(f"demo.{table}", pa.table({"id": [number]}), WriteSpec(positions=steps))


def test_runs_that_fail_push_no_state_out(engine: Engine, tmp_path: Path) -> None:
    """Red tests and killed runs leave states that no snapshot names; a fold goes on from the one before."""
    table = engine.table("demo.totals")
    made = StreamingStateFiles(engine._warehouse.catalog, table.identifier)
    found = [table.positions(TableVersion(snapshot=n))[POSITION] for n in table.snapshot_ids()]
    named = list(dict.fromkeys(found))
    write(engine, 8, None)
    failed = [remember(engine, tmp_path / f"failed {number}") for number in range(KEPT)]
    for number, name in enumerate([*named, *failed]):
        os.utime(tmp_path / f"warehouse/.tablestore/states/demo.totals/{name}.tar", (number, number))
    assert made.named_by(table.store) == frozenset(named[2:])
    made.clean(made.named_by(table.store))
    assert kept(made) == [*named[2:], *failed]
    assert made.named_by(None) == frozenset()


def test_a_clone_and_a_new_name_remember(engine: Engine) -> None:
    """A clone goes on from the state of its snapshot, and has no other; under a new name all of them are there."""
    catalog, newest = engine._warehouse.catalog, engine.table("demo.totals").positions()[POSITION]
    everything = kept(StreamingStateFiles(catalog, Identifier("demo", "totals")))
    engine.clone("demo.totals", "demo.copy")
    place = Path(engine.warehouse) / ".tablestore/states"
    assert [one.name for one in (place / "demo.copy").iterdir()] == [f"{newest}.tar"]
    assert engine.table("demo.copy").positions()[POSITION] == newest
    engine.rename("demo.totals", "demo.sums")
    assert sorted(one.stem for one in (place / "demo.sums").iterdir()) == sorted(everything)
    assert not (place / "demo.totals").exists()


def test_an_archive_of_somebody_else_writes_nowhere_else(states: StreamingStateFiles, tmp_path: Path) -> None:
    """A path that leaves the folder is refused, and so are a link and half a file."""
    name = states.pack(folder(tmp_path / "run"))
    path = Path(states.catalog.warehouse) / f".tablestore/states/demo.totals/{name}.tar"
    with tarfile.open(path, "w") as archive:
        archive.add(tmp_path / "run/.metadata.crc", arcname="../outside")
    target = tmp_path / "next"
    target.mkdir()
    with pytest.raises(FixRequest) as error:
        states.unpack(name, target)
    assert error.value.code == "TS1455"
    assert not (tmp_path / "outside").exists()
    link = tarfile.TarInfo("link")
    link.type, link.linkname = tarfile.SYMTYPE, str(tmp_path)
    with tarfile.open(path, "w") as archive:
        archive.addfile(link)
    with pytest.raises(FixRequest, match="not a file inside"):
        states.unpack(name, target)
    path.write_bytes(b"torn")
    with pytest.raises(FixRequest, match="cannot be read"):
        states.unpack(name, target)


def test_states_of_a_table_that_is_gone_are_leftovers(states: StreamingStateFiles, tmp_path: Path) -> None:
    """They go with orphans; those of a table that is there are nobody's business."""
    states.pack(folder(tmp_path / "run"))
    found = list_orphan_folders(states.catalog, 0, lambda _: False)
    assert [one.what for one in found] == ["state of a query without a table"]
    for stranger in ("notes", ".x", "x."):
        os.makedirs(f"{states.catalog.warehouse}/.tablestore/states/{stranger}")
    assert [one.path for one in list_orphan_folders(states.catalog, 0, lambda _: False)] == [found[0].path]
    os.makedirs(f"{states.catalog.warehouse}/demo.db/totals")
    assert list_orphan_folders(states.catalog, 0, lambda _: False) == ()


def test_state_that_executors_compact_meanwhile_is_packed_again(
    states: StreamingStateFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that goes away between the list and the read leaves no cut archive: the newer files are packed whole."""
    made = folder(tmp_path / "run", a=b"1", b=b"2") / "state/0"
    listed = os.listdir

    def compact(path: str) -> list[str]:
        found = listed(path)
        if (made / "b").exists() and "b" in found:
            (made / "b").rename(made / "merged")
        return found

    monkeypatch.setattr(os, "listdir", compact)
    name = states.pack(tmp_path / "run")
    monkeypatch.undo()
    target = tmp_path / "next"
    target.mkdir()
    states.unpack(name, target)
    assert sorted(path.name for path in (target / "state/0").iterdir()) == ["a", "merged"]
    assert kept(states) == [name]


def test_folder_that_never_stays_is_an_error(states: StreamingStateFiles, tmp_path: Path) -> None:
    """Packing is not begun again for ever."""
    with pytest.raises(FileNotFoundError):
        states.pack(tmp_path / "nowhere")
