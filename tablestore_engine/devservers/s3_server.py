"""A real S3 server (versitygw) on loopback, for development and tests: plain files in a folder of its own.

CHANGE     start and stop of the S3 server
Steps      1 check the folder, lock it  2 the program  3 keys, made once  4 start in a session of its own
           5 state file  6 wait until it answers a request signed with the keys
INVARIANT  a process is only signalled when its pid AND its start time are those of the state file.
INVARIANT  the folder is this user's alone, and so are the keys, which stand in a file and in the server's
           environment: command lines can be read by every user of the machine.
INVARIANT  it listens on 127.0.0.1 only; a folder keeps its port over restarts while the port is free.
LAYOUT     credentials.sh, port, s3.json (state), s3.log, objects/ (buckets), metadata/ (ETags and headers).
           `metadata` must not begin with the path of `objects`: the server refuses that.
"""

from __future__ import annotations

import http.client
import os
import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tablestore_engine.devservers.s3_gateway import ensure_gateway
from tablestore_engine.devservers.s3_requests import REGION, S3Keys, send_signed
from tablestore_engine.errors import FixRequest, RetryError
from tablestore_engine.log.kafka.publish_progress import silent
from tablestore_engine.runtime.java import cache_folder
from tablestore_engine.runtime.outside_world import SYSTEM, Runtime
from tablestore_engine.runtime.ownership import check_owner, make_private
from tablestore_engine.runtime.server_process import (
    STOP_SECONDS,
    end_process,
    free_port,
    is_free,
    last_words,
    locked,
    output_since,
    read_running,
    spawn,
    stop_running,
    write_private,
    write_state,
)

_READY_SECONDS = 60.0
_ATTEMPTS = 3
_DATA, _DATA_FIX = "data folder of the S3 server", "name a folder of your own"
_LOCK, _CREDENTIALS, _STATE, _PORT = ".lock", "credentials.sh", "s3.json", "port"
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_FILE = """# written by `tablestore s3 start`: source it before dbt or tablestore runs
export AWS_ACCESS_KEY_ID={access_key}
export AWS_SECRET_ACCESS_KEY={secret_key}
"""


@dataclass(frozen=True)
class S3ServerInfo:
    """A running server: `url` is the endpoint, `log` the file with its output, `credentials` the file with the keys."""

    url: str
    pid: int
    data_dir: str
    log: str
    access_key: str
    secret_key: str = field(repr=False)

    @property
    def credentials(self) -> str:
        """A file for a shell: it exports AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."""
        return str(Path(self.data_dir) / _CREDENTIALS)


def s3_folder() -> Path:
    """The data folder of the user's one development S3 server."""
    return cache_folder() / "s3"


def start_s3_server(
    data_dir: Path | None = None,
    *,
    port: int | None = None,
    say: Callable[[str], None] = silent,
    runtime: Runtime = SYSTEM,
) -> S3ServerInfo:
    """A server that answers; one that runs on this folder already is returned as it is.

    Raises RetryError TS1917 (compile), TS1918 (start), FixRequest TS1928 (port), TS1929, TS1992 (folder).
    """
    folder = _folder(data_dir, runtime)
    make_private(folder, _DATA, _DATA_FIX, users=runtime.users)
    with locked(folder, _LOCK):
        running = find_s3_server(folder, runtime=runtime)
        if running is not None and _is_ready(folder):
            if port is not None and running.url != _url(port):
                raise _port_refused(port, f"the server of {folder} runs at {running.url}")
            return running
        if running is not None:  # its starter died before it was ready
            stop_s3_server(folder, runtime=runtime)
        if port is not None and not is_free(port):
            raise _port_refused(port, "another process uses it")
        program = ensure_gateway(say=say, runtime=runtime)
        keys = _ensure_keys(folder, runtime)
        for name in ("objects", "metadata"):
            make_private(folder / name, _DATA, _DATA_FIX, users=runtime.users)
        started, attempts = None, 0
        while started is None:  # a free port is looked up, then used: another may take it between
            attempts += 1
            started = _start_once(
                folder, program, keys, port=port, last=attempts == _ATTEMPTS, runtime=runtime
            )
        return started


