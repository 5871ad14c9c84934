"""The development S3 server as a process, and what commits on object stores need of it."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import obstore
import pytest
from obstore.exceptions import AlreadyExistsError, BaseError, GenericError

from integration_tests.s3.object_client import open_store
from tablestore_engine.cli.main import main
from tablestore_engine.devservers.s3_server import (
    S3ServerInfo,
    find_s3_server,
    make_bucket,
    start_s3_server,
    stop_s3_server,
)
from tablestore_engine.errors import FixRequest
from tablestore_engine.runtime.server_process import free_port

_START = (
    "import sys; from pathlib import Path; from tablestore_engine.devservers.s3_server import start_s3_server; "
    "print(start_s3_server(Path(sys.argv[1])).pid)"
)
_THREADS, _RACES = 8, 25


def test_start_and_stop_are_idempotent(tmp_path: Path) -> None:
    """A second start returns the running server, stop ends exactly that process, a second stop finds nothing."""
    assert find_s3_server(tmp_path) is None
    first = start_s3_server(tmp_path)
    try:
        assert first.url.startswith("http://127.0.0.1:")
        assert start_s3_server(tmp_path) == first
        assert find_s3_server(tmp_path) == first
        assert first.secret_key not in repr(first)
    finally:
        assert stop_s3_server(tmp_path)
    assert find_s3_server(tmp_path) is None
    assert not stop_s3_server(tmp_path)


def test_restart_keeps_port_and_keys(tmp_path: Path) -> None:
    """A client of the first start works with the second one as it is."""
    first = start_s3_server(tmp_path)
    try:
        make_bucket(first, "kept")
        store = open_store(first, "kept")
        obstore.put(store, "a", b"1")
        assert stop_s3_server(tmp_path)
        again = start_s3_server(tmp_path)
        assert (again.url, again.access_key, again.secret_key) == (
            first.url,
            first.access_key,
            first.secret_key,
        )
        assert again.pid != first.pid
        assert bytes(obstore.get(store, "a").bytes()) == b"1"
    finally:
        stop_s3_server(tmp_path)


def test_killed_server_starts_again_with_every_acknowledged_object(tmp_path: Path) -> None:
    """SIGKILL while eight threads write: each object that was acknowledged is there, with its bytes."""
    info = start_s3_server(tmp_path)
    acknowledged: list[int] = []

    def write(number: int) -> None:
        try:
            obstore.put(open_store(info, "kept"), f"t/{number}", str(number).encode() * 1000, mode="create")
        except GenericError:  # no answer
            return
        acknowledged.append(number)
        if len(acknowledged) == 50:
            os.kill(info.pid, signal.SIGKILL)

    try:
        make_bucket(info, "kept")
        with ThreadPoolExecutor(_THREADS) as pool:
            list(pool.map(write, range(200)))
        os.waitpid(info.pid, 0)
        assert find_s3_server(tmp_path) is None
        assert 50 <= len(acknowledged) < 200
        again = start_s3_server(tmp_path)
        assert again.url == info.url
        store = open_store(again, "kept")
        for number in acknowledged:
            assert bytes(obstore.get(store, f"t/{number}").bytes()) == str(number).encode() * 1000
    finally:
        stop_s3_server(tmp_path)


def test_two_starts_at_once_give_one_server(tmp_path: Path) -> None:
    """Two processes that start the same folder end with the same process id."""
    both = [
        subprocess.Popen([sys.executable, "-c", _START, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    try:
        answers = {process.communicate(timeout=120)[0].strip() for process in both}
        info = find_s3_server(tmp_path)
        assert info is not None
        assert answers == {str(info.pid)}
    finally:
        assert stop_s3_server(tmp_path)


def test_starter_that_died_before_ready_leaves_no_server(tmp_path: Path) -> None:
    """A start that finds a process without `ready` ends it and starts its own."""
    first = start_s3_server(tmp_path)
    try:
        state = json.loads((tmp_path / "s3.json").read_text())
        (tmp_path / "s3.json").write_text(json.dumps({**state, "ready": False}))
        again = start_s3_server(tmp_path)
        assert again.pid != first.pid
        assert find_s3_server(tmp_path) == again
    finally:
        stop_s3_server(tmp_path)


def test_port_that_was_asked_for_is_used_or_refused(tmp_path: Path, s3_server: S3ServerInfo) -> None:
    """--port of a free port is used; that of another server, or another one for a running server, is TS1928."""
    taken = int(s3_server.url.rpartition(":")[2])
    with pytest.raises(FixRequest, match=r"TS1928[\s\S]*another process uses it"):
        start_s3_server(tmp_path, port=taken)
    port = free_port()
    try:
        assert start_s3_server(tmp_path, port=port).url == f"http://127.0.0.1:{port}"
        with pytest.raises(FixRequest, match=r"TS1928[\s\S]*runs at"):
            start_s3_server(tmp_path, port=taken)
    finally:
        stop_s3_server(tmp_path)


def test_keys_are_private(s3_server: S3ServerInfo) -> None:
    """The file of the keys has mode 0600, and the command line of the server, which all users see, has no key."""
    assert stat.S_IMODE(os.stat(s3_server.credentials).st_mode) == 0o600
    words = subprocess.run(
        ["ps", "-o", "args=", "-p", str(s3_server.pid)], capture_output=True, text=True, check=True
    ).stdout
    assert "versitygw" in words
    assert s3_server.secret_key not in words
    assert s3_server.access_key not in words


def test_requests_with_other_keys_are_refused(s3_server: S3ServerInfo, bucket: str) -> None:
    """Who knows the address alone can neither write nor list."""
    wrong = S3ServerInfo(s3_server.url, 0, "", "", s3_server.access_key, "0" * 32)
    with pytest.raises(FixRequest, match=r"TS1933[\s\S]*SignatureDoesNotMatch"):
        make_bucket(wrong, "others")
    with pytest.raises(BaseError, match="SignatureDoesNotMatch"):
        obstore.put(open_store(wrong, bucket), "a", b"1")


def test_bucket_is_created_once_and_bad_names_are_refused(s3_server: S3ServerInfo) -> None:
    """A second call changes nothing in the bucket; a name that S3 does not take is TS1933."""
    make_bucket(s3_server, "twice")
    obstore.put(open_store(s3_server, "twice"), "a", b"1")
    make_bucket(s3_server, "twice")
    assert bytes(obstore.get(open_store(s3_server, "twice"), "a").bytes()) == b"1"
    for name in ("ab", "Upper", "../twice", "a" * 64, ""):
        with pytest.raises(FixRequest, match="TS1933"):
            make_bucket(s3_server, name)


def test_conditional_create_has_one_winner(s3_server: S3ServerInfo, bucket: str) -> None:
    """Of eight threads that create one key with If-None-Match, one wins, and the object is the winner's."""
    stores = [open_store(s3_server, bucket) for _ in range(_THREADS)]

    def create(race: int, thread: int) -> int | None:
        try:
            obstore.put(stores[thread], f"race/{race}", str(thread).encode(), mode="create")
        except AlreadyExistsError:
            return None
        return thread

    with ThreadPoolExecutor(_THREADS) as pool:
        for race in range(_RACES):
            won = [
                one for one in pool.map(lambda n, r=race: create(r, n), range(_THREADS)) if one is not None
            ]
            assert len(won) == 1
            assert bytes(obstore.get(stores[0], f"race/{race}").bytes()) == str(won[0]).encode()


