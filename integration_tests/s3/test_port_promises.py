"""The promises of the file-system port on a real S3 server, and what Parquet and names ask of it."""

from __future__ import annotations

import pickle
from itertools import count

import obstore
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from integration_tests.s3.object_client import open_store
from integration_tests.s3.warehouses import address, open_files
from tablestore_engine.devservers.s3_server import S3ServerInfo
from tablestore_engine.errors import FixRequest
from tablestore_engine.fileio.object_store import ObjectFileIO
from tests.unit.fileio.conditional_promises import ConditionalPromises
from tests.unit.fileio.port_promises import PortPromises

_NUMBERS = count()


@pytest.fixture
def root(bucket: str) -> str:
    """A prefix of its own, with a blank and a letter of another language."""
    return f"s3://{bucket}/ware house {next(_NUMBERS)} ü"


@pytest.fixture
def fileio(root: str, s3_server: S3ServerInfo, credentials: None) -> ObjectFileIO:
    """The port on it."""
    bucket, _, prefix = root.removeprefix("s3://").partition("/")
    return open_files(address(bucket, prefix, s3_server.url))


class TestObjectStorePromises(PortPromises, ConditionalPromises):
    """All promises that are not about folders."""


def test_there_are_no_folders(fileio: ObjectFileIO) -> None:
    """Callers with a trick for folders take their other way."""
    assert fileio.folders is None


@pytest.mark.parametrize(
    "name", ["ü", "a b", "x+y", "dt=2024%3A01", "q?", "h#", "t~", "*", "[x]", "{y}", "a\\b", "'", '"']
)
def test_names_are_kept_as_they_are(
    fileio: ObjectFileIO, root: str, s3_server: S3ServerInfo, bucket: str, name: str
) -> None:
    """Other engines find an object under the very name that the format gives it, escapes of partitions included."""
    fileio.write(f"{root}/t/{name}", b"1")
    assert [one.name for one in fileio.list(f"{root}/t")] == [name]
    prefix = root.removeprefix(f"s3://{bucket}/")
    listed = [one["path"] for chunk in obstore.list(open_store(s3_server, bucket), prefix) for one in chunk]
    assert listed == [f"{prefix}/t/{name}"]
    fileio.delete(f"{root}/t/{name}")
    assert not fileio.exists(f"{root}/t/{name}")


@pytest.mark.parametrize("rows", [0, 10, 300_000])
def test_parquet_is_written_and_read_by_ranges(fileio: ObjectFileIO, root: str, rows: int) -> None:
    """Files of one request and of a few; a reader asks for the columns that it needs."""
    table = pa.table(
        {"a": pa.array(range(rows), pa.int64()), "b": pa.array([f"text {n}" for n in range(rows)])}
    )
    with fileio.open_output(f"{root}/f.parquet") as sink:
        pq.write_table(table, sink)
    with fileio.open_input(f"{root}/f.parquet") as source:
        assert source.size() == fileio.size(f"{root}/f.parquet")
        assert pq.read_table(source).equals(table)
    with fileio.open_input(f"{root}/f.parquet") as source:
        assert pq.read_table(source, columns=["a"]).equals(table.select(["a"]))


def test_a_large_file_appears_whole_or_not_at_all(
    fileio: ObjectFileIO, root: str, s3_server: S3ServerInfo
) -> None:
    """More than one put takes: a multipart upload. An exception in the block leaves no object."""
    block = bytes(range(256)) * 4096 * 5
    with fileio.open_output(f"{root}/large") as sink:
        for _ in range(8):
            sink.write(block)
            assert fileio.list(root) == []
    assert fileio.read(f"{root}/large") == block * 8

    def fail() -> None:
        with fileio.open_output(f"{root}/half") as sink:
            for _ in range(8):
                sink.write(block)
            raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        fail()
    assert [one.name for one in fileio.list(root)] == ["large"]


def test_a_file_system_travels_to_a_worker(fileio: ObjectFileIO, root: str, s3_server: S3ServerInfo) -> None:
    """Pickled it has its address alone; credentials are the worker's own."""
    fileio.write(f"{root}/x", b"abc")
    packed = pickle.dumps(fileio)
    assert pickle.loads(packed).read(f"{root}/x") == b"abc"
    assert s3_server.secret_key.encode() not in packed
    assert s3_server.access_key.encode() not in packed


def test_delete_tree_takes_more_than_one_page(fileio: ObjectFileIO, root: str) -> None:
    """A listing and a bulk delete end at 1,000 names; what begins alike stays."""
    for number in range(1_005):
        fileio.write(f"{root}/tree/{number:04}", b"")
    fileio.write(f"{root}/tree2/x", b"")
    assert len(fileio.list(f"{root}/tree")) == 1_005
    fileio.delete_tree(f"{root}/tree")
    assert [one.name for one in fileio.list(root)] == ["tree2"]
    with pytest.raises(FixRequest, match="TS1202"):
        fileio.delete_tree(root)