def stop_s3_server(data_dir: Path | None = None, *, runtime: Runtime = SYSTEM) -> bool:
    """Stop the server of this folder; False when none runs. Raises RetryError TS1919 if it does not end."""
    info = find_s3_server(data_dir, runtime=runtime)
    if info is None:
        return False
    if not stop_running(Path(info.data_dir) / _STATE, runtime):
        raise RetryError(
            "TS1919",
            f"the S3 server with process id {info.pid} did not stop",
            why=f"expected its end within {STOP_SECONDS:.0f} s of SIGTERM",
            fix=f"look into {info.log}, then stop again",
        )
    return True


def find_s3_server(data_dir: Path | None = None, *, runtime: Runtime = SYSTEM) -> S3ServerInfo | None:
    """The server that the state file names, if that very process runs. Raises FixRequest TS1929, TS1992."""
    folder = _folder(data_dir, runtime)
    state = read_running(folder / _STATE)
    if state is None:
        return None
    return _info(folder, state["url"], state["pid"], _read_keys(folder))


def make_bucket(info: S3ServerInfo, name: str, *, runtime: Runtime = SYSTEM) -> None:
    """Create a bucket; one that exists stays as it is. Raises FixRequest TS1933."""
    if not _BUCKET.fullmatch(name):
        raise _no_bucket(name, "expected 3 to 63 characters: lower-case letters, digits, '.' and '-'")
    keys = S3Keys(info.access_key, info.secret_key)
    address = info.url.removeprefix("http://")
    try:
        status, body = send_signed("PUT", address, f"/{name}", keys, runtime.now_ms())
    except (OSError, http.client.HTTPException) as error:
        raise _no_bucket(name, f"{info.url} gave no answer: {error}") from error
    if status != 200 and "<Code>BucketAlreadyOwnedByYou</Code>" not in body:
        raise _no_bucket(name, f"{info.url} answered {status}: {body[:300]}")


def _folder(data_dir: Path | None, runtime: Runtime) -> Path:
    """The folder, which is ours, and empty or that of an S3 server: nothing is put between other files."""
    folder = (data_dir or s3_folder()).absolute()
    check_owner(folder, _DATA, _DATA_FIX, users=runtime.users)
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    if names - {_LOCK, f".{_CREDENTIALS}"} and _CREDENTIALS not in names:
        raise _foreign(folder, f"it holds other files ({min(names)}) and no {_CREDENTIALS}")
    return folder


def _foreign(folder: Path, why: str) -> FixRequest:
    return FixRequest(
        "TS1929",
        f"{folder} is not a data folder of the S3 server",
        why=why,
        fix="name an empty folder or a new one with --data-dir",
    )


def _port_refused(port: int, why: str) -> FixRequest:
    return FixRequest(
        "TS1928",
        f"the S3 server cannot be started at port {port}",
        why=why,
        fix="name another --port, or none; a server that runs is stopped by: tablestore s3 stop",
    )


def _no_bucket(name: str, why: str) -> FixRequest:
    return FixRequest(
        "TS1933",
        f"the bucket {name!r} cannot be created",
        why=why,
        fix="check the name and the log of the S3 server (tablestore s3 status)",
    )


def _ensure_keys(folder: Path, runtime: Runtime) -> S3Keys:
    """Those of the folder; made at its first start."""
    if not (folder / _CREDENTIALS).exists():
        access_key, secret_key = (runtime.new_uuid().replace("-", "") for _ in range(2))
        text = _FILE.format(access_key=f"TS{access_key[:18].upper()}", secret_key=secret_key)
        write_private(folder / _CREDENTIALS, text)
    return _read_keys(folder)


