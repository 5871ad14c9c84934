"""What a run of a model does to its table: one plan, decided before anything is written.

CHANGE     which rows an incremental strategy replaces
Steps      1 needed columns are there  2 create, replace or increment  3 the strategy's SELECT  4 schema rules
INVARIANT  pure; the same settings and situation give the same plan.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from dbt.adapters.tablestore.config.model_config import TableSettings
from dbt.adapters.tablestore.config.row_choices import find_unneutral
from dbt.adapters.tablestore.plan.changed_keys_sql import KeysSelect, changed_keys_select
from dbt.adapters.tablestore.plan.layout_changes import LayoutChange, ModelLayout, list_changes
from dbt.adapters.tablestore.plan.select_sql import Sides, merge_select, replace_select
from tablestore_engine.api import FixRequest, Interval, OnSchemaChange, SameKeys, WriteMode
from tablestore_engine.spi import RowFilter

Columns = tuple[tuple[str, str], ...]
_FIELD = re.compile(r"([^<,:>]+):")
_MOMENTS = ("date", "timestamp", "timestamp_ntz", "timestamp_ltz")


class Action(StrEnum):
    """What the run does, as a user would say it."""

    CREATE = "create"
    REPLACE = "replace"
    RECREATE = "recreate"  # what rows lie by changed: another table takes the old one's place
    INCREMENT = "increment"

    @property
    def begins(self) -> bool:
        """Its rows are all that there will be."""
        return self is not Action.INCREMENT

    @property
    def replaces(self) -> bool:
        """All rows that are there give way."""
        return self in (Action.REPLACE, Action.RECREATE)


@dataclass(frozen=True)
class Microbatch:
    """One microbatch: column and interval [start, end) of instants, as in dbt's filter of the inputs."""

    event_time: str
    start: datetime
    end: datetime


@dataclass(frozen=True)
class Situation:
    """The world as the plan sees it. `columns` and `table_columns` are (name, Spark type) pairs.

    `affected`: of changed_keys the affected keys; None: all rows are compared.
    """

    name: str
    sql: str
    columns: Columns
    table_exists: bool = False
    table_columns: Columns = ()
    table_layout: ModelLayout = field(default_factory=ModelLayout)
    full_refresh: bool = False
    batch: Microbatch | None = None
    affected: KeysSelect | None = None


@dataclass(frozen=True)
class BuildPlan:
    """One write; `replaces`: stored rows that those of the query replace (mode replace). `skip_unchanged`:
    rows of the query that equal stored ones are no changes.
    """

    action: Action
    select: str
    mode: WriteMode
    on_schema_change: OnSchemaChange
    changes: tuple[LayoutChange, ...] = ()
    replaces: RowFilter | None = None
    skip_unchanged: bool = False


def plan_build(settings: TableSettings, situation: Situation) -> BuildPlan:
    """Raises TS1822, TS1826-TS1829, TS1833, TS1886 and nothing is written then."""
    _require_columns(settings, situation)
    _require_interval(settings, situation)
    if not situation.table_exists:
        mode = WriteMode.UPSERT if settings.primary_key else WriteMode.APPEND
        return BuildPlan(Action.CREATE, situation.sql, mode, OnSchemaChange.REPLACE)
    if situation.full_refresh or settings.materialized == "table":
        changes = list_changes(settings, situation.table_layout)
        action = Action.RECREATE if changes else Action.REPLACE
        return BuildPlan(action, situation.sql, WriteMode.OVERWRITE_TABLE, OnSchemaChange.REPLACE, changes)
    _require_same_table(settings, situation)
    _check_schema_change(settings, situation)
    select, mode, replaces = _increment(settings, situation)
    change = OnSchemaChange(settings.on_schema_change)
    is_difference = settings.strategy == "changed_keys"  # of an affected key most rows are as they were
    return BuildPlan(Action.INCREMENT, select, mode, change, replaces=replaces, skip_unchanged=is_difference)


def _require_columns(settings: TableSettings, situation: Situation) -> None:
    have = {name.lower() for name, _ in situation.columns}
    missing = [name for name in settings.needed_columns if name.lower() not in have]
    if missing:
        raise FixRequest(
            "TS1822",
            f"model {situation.name} has no column {missing[0]!r}",
            why=f"its config needs it; its query gives {', '.join(name for name, _ in situation.columns)}",
            fix=f"select {missing[0]!r} in the model, or change primary_key, partition_by or sequence_field",
        )


def _require_interval(settings: TableSettings, situation: Situation) -> None:
    """Before the first batch: a later one could not say which rows are its own."""
    batch = situation.batch
    if settings.strategy != "microbatch":
        return
    if batch is None:
        raise FixRequest(
            "TS1829",
            f"model {situation.name}: microbatch without an interval",
            why="dbt gives intervals only to materialized='incremental' with event_time and begin",
            fix="set materialized='incremental', event_time, batch_size and begin",
        )
    kinds = {name.lower(): kind for name, kind in situation.columns}
    kind = kinds.get(batch.event_time.lower())
    if kind is None or kind.lower() not in _MOMENTS:
        raise FixRequest(
            "TS1886",
            f"model {situation.name}: event_time {batch.event_time!r} cannot say which rows a batch replaces",
            why=f"the query gives it as {kind}; expected one of {', '.join(_MOMENTS)}"
            if kind
            else f"the query gives {', '.join(name for name, _ in situation.columns)}",
            fix=f"select {batch.event_time!r} in the model as a date or timestamp, or name another event_time",
        )


