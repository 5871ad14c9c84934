"""When a job that waits for executors is spoken of."""

from __future__ import annotations

from tablestore_engine.spark.core_watch import WaitNotice, sentence


def _look(notice: WaitNotice, looks: int, *, has_job: bool = True, executors: int = 0) -> list[float]:
    told = [notice.look(has_job=has_job, executors=executors, seconds=5) for _ in range(looks)]
    return [one for one in told if one is not None]


def test_job_without_executors_is_told_each_time_after_twice_as_long() -> None:
    """After 15, 30, 60 and 120 seconds; not once with every look."""
    assert _look(WaitNotice(), 24) == [15, 30, 60, 120]


def test_nothing_is_told_while_nothing_waits() -> None:
    """No job, or an executor: silence, and the count begins anew."""
    notice = WaitNotice()
    assert _look(notice, 2) == []
    assert _look(notice, 10, executors=1) == []
    assert _look(notice, 10, has_job=False) == []
    assert _look(notice, 3) == [15]


def test_the_sentence_says_what_to_change() -> None:
    """The master, the time, and the two settings that decide."""
    text = sentence("spark://h:7077", 15, "3g")
    assert all(part in text for part in ("spark://h:7077", "15 s", "spark.cores.max", "3g"))
