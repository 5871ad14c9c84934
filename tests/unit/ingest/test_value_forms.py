"""Values that tables have no type for: refused with column, value and what to do, or kept whole as a STRING."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tablestore_engine.api import Engine, IngestSpec
from tablestore_engine.errors import FixData


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    """An empty warehouse."""
    with Engine(str(tmp_path / "warehouse")) as opened:
        yield opened


def debezium(kind: str, wire: str, *values: Any) -> list[str]:
    """With a schema."""
    fields = [
        {"type": "int32", "optional": False, "field": "id"},
        {"type": wire, "optional": True, "field": "at", "name": f"io.debezium.time.{kind}"},
    ]
    sides = [{"type": "struct", "field": side, "fields": fields} for side in ("before", "after")]
    schema = {"type": "struct", "fields": [*sides, {"type": "string", "field": "op"}]}
    return [
        json.dumps({"schema": schema, "payload": {"before": None, "after": {"id": number, "at": value}, "op": "c"}})
        for number, value in enumerate(values)
    ]  # fmt: skip


def maxwell(*values: Any) -> list[str]:
    """Without types."""
    message = {"database": "d", "table": "t", "type": "insert"}
    return [json.dumps({**message, "data": {"id": at, "at": value}}) for at, value in enumerate(values)]


def ingested(
    engine: Engine, folder: Path, lines: list[str], form: str = "debezium-json", **words: Any
) -> list[Any]:
    """The values of the table, by their messages."""
    path = folder / "changes.jsonl"
    path.write_text("\n".join(lines) + "\n")
    engine.ingest(IngestSpec(format=form, into="demo.t", path=str(path), key=("id",), **words))  # type: ignore[arg-type]
    rows = engine.table("demo.t").scan().to_arrow().to_pylist()
    return [row["at"] for row in sorted(rows, key=lambda row: int(row["id"]))]


FINE, FINER = 1_767_225_600_123_456_000, 1_767_225_600_123_456_700


@pytest.mark.parametrize(
    ("lines", "value", "texts"),
    [
        (
            debezium("NanoTimestamp", "int64", FINE, FINER),
            str(FINER),
            ["2026-01-01 00:00:00.123456000", "2026-01-01 00:00:00.123456700"],
        ),
        (
            debezium("ZonedTimestamp", "string", "2026-01-01T02:00:00+02:00", "2026-01-01T00:00:00.1234567Z"),
            "2026-01-01T00:00:00.1234567Z",
            ["2026-01-01T02:00:00+02:00", "2026-01-01T00:00:00.1234567Z"],
        ),
        (debezium("Time", "int32", 1_500, -3_600_000), "-3600000", ["00:00:01.5", "-01:00:00"]),
    ],
    ids=["NanoTimestamp", "ZonedTimestamp", "Time"],
)
def test_a_time_that_no_type_of_a_table_holds_is_refused_or_a_string(
    engine: Engine, tmp_path: Path, lines: list[str], value: str, texts: list[str]
) -> None:
    """TS1421 names table, column and value, and says that a STRING keeps it; as one all digits are there."""
    with pytest.raises(FixData, match=r"TS1421.*demo\.t") as error:
        ingested(engine, tmp_path, lines)
    assert f"column at: '{value}' is no T" in error.value.why
    assert "as a STRING (columns, --column) it is kept whole" in error.value.why
    assert engine.find_table("demo.t") is None
    assert ingested(engine, tmp_path, lines, columns={"id": "INT", "at": "STRING"}) == texts
    engine.drop_table("demo.t")
    assert len(ingested(engine, tmp_path, lines, on_error="dead_letter")) == 1
    reasons = engine.table("demo.t__dead_letters").scan().to_arrow().column("reason").to_pylist()
    assert len(reasons) == 1
    assert value in reasons[0]


def test_a_time_of_mysql_may_be_negative_and_longer_than_a_day(engine: Engine, tmp_path: Path) -> None:
    """Exactly, as a STRING, which a MicroTime always is."""
    lines = debezium("MicroTime", "int64", -3_020_399_000_000, 360_000_500_000, 86_400_000_000, -1)
    assert ingested(engine, tmp_path, lines) == ["-838:59:59", "100:00:00.5", "24:00:00", "-00:00:00.000001"]


def test_documents_and_sets_of_maxwell_are_json_texts(engine: Engine, tmp_path: Path) -> None:
    """In a STRING column and in one whose type is taken from its values; numbers keep their digits."""
    lines = maxwell({"a": [1, 2.5, None], "é": 10**25}, ["x", "y"], "plain")
    texts = ['{"a": [1, 2.5, null], "é": 10000000000000000000000000}', '["x", "y"]', "plain"]
    assert ingested(engine, tmp_path, lines, "maxwell-json", columns={"id": "INT", "at": "STRING"}) == texts
    engine.drop_table("demo.t")
    assert ingested(engine, tmp_path, lines, "maxwell-json", infer=True) == texts
