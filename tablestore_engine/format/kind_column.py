"""Row kinds that a column of the rows says: the option rowkind.field of a table with a primary key.

CHANGE     row kinds from a column (option rowkind.field)
PAIMON     the text of the column, +I, -U, +U or -D, is the kind of a row that is written; NULL and other texts are
           errors. The column is stored like any other.
INVARIANT  a row has its kind from one place. Statements that say themselves what becomes of a row (DELETE, UPDATE,
           MERGE) do not ask the column; any other write that says it twice is refused.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tablestore_engine.error_values import count_of, sql_literal
from tablestore_engine.errors import FixData, FixRequest
from tablestore_engine.format.data_type import CHARACTER_ROOTS
from tablestore_engine.format.row_kind import ROW_KIND_COLUMN, short_strings
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.type_text import type_to_text

_OPTION = "rowkind.field"
_EXPECTED = "+I, -U, +U or -D"


def kinds_of_column(rows: pa.Table, schema: TableSchema) -> npt.NDArray[np.int8] | None:
    """Of rows with the columns of the schema; None without such a column, or where all rows are inserts.

    Raises FixData TS1156 for NULL and other texts.
    """
    name = schema.options.get(_OPTION)
    if name is None or not schema.is_keyed:
        return None
    column = rows.column(name)
    found = pc.index_in(column, value_set=short_strings())
    if found.null_count:
        bad = column.filter(pc.is_null(found))
        shown = bad[0].as_py()
        raise FixData(
            "TS1156",
            f"column {name!r} has {count_of(len(bad), 'value that is', 'values that are')} no row kind",
            why=f"'{_OPTION}' names the column, so its values are {_EXPECTED}; got "
            + ("NULL" if shown is None else sql_literal(shown)),
            fix=f"write one of {_EXPECTED} in each row",
        )
    kinds = np.concatenate([np.asarray(chunk) for chunk in found.chunks] or [np.zeros(0)]).astype(np.int8)
    return kinds if kinds.any() else None


def without_kind_column(schema: TableSchema) -> TableSchema:
    """For rows whose kinds are known."""
    if _OPTION not in schema.options:
        return schema
    options = {key: value for key, value in schema.options.items() if key != _OPTION}
    return replace(schema, options=options)


def find_other_kind_column(schema: TableSchema) -> str | None:
    """A column that cannot be followed here, as another engine may have named it."""
    return None if _why_not(schema) is None else f"{_OPTION}={schema.options[_OPTION]}"


def check_kind_column(schema: TableSchema) -> None:
    """Raises FixRequest TS1155 for an option that Paimon refuses, or without a key."""
    why = _why_not(schema)
    if why is not None:
        raise FixRequest(
            "TS1155",
            f"option {_OPTION!r} cannot be {schema.options[_OPTION]!r}",
            why=why,
            fix="name a STRING column of a table with a primary key, or leave it out",
        )


def check_kinds_once(schema: TableSchema, table: str, *, has_kinds: bool) -> None:
    """Raises FixRequest TS1155 where the rows bring kinds (`has_kinds`) and the table has a column for them."""
    if has_kinds and _OPTION in schema.options:
        raise FixRequest(
            "TS1155",
            f"rows for {table} say twice which of them delete",
            why=f"'{_OPTION}' takes kinds from column {schema.options[_OPTION]!r}, and the write has {ROW_KIND_COLUMN} "
            "or delete_when",
            fix=f"leave them out, and write {_EXPECTED} into that column",
        )


def _why_not(schema: TableSchema) -> str | None:
    name = schema.options.get(_OPTION)
    if name is None:
        return None
    if not schema.is_keyed:
        return "the table has no primary key, so its rows only add"
    field = next((one for one in schema.fields if one.name == name), None)
    if field is None:
        return f"the columns are {', '.join(schema.field_names)}"
    if field.type.root not in CHARACTER_ROOTS:
        return f"the column is {type_to_text(field.type)}, and row kinds are texts"
    return None
