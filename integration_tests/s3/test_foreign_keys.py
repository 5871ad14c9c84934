"""Objects that somebody put below a table and whose keys are no paths: nothing of the engine stops because of them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pyarrow as pa
import pytest

from integration_tests.s3.fault_proxy import Asked, Fault, FaultProxy, Kind
from integration_tests.s3.warehouses import address, open_files
from tablestore_engine.api import Engine, TableSpec, WriteSpec
from tablestore_engine.cli.main import main
from tablestore_engine.devservers.s3_server import S3ServerInfo
from tablestore_engine.fileio.object_clients import is_path
from tests.doses import case_rows

NAME = "demo.t"
_NUMBERS = count()
KEYED = WriteSpec(TableSpec(primary_key=("id",)))
_OBJECT = (
    "<Contents><Key>{}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>&quot;1&quot;</ETag>"
    "<Size>1</Size><StorageClass>STANDARD</StorageClass></Contents>"
)


def rows(*ids: int) -> pa.Table:
    """A row for each key."""
    return pa.table({"id": pa.array(ids, pa.int64()), "text": [f"row {one}" for one in ids]})


def use_table(place: str, capsys: pytest.CaptureFixture[str]) -> None:
    """All that lists: write, read, expire, verify, orphans, clone, list, drop, create again, drop the database."""
    with Engine(place) as engine:
        engine.write(NAME, rows(1), KEYED)
        engine.write(NAME, rows(2), KEYED)
        assert engine.table(NAME).scan().to_arrow().num_rows == 2
        assert engine.table(NAME).verify() == ()
        engine.table(NAME).expire()
        engine.clone(NAME, "demo.copy")
        assert engine.databases() == ("demo",)
        assert engine.list_tables("demo") == ("demo.copy", "demo.t")
        assert main(["orphans", NAME, "--older-than", "0s", "--warehouse", place]) == 0
        assert "TS12" not in capsys.readouterr().out
        engine.drop_table(NAME)
        assert engine.list_tables("demo") == ("demo.copy",)
        engine.write(NAME, rows(7), KEYED)
        assert engine.table(NAME).scan().to_arrow()["id"].to_pylist() == [7]
        engine.drop_database("demo", cascade=True)


def inserted(below: str, xml: str) -> Callable[[Asked], Fault | None]:
    """Each listing of the folder, or of all below a parent of it, has these entries too."""
    wanted = f"prefix={below.replace('/', '%2F')}"

    def plan(asked: Asked) -> Fault | None:
        return Fault(Kind.ALSO_LISTED, insert=xml.encode()) if wanted in asked.query.split("&") else None

    return plan


EMPTY_PART = "<CommonPrefixes><Prefix>{}/</Prefix></CommonPrefixes>"
DOTS = "<CommonPrefixes><Prefix>{}../</Prefix></CommonPrefixes>"
NEWLINE = _OBJECT.format("{}a&#xA;b")


@pytest.mark.usefixtures("credentials")
@pytest.mark.parametrize(
    ("folder", "xml"),
    case_rows(
        [
            ("", EMPTY_PART),
            ("demo.db/", EMPTY_PART),
            ("demo.db/t/", EMPTY_PART),
            ("demo.db/t/snapshot/", EMPTY_PART),
            ("demo.db/t/bucket-0/", EMPTY_PART),
            ("demo.db/t/", DOTS),
            ("demo.db/t/bucket-0/", NEWLINE),
        ],
        3,
    ),
)
def test_key_that_is_no_path_is_left_out_and_named(
    bucket: str,
    proxy: FaultProxy,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
    folder: str,
    xml: str,
) -> None:
    """In the warehouse, the database, the table and its folders: everything works, and a warning names the folder."""
    prefix = f"keys {next(_NUMBERS)}"
    place = address(bucket, prefix, proxy.url)
    proxy.plan = inserted(f"{prefix.replace(' ', '+')}/{folder}", xml.format(f"{prefix}/{folder}"))
    with caplog.at_level(logging.WARNING):
        use_table(place, capsys)
    said = [one.getMessage() for one in caplog.records if "TS1292" in one.getMessage()]
    assert said
    assert all(f"{prefix}/{folder}".rstrip("/") in one for one in said)


@pytest.mark.usefixtures("credentials")
def test_object_with_a_newline_in_its_key_stays_in_the_store(
    bucket: str, s3_server: S3ServerInfo, capsys: pytest.CaptureFixture[str]
) -> None:
    """A real object: it survives DROP of the table and the removal of all objects below a name."""
    place = address(bucket, "real", s3_server.url)
    folder = Path(s3_server.data_dir) / "objects" / bucket / "real/demo.db/t"
    folder.mkdir(parents=True)
    (folder / "a\nb").write_bytes(b"theirs")
    use_table(place, capsys)
    with Engine(place) as engine:
        assert engine.databases() == ("demo",)  # as long as an object is below it
    assert (folder / "a\nb").read_bytes() == b"theirs"
    files = open_files(place)
    files.write(f"{files.root}/demo.db/t/x/ours", b"")
    files.delete_tree(f"{files.root}/demo.db")
    assert [one.name for one in folder.iterdir()] == ["a\nb"]


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("a/b c", True),
        ("é#?%", True),
        ("a//b", False),
        ("a/../b", False),
        ("./a", False),
        ("a\nb", False),
        ("\x7f", False),
    ],
)
def test_keys_that_the_client_refuses_are_known(key: str, expected: bool) -> None:
    """The rule is obstore's: it lists the ones and refuses the others."""
    assert is_path(key) is expected