def _read_keys(folder: Path) -> S3Keys:
    text = (folder / _CREDENTIALS).read_text("utf-8")
    found = dict(re.findall(r"^export (AWS_\w+)=(\S+)$", text, re.MULTILINE))
    if not {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} <= found.keys():
        raise _foreign(folder, f"{_CREDENTIALS} does not export AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
    return S3Keys(found["AWS_ACCESS_KEY_ID"], found["AWS_SECRET_ACCESS_KEY"])


def _url(port: int) -> str:
    return f"http://127.0.0.1:{port}"


def _info(folder: Path, url: str, pid: int, keys: S3Keys) -> S3ServerInfo:
    return S3ServerInfo(url, pid, str(folder), str(folder / "s3.log"), keys.access_key, keys.secret_key)


def _is_ready(folder: Path) -> bool:
    """Of a server that find_s3_server found."""
    state = read_running(folder / _STATE)
    return state is not None and bool(state["ready"])


def _keep_port(folder: Path) -> int:
    """The port of the last start while it is free, so that clients survive a restart."""
    try:
        last = int((folder / _PORT).read_text("utf-8"))
    except (FileNotFoundError, ValueError):
        return free_port()
    return last if is_free(last) else free_port()


def _start_once(
    folder: Path, program: Path, keys: S3Keys, *, port: int | None, last: bool, runtime: Runtime
) -> S3ServerInfo | None:
    """One try; None when a port was taken meanwhile and another try makes sense."""
    at = port or _keep_port(folder)
    write_private(folder / _PORT, str(at))
    log = folder / "s3.log"
    begin = log.stat().st_size if log.exists() else 0
    process = _spawn(folder, program, keys, at)
    trouble = None
    try:
        write_state(folder / _STATE, process.pid, {"url": _url(at), "ready": False})
        trouble = _wait_ready(process, at, keys, runtime)
        if trouble is None:
            write_state(folder / _STATE, process.pid, {"url": _url(at), "ready": True})
            process.returncode = 0  # it outlives this handle: from here on the state file speaks for it
            return _info(folder, _url(at), process.pid, keys)
    finally:
        if process.returncode is None:
            end_process(process)
    said = output_since(log, begin)
    if "address already in use" in said and not last and port is None:
        return None
    raise RetryError(
        "TS1918",
        "the S3 server for development did not start",
        why=f"{trouble}; its last lines: {last_words(said)}",
        fix=f"read {log}; if the data may go, remove {folder} and start again",
    )


def _spawn(folder: Path, program: Path, keys: S3Keys, port: int) -> subprocess.Popen[bytes]:
    """Its environment has nothing of ours but PATH: a proxy or a profile of AWS would reach it."""
    command = [str(program), "-address", f"127.0.0.1:{port}", "-region", REGION]
    command += ["-metadata", str(folder / "metadata"), str(folder / "objects")]
    environ = {"PATH": os.environ.get("PATH", "")}
    environ |= {"ROOT_ACCESS_KEY": keys.access_key, "ROOT_SECRET_KEY": keys.secret_key}
    return spawn(command, folder, folder / "s3.log", environ)


def _wait_ready(process: subprocess.Popen[bytes], port: int, keys: S3Keys, runtime: Runtime) -> str | None:
    """What went wrong; None once it lists its buckets for our keys, so that it is no other server."""
    deadline = runtime.now_ms() + int(_READY_SECONDS * 1000)
    answer = "none"
    while runtime.now_ms() < deadline:
        if process.poll() is not None:
            return f"its process ended with status {process.returncode}"
        try:
            status, body = send_signed("GET", f"127.0.0.1:{port}", "/", keys, runtime.now_ms())
        except (OSError, http.client.HTTPException) as error:
            answer = str(error)
        else:
            if status == 200:
                return None
            answer = f"{status}: {body[:200]}"
        runtime.sleep(0.05)
    return f"it did not list its buckets within {_READY_SECONDS:.0f} s; its last answer: {answer}"
