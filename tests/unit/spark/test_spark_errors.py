"""Spark's exceptions in our words; real ones are in integration_tests/spark."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException

from tablestore_engine.errors import DataFileGone, NotFound, RetryError, Stopped
from tablestore_engine.spark.spark_errors import translate

STAGE = """Job aborted due to stage failure: Task 0 in stage 3.0 failed 1 times: org.apache.spark.SparkException: [FAILED_READ_FILE] Error while reading file f.parquet. SQLSTATE: KD001
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.cannotReadFilesError(QueryExecutionErrors.scala:1)
Caused by: java.lang.RuntimeException: cannot decode page
\tat org.apache.parquet.Reader.read(Reader.java:2)
Caused by: java.io.IOException: checksum does not match
\tat java.base/java.io.Input.read(Input.java:3)

Driver stacktrace:"""  # noqa: E501 - as Spark writes it


class Nested(PySparkException):
    """pyspark's captured exceptions need a JVM to be made; their cause is this attribute."""

    def __init__(self, message: str, cause: Exception | None = None) -> None:
        super().__init__(message)
        self._cause = cause


def test_causes_in_the_text_are_shown_to_the_root() -> None:
    """A failed task carries its causes in its stack: each sentence is shown once, no line of the stack is."""
    said = str(translate(Nested(STAGE)))
    assert (
        said.index("FAILED_READ_FILE")
        < said.index("cannot decode page")
        < said.index("checksum does not match")
    )
    assert "Input.java" not in said


def test_causes_in_the_chain_are_shown_to_the_root() -> None:
    """An exception's own chain: the root stands in the message, repetitions do not."""
    root = Nested("no space left on device")
    said = str(translate(Nested("[FAILED] query failed", Nested("task failed", Nested("task failed", root)))))
    assert said.count("task failed") == 1
    assert said.count("no space left on device") == 1


def test_an_error_of_ours_at_the_root_keeps_its_code() -> None:
    """raise_error of our own SQL is found below Spark's words."""
    error = translate(Nested("stage failed", Nested("[USER_RAISED_EXCEPTION] TS1518 key 7 SQLSTATE: P0001")))
    assert error.code == "TS1518"


def test_a_file_that_went_away_is_no_damaged_disk() -> None:
    """A table that is dropped under a running query: try again, with a code of its own."""
    said = "[FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error while reading file file:///wh/f/data-1-0.parquet. Gone"
    error = translate(Nested("Exception thrown in awaitResult:", Nested(said)))
    assert (error.code, type(error)) == ("TS1562", DataFileGone)


@pytest.mark.parametrize(
    ("condition", "code"),
    [("FAILED_READ_FILE.FILE_NOT_EXIST", "TS1562"), ("FAILED_READ_FILE.NO_HINT", "TS1560")],
)
def test_unreadable_object_is_named_with_its_address(condition: str, code: str) -> None:
    """An object that went away and one that is damaged have the codes of files, and their address in the text."""
    said = f"[{condition}] Encountered error while reading file s3a://bucket/w/demo.db/t/day=1/data-1-0.parquet. Gone"
    error = translate(Nested(said))
    assert error.code == code
    assert "s3a://bucket/w/demo.db/t/day=1/data-1-0.parquet" in error.what


class JavaException:
    """As py4j shows one: whatever is asked for exists, as a method of Java's until the call says otherwise."""

    def __init__(self, text: str, cause: JavaException | None = None) -> None:
        self.toString = lambda: text
        self.getCause = lambda: cause
        self.text = text

    def __str__(self) -> str:
        return self.text

    def __getattr__(self, name: str) -> object:
        return object()


class Unconverted(Exception):
    """What py4j raises when pyspark does not know better (the real one needs a JVM)."""

    def __init__(self, java: JavaException) -> None:
        super().__init__("An error occurred while calling o1")
        self.java_exception = java


def test_a_cancelled_job_below_java_exceptions_is_a_stop() -> None:
    """The cause of a Java exception is asked of Java: two levels down, it still says that the work was stopped."""
    root = JavaException(
        "SparkException: [SPARK_JOB_CANCELLED] Job 1 cancelled part of cancelled job tags t-3"
    )
    error = translate(Unconverted(JavaException("write failed", JavaException("stage ended", root))))
    assert isinstance(error, Stopped)
    assert error.code == "TS1507"


def test_an_error_of_ours_in_a_workers_traceback_is_that_error() -> None:
    """The last one counts: the others led to it. A class that is none of ours is text."""
    first = NotFound("TS1337", "snapshot 5 has expired", why="the oldest is 7", fix="begin anew")
    last = RetryError("TS1327", "look again", why="busy", fix="later")
    lines = [f"tablestore_engine.errors.{type(one).__name__}: {one}" for one in (first, last)]
    text = "terminated: Traceback\n" + "\nDuring handling …\n".join(lines) + "\n SQLSTATE: 38000"
    found = translate(PySparkException(text))
    assert (type(found), found.code, found.what, found.why, found.fix) == (
        RetryError, "TS1327", "look again", "busy", "later",
    )  # fmt: skip
    assert translate(PySparkException(lines[0].replace("NotFound", "Nothing"))).code == "TS1506"
    assert translate(PySparkException("no traceback")).code == "TS1506"


def test_a_stream_whose_source_was_killed_says_so() -> None:
    """Spark's own message is empty (TS1450)."""
    text = "[STREAM_FAILED] Query [id = 4, runId = b] terminated with exception:  SQLSTATE: XXKST"
    assert translate(PySparkException(text)).code == "TS1450"


def test_stream_failure_with_a_cause_shows_the_cause_alone() -> None:
    """The ids of Spark's query say nothing to a user: the message begins with what failed."""
    text = "[STREAM_FAILED] Query [id = 4, runId = b] terminated with exception: [DIVIDE_BY_ZERO] Division by zero."
    assert translate(PySparkException(text)).why == "[DIVIDE_BY_ZERO] Division by zero."
