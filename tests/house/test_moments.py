"""Moments are printed in one format, by one module (runtime/moments.py)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("tablestore_engine", "tablestore_demo", "dbt/adapters/tablestore")
FORMATS = {"strftime", "isoformat", "ctime", "asctime"}
# module -> what else it formats; the list may only shrink
OTHERS = {
    "tablestore_engine/runtime/moments.py": "the one format",
    "tablestore_engine/runtime/json_plain.py": "DATE and TIME values of columns",
    "tablestore_engine/error_values.py": "SQL literals",
    "tablestore_engine/log/json_values.py": "values in messages of a log",
    "tablestore_engine/devservers/s3_requests.py": "the date of a signature of S3",
    "tablestore_demo/feed.py": "ids of flights",
    "dbt/adapters/tablestore/connections.py": "SQL literals",
    "dbt/adapters/tablestore/gate/microbatches.py": "ends of an interval as in SQL",
    "dbt/adapters/tablestore/write/seeds.py": "values of a seed",
}


def _formats(source: str) -> Iterator[int]:
    """Lines that format a moment, also by a format in an f-string."""
    for node in ast.walk(ast.parse(source)):
        if (isinstance(node, ast.Attribute) and node.attr in FORMATS) or (
            isinstance(node, ast.FormattedValue)
            and node.format_spec is not None
            and any(code in ast.unparse(node.format_spec) for code in ("%H", "%Y", "%T", "%F"))
        ):
            yield node.lineno


def test_one_module_formats_moments() -> None:
    """No other module does, but for those of OTHERS, each of which does."""
    found = {
        str(path.relative_to(ROOT))
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        if list(_formats(path.read_text()))
    }
    assert found == set(OTHERS)


@pytest.mark.parametrize(
    ("source", "count"), [("m.strftime('%H')", 1), ("f'{m:%H:%M}'", 1), ("f'{n:,} {moment_text(m)}'", 0)]
)
def test_formats_are_found(source: str, count: int) -> None:
    """The check itself."""
    assert len(list(_formats(source))) == count
