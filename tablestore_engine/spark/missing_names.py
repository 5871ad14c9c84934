"""Names of tables and views that Spark does not know: what its error says, and ours."""

from __future__ import annotations

import re

from pyspark.errors import AnalysisException

from tablestore_engine.errors import NotFound
from tablestore_engine.spark import spark_errors
from tablestore_engine.spark.session_names import Name

DEFAULT_DATABASE = "default"
_MISSING = "TABLE_OR_VIEW_NOT_FOUND"


def is_missing_name(error: AnalysisException) -> bool:
    """Whether the statement names a table that Spark does not know: Spark has one class and a condition for it."""
    return error.getCondition() == _MISSING


def missing_name(error: AnalysisException) -> Name:
    """The table that it could not find. Raises what the error means where it names none."""
    relation = (error.getMessageParameters() or {}).get("relationName", "")
    parts = [part.replace("``", "`") for part in re.findall(r"`((?:[^`]|``)*)`", relation)]
    if not parts:
        raise spark_errors.translate(error) from None
    return (parts[-2] if len(parts) > 1 else DEFAULT_DATABASE, parts[-1])


def no_such_table(name: Name, hint: str) -> NotFound:
    """TS1515. `hint`: `; did you mean demo.orders?`, or nothing."""
    return NotFound(
        "TS1515",
        f"table or view {name[0]}.{name[1]} does not exist",
        why="no table and no stored view of that name is in the warehouse",
        fix=f"check the spelling and the schema; `tablestore show` lists what there is{hint}",
    )
