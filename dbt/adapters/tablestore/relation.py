"""Names of tables in SQL, and the past versions of them that `ref('orders').at(…)` gives.

Database   a warehouse has one level above tables, the schema. `database` is None; Spark's name for its catalog and the
           schema's own name mean the same, as packages write them; any other is refused

WHY        the version lies in render(), so that dbt's --empty, --sample and microbatch filters wrap it
           (anything appended after `{{ ref() }}` would end up outside their subquery).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta
from typing import Any

from dbt.adapters.base.relation import EventTimeFilter
from dbt.adapters.contracts.relation import HasQuoting, RelationConfig, RelationType
from dbt.adapters.spark.relation import SparkRelation
from jinja2 import Undefined

from dbt.adapters.tablestore.dbt_errors import as_dbt_errors
from tablestore_engine.api import FixRequest, TableVersion
from tablestore_engine.spi import epoch_millis, versioned_database

_NAME = re.compile(r"[A-Za-z0-9_]+")
_CATALOG = "spark_catalog"


def parse_timestamp_ms(value: str | datetime | int) -> int:
    """Epoch milliseconds of an ISO text, a datetime or a number; without an offset it is UTC."""
    if isinstance(value, int):
        return value
    try:
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    except ValueError as error:
        raise FixRequest(
            "TS1804",
            f"{value!r} is not a moment",
            why="expected an ISO date or date and time",
            fix="write it like '2026-01-31 14:00' or '2026-01-31T14:00:00+01:00'",
        ) from error
    return epoch_millis(moment)


def parse_version(value: Any) -> TableVersion:  # noqa: ANN401 - comes from YAML
    """What a user writes in `tablestore_as_of`: a snapshot id, a moment, or a tag's name."""
    if isinstance(value, bool) or not isinstance(value, int | str | datetime):
        raise FixRequest(
            "TS1804",
            f"{value!r} is not a version of a table",
            why="expected a snapshot id, a moment or a tag",
            fix="write a number, an ISO date and time, or the name of a tag",
        )
    if isinstance(value, int):
        return TableVersion(snapshot=value)
    if isinstance(value, datetime) or re.match(r"\d{4}-\d{2}-\d{2}", value):
        return TableVersion(timestamp_ms=parse_timestamp_ms(value))
    return (
        TableVersion(snapshot=int(value))
        if value.isdigit()
        else TableVersion(tag=_checked_name("tag", value))
    )


def _checked_name(kind: str, name: str) -> str:
    if not _NAME.fullmatch(name):
        raise FixRequest(
            "TS1805",
            f"{kind} {name!r} cannot be used in at()",
            why="Spark allows only letters, digits and underscores in the name it is read by",
            fix=f"use VERSION AS OF '{name}' in plain SQL, or a simpler name",
        )
    return name


@as_dbt_errors()
def _check_database(database: str | None, schema: str | None, what: str) -> None:
    if database and database.lower() not in {_CATALOG, (schema or "").lower()}:
        raise FixRequest(
            "TS1807",
            f"{what} has the database {database!r}",
            why=f"Spark has one level above tables, and the schema is {schema!r}",
            fix=f"remove `database:` there, or write {_CATALOG}",
        )


def _next_midnight(moment: datetime | None) -> datetime | None:
    """The first midnight in UTC that is not before it."""
    if moment is None:
        return None
    midnight = datetime.combine(moment.astimezone(UTC).date(), time(), UTC)
    return midnight if midnight == moment else midnight + timedelta(days=1)


