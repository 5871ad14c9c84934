"""Spark's exceptions as errors of ours: the condition and its sentence, without plan dump and JVM stack."""

from __future__ import annotations

import os
import re
from urllib.parse import unquote

from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, ParseException, PySparkException

from tablestore_engine import errors
from tablestore_engine.errors import (
    DataFileGone,
    FixData,
    FixRequest,
    RetryError,
    Stopped,
    StorageError,
    TablestoreError,
    Unsupported,
)
from tablestore_engine.spark.worker_errors import find_worker_error

_STREAM = re.compile(r"\[STREAM_FAILED\] Query \[id = [^]]*\] terminated with exception: (?!SQLSTATE)")
_CUT = re.compile(
    r"\n\s*(?:JVM stacktrace|at org\.apache|'?[+:]- |'Project|'?CreateViewCommand|== (?:SQL|DataFrame)"
    r"|Driver stacktrace|Caused by)"
)
_RAISED = re.compile(r"(?P<code>TS1575|TS1589|TS1518|TS1603|TS2071) (?P<text>.*?)(?: SQLSTATE|$)")
_OURS = re.compile(
    r"tablestore_engine\.errors\.(?P<kind>\w+): (?P<code>TS\d{4}) (?P<what>[^\n]*)\n"
    r"  why: (?P<why>[^\n]*)\n  next: (?P<fix>[^\n]*)"
)
_RUNNER_GONE = re.compile(r"terminated with exception:\s+SQLSTATE")
_UNREAD = re.compile(r"FAILED_READ_FILE\S* .*?file:(?://)?(?P<path>/\S+?\.parquet)")
_UNREAD_OBJECT = re.compile(r"FAILED_READ_FILE\S* .*?(?P<path>(?!file:)[a-z0-9]+://\S+?\.parquet)")
_CAUSED_BY = re.compile(r"^\s*Caused by: ([\w.$]+)(?:: ([^\n]*))?", re.MULTILINE)
# Spark's own class of the error: 22 of the SQL standard is "data exception", whatever function found it
_DATA_EXCEPTION = re.compile(r"SQLSTATE: 22\w{3}\b")
_LENGTH_MAX, _CAUSE_MAX, _DEPTH_MAX = 2000, 500, 20
_NO_ROOM = "No space left on device"
_GONE = "FAILED_READ_FILE.FILE_NOT_EXIST"


def clean_message(text: str) -> str:
    """The message up to the plan dump or the stack; one paragraph."""
    cut = _CUT.search(text)
    message = text[: cut.start()] if cut else text
    message = re.sub(r";\s*\n.*", "", message, flags=re.DOTALL) if ";\n" in message else message
    return _STREAM.sub("", " ".join(message.split()))[:_LENGTH_MAX]


def list_causes(error: Exception, text: str) -> tuple[str, ...]:
    """Causes in the exception's chain and in the stack that its text carries, outermost first, each said once."""
    found = [f"{kind.rpartition('.')[2]}: {said or ''}" for kind, said in _CAUSED_BY.findall(text)]
    under: object = error
    for _ in range(_DEPTH_MAX):
        under = _cause_of(under)
        if under is None:
            break
        found.append(_text(under) if isinstance(under, Exception) else str(under))
    said, causes = clean_message(text), []
    for cause in map(clean_message, found):
        plain = cause.partition(": ")[2] or cause  # without the class, which only some of the forms name
        if plain.strip() and plain not in said:
            causes.append(cause[:_CAUSE_MAX])
            said += cause
    return tuple(causes)


def _cause_of(error: object) -> object | None:
    """pyspark's converted cause, or Java's as it is."""
    if not isinstance(error, Exception):
        # a Java exception, on which py4j makes a method of any name that is asked for
        return error.getCause()  # type: ignore[attr-defined,no-any-return]
    java = getattr(error, "java_exception", None)
    if java is not None:
        return java.getCause()  # type: ignore[no-any-return]  # py4j has no types
    return getattr(error, "_cause", None)


def translate(error: Exception) -> TablestoreError:
    """The error for the user; errors of ours that Spark carried are returned as they are.

    >>> try:
    ...     engine.query("select nothing from demo.orders").collect()  # doctest: +SPARK
    ... except Exception as error:
    ...     print(explain_failure(error).code)
    TS1505
    """
    if isinstance(error, TablestoreError):
        return error
    text = _text(error)
    if (ours := _find_ours(text)) is not None:
        return ours
    if (of_workers := find_worker_error(text)) is not None:
        return of_workers
    message = "; caused by ".join((clean_message(text), *list_causes(error, text)))[:_LENGTH_MAX]
    if (raised := _RAISED.search(message)) is not None:
        return _raised(raised["code"], raised["text"])
    if "cancelled" in message.lower() and ("job" in message.lower() or "stage" in message.lower()):
        return Stopped(
            "TS1507",
            "the Spark job was cancelled",
            why=message[:400],
            fix="run the statement again",
        )
    if (unread := _UNREAD.search(message)) is not None:
        return _unreadable(unread["path"], message)
    if (unread := _UNREAD_OBJECT.search(message)) is not None:
        return _unreadable_file(unquote(unread["path"]), message, is_gone=_GONE in message)
    if _NO_ROOM in message:
        return StorageError(
            "TS1561",
            "Spark has no room left on a disk",
            why=message,
            fix="free space in the warehouse and in Spark's local folder (spark.local.dir), then run it again; "
            "no snapshot was made",
        )
    if _DATA_EXCEPTION.search(message) is not None:
        return value_without_result(message)
    if isinstance(error, AnalysisException | ParseException):
        return FixRequest("TS1505", "Spark refused the statement", why=message, fix="correct the SQL text")
    return FixRequest(
        "TS1506",
        "Spark could not run the statement",
        why=message,
        fix="correct the statement or its rows; if the machine failed, run it again",
    )


