"""Rows that the client would refuse are found before they are committed, and no others."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from tablestore_engine.errors import FixData
from tablestore_engine.format.row_kind import ROW_KIND_COLUMN
from tablestore_engine.format.schema import new_schema
from tablestore_engine.log.kafka.message_limit import check_sizes, message_limit
from tablestore_engine.log.kafka.settings import LogSettings
from tablestore_engine.log.message_envelope import ChangelogMode, encode_rows, plan_envelope

COLUMNS = pa.schema(
    [("id", pa.int64()), ("text", pa.string()), ("blob", pa.binary()), ("tags", pa.list_(pa.string()))]
)
SCHEMA = new_schema(COLUMNS, primary_keys=["id"])
SETTINGS = LogSettings("d.t", "u", "t", 1, ChangelogMode.UPSERT, {"message.max.bytes": "2000"})


def _rows(text: str, blob: bytes = b"", tags: tuple[str, ...] = ()) -> pa.Table:
    columns = [
        pa.array([1, 2], pa.int64()),
        ["", text],
        pa.array([b"", blob]),
        pa.array([[], list(tags)], pa.list_(pa.string())),
    ]
    return pa.table(columns, schema=COLUMNS)


@pytest.mark.parametrize(
    "rows",
    [_rows("x" * 2000), _rows("\x01" * 400), _rows("", b"x" * 1800), _rows("", b"", ("abc" * 300,) * 3)],
    ids=["text", "escaped", "binary", "nested"],
)
def test_a_row_above_the_limit_is_named(rows: pa.Table) -> None:
    """TS1739 has the key and says that nothing is written, whatever makes the message large."""
    with pytest.raises(FixData, match="TS1739") as caught:
        check_sizes(rows, SCHEMA, message_limit(SETTINGS))
    assert '{"id":2}' in str(caught.value)
    assert "nothing is written" in str(caught.value)


def test_the_limit_is_exact() -> None:
    """The largest message that the client takes passes, one byte more does not."""
    kinds = pa.array([0, 0], pa.int8())
    encoded = encode_rows(
        _rows("y" * 1500).append_column(ROW_KIND_COLUMN, kinds), plan_envelope(SCHEMA, SETTINGS.mode)
    )
    assert encoded.keys is not None
    size = max(len(key) + len(value or b"") for key, value in zip(encoded.keys, encoded.values, strict=True))
    check_sizes(
        _rows("y" * 1500), SCHEMA, message_limit(replace(SETTINGS, client={"message.max.bytes": str(size)}))
    )
    with pytest.raises(FixData, match="TS1739"):
        check_sizes(
            _rows("y" * 1500),
            SCHEMA,
            message_limit(replace(SETTINGS, client={"message.max.bytes": str(size - 1)})),
        )


def test_no_rows_and_small_rows_pass() -> None:
    """Also with the client's default limit."""
    check_sizes(_rows("x").slice(0, 0), SCHEMA, message_limit(SETTINGS))
    check_sizes(_rows("x" * 1000), SCHEMA, message_limit(replace(SETTINGS, client={})))
