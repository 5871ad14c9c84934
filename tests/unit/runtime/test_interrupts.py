"""A waiting main thread hears Ctrl-C, whatever library took the signal over."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from tests.doses import case_rows

# A main thread that waits as queue.Queue.join does; another thread calls `press` once it has begun to.
_WAITS = """
import os, signal, threading
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job begins with none
done = threading.Condition()

def press_then():
    with done:  # free once the main thread has given it up to wait
        pass
    press()

def wait():
    with done:
        threading.Thread(target=press_then, daemon=True).start()
        while True:
            done.wait()
"""
_RESTARTED = f"""{_WAITS}
import time
heard = []
signal.signal(signal.SIGINT, lambda *_: heard.append(1))
import polars
from tablestore_engine.runtime.interrupts import let_signals_interrupt
let_signals_interrupt()

def press():
    while not heard:  # one that comes in the moment before the wait begins is heard at its end only
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        time.sleep(0.05)
    print("heard", flush=True)
    os._exit(0)

wait()
"""
_ANOTHER_THREAD = """
from {module} import {function}
{function}()
signal.signal({number}, signal.default_int_handler)

def press():
    signal.pthread_kill(threading.get_ident(), {number})

try:
    wait()
except KeyboardInterrupt:
    print("interrupted", threading.active_count() > 1)
"""


def _output_of(program: str) -> list[str]:
    """Of a process that ends."""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done
    return done.stdout.splitlines()


def test_a_wait_ends_at_sigint_after_polars_is_imported() -> None:
    """polars installs a handler that restarts waiting calls; after ours they end as Python's do."""
    assert _output_of(_RESTARTED) == ["heard"]


@pytest.mark.parametrize(
    ("installed", "number"),
    case_rows(
        [
            ("tablestore_engine.runtime.interrupts wake_at_signals", signal.SIGINT),
            ("tablestore_engine.runtime.interrupts wake_at_signals", signal.SIGTERM),
            ("dbt.adapters.tablestore.interruption end_on_signals", signal.SIGINT),
        ],
        1,
    ),
)
def test_a_signal_that_another_thread_took_ends_the_wait_of_the_main_thread(
    installed: str, number: int
) -> None:
    """The kernel may give a process's signal to any thread; dbt's main thread waits for its queue without a limit."""
    module, function = installed.split()
    program = _WAITS + _ANOTHER_THREAD.format(module=module, function=function, number=int(number))
    assert _output_of(program) == ["interrupted True"]


_ASYNC = """
import asyncio, os, signal
from tablestore_engine.runtime.interrupts import wake_at_signals

async def main():
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    wake_at_signals()
    os.kill(os.getpid(), signal.SIGTERM)
    await stopped.wait()
    print(signal.getsignal(signal.SIGURG) is signal.SIG_DFL)

asyncio.run(main())
"""


def test_a_program_with_asyncio_keeps_its_signals() -> None:
    """Python has one file for the numbers of signals; a loop whose handlers need it goes on to have it."""
    assert _output_of(_ASYNC) == ["True"]


_FORK = f"""{_WAITS}
from tablestore_engine.runtime.interrupts import wake_at_signals
wake_at_signals()
child = os.fork()

def press():
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)

if child:
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
else:
    signal.alarm(900)  # ends what nobody else would
    wake_at_signals()
    try:
        wait()
    except KeyboardInterrupt:
        os._exit(7)
"""


def test_a_fork_wakes_its_own_main_thread() -> None:
    """Commands of a resident session are forks; the parent's thread that wakes is not theirs."""
    assert _output_of(_FORK) == ["7"]


_STOPS = """
import os, signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job begins with none
from tablestore_engine.runtime.interrupts import stopped_by_signals
with stopped_by_signals() as stop:
    assert not stop.is_set()
    os.kill(os.getpid(), {number})
    assert stop.is_set()
    print("asked", flush=True)
    os.kill(os.getpid(), {number})
    print("still there", flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_first_signal_asks_and_the_second_ends(number: int) -> None:
    """Work in hand may be finished behind the first; who cannot wait sends another."""
    told = subprocess.run(
        [sys.executable, "-c", _STOPS.format(number=int(number))],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert told.stdout.splitlines() == ["asked"], told
    assert told.returncode != 0
