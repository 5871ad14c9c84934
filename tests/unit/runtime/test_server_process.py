"""What is shown of the output of a server that did not start, and how a running one is known and stopped."""

from __future__ import annotations

import itertools
import json
import signal
import stat
import subprocess
import sys
from pathlib import Path

from tablestore_engine.runtime.outside_world import Runtime
from tablestore_engine.runtime.server_process import (
    first_words,
    last_words,
    read_running,
    stop_running,
    write_state,
)

CONNECT = """12:00:00 [main] WARN a.b.C - nothing to worry
12:00:01 [pool-4-thread-1] ERROR o.a.k.ConnectStandalone - Failed to create connector
12:00:01 [main] ERROR o.a.k.ConnectStandalone - Stopping after connector error
java.util.concurrent.ExecutionException: configuration is invalid and contains the following 1 error(s):
Error while validating connector config: FATAL: password authentication failed for user "postgres"
\tat java.base/java.lang.Thread.run(Thread.java:840)
Caused by: again
\t... 3 more
"""
GOES_DOWN = """MultiException stack 1 of 3
\tat org.glassfish.jersey.internal.ExceptionMapperFactory.find(ExceptionMapperFactory.java:118)
Caused by: org.eclipse.jetty.io.EofException: Closed
"""


def test_trouble_is_told_from_where_it_begins() -> None:
    """What a server says while it goes down (a REST call that it cut off) hid PostgreSQL's sentence once."""
    assert "nothing to worry" not in first_words(CONNECT + GOES_DOWN)
    assert "password authentication failed" in first_words(CONNECT + GOES_DOWN)
    assert "password authentication failed" not in last_words(CONNECT + GOES_DOWN)
    assert "Thread.java" not in first_words(CONNECT + GOES_DOWN)


def test_an_output_without_trouble() -> None:
    """Its end; none says so."""
    assert first_words("a\nb\n") == last_words("a\nb\n") == "a | b"
    assert first_words("") == "none"


def test_running_process_is_known_by_its_start_time(tmp_path: Path) -> None:
    """The state of a process is read while that process runs; not under another start time, and not after its end."""
    file = tmp_path / "state.json"
    assert read_running(file) is None
    process = subprocess.Popen(["sleep", "600"])
    try:
        write_state(file, process.pid, {"url": "u"})
        state = read_running(file)
        assert state == {"pid": process.pid, "started": state and state["started"], "url": "u"}
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        other = tmp_path / "other.json"
        other.write_text(json.dumps({**state, "started": "1"}))
        assert read_running(other) is None
        assert stop_running(other, Runtime())
        assert process.poll() is None
        assert stop_running(file, Runtime())
        assert process.wait() == -signal.SIGTERM
        assert not file.exists()
    finally:
        process.kill()
        process.wait()


def test_process_that_does_not_end_is_reported(tmp_path: Path) -> None:
    """A process that ignores SIGTERM is waited for by the clock, then stop says so and the state stays."""
    file, seconds = tmp_path / "state.json", itertools.count(step=5)
    ignores = (
        "import signal, time; signal.signal(15, signal.SIG_IGN); print('on', flush=True); time.sleep(600)"
    )
    process = subprocess.Popen([sys.executable, "-c", ignores], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"on\n"
        write_state(file, process.pid, {})
        runtime = Runtime(now_ms=lambda: next(seconds) * 1000, sleep=lambda _: None)
        assert not stop_running(file, runtime)
        assert read_running(file) is not None
    finally:
        process.kill()
        process.communicate()
