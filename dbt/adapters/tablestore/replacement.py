"""A new table in the place of a view, or of a table with another key: complete first, then in its place.

Names      beside_name()   where the new table grows
           replace_table() write it there, remove what was, put it in its place
Steps      1 a leftover of an earlier crash goes  2 rows into the table beside, without a log
           3 the old one is dropped  4 rename; a table with a log is written again from the one beside, since the
           topic belongs to the old table until that is dropped
INVARIANT  rows that are refused leave the old table or view as it was.
CRASH      between 3 and 4 the rows lie in the table beside; the next run makes the table anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tablestore_engine.api import Engine, TableVersion, WriteReport, WriteSpec

_SUFFIX = "__ts_new"
_LENGTH_MAX = 128


def beside_name(name: str) -> str:
    """`demo.orders` -> `demo.orders__ts_new`, never longer than names may be."""
    database, table = name.split(".", maxsplit=1)
    return f"{database}.{table[: _LENGTH_MAX - len(_SUFFIX)]}{_SUFFIX}"


def replace_table(
    engine: Engine, name: str, sql: str, spec: WriteSpec, versions: Mapping[str, TableVersion]
) -> WriteReport:
    """The report of the new table. Raises what the write raises; then nothing was changed."""
    beside = beside_name(name)
    _drop(engine, beside)
    options = spec.table.options
    plain = {key: value for key, value in options.items() if not key.startswith(("log.", "kafka."))}
    try:
        report = engine.write(
            beside, sql, replace(spec, table=replace(spec.table, options=plain)), versions=versions
        )
    except BaseException:
        _drop(engine, beside)
        raise
    engine.drop_view(name)
    _drop(engine, name)
    if len(plain) == len(options):
        engine.rename(beside, name)
        return replace(report, table=engine.table(name).identifier)
    report = engine.write(name, _all_rows(beside), replace(spec, delete_when=None, checks={}))
    _drop(engine, beside)
    return report


def _all_rows(name: str) -> str:
    database, table = name.split(".", maxsplit=1)
    return f"select * from `{database}`.`{table}`"


def _drop(engine: Engine, name: str) -> None:
    if engine.find_table(name) is not None:
        engine.drop_table(name)