@dataclass(frozen=True, eq=False, repr=False)
class TablestoreRelation(SparkRelation):
    """A table or view of the warehouse; `version` is set only on what at() returned."""

    version: TableVersion | None = None
    renameable_relations: frozenset[str] = field(
        default_factory=lambda: frozenset({RelationType.Table, RelationType.View})
    )
    replaceable_relations: frozenset[str] = field(
        default_factory=lambda: frozenset({RelationType.Table, RelationType.View})
    )

    @classmethod
    def create(
        cls,
        database: str | None = None,
        schema: str | None = None,
        identifier: str | None = None,
        type: RelationType | None = None,  # noqa: A002 - dbt's name
        **kwargs: Any,  # noqa: ANN401 - dbt's signature
    ) -> TablestoreRelation:
        """What a macro has no value for may come as Jinja's Undefined. Raises TS1807."""
        database, schema, identifier = (
            None if isinstance(part, Undefined) else part for part in (database, schema, identifier)
        )
        _check_database(database, schema, f"the relation {schema}.{identifier}")
        made = super().create(None, schema, identifier, type, **kwargs)
        assert isinstance(made, cls)
        return made

    def _render_event_time_filtered(self, event_time_filter: EventTimeFilter) -> str:
        """dbt's texts with the offset +00:00, which Spark reads as instants, or as the clock of UTC for TIMESTAMP_NTZ.
        For a DATE it drops their time; a date is its midnight in UTC instead, as in Interval.
        """
        plain = super()._render_event_time_filtered(event_time_filter)
        start, end = _next_midnight(event_time_filter.start), _next_midnight(event_time_filter.end)
        if (start, end) == (event_time_filter.start, event_time_filter.end):
            return plain
        column = event_time_filter.field_name
        dates = super()._render_event_time_filtered(EventTimeFilter(column, start, end))
        return f"case when typeof({column}) = 'date' then {dates} else {plain} end"

    @classmethod
    def create_from(
        cls,
        quoting: HasQuoting,
        relation_config: RelationConfig,
        **kwargs: Any,  # noqa: ANN401 - dbt's signature
    ) -> TablestoreRelation:
        """The relation of a node or source of the project. Raises TS1807 with the file that says so."""
        file = getattr(relation_config, "original_file_path", None)
        what = f"{relation_config.resource_type} {relation_config.name}" + (f" ({file})" if file else "")
        _check_database(relation_config.database, relation_config.schema, what)
        made = super().create_from(quoting, relation_config, **kwargs)
        assert isinstance(made, cls)
        return made

    @as_dbt_errors()
    def at(
        self,
        snapshot: int | None = None,
        *,
        tag: str | None = None,
        timestamp: str | datetime | int | None = None,
        branch: str | None = None,
        watermark: str | datetime | int | None = None,
    ) -> TablestoreRelation:
        """The table as it was: `at(5)`, `at(tag='audited')`, `at(timestamp='2026-01-31 14:00')`."""
        given = [name for name in (snapshot, tag, timestamp, branch, watermark) if name is not None]
        if len(given) != 1 or isinstance(snapshot, bool) or not isinstance(snapshot, int | None):
            raise FixRequest(
                "TS1804",
                f"at() of {self.render()} does not name one version",
                why="expected exactly one of snapshot (a number), tag, timestamp, watermark, branch",
                fix="write at(snapshot=5), at(tag='name') or at(timestamp='2026-01-31 14:00')",
            )
        version = TableVersion(
            snapshot=snapshot,
            tag=None if tag is None else _checked_name("tag", tag),
            timestamp_ms=None if timestamp is None else parse_timestamp_ms(timestamp),
            branch=None if branch is None else _checked_name("branch", branch),
            watermark=None if watermark is None else parse_timestamp_ms(watermark),
        )
        return self.replace(version=version)

    def render(self) -> str:
        """`demo.orders`, or `` `demo__at_snapshot_5`.`orders` `` for a version."""
        if self.version is None or self.schema is None:
            return str(super().render())
        return f"`{versioned_database(self.schema, self.version)}`.`{self.identifier}`"

    @property
    def table_name(self) -> str:
        """`demo.orders`, the name the engine knows it by, whatever the quoting policy is."""
        return f"{self.schema}.{self.identifier}"

    def is_same_name(self, other: SparkRelation) -> bool:
        """Whether both are one name of the warehouse; case does not tell them apart on every disk."""
        return self.table_name.lower() == f"{other.schema}.{other.identifier}".lower()