def value_without_result(why: str) -> FixData:
    """TS2157: what ANSI mode raises, and what some functions raise in both modes."""
    return FixData(
        "TS2157",
        "a value of the query cannot be computed",
        why=why,
        fix="correct the row or the expression; for NULL instead of the error use try_divide, try_add, try_cast or "
        "get(array, index) there, or set spark.sql.ansi.enabled: false for the whole session",
    )


def _find_ours(text: str) -> TablestoreError | None:
    """An error of ours in the traceback of a Python worker: the last one, which the others led to.

    A stream's source whose process is killed leaves a message without any text.
    """
    found = None
    for found in _OURS.finditer(text):  # noqa: B007 - the last one counts
        pass
    if found is not None:
        kind = getattr(errors, found["kind"], None)
        if isinstance(kind, type) and issubclass(kind, TablestoreError):
            return kind(found["code"], found["what"], why=found["why"], fix=found["fix"])
    if _RUNNER_GONE.search(text) is None:
        return None
    return RetryError(
        "TS1450",
        "a streaming query ended without saying why",
        why="Spark lost the Python process of one of its sources; it was killed, or the machine had no memory left",
        fix="start the query again on its checkpoint: it resumes there; look for out-of-memory kills",
    )


def _unreadable(link: str, message: str) -> TablestoreError:
    """A data file that Spark's reader gave up; what it read is our link to it."""
    path = os.path.realpath(unquote(link))
    return _unreadable_file(path, message, is_gone=_GONE in message or not os.path.exists(path))


def data_file_gone(path: str, why: str) -> DataFileGone:
    """TS1562."""
    return DataFileGone(
        "TS1562",
        f"the data file {path} went away while the query read it",
        why=why,
        fix="run the statement again: the table was dropped, replaced or rolled back meanwhile; "
        "if it says the same, run tablestore verify on the table",
    )


def _unreadable_file(path: str, message: str, *, is_gone: bool) -> TablestoreError:
    if is_gone:
        return data_file_gone(path, message)
    return FixData(
        "TS1560",
        f"the data file {path} cannot be read",
        why=message,
        fix="check the disk or the store; run tablestore verify --deep on the table, restore the file from a copy, "
        "or roll the table back to a snapshot without it",
    )


def _raised(code: str, text: str) -> TablestoreError:
    """What our SQL raised through raise_error (dml_queries.py, view_sql.py, the adapter's snapshot_rows.sql)."""
    if code == "TS2071":
        return FixData(
            "TS2071",
            "the query of a dbt snapshot gives a unique_key twice",
            why=f"one key has one current version; found several rows of the key in snapshot {text}",
            fix="select one row of each key, or add the columns to unique_key that tell the rows apart",
        )
    if code == "TS1575":
        return Unsupported(
            "TS1575",
            text,
            why="Spark has no type for the stored form, or takes the name for row numbers; its values are asked",
            fix="name the other columns instead of *, or read the table through the Python API (to_arrow)",
        )
    if code == "TS1589":
        return Unsupported(
            "TS1589",
            "deleted rows cannot be left out: this Spark does not number the rows of a data file",
            why=f"{text}; Spark's own Parquet reader numbers them, that of a plug-in may not",
            fix="read the table in a session without the plug-in, or by Table.scan or Engine.query_duckdb",
        )
    if code == "TS1518":
        return FixRequest(
            "TS1518",
            "a key column cannot be changed",
            why=text,
            fix="delete the row and insert it under its new key",
        )
    return FixData(
        "TS1526",
        "a value does not fit its column",
        why=text,
        fix="correct the value, or cast it in the query",
    )


def _text(error: Exception) -> str:
    """The whole message; the string form of some of pyspark's exceptions fails itself."""
    if isinstance(error, PySparkException):
        try:
            return str(error)
        except (Py4JError, PySparkException, TypeError, ValueError, AttributeError):
            return str(error.args[0]) if error.args else type(error).__name__
    java = getattr(error, "java_exception", None)
    return str(java.toString()) if java is not None else str(error)
