"""Moments are printed in one format and read by one rule, by one module (runtime/moments.py, decision 0094)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.statements import parsed

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("tablestore_engine", "tablestore_demo", "dbt/adapters/tablestore")
CODES = ("%H", "%Y", "%T", "%F")
FORMATS = {"strftime", "isoformat", "ctime", "asctime"}
# module -> what else it formats; the list may only shrink
OTHERS = {
    "tablestore_engine/runtime/moments.py": "the one format",
    "tablestore_engine/runtime/json_plain.py": "DATE and TIME values of columns",
    "tablestore_engine/error_values.py": "SQL literals",
    "tablestore_engine/log/json_values.py": "values in messages of a log",
    "tablestore_engine/devservers/s3_requests.py": "the date of a signature of S3",
    "tablestore_engine/store/tag_period.py": "names of tags, as Paimon writes them",
    "tablestore_engine/format/table_statistics.py": "bounds of columns, as Paimon writes them",
    "tablestore_demo/feed.py": "ids of flights",
    "dbt/adapters/tablestore/connections.py": "SQL literals",
    "dbt/adapters/tablestore/gate/microbatches.py": "ends of an interval as in SQL",
    "dbt/adapters/tablestore/write/seeds.py": "values of a seed",
}


def _formats(source: str) -> Iterator[int]:
    """Lines that format a moment, also by a format in an f-string."""
    if not any(word in source for word in (*FORMATS, *CODES)):
        return
    for node in ast.walk(parsed(source)):
        if (isinstance(node, ast.Attribute) and node.attr in FORMATS) or (
            isinstance(node, ast.FormattedValue)
            and node.format_spec is not None
            and any(code in ast.unparse(node.format_spec) for code in CODES)
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


READS = {"fromisoformat", "strptime"}
# module that reads a moment or gives it a zone -> whose zone a moment without an offset has (decision 0094)
RULES = {
    "tablestore_engine/runtime/moments.py": "UTC, or the zone that its caller names",
    "tablestore_engine/sql/as_of_clause.py": "the session's, as every text in SQL",
    "tablestore_engine/datasource/source_options.py": "UTC",
    "tablestore_engine/queryplan/empty_result.py": "none: only +00:00 is read",
    "tablestore_engine/store/read/text_condition.py": "none: TIMESTAMP needs an offset, TIMESTAMP_NTZ refuses one",
    "tablestore_engine/spark/plan_conditions.py": "none: a DATE",
    "tablestore_engine/store/rows/row_filter.py": "UTC; a column without a zone is read in that of the interval, UTC",
    "tablestore_engine/fileio/object_store.py": "none: answers of a store have an offset",
    "tablestore_engine/log/kafka/bounded_reader.py": "none: milliseconds of a message",
    "tablestore_engine/store/tag_period.py": "UTC: names of tags say periods of UTC",
    "tablestore_engine/format/table_statistics.py": "UTC: bounds of columns",
    "dbt/adapters/tablestore/relation.py": "UTC",
    "dbt/adapters/tablestore/gate/microbatches.py": "UTC",
    "dbt/adapters/tablestore/write/seeds.py": "the session's, as a value in SQL",
}


def _reads(source: str) -> bool:
    """Whether it reads a moment, or gives one a zone."""
    if not any(word in source for word in (*READS, "tzinfo", "timestamp")):
        return False
    for node in ast.walk(parsed(source)):
        if isinstance(node, ast.Attribute) and node.attr in READS:
            return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            names = {one.arg for one in node.keywords}
            is_zone = node.func.attr == "replace" and "tzinfo" in names
            if is_zone or (node.func.attr == "timestamp" and not node.args and not names):
                return True
    return False


def test_every_reader_of_moments_has_its_rule_in_the_record() -> None:
    """A module that reads moments is listed with the zone of those without an offset, here and in decision 0094."""
    packages = ("tablestore_engine", "dbt/adapters/tablestore")
    files = [path for package in packages for path in (ROOT / package).rglob("*.py")]
    assert {str(path.relative_to(ROOT)) for path in files if _reads(path.read_text())} == set(RULES)
    record = (ROOT / "docs/decisions/0094-time-zones.md").read_text()
    assert [name for name in RULES if f"`{name}`" not in record] == []


@pytest.mark.parametrize(
    ("source", "found"),
    [("m.replace(tzinfo=UTC)", True), ("int(m.timestamp())", True), ("s.replace(1, 2)", False)],
)
def test_readers_are_found(source: str, found: bool) -> None:
    """The check itself."""
    assert _reads(source) is found