def _require_same_table(settings: TableSettings, situation: Situation) -> None:
    """What decides where and in which order rows lie, and which row wins, changes only by a full refresh."""
    unneutral = find_unneutral(situation.table_layout.options) if settings.affected is not None else None
    if unneutral is not None:
        raise FixRequest(
            "TS2010",
            f"table {situation.name} of a changed_keys model has {unneutral!r}",
            why=f"its value {situation.table_layout.options[unneutral]!r} can keep another row of a key than the one "
            "that the query gives now",
            fix="run once with --full-refresh; if the error stays, ALTER TABLE "
            f"{situation.name} UNSET TBLPROPERTIES ('{unneutral}')",
        )
    for change in list_changes(settings, situation.table_layout):
        if change.is_asked:
            raise FixRequest(
                "TS1826",
                f"model {situation.name} changes {change.what} of an existing table",
                why=f"the table has {change.present!r}, the model has {change.wanted!r}",
                fix="run once with --full-refresh, or keep the table's value",
            )


def _check_schema_change(settings: TableSettings, situation: Situation) -> None:
    added, removed, retyped = diff_columns(situation.columns, situation.table_columns)
    if settings.on_schema_change == "ignore" and removed:
        raise FixRequest(
            "TS1828",
            f"model {situation.name} no longer gives column {removed[0]!r}",
            why="on_schema_change is 'ignore', which keeps the table's columns and needs values for them",
            fix="select the column again, or set on_schema_change to append_new_columns or sync_all_columns",
        )
    if settings.on_schema_change == "fail" and (added or removed or retyped):
        raise FixRequest(
            "TS1827",
            f"the source and target schemas of model {situation.name} are out of sync",
            why=f"new columns {list(added)}, missing columns {list(removed)}, other types {list(retyped)}",
            fix="set on_schema_change to append_new_columns or sync_all_columns, or run with --full-refresh",
        )


def diff_columns(new: Columns, old: Columns) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """(added, removed, with another type), names as their side writes them."""
    old_types = {name.lower(): kind for name, kind in old}
    new_names = {name.lower() for name, _ in new}
    added = tuple(name for name, _ in new if name.lower() not in old_types)
    removed = tuple(name for name, _ in old if name.lower() not in new_names)
    retyped = tuple(name for name, kind in new if _bare(old_types.get(name.lower(), kind)) != _bare(kind))
    return added, removed, retyped


def _bare(kind: str) -> str:
    """Types of tables have their names of fields in backticks, those of queries have not."""
    return kind.replace("`", "")


def _require_same_fields(situation: Situation) -> None:
    """UNION ALL takes fields of structs by position, and says nothing where their names differ."""
    stored = {name.lower(): kind for name, kind in situation.table_columns}
    for name, kind in situation.columns:
        present = stored.get(name.lower(), kind)
        if _FIELD.findall(_bare(kind).lower()) != _FIELD.findall(_bare(present).lower()):
            raise FixRequest(
                "TS1833",
                f"model {situation.name} gives other fields in {name!r} than the table has, or another order of them",
                why=f"delete+insert with incremental_predicates needs the same; the query gives {_bare(kind)}, the "
                f"table has {_bare(present)}",
                fix="name the fields in the order of the table, leave incremental_predicates out, or run once with "
                "--full-refresh",
            )


def _increment(settings: TableSettings, situation: Situation) -> tuple[str, WriteMode, RowFilter | None]:
    """The query, how its rows are written, and which stored rows give way."""
    sides = Sides(
        situation.sql,
        tuple(name for name, _ in situation.columns),
        situation.name,
        tuple(name for name, _ in situation.table_columns),
    )
    upsert = WriteMode.UPSERT if settings.primary_key else WriteMode.APPEND
    match settings.strategy:
        case "delete+insert" if settings.delete_key and settings.predicates:
            _require_same_fields(situation)
            columns = _result_columns(settings, situation)
            select = replace_select(sides, settings.delete_key, columns, settings.predicates)
            return select, WriteMode.OVERWRITE_TABLE, None
        case "delete+insert" if settings.delete_key:
            return sides.sql, WriteMode.REPLACE, SameKeys(settings.delete_key)
        case "insert_overwrite":
            return sides.sql, WriteMode.OVERWRITE_PARTITIONS, None
        case "microbatch" if situation.batch is not None:
            batch = situation.batch
            return (
                sides.sql,
                WriteMode.REPLACE,
                Interval(batch.event_time, batch.start, batch.end),
            )
        case "merge":
            select = merge_select(
                sides,
                settings.primary_key,
                update=settings.update_columns,
                exclude=settings.exclude_columns,
                predicates=settings.predicates,
            )
            return select, upsert, None
        case "changed_keys":
            return _changed_keys(settings, situation, sides)
        case _:
            return sides.sql, upsert, None


def _changed_keys(
    settings: TableSettings, situation: Situation, sides: Sides
) -> tuple[str, WriteMode, RowFilter | None]:
    if settings.affected is None or situation.affected is None or _moves_columns(situation):
        return sides.sql, WriteMode.OVERWRITE_TABLE, None
    select = changed_keys_select(
        sides.sql,
        situation.affected,
        key=settings.affected.key,
        primary_key=settings.primary_key,
        columns=sides.columns,
        table=situation.name,
    )
    return select, WriteMode.UPSERT, None


def _moves_columns(situation: Situation) -> bool:
    """Then rows that no change affects differ too."""
    return any(diff_columns(situation.columns, situation.table_columns))


def _result_columns(settings: TableSettings, situation: Situation) -> tuple[str, ...]:
    """Columns of the table after this run."""
    table = tuple(name for name, _ in situation.table_columns)
    new = tuple(name for name, _ in situation.columns)
    added, removed, _ = diff_columns(situation.columns, situation.table_columns)
    match settings.on_schema_change:
        case "append_new_columns":
            return table + added
        case "sync_all_columns":
            gone = {name.lower() for name in removed}
            return tuple(name for name in table if name.lower() not in gone) + added
        case _:
            return table or new
