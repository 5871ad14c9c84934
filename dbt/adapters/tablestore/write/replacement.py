"""A new table in the place of a view, or of a table laid out otherwise: complete first, then in its place.

Steps      the engine's `beside`: two renames behind the last row, which any later look finishes; of a gated one
           when its tests pass (decisions 0015, 0049)
INVARIANT  rows that are refused leave the old table or view as it was.
INVARIANT  a topic never gets rows of two tables: another table under the name needs another topic.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from dbt.adapters.tablestore.messages import logger
from dbt.adapters.tablestore.plan.build_plan import Action
from dbt.adapters.tablestore.write.model_job import ModelJob
from tablestore_engine.api import Engine, FixRequest


def must_replace(engine: Engine, job: ModelJob, *, is_staged: bool) -> bool:
    """Whether a view of the name, or a table laid out otherwise, gives way: neither can be turned into this table.

    Raises FixRequest TS1832 when both have the same topic; TS1888 when it waits and comes in batches, before the first.
    """
    existing = job.context.existing
    is_view = existing is not None and bool(existing.is_view)
    if not is_view and job.plan.action != Action.RECREATE:
        return False
    name = job.relation.table_name
    if is_staged and job.batch is not None:
        raise _no_batches_beside(name)
    changed = ", ".join(f"{one.what} {one.present} -> {one.wanted}" for one in job.plan.changes)
    _check_topic(engine, name, dict(job.settings.table.options), changed)
    if not is_view:
        when = " when its tests pass" if is_staged else ""
        logger.warning(f"{name}: {changed}; the table is created again{when}, its history ends")
    return True


def _no_batches_beside(name: str) -> FixRequest:
    model = name.rsplit(".", maxsplit=1)[-1]
    return FixRequest(
        "TS1888",
        f"table {name} is created again from batches and is published only after its tests",
        why="batches build on what readers have, and this one takes the place of another relation",
        fix=f"dbt run --full-refresh --select {model}, which with publish='auto' waits for no test",
    )


def _check_topic(engine: Engine, name: str, options: Mapping[str, str], changed: str) -> None:
    found = engine.find_seen_table(name)
    old = {} if found is None else found.schema.options
    topic = options.get("kafka.topic")
    is_logged = all(one.get("log.system", "none") != "none" for one in (old, options))
    if not is_logged or topic is None or topic != old.get("kafka.topic"):
        return
    raise FixRequest(
        "TS1832",
        f"table {name} changes {changed} and keeps its topic {topic!r}",
        why="it becomes another table, and a topic belongs to one table: consumers could not tell messages with the "
        "old key, partitions or format from new ones",
        fix=f"set another kafka_topic in the model, which gets all rows of the new table ({topic!r} is deleted then "
        f"if it was made for the table); or drop the table with its topic first: tablestore sql 'drop table {name}'; "
        f"for another number of buckets alone: tablestore rescale {name} --buckets N",
    )


def check_no_topic(engine: Engine, name: str) -> None:
    """Raises FixRequest TS2070 for a table with a changelog topic, which a view in its place cannot have."""
    found = engine.find_seen_table(name)
    facts = None if found is None else found.facts()
    if facts is not None and facts.log is not None:
        raise FixRequest(
            "TS2070",
            f"view {name} does not replace the table {name}: the table's Kafka topic would be dropped",
            why=f"topic {facts.log}, {facts.rows} rows and all snapshots up to {facts.snapshot_id} would be lost, "
            "and consumers of the topic would get no more changes",
            fix="run dbt with --full-refresh to drop them, or keep the materialization of the model",
        )


def check_view(name: str, read: Collection[str]) -> None:
    """Raises FixRequest TS1880 when a view that takes a table's place reads that table, be it through other views."""
    if name.lower() in read:
        raise FixRequest(
            "TS1880",
            f"view {name} cannot take the place of the table {name}",
            why="its query reads that table, and would read itself once the table is dropped",
            fix="read another relation in the model, or keep it a table",
        )