def test_command_starts_shows_and_stops(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`tablestore s3` makes the bucket, prints the settings of the profile and never the secret key."""
    place = ["--data-dir", str(tmp_path)]
    assert main(["s3", "status", *place]) == 1
    try:
        assert main(["s3", "start", *place]) == 0
        info = find_s3_server(tmp_path)
        assert info is not None
        shown = capsys.readouterr().out
        assert "warehouse: s3://tablestore/warehouse" in shown
        assert f"endpoint: {info.url}" in shown
        obstore.put(open_store(info, "tablestore"), "a", b"1")
        assert main(["s3", "status", "--json", *place]) == 0
        facts = json.loads(capsys.readouterr().out)
        assert facts["pid"] == info.pid
        assert info.secret_key not in shown + json.dumps(facts)
        exported = subprocess.run(
            ["sh", "-c", f'. "{facts["credentials"]}" && echo $AWS_ACCESS_KEY_ID $AWS_SECRET_ACCESS_KEY'],
            capture_output=True,
            text=True,
            check=True,
        )
        assert exported.stdout.split() == [info.access_key, info.secret_key]
    finally:
        assert main(["s3", "stop", *place]) == 0
    assert main(["s3", "stop", *place]) == 0
    assert "no S3 server was running" in capsys.readouterr().out
