"""Errors are told apart by their class: no code decides by the text of an error or by a code string."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tests.house.error_decisions import Decision, find_code_strings, find_decisions

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("tablestore_engine", "dbt")
_SPARK_TEXT = "Spark gives a failed task, a full disk, or an error of ours in a worker as text alone"
_SPARK_SHOWN = "shortens a text of Spark for users, and leaves out what was said before"
_SPARK, _KAFKA = "tablestore_engine/spark", "tablestore_engine/log/kafka"
# module::function, and why nothing but a text or a code of a foreign library can be asked
EXCEPTIONS = {
    "tablestore_engine/cli/sync.py::_say_once": "whether a line is printed again; no other step depends on it",
    "tablestore_engine/store/rows/conformed_rows.py::_has_word": "whether a value is printed twice; nothing else",
    "tablestore_engine/ingest/decoded_messages.py::note": "a KeyError of Python has its key in args alone; it is shown",
    "tablestore_engine/fileio/object_errors.py::read_answer": "obstore gives the answer of a store as text alone",
    f"{_KAFKA}/kafka_client.py::kafka_error": "a KafkaException has its KafkaError, which is typed, in args alone",
    f"{_SPARK}/missing_names.py::is_missing_name": "Spark has one class for errors of analysis, and a condition in it",
    f"{_SPARK}/spark_errors.py::translate": _SPARK_TEXT,
    f"{_SPARK}/spark_errors.py::_find_ours": _SPARK_TEXT,
    f"{_SPARK}/spark_errors.py::_unreadable": _SPARK_TEXT,
    f"{_SPARK}/spark_errors.py::_raised": "what SQL raises with raise_error has nothing but a text",
    f"{_SPARK}/spark_errors.py::_text": "str() of some exceptions of PySpark fails; it is shown",
    f"{_SPARK}/spark_errors.py::clean_message": _SPARK_SHOWN,
    f"{_SPARK}/spark_errors.py::list_causes": _SPARK_SHOWN,
    f"{_SPARK}/spark_internals.py::_is_missing_constructor": "py4j has no class for a constructor that is not there",
    f"{_SPARK}/stateful_query.py::_is_foreign_state": "STREAM_FAILED names the condition of its cause in its text",
}


@cache
def _found(search: Callable[[str], list[Decision]]) -> list[tuple[str, Decision]]:
    return [
        (f"{path.relative_to(ROOT)}::{one.function}", one)
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
        for one in search(path.read_text())
    ]


def test_no_code_decides_by_the_text_of_an_error() -> None:
    """Outside of EXCEPTIONS. Instead: a subclass in tablestore_engine/errors.py, and `except` or isinstance."""
    assert [(place, one) for place, one in _found(find_decisions) if place not in EXCEPTIONS] == []


def test_code_strings_stand_only_where_their_error_is_made() -> None:
    """No set or constant of codes to compare with."""
    assert [(place, one) for place, one in _found(find_code_strings) if place not in EXCEPTIONS] == []


def test_exceptions_are_needed() -> None:
    """Each names a function that still decides by a text."""
    assert EXCEPTIONS.keys() - {place for place, _ in _found(find_decisions)} == set()


@pytest.mark.parametrize(
    "condition",
    [
        '"locked" in str(error)',
        'str(error).lower().startswith("locked")',
        'f"{error}" == "locked"',
        'error.args[0] == "locked"',
        'error.code == "TS1703"',
        "error.code not in CODES",
        'error.code.startswith("TS17")',
        'error.what.endswith("locked")',
        'PATTERN.search(str(error)) is not None',
        'HINTS.get(error.code)',
        "HINTS[error.code]",
        'any(word in str(error) for word in WORDS)',
        'error.getCondition() == "LOCKED"',
        '"locked" in describe(error)',
        'is_locked(str(error))',
    ],
)  # fmt: skip
def test_search_finds_a_planted_decision(condition: str) -> None:
    """Where an error is caught, through a helper too, and where a field holds it."""
    helpers = (
        "def describe(error: Exception) -> str:\n    return str(error)\n"
        "def is_locked(text: str) -> bool:\n    return 'locked' in text\n"
    )
    caught = (
        f"def run():\n    try:\n        act()\n    except OSError as error:\n        return {condition}\n"
    )
    assert find_decisions(helpers + caught) != []
    held = f"class Job:\n    def is_late(self):\n        error = self.error\n        return {condition}\n"
    assert find_decisions(helpers + held) != []


@pytest.mark.parametrize(
    "statement",
    [
        "say(str(error))",
        "raise Other('x', why=str(error)) from error",
        "return error.errno in (2, 17)",
        "return code_of(error) == 7",
        "return error.code() in CODES",
        "return isinstance(error, KeyError)",
        "return str(error) or type(error).__name__",
        "return text.startswith('a')",
    ],
)
def test_search_passes_what_decides_by_type_or_shows(statement: str) -> None:
    """Classes, numbers, and texts that are only shown."""
    source = (
        f"def run(text: str):\n    try:\n        act()\n    except OSError as error:\n        {statement}\n"
    )
    assert find_decisions(source) == []


def test_search_finds_planted_code_strings() -> None:
    """A constant or a set of codes, but not the code of an error that is made."""
    assert len(find_code_strings('GONE = frozenset({"TS1562", "TS1317"})\nLATE = "TS1308"\n')) == 3
    assert find_code_strings('raise FixRequest("TS1000", "x", why="TS1001 came first", fix="y")\n') == []
