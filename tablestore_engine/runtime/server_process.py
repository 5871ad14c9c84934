"""Development servers: start them and find them again; common to the broker, Connect and the S3 server.

CHANGE     processes, ports and folder locks of development servers
INVARIANT  a process is only signalled when its pid AND its start time are those that were written down.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tablestore_engine.runtime.outside_world import Runtime

STOP_SECONDS = 20.0


@contextmanager
def locked(folder: Path, name: str = ".lock") -> Iterator[None]:
    """Two starts of one folder: the second waits, then finds the first one's process."""
    with (folder / name).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def last_words(said: str) -> str:
    """Of an output: its errors, else its end."""
    lines = [line for line in said.splitlines() if re.search(r"ERROR|FATAL|Exception", line)]
    return " | ".join(line[:200] for line in (lines or said.splitlines())[-3:]) or "none"


def first_words(said: str) -> str:
    """Of an output: where its trouble begins. What a server says while it goes down hides it from `last_words`."""
    lines = [line.strip() for line in said.splitlines() if not re.match(r"\s+(at |\.\.\. \d)", line)]
    begin = next((n for n, line in enumerate(lines) if re.search(r"ERROR|FATAL|Exception", line)), len(lines))
    return " | ".join(line[:300] for line in lines[begin : begin + 4]) or last_words(said)


def spawn(
    command: Sequence[str], folder: Path, log: Path, environ: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """In a session of its own: Ctrl-C must not reach a server before its clients. What it prints is added to `log`."""
    with log.open("ab") as output:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=folder,
            env=environ,
            start_new_session=True,
        )


def output_since(log: Path, begin: int) -> str:
    """What was printed after the first `begin` bytes."""
    with log.open("rb") as output:
        output.seek(begin)
        return output.read().decode("utf-8", "replace")


def end_process(process: subprocess.Popen[bytes]) -> None:
    """Asked first."""
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def is_free(port: int) -> bool:
    """Of this machine, now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def free_port() -> int:
    """One that nobody has now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start_time(pid: int) -> str | None:
    """When a process began, as text that tells it from a later one with the same id; None when it is gone."""
    stat = Path(f"/proc/{pid}/stat")
    if Path("/proc/self/stat").exists():
        try:
            fields = stat.read_text("utf-8").rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            return None
        return None if fields[0] in "ZX" else fields[19]  # a zombie has ended, nobody collected it yet
    told = subprocess.run(
        ["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return told.stdout.strip() or None


def write_private(file: Path, text: str) -> None:
    """For this user alone, whole or not at all."""
    aside = file.with_name(f".{file.name}")
    aside.unlink(missing_ok=True)
    aside.touch(mode=0o600)
    aside.write_text(text, "utf-8")
    aside.replace(file)


def write_state(file: Path, pid: int, facts: Mapping[str, object]) -> None:
    """`facts` of the running process `pid`, with the start time by which `read_running` knows it again."""
    write_private(file, json.dumps({"pid": pid, "started": start_time(pid), **facts}))


def read_running(file: Path) -> dict[str, Any] | None:
    """What `write_state` wrote, if that very process still runs."""
    try:
        state: dict[str, Any] = json.loads(file.read_text("utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return None
    return state if start_time(state["pid"]) == state["started"] else None


def stop_running(file: Path, runtime: Runtime) -> bool:
    """SIGTERM to the process of `file`, and wait: False when it still runs after STOP_SECONDS."""
    state = read_running(file)
    if state is not None:
        with suppress(ProcessLookupError):  # it ended by itself just now
            os.kill(state["pid"], signal.SIGTERM)
    deadline = runtime.now_ms() + int(STOP_SECONDS * 1000)
    while read_running(file) is not None:
        if runtime.now_ms() > deadline:
            return False
        runtime.sleep(0.05)
    file.unlink(missing_ok=True)
    return True
