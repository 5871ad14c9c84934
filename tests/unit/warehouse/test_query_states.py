"""What a query remembers: one file for each state, which comes back as it was, or not at all."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path

import pytest

from tablestore_engine.catalog.filesystem import FilesystemCatalog
from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.catalog.leftover_folders import list_leftover_folders
from tablestore_engine.errors import FixRequest
from tablestore_engine.fileio.local import LocalFileIO
from tablestore_engine.runtime.outside_world import SYSTEM
from tablestore_engine.warehouse.query_states import KEPT, QueryStates


@pytest.fixture
def states(tmp_path: Path) -> QueryStates:
    """Of one table, which is not there."""
    root = str(tmp_path / "warehouse")
    os.mkdir(root)
    return QueryStates(FilesystemCatalog(LocalFileIO(root), root, SYSTEM), Identifier("demo", "totals"))


def folder(path: Path, **files: bytes) -> Path:
    """With these files, one of them hidden."""
    (path / "state/0").mkdir(parents=True)
    for name, data in files.items():
        (path / "state/0" / name).write_bytes(data)
    (path / ".metadata.crc").write_bytes(b"sum")
    return path


def kept(states: QueryStates) -> list[str]:
    """Names, the oldest first."""
    place = Path(states.catalog.warehouse) / ".tablestore/states/demo.totals"
    found = sorted(place.iterdir(), key=lambda one: one.stat().st_mtime_ns)
    return [one.name.removesuffix(".tar") for one in found]


def test_a_state_comes_back_byte_for_byte(states: QueryStates, tmp_path: Path) -> None:
    """Hidden files too; what is done to the folder later changes no state."""
    name = states.pack(folder(tmp_path / "run", a=b"1", b=b"\x00" * 5000))
    (tmp_path / "run/state/0/a").write_bytes(b"2")
    target = tmp_path / "next"
    target.mkdir()
    states.unpack(name, target)
    assert (target / "state/0/a").read_bytes() == b"1"
    assert (target / "state/0/b").read_bytes() == b"\x00" * 5000
    assert (target / ".metadata.crc").read_bytes() == b"sum"


def test_a_state_that_is_gone_is_told(states: QueryStates, tmp_path: Path) -> None:
    """TS1455, and the folder stays empty."""
    with pytest.raises(FixRequest) as error:
        states.unpack("nowhere", tmp_path)
    assert error.value.code == "TS1455"


def test_only_the_newest_stay_and_the_one_that_is_named(states: QueryStates, tmp_path: Path) -> None:
    """However old that is."""
    names = []
    for number in range(KEPT + 3):
        names.append(states.pack(folder(tmp_path / str(number))))
        path = Path(states.catalog.warehouse) / f".tablestore/states/demo.totals/{names[-1]}.tar"
        os.utime(path, (1_000_000 + number, 1_000_000 + number))
    states.clean(names[0])
    assert kept(states) == [names[0], *names[3:]]
    states.clean(None)
    assert kept(states) == names[3:]


def test_an_archive_of_somebody_else_writes_nowhere_else(states: QueryStates, tmp_path: Path) -> None:
    """A path that leaves the folder is refused, and so is half a file."""
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
    path.write_bytes(b"torn")
    with pytest.raises(FixRequest, match="cannot be read"):
        states.unpack(name, target)


def test_states_of_a_table_that_is_gone_are_leftovers(states: QueryStates, tmp_path: Path) -> None:
    """They go with orphans; those of a table that is there are nobody's business."""
    states.pack(folder(tmp_path / "run"))
    found = list_leftover_folders(states.catalog, 0, lambda _: False)
    assert [one.what for one in found] == ["state of a query without a table"]
    for stranger in ("notes", ".x", "x."):
        os.makedirs(f"{states.catalog.warehouse}/.tablestore/states/{stranger}")
    assert [one.path for one in list_leftover_folders(states.catalog, 0, lambda _: False)] == [found[0].path]
    os.makedirs(f"{states.catalog.warehouse}/demo.db/totals")
    assert list_leftover_folders(states.catalog, 0, lambda _: False) == ()
