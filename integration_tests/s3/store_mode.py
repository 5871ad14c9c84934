"""Programs that work on folders, on an S3 server instead.

Usage      python -m integration_tests.s3.store_mode --faults 0.02 --kill-seconds 5 pytest tests/unit/store
Steps      1 a server whose bucket is a folder  2 the program makes its temporary folders in that bucket, so that it
           finds the files of the engine where it expects them  3 each LocalFileIO that the program imports is a FileIO
           that sends requests for the same names; dbt's suites get addresses of warehouses in the bucket
           4 on demand a proxy injects faults, and the server is killed
INVARIANT  the disk is what a test looks at; every byte that the engine reads or writes goes over HTTP.
INVARIANT  faults depend on the seed and the request alone; kills of the server come at random moments of the seed.
LIMITS     what only folders can do is refused or done in another way there.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from integration_tests.s3.fault_proxy import FaultProxy, Kind, seeded
from integration_tests.warehouse_address import ADDRESS_ENV
from tablestore_engine.devservers.s3_requests import REGION
from tablestore_engine.devservers.s3_server import S3ServerInfo, make_bucket, start_s3_server, stop_s3_server
from tablestore_engine.errors import FixRequest, RetryError
from tablestore_engine.fileio import local
from tablestore_engine.fileio.object_store import ObjectFileIO
from tablestore_engine.fileio.storage_errors import outside_root
from tablestore_engine.fileio.store_address import parse_address
from tablestore_engine.runtime.server_process import is_free

ENDPOINT_ENV, FOLDER_ENV = "TABLESTORE_TEST_ENDPOINT", "TABLESTORE_TEST_FOLDER"
_BUCKET = "tests"
_FAULTS = (Kind.DROP_BEFORE, Kind.DROP_AFTER, Kind.ERROR_AFTER, Kind.SLOW_DOWN, Kind.CONFLICT, Kind.TRUNCATE)
_STARTS, _LOOK_SECONDS = 9, 0.05
_RUN = (
    "import runpy, sys; from integration_tests.s3.store_mode import switch_on; switch_on(); "
    "sys.argv = sys.argv[1:]; runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)"
)


class FolderOverS3(ObjectFileIO):
    """Files under a folder that is part of a bucket, by requests to its server. Paths are those of the folder."""

    def __init__(self, root: str) -> None:
        endpoint = os.environ[ENDPOINT_ENV]
        super().__init__(parse_address(f"s3://{_BUCKET}?endpoint={endpoint}&region={REGION}"))
        self.root = os.path.normpath(root)
        self._top = os.environ[FOLDER_ENV]

    def __reduce__(self) -> tuple[type[FolderOverS3], tuple[str]]:  # type: ignore[override]  # made of a folder
        return FolderOverS3, (self.root,)

    def _key(self, path: str) -> str:
        """The name in the bucket. Raises FixRequest TS1202."""
        clean = os.path.normpath(path)
        for top in (self.root, self._top):
            if clean != top and not clean.startswith(f"{top}/"):
                raise outside_root(path, top)
        return clean[len(self._top) + 1 :]


def is_on() -> bool:
    """Whether this process runs over the server."""
    return ENDPOINT_ENV in os.environ


def store_modules() -> list[str]:
    """What a server of forks must load before anything else, so that its children run over the server, too."""
    return ["integration_tests.s3.store_mode_plugin"] if is_on() else []


def switch_on() -> None:
    """REQUIRES that nothing has imported LocalFileIO from its module yet."""
    if is_on():
        local.LocalFileIO = FolderOverS3  # type: ignore[misc, assignment]  # the one name that is imported


@dataclass
class StoreWorld:
    """`environ`: of a program over the server; the counts are there when the world has ended."""

    environ: dict[str, str]
    requests: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    server_kills: int = 0

    def run(self, module: str, *words: str, output: int | None = None) -> subprocess.CompletedProcess[str]:
        """The module as a program of its own, with its temporary folders in the bucket."""
        top = self.environ[FOLDER_ENV]
        environ = {**os.environ, **self.environ, "PYTEST_DEBUG_TEMPROOT": top, "TMPDIR": top}
        command = [sys.executable, "-c", _RUN, module, *words]
        return subprocess.run(command, env=environ, check=False, stdout=output, text=True)


@contextlib.contextmanager
def store_world(seed: int, faults: float, kill_seconds: float) -> Iterator[StoreWorld]:
    """A server, a proxy before it where something is to be done to it."""
    with tempfile.TemporaryDirectory() as folder:
        info = start_s3_server(Path(folder) / "s3", say=print)
        try:
            make_bucket(info, _BUCKET)
            plan = seeded(seed, faults, _FAULTS)
            with FaultProxy(info.url, plan) as proxy, _killed(info, seed, kill_seconds) as kills:
                url = proxy.url if faults or kill_seconds else info.url
                world = StoreWorld(
                    {
                        ENDPOINT_ENV: url,
                        ADDRESS_ENV: f"s3://{_BUCKET}/addresses?endpoint={url}&region={REGION}",
                        FOLDER_ENV: str(Path(info.data_dir) / "objects" / _BUCKET),
                        "AWS_ACCESS_KEY_ID": info.access_key,
                        "AWS_SECRET_ACCESS_KEY": info.secret_key,
                    }
                )
                yield world
                world.requests, world.server_kills = len(proxy.requests), len(kills)
                world.faults.update(one.fault.name for one in proxy.requests if one.fault is not None)
        finally:
            stop_s3_server(Path(folder) / "s3")


@contextlib.contextmanager
def _killed(info: S3ServerInfo, seed: int, seconds: float) -> Iterator[list[int]]:
    """The server dies by SIGKILL every `seconds` or so, and starts again on the same objects; the pids."""
    kills: list[int] = []
    over, chance = threading.Event(), random.Random(seed)

    def kill() -> None:
        current = info
        while not over.wait(chance.uniform(0.3, 1.7) * seconds):
            os.kill(current.pid, signal.SIGKILL)
            kills.append(current.pid)
            current = _start_again(info)

    thread = threading.Thread(target=kill)
    if seconds:
        thread.start()
    try:
        yield kills
    finally:
        over.set()
        if seconds:
            thread.join()


def _start_again(info: S3ServerInfo) -> S3ServerInfo:
    """At the same port, which the clients know. A busy machine may need more than one try."""
    folder, port = Path(info.data_dir), int(info.url.rpartition(":")[2])
    for _ in range(_STARTS - 1):
        while not is_free(port):  # the killed one is not gone at once
            time.sleep(_LOOK_SECONDS)
        try:
            return start_s3_server(folder, port=port)
        except (RetryError, FixRequest) as error:
            print(f"the server is started again: {error}", flush=True)
    return start_s3_server(folder, port=port)


def main(arguments: list[str]) -> int:
    """Run a module over the server; its exit code."""
    parser = argparse.ArgumentParser(prog="python -m integration_tests.s3.store_mode")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--faults", type=float, default=0.0, help="share of requests that meet a fault")
    parser.add_argument(
        "--kill-seconds", type=float, default=0.0, help="mean time between kills of the server"
    )
    parser.add_argument("module", help="pytest, or a module with a main")
    parser.add_argument("rest", nargs=argparse.REMAINDER)
    given = parser.parse_args(arguments)
    plugin = ["-p", "integration_tests.s3.store_mode_plugin"] if given.module == "pytest" else []
    with store_world(given.seed, given.faults, given.kill_seconds) as world:
        done = world.run(given.module, *plugin, *given.rest)
    print(
        f"store: {world.requests} requests, faults {dict(world.faults)}, server killed {world.server_kills} times"
    )
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
