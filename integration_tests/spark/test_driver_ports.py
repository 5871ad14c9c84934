"""The ports of a session answer nobody but the session: neither blocks nor the deserializer of Spark's RPC.

The requests are Spark's own wire format, written from its layout: frames of a length, a type and a body.
"""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

_NOBODY = 65534
_SECRET = "planted-" * 40
_PROGRAM = """
import sys
from tablestore_engine.api import Engine, SparkSettings
conf = {"spark.hadoop.fs.s3a.secret.key": sys.argv[2], "spark.io.compression.codec": "lz4", "spark.driver.memory": "1g"}
if sys.argv[3]:
    conf["spark.authenticate"] = sys.argv[3]
session = Engine(sys.argv[1], spark=SparkSettings("local[1]", conf=conf)).spark
session.range(3).selectExpr("sum(id)").toArrow()  # a broadcast of the conf
print(session.sparkContext._gateway.proc.pid, flush=True)
sys.stdin.read()
"""
_RPC_REQUEST, _CHUNK_REQUEST, _CHUNK, _RPC_ANSWER = 3, 0, 1, 4


def _text(value: str) -> bytes:
    return struct.pack(">i", len(value)) + value.encode()


def _received(connection: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        part = connection.recv(size - len(found))
        if not part:
            raise EOFError
        found += part
    return found


def _asked(connection: socket.socket, head: bytes, body: bytes = b"") -> tuple[int, bytes]:
    """Type and content of the answer to a frame."""
    connection.sendall(struct.pack(">q", 8 + len(head) + len(body)) + head + body)
    size = struct.unpack(">q", _received(connection, 8))[0]
    answer = _received(connection, size - 8)
    return answer[0], answer[1:]


def _fetched(port: int, block: str) -> tuple[int, bytes]:
    """What a port gives who asks it for a block: type and content of the last answer."""
    with socket.create_connection(("127.0.0.1", port), 3) as connection:
        opened = b"\0" + _text("app") + _text("driver") + struct.pack(">i", 1) + _text(block)
        kind, answer = _asked(connection, struct.pack(">BqI", _RPC_REQUEST, 7, len(opened)), opened)
        if kind != _RPC_ANSWER:
            return kind, answer
        stream = struct.unpack(">q", answer[13:21])[0]
        return _asked(connection, struct.pack(">Bqi", _CHUNK_REQUEST, stream, 0))


def _listening_ports(pids: set[int]) -> set[int]:
    """TCP ports on which one of the processes listens."""
    inodes = {
        os.readlink(entry)[8:-1]
        for pid in pids
        for entry in Path(f"/proc/{pid}/fd").iterdir()
        if entry.exists() or entry.is_symlink()
        if os.readlink(entry).startswith("socket:[")
    }
    rows = [
        line.split()
        for name in ("tcp", "tcp6")
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]
    ]
    return {int(row[1].rpartition(":")[2], 16) for row in rows if row[3] == "0A" and row[9] in inodes}


def _answers(ports: set[int]) -> Iterator[str]:
    """What each port says to a stranger: `block`, `deserialized`, or nothing of use."""
    for port in ports:
        try:
            kind, answer = _fetched(port, "broadcast_0_piece0")
        except (OSError, EOFError, struct.error):
            continue
        if kind == _CHUNK:
            yield "block"
        elif b"StreamCorruptedException" in answer:
            yield "deserialized"


def _as_nobody(ports: set[int]) -> list[str]:
    """The same asked by another user, where this one may become another."""
    if os.getuid() != 0:
        return sorted(_answers(ports))
    "".encode("idna")  # loaded now: the other user may not read the files of this Python
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgid(_NOBODY)
            os.setuid(_NOBODY)
            os.write(writing, " ".join(sorted(_answers(ports))).encode() + b"\n")
        except BaseException as error:  # noqa: BLE001 - a fork of pytest must not go on as a second one
            os.write(writing, repr(error).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as told:
        found = told.read()
    os.waitpid(child, 0)
    assert found.endswith("\n"), found
    return found.split()


@pytest.mark.nightly  # by day tests/unit/spark/test_session_conf.py: spark.authenticate
@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="lists ports by Linux's /proc")
@pytest.mark.parametrize(
    ("authenticate", "expected"),
    [("", []), pytest.param("false", ["block", "deserialized"], marks=pytest.mark.nightly)],
)
def test_driver_ports_asked_by_another_user_give_nothing(
    authenticate: str, expected: list[str], tmp_path: Path
) -> None:
    """A block with a planted secret is not sent and nothing is deserialized; both are with spark.authenticate off."""
    words = [sys.executable, "-c", _PROGRAM, str(tmp_path / "warehouse"), _SECRET, authenticate]
    environment = {**os.environ, "TABLESTORE_FAST_START": "0"}
    with subprocess.Popen(
        words, env=environment, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as driver:
        assert driver.stdin is not None
        assert driver.stdout is not None
        java = int(driver.stdout.readline())
        ports = _listening_ports({driver.pid, java})
        assert len(ports) >= 3, "gateway, RPC, blocks"
        assert _as_nobody(ports) == expected
        driver.stdin.close()
