"""Work of a thread is stopped from another one, also work that has not begun its jobs yet."""

from __future__ import annotations

import threading

import pytest

from tablestore_engine.errors import Stopped
from tablestore_engine.warehouse.running_operations import Operations

HANG_SECONDS = 60


def test_jobs_are_cancelled_until_the_operation_ends() -> None:
    """A job that starts after stop() is cancelled too: the tag is cancelled again until the operation is over."""
    submitted, cancelled, begun = threading.Event(), threading.Event(), threading.Event()
    early = threading.Event()

    def cancel_jobs(tag: str) -> None:
        assert tag.startswith("tablestore-")
        early.set()  # cancelled while nothing was submitted: in vain
        if submitted.is_set():
            cancelled.set()

    operations = Operations(cancel_jobs)

    def work() -> None:
        with operations.running():
            begun.set()
            assert early.wait(HANG_SECONDS)
            submitted.set()
            assert cancelled.wait(HANG_SECONDS)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    assert begun.wait(HANG_SECONDS)
    operations.stop(thread)
    assert operations.wait_ended(HANG_SECONDS)
    assert cancelled.is_set()


def test_a_stopped_thread_starts_nothing_more() -> None:
    """After stop() the thread's next statement is refused; other threads go on, and so does a later thread."""
    operations = Operations(lambda _: None)
    stopped, refused = threading.Event(), []

    def work() -> None:
        assert stopped.wait(HANG_SECONDS)
        with pytest.raises(Stopped, match="TS1091"), operations.running():
            pass
        refused.append(True)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    operations.stop(thread)
    stopped.set()
    thread.join(HANG_SECONDS)
    assert refused == [True]
    with operations.running() as outer, operations.running() as inner:
        assert inner is outer
    assert outer.ended.is_set()


def test_nobody_waits_for_the_start_of_spark() -> None:
    """It takes seconds and has nothing to undo: the process may end at once, with the thread in it."""
    operations = Operations(lambda _: None)
    starting, go_on = threading.Event(), threading.Event()
    refused: list[bool] = []

    def work() -> None:
        with operations.running() as operation:
            with operation.starting_spark():
                starting.set()
                assert go_on.wait(HANG_SECONDS)
            with pytest.raises(Stopped, match="TS1091"):
                operations.check()
        refused.append(True)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    assert starting.wait(HANG_SECONDS)
    operations.stop(thread)
    assert not operations.wait_ended(10_000)  # at once, or this test hangs
    go_on.set()
    thread.join(HANG_SECONDS)
    assert refused == [True]
    assert operations.wait_ended(HANG_SECONDS)
