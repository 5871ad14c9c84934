"""Schemas that no file of ours may have are refused; each kind at each place where types can be."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tablestore_engine.errors import FixRequest
from tablestore_engine.fileio.local import LocalFileIO
from tablestore_engine.format.data_type import INT, STRING, DataField, DataType
from tablestore_engine.format.layout import TableLayout
from tablestore_engine.format.schema import TableSchema, new_schema
from tablestore_engine.format.schema_check import check_collations, check_schema
from tablestore_engine.store.metadata.schemas import SchemaStore


def _row(*fields: tuple[str, DataType]) -> DataType:
    return DataType("ROW", fields=tuple(DataField(0, name, type_) for name, type_ in fields))


LOWER = replace(STRING, collation="UTF8_LCASE")
TWICE = _row(("x", INT), ("X", INT))
INSIDE = {
    "column": lambda one: one,
    "field": lambda one: _row(("f", one)),
    "element": lambda one: DataType("ARRAY", element=one),
    "multiset": lambda one: DataType("MULTISET", element=one),
    "key": lambda one: DataType("MAP", key=one, value=INT),
    "value": lambda one: DataType("MAP", key=INT, value=one),
    "deep": lambda one: DataType("ARRAY", element=DataType("MAP", key=INT, value=_row(("f", one)))),
}
BAD = [
    ("TS1138", DataType("VARCHAR", length=0)),
    ("TS1138", DataType("CHAR", length=0)),
    ("TS1138", DataType("BINARY", length=0)),
    ("TS1138", DataType("VARBINARY", length=0)),
    ("TS1138", DataType("DECIMAL", precision=0, scale=0)),
    ("TS1138", DataType("DECIMAL", precision=39, scale=0)),
    ("TS1138", DataType("DECIMAL", precision=3, scale=4)),
    ("TS1138", DataType("TIMESTAMP", precision=10)),
    ("TS1138", DataType("TIMESTAMP_LTZ", precision=-1)),
    ("TS1138", DataType("TIME", precision=10)),
    ("TS1138", DataType("INTERVAL")),
    ("TS1138", _row()),
    ("TS1139", TWICE),
    ("TS1139", _row(("x", INT), ("x", INT))),
    ("TS1140", LOWER),
    ("TS1140", replace(LOWER, nullable=False)),
]


def _schema(*fields: tuple[str, DataType]) -> TableSchema:
    return new_schema([DataField(0, name, type_) for name, type_ in fields])


@pytest.mark.parametrize("where", INSIDE)
@pytest.mark.parametrize(("code", "bad"), BAD)
def test_schema_that_cannot_be_read_again_is_refused(code: str, bad: DataType, where: str) -> None:
    """Wherever the type lies, the error has the code of its kind and names the column."""
    with pytest.raises(FixRequest, match="'c") as refused:
        check_schema(_schema(("a", INT), ("c", INSIDE[where](bad))))
    assert refused.value.code == code


@pytest.mark.parametrize("where", INSIDE)
def test_collation_is_refused_before_others_are_asked(where: str) -> None:
    """Columns of a new table, before it has a schema; the same columns without a collation pass."""
    with pytest.raises(FixRequest, match="TS1140"):
        check_collations([DataField(0, "c", INSIDE[where](LOWER))])
    check_collations([DataField(0, "c", INSIDE[where](STRING))])


def test_columns_that_differ_in_case_are_refused_unless_the_table_has_them_already() -> None:
    """A table of another engine with such columns can still be altered; a second such pair is refused."""
    theirs = _schema(("a", INT), ("A", INT), ("s", TWICE))
    check_schema(replace(theirs, comment="altered"), lambda: (theirs,))
    with pytest.raises(FixRequest, match="TS1139"):
        check_schema(theirs)
    more = _schema(("a", INT), ("A", INT), ("s", TWICE), ("S", INT))
    with pytest.raises(FixRequest, match=r"TS1139 column 'S' exists already"):
        check_schema(more, lambda: (theirs,))


def test_refused_schema_writes_no_file(tmp_path: object) -> None:
    """SchemaStore.claim, through which each new schema file goes, refuses it; a copy of one that counts passes."""
    store = SchemaStore(LocalFileIO(str(tmp_path)), TableLayout(f"{tmp_path}/t"))
    first = _schema(("a", INT))
    assert store.claim(first)
    for _, bad in BAD:
        with pytest.raises(FixRequest):
            store.claim(replace(_schema(("a", INT), ("c", bad)), id=1))
    assert store.list_ids() == (0,)
    assert store.copy(replace(_schema(("a", INT), ("c", TWICE)), id=1))
    assert store.claim(replace(_schema(("a", INT), ("c", TWICE)), id=2, comment="altered"))
