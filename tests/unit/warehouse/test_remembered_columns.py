"""Which changes of an input's columns would give values of one column to another."""

from __future__ import annotations

from pathlib import Path

import pytest

from tablestore_engine.errors import FixRequest
from tablestore_engine.warehouse.remembered_columns import (
    InputColumn,
    InputColumns,
    check_columns,
    find_mixup,
    read_columns,
    write_columns,
)

P, Q, N = InputColumn(0, "p", "STRING"), InputColumn(1, "q", "STRING"), InputColumn(2, "n", "INT")
NESTED = InputColumn(5, "s", '{"type": "ROW", "fields": [{"id": 6, "name": "x", "type": "INT"}]}')


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        ((P, Q), (P, Q), None),
        ((P, Q), (P, Q, InputColumn(3, "r", "STRING")), None),
        ((P, Q, N), (P, N), None),
        ((P, Q), (P, InputColumn(1, "r", "STRING")), None),
        ((P, Q), (P, InputColumn(3, "r", "INT")), None),
        ((P, N), (P, InputColumn(2, "n", "BIGINT")), None),
        ((P, Q), (P, InputColumn(3, "r", "STRING")), "q has gone and r, of the same type, is new"),
        ((P, Q), (P, InputColumn(3, "q", "STRING")), "q is another column"),
        ((P, Q), (InputColumn(0, "q", "STRING"), InputColumn(1, "p", "STRING")), "q is another column"),
        ((P, Q), (Q, P), "another order"),
        ((NESTED,), (InputColumn(5, "s", NESTED.type.replace("6", "7")),), "s has other fields inside"),
    ],
)
def test_what_would_be_mixed_up(
    before: tuple[InputColumn, ...], now: tuple[InputColumn, ...], said: str | None
) -> None:
    """By place and type, as Spark compares; what it sees itself, or what changes no place, is fine."""
    found = find_mixup(before, now)
    assert found is None if said is None else said in str(found)


def test_columns_come_back_and_an_older_state_has_none(tmp_path: Path) -> None:
    """A table that the query reads no more, or a new one, is another query's business."""
    assert read_columns(tmp_path) is None
    check_columns(None, InputColumns({"demo.a": (P,)}))
    columns = InputColumns({"demo.a": (P, Q), "demo.b": (NESTED,)})
    write_columns(tmp_path, columns)
    assert read_columns(tmp_path) == columns
    check_columns(columns, InputColumns({"demo.a": (P, Q), "demo.c": (N,)}))
    with pytest.raises(FixRequest, match="another order") as error:
        check_columns(columns, InputColumns({"demo.a": (Q, P)}))
    assert error.value.code == "TS1457"
