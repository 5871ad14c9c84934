"""The process that keeps the JVM of a resident session (resident_session).

Steps      settings from stdin → a session as every command starts it → state.json → waits → ends
INVARIANT  it ends by itself: when nobody used it for the idle time, when its request or its state is gone or is
           another process's, when its JVM has died, and by SIGTERM. Its state goes with it.
INVARIANT  jobs of a command that was stopped or killed are cancelled within a second.
CRASH      killed: the JVM ends, since its input does; the next command starts another one.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tablestore_engine.runtime.scratch import SCRATCH_ENV, ScratchPlace
from tablestore_engine.runtime.server_process import start_time
from tablestore_engine.runtime.session_place import HolderState, SessionPlace, place_of
from tablestore_engine.spark.session import SparkSettings, session_scratch, start_session

_POLL_SECONDS = 1.0


def hold(request: dict[str, Any], stopped: threading.Event) -> None:
    """Returns when the session is not needed any more."""
    jars = [str(one) for one in request["jars"]]
    settings = SparkSettings(request["master"], request["conf"], more_jars=lambda: jars)
    scratch = session_scratch(ScratchPlace(None, os.environ.get(SCRATCH_ENV)), settings)
    session = start_session(settings, scratch)
    gateway: Any = session.sparkContext._gateway
    parameters, java = gateway.gateway_parameters, int(gateway.jvm.java.lang.ProcessHandle.current().pid())
    begun, java_begun = start_time(os.getpid()), start_time(java)
    assert begun is not None
    assert java_begun is not None
    port, secret = int(parameters.port), str(parameters.auth_token)
    state = HolderState(os.getpid(), begun, port, secret, request["digest"], java, java_begun)
    place = place_of(Path.cwd())
    place.publish(state)
    _wait(place, state, float(request["idle_seconds"]), stopped, session.sparkContext.cancelAllJobs)
    place.withdraw(state)
    if start_time(java) is not None:
        session.stop()


def _wait(
    place: SessionPlace,
    state: HolderState,
    idle_seconds: float,
    stopped: threading.Event,
    cancel: Callable[[], None],
) -> None:
    """`cancel`: of jobs that a command left; a plan that it left may begin one later."""
    idle = 0.0
    while not stopped.wait(_POLL_SECONDS) and idle < idle_seconds:
        if place.idle_seconds is None or place.holder() != state:
            return
        lock = place.try_lock()
        idle = 0.0 if lock is None else idle + _POLL_SECONDS
        if lock is not None:
            with lock:
                if place.mark.exists():
                    cancel()


def main() -> int:
    """Exit status 0."""
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    hold(json.load(sys.stdin), stopped)
    return 0


if __name__ == "__main__":
    sys.exit(main())
