"""The folder of the development cluster, without its processes."""

from __future__ import annotations

import http.server
import json
import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tablestore_engine.devservers import spark_cluster
from tablestore_engine.devservers.spark_cluster import MasterAnswer, ask_master, find_cluster, stop_cluster
from tablestore_engine.errors import FixRequest
from tablestore_engine.runtime.server_process import start_time


def _write_state(folder: Path, *processes: tuple[str, int, str | None]) -> None:
    state = {
        "master": "spark://127.0.0.1:1",
        "web": "http://127.0.0.1:2",
        "processes": [
            {"name": name, "pid": pid, "started": started, "log": "x"} for name, pid, started in processes
        ],
    }
    (folder / "cluster.json").write_text(json.dumps(state))


def test_the_folder_is_for_this_user_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """start_cluster makes it 0700, whatever the umask, before the secret is put into it."""

    def no_java() -> None:
        raise FixRequest("TS1902", "no Java here", why="the test ends before the JVM", fix="none")

    monkeypatch.setattr(spark_cluster, "find_java", no_java)
    before = os.umask(0)
    try:
        with pytest.raises(FixRequest, match="TS1902"):
            spark_cluster.start_cluster(tmp_path / "a" / "cluster")
    finally:
        os.umask(before)
    modes = [stat.S_IMODE((tmp_path / part).stat().st_mode) for part in ("a", "a/cluster")]
    assert modes == [0o700, 0o700]


def test_only_processes_of_the_state_file_that_still_run_count(tmp_path: Path) -> None:
    """A process id that another process has taken over is neither found nor signalled."""
    me, started = os.getpid(), start_time(os.getpid())
    _write_state(tmp_path, ("master", me, started), ("worker-1", me, "another time"))
    found = find_cluster(tmp_path)
    assert found is not None
    assert [one.name for one in found.processes] == ["master"]
    _write_state(tmp_path, ("master", me, "another time"), ("worker-1", me, "another time"))
    assert find_cluster(tmp_path) is None
    assert stop_cluster(tmp_path) is False  # this very process was not signalled


def test_the_secret_of_a_folder_stays(tmp_path: Path) -> None:
    """Applications that know it reach a cluster that was started again."""
    _write_state(tmp_path, ("master", os.getpid(), start_time(os.getpid())))
    first, again = find_cluster(tmp_path), find_cluster(tmp_path)
    assert first is not None
    assert again is not None
    assert first.conf == again.conf
    assert len(first.conf["spark.authenticate.secret"]) == 32
    assert stat.S_IMODE((tmp_path / "secret").stat().st_mode) == 0o600


@pytest.fixture
def page() -> Iterator[tuple[str, list[bytes]]]:
    """A web page of somebody, which answers what stands in the list."""
    said: list[bytes] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(said[-1])

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}", said
    server.shutdown()
    thread.join()
    server.server_close()


def test_only_the_page_of_a_master_is_an_answer(page: tuple[str, list[bytes]]) -> None:
    """Another server's page, and none at all, are no answer; nothing is taken for zero cores."""
    web, said = page
    said.append(b'{"aliveworkers": 2, "cores": 4, "coresused": 3, "workers": []}')
    assert ask_master(web) == MasterAnswer(workers=2, cores=4, cores_used=3)
    said.append(b"<html>")
    assert ask_master(web) is None
    said.append(b'{"cores": 4}')
    assert ask_master(web) is None
    assert ask_master("http://127.0.0.1:1") is None
