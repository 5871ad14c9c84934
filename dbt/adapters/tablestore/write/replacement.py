"""A new table in the place of a view, or of a table laid out otherwise: complete first, then in its place.

Names      beside_name()   where the new table grows
           check_view()    a view may only take the place of a table that it does not read
           must_replace()  whether that is needed
           replace_table() write it there, put it in its place
Steps      without a log, the engine's `beside`: two renames behind the last row, which any later look finishes; of a
           gated one when its tests are green (decision 0015)
           with a log, since a topic belongs to one table: 1 a leftover of an earlier crash goes  2 rows into a table
           beside, without a log  3 the old one is dropped  4 the new one is written from the one beside, or renamed
INVARIANT  rows that are refused leave the old table or view as it was.
INVARIANT  nothing is dropped that a run did not make: a table beside carries the name it was made for.
INVARIANT  when its log cannot begin, the new table takes its place without one, and the error says so.
CRASH      of one with a log between 3 and 4: the rows lie in the table beside; the next run makes the table anew.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import replace

from dbt.adapters.tablestore.messages import Messages
from dbt.adapters.tablestore.plan.build_plan import Action, BuildPlan
from dbt.adapters.tablestore.plan.engine_spec import ModelSettings
from tablestore_engine.api import Engine, TableVersion, WriteReport, WriteSpec
from tablestore_engine.errors import FixRequest, TablestoreError

logger = Messages("Tablestore")
REPLACES = "dbt.replaces"
_LENGTH_MAX = 128


def beside_name(name: str) -> str:
    """`demo.orders` -> `demo.orders__ts_new_1f0a9c3b`: the same for every run, and no name that a user gives."""
    database, table = name.split(".", maxsplit=1)
    suffix = "__ts_new_" + hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{database}.{table[: _LENGTH_MAX - len(suffix)]}{suffix}"


def must_replace(
    engine: Engine,
    settings: ModelSettings,
    name: str,
    plan: BuildPlan,
    *,
    is_view: bool,
    is_staged: bool,
    is_batch: bool = False,
) -> bool:
    """Whether a view of the name, or a table laid out otherwise, gives way: neither can be turned into this table.

    Raises FixRequest TS1832 when the new one waits for tests, and one of both has a log; TS1888 when it waits and comes
    in batches, before the first of them.
    """
    if not is_view and plan.action != Action.RECREATE:
        return False
    if is_staged and is_batch:
        raise _no_batches_beside(name)
    changed = ", ".join(f"{one.what} {one.present} -> {one.wanted}" for one in plan.changes)
    if is_staged and _involves_log(engine, name, dict(settings.table.options)):
        model, kind = settings.node.split(".")[-1], "view" if is_view else "table"
        raise FixRequest(
            "TS1832",
            f"table {name} {'takes the place of a view' if is_view else f'changes {changed}'} "
            "and is published only after its tests",
            why="it is another relation than readers have, and one of both has a log: a topic belongs to one table",
            fix=f"dbt run --full-refresh --select {model}, which with publish='auto' waits for no test; or drop the "
            f"old one first: tablestore sql 'drop {kind} {name}'",
        )
    if not is_view:
        when = " when its tests are green" if is_staged else ""
        logger.warning(f"{name}: {changed}; the table is made anew{when}, its history ends")
    return True


def _no_batches_beside(name: str) -> FixRequest:
    model = name.rsplit(".", maxsplit=1)[-1]
    return FixRequest(
        "TS1888",
        f"table {name} is made anew from batches and is published only after its tests",
        why="batches build on what readers have, and this one takes the place of another relation",
        fix=f"dbt run --full-refresh --select {model}, which with publish='auto' waits for no test",
    )


def _involves_log(engine: Engine, name: str, options: Mapping[str, str]) -> bool:
    found = engine.find_table(name)
    both = (options, {} if found is None else found.schema.options)
    return any(one.get("log.system", "none") != "none" for one in both)


def replace_table(
    engine: Engine, name: str, sql: object, spec: WriteSpec, versions: Mapping[str, TableVersion]
) -> WriteReport:
    """The report of the new table. Raises TS1881, TS1480, and what the write raises; then nothing was changed."""
    if not _involves_log(engine, name, spec.table.options):
        return engine.write(name, sql, replace(spec, beside=True), versions=versions)
    beside = beside_name(name)
    clear_beside(engine, name)
    options = spec.table.options
    plain = {key: value for key, value in options.items() if not key.startswith(("log.", "kafka."))}
    marked = {**spec.properties, REPLACES: name}
    growing = replace(spec, table=replace(spec.table, options=plain), properties=marked)
    try:
        report = engine.write(beside, sql, growing, versions=versions)
    except BaseException:
        _drop(engine, beside)
        raise
    engine.drop_view(name)
    _drop(engine, name)
    if len(plain) == len(options):
        engine.rename(beside, name)
        return replace(report, table=engine.table(name).identifier)
    try:
        report = engine.write(name, _all_rows(beside), replace(spec, delete_when=None, checks={}))
    except TablestoreError:
        if engine.find_table(name) is None:
            engine.rename(beside, name)  # the rows have a name; the next run gives the table its log
        raise
    _drop(engine, beside)
    return report


def check_view(name: str, read: Collection[str]) -> None:
    """Raises FixRequest TS1880 when a view that takes a table's place reads that table, be it through other views."""
    if name.lower() in read:
        raise FixRequest(
            "TS1880",
            f"view {name} cannot take the place of the table {name}",
            why="its query reads that table, and would read itself once the table is dropped",
            fix="read another relation in the model, or keep it a table",
        )


def clear_beside(engine: Engine, name: str) -> None:
    """Drop what a killed run left of the table beside. Raises FixRequest TS1881 when it is somebody else's."""
    beside = beside_name(name)
    found = engine.find_table(beside)
    if found is None:
        return
    snapshots = found.snapshots()
    if snapshots and (snapshots[-1].properties or {}).get(REPLACES) != name:
        raise FixRequest(
            "TS1881",
            f"{name} cannot be made anew beside the old one",
            why=f"{beside}, where it would grow, is a table that no run of dbt made",
            fix=f"rename {beside}",
        )
    _drop(engine, beside)


def _all_rows(name: str) -> str:
    database, table = name.split(".", maxsplit=1)
    return f"select * from `{database}`.`{table}`"


def _drop(engine: Engine, name: str) -> None:
    if engine.find_table(name) is not None:
        engine.drop_table(name)
