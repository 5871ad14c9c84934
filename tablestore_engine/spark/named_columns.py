"""Names of an INSERT -> columns of the table: its list, PARTITION (…), the columns of a query that is matched BY NAME.

CHANGE     which column a name in INSERT means
INVARIANT  each name is one column, and each column is named once; no name is dropped (TS1521, TS2120, TS2123).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tablestore_engine.errors import FixRequest
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.spark import spark_errors
from tablestore_engine.spark.parsed_changes import repeated
from tablestore_engine.spark.spark_internals import SparkInner
from tablestore_engine.sql.statement import Insert


class InsertNames:
    """Of one statement. Spark's parser checks the text before the query, too. Raises FixRequest TS1505, TS1521, TS2120,
    TS2123. `constants`: the texts of the static partition values by column.
    """

    def __init__(self, session: SparkSession, statement: Insert, schema: TableSchema) -> None:
        try:
            SparkInner(session).parsed(f"{statement.head} select 1")
        except PySparkException as error:
            raise spark_errors.translate(error) from None
        self._statement, self._schema = statement, schema
        self._is_case_sensitive = str(session.conf.get("spark.sql.caseSensitive")).lower() == "true"
        partition = self._columns([name for name, _ in statement.partition], schema.partition_keys)
        texts = zip(partition, (text for _, text in statement.partition), strict=True)
        self.constants = {name: text for name, text in texts if text is not None}

    def given(self, query: Sequence[str]) -> tuple[str, ...]:
        """The table's columns for those of the query, by position."""
        names = self._schema.field_names
        if self._statement.by_name:
            given = self._columns(query, names)
        elif self._statement.columns:
            given = self._columns(self._statement.columns, names)
        else:
            given = tuple(name for name in names if name not in self.constants)
        for name in given:
            if name in self.constants:
                raise repeated(name, f"PARTITION ({name})")
        return given

    def _columns(self, names: Iterable[str], known: Sequence[str]) -> tuple[str, ...]:
        found: list[str] = []
        for name in names:
            column = find_column(name, known, is_case_sensitive=self._is_case_sensitive)
            if column in found:
                raise repeated(name, column)
            found.append(column)
        return tuple(found)


def find_column(name: str, known: Sequence[str], *, is_case_sensitive: bool) -> str:
    """The one column that the name means. Raises FixRequest TS1521, TS2123."""
    found = [one for one in known if one == name or (not is_case_sensitive and one.lower() == name.lower())]
    if len(found) == 1:
        return found[0]
    if found:
        raise FixRequest(
            "TS2123",
            f"column {name!r} is ambiguous",
            why=f"the table has {', '.join(found)}, and case does not count",
            fix="set spark.sql.caseSensitive to true for this statement, or rename one of the columns",
        )
    raise FixRequest(
        "TS1521",
        f"column {name!r} is not there",
        why=f"the columns are {', '.join(known)}",
        fix="correct the name of the column",
    )
