"""Causes inside of the JVM decide what the user is told; the causes are stand-ins with Java's two methods."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tablestore_engine.errors import FixData, StorageError
from tablestore_engine.spark.spark_errors import translate


@dataclass
class Throwable:
    """A Java exception with its cause."""

    text: str
    cause: Throwable | None = None

    def toString(self) -> str:
        """The exception's class and message."""
        return self.text

    def getCause(self) -> Throwable | None:
        """What it wraps."""
        return self.cause


class JavaError(Exception):
    """What py4j raises."""

    def __init__(self, *texts: str) -> None:
        super().__init__("An error occurred while calling o1.collect")
        self.java_exception: Throwable | None = None
        for text in reversed(texts):
            self.java_exception = Throwable(text, self.java_exception)


def test_a_data_file_is_named_from_a_nested_cause(tmp_path: Path) -> None:
    """The path stands in the middle, the reason at the root; a file that is there is damaged, else it went away."""
    file = tmp_path / "data-1-0.parquet"
    file.touch()
    raised = JavaError(
        "org.apache.spark.SparkException: Exception thrown in awaitResult: ",
        "org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while reading file "
        f"file://{file}. ",
        "org.apache.parquet.io.ParquetDecodingException: could not verify page integrity, CRC checksum failed",
    )
    error = translate(raised)
    assert isinstance(error, FixData)
    assert (error.code, str(file) in error.what) == ("TS1560", True)
    assert "CRC checksum failed" in error.why
    file.unlink()
    assert translate(raised).code == "TS1562"


def test_a_full_disk_of_spark_is_named() -> None:
    """A shuffle that does not fit the disk is no fault of the statement."""
    error = translate(
        JavaError("SparkException: Job aborted", "java.io.IOException: No space left on device")
    )
    assert isinstance(error, StorageError)
    assert error.code == "TS1561"
