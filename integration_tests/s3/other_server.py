"""A second S3 server of one test module: another region, users with policies, versions of objects.

INVARIANT  it listens on 127.0.0.1, and ends with its block, by the handle of its process.
"""

from __future__ import annotations

import json
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tablestore_engine.devservers.s3_gateway import ensure_gateway
from tablestore_engine.devservers.s3_requests import S3Keys, send_signed
from tablestore_engine.runtime.server_process import end_process, free_port

REGION = "eu-central-1"
ROOT = S3Keys("rootkey", "root-secret")
USER = S3Keys("limited", "limited-secret")
_READY_SECONDS = 60
_OF_BUCKET = ("s3:ListBucket",)
_VERSIONING = (
    b'<VersioningConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Status>Enabled</Status>'
    b"</VersioningConfiguration>"
)


@dataclass(frozen=True)
class OtherServer:
    """`host`: 127.0.0.1:port; `objects` the folder whose folders are its buckets."""

    host: str
    objects: Path

    def ask(self, method: str, path: str, *, query: str = "", body: bytes = b"") -> str:
        """An answer to root that is no error."""
        now = time.time_ns() // 1_000_000
        status, text = send_signed(method, self.host, path, ROOT, now, query=query, body=body, region=REGION)
        assert status < 300, (status, text)
        return text

    def make_versioned(self, bucket: str) -> None:
        """Keep old versions of objects."""
        self.ask("PUT", f"/{bucket}", query="versioning=", body=_VERSIONING)

    def make_user(self) -> None:
        """USER, without any right."""
        named = f"<Access>{USER.access_key}</Access><Secret>{USER.secret_key}</Secret><Role>user</Role>"
        self.ask("PATCH", "/create-user", body=f"<Account>{named}</Account>".encode())

    def allow(self, bucket: str, actions: Sequence[str]) -> None:
        """USER may do this in the bucket, and nothing else."""
        parts = (
            ([one for one in actions if one in _OF_BUCKET], f"arn:aws:s3:::{bucket}"),
            ([one for one in actions if one not in _OF_BUCKET], f"arn:aws:s3:::{bucket}/*"),
        )
        allowed = [
            {"Effect": "Allow", "Principal": {"AWS": [USER.access_key]}, "Action": names, "Resource": [place]}
            for names, place in parts
            if names
        ]
        policy = {"Version": "2012-10-17", "Statement": allowed}
        self.ask("PUT", f"/{bucket}", query="policy=", body=json.dumps(policy).encode())


@contextmanager
def other_server(folder: Path) -> Iterator[OtherServer]:
    """A server that answers, without buckets."""
    program = ensure_gateway(say=print)
    for name in ("objects", "metadata", "versions", "users"):
        (folder / name).mkdir(parents=True)
    host = f"127.0.0.1:{free_port()}"
    command = [str(program), "-address", host, "-region", REGION, "-users", str(folder / "users")]
    command += ["-metadata", str(folder / "metadata"), "-versions", str(folder / "versions")]
    keys = {"ROOT_ACCESS_KEY": ROOT.access_key, "ROOT_SECRET_KEY": ROOT.secret_key}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [*command, str(folder / "objects")], stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=keys
        )
    try:
        _wait(process, host, folder / "log")
        yield OtherServer(host, folder / "objects")
    finally:
        end_process(process)


def _wait(process: subprocess.Popen[bytes], host: str, log: Path) -> None:
    """Until it listens."""
    deadline = time.monotonic() + _READY_SECONDS
    name, _, port = host.partition(":")
    while True:
        assert process.poll() is None, log.read_text("utf-8")
        assert time.monotonic() < deadline, log.read_text("utf-8")
        with socket.socket() as probe:
            if probe.connect_ex((name, int(port))) == 0:
                return
        time.sleep(0.05)
