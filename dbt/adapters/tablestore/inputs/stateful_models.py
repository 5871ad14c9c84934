"""Streaming models whose SQL needs earlier rows: windows of time, running totals, joins of streams.

CHANGE     which stateful queries a model may have
INVARIANT  the state behind a run's rows is named by the commit of these rows (the position `state`): a run that is
           killed, held back, rolled back or repeated goes on from what the table's own snapshot names (decision 0045).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from dbt.adapters.tablestore.inputs.query_errors import UnsupportedModelQuery
from dbt.adapters.tablestore.plan.engine_spec import ModelSettings
from tablestore_engine.api import Engine, FixRequest, TableVersion, Unsupported
from tablestore_engine.spi import STATE_POSITION, OutputMode, PositionStep


@dataclass(frozen=True)
class StateFigures:
    """Of one run. `late`: groups of rows behind the watermark, which count no more; of a join or DISTINCT rows."""

    late: int
    state_rows: int
    state_bytes: int

    def __str__(self) -> str:
        """`120 rows remembered, 3 groups late`."""
        late = "1 group" if self.late == 1 else f"{self.late} groups"
        return f"{self.state_rows} rows remembered" + (f", {late} late" if self.late else "")


@dataclass(frozen=True)
class RangeOfState:
    """`versions`: what every name of the query means in this run; `state`: of the run before."""

    table: str
    versions: Mapping[str, TableVersion]
    key: Sequence[str]
    state: str | None
    begins: bool


@dataclass(frozen=True)
class StatefulRows:
    """`rows`: SQL."""

    rows: str
    steps: Mapping[str, PositionStep] = field(default_factory=dict)
    figures: StateFigures | None = None


@dataclass(frozen=True)
class StatefulModel:
    """`query` is the model's, with the names `streams` in it; `clause`: why one range cannot answer it."""

    query: str
    streams: tuple[str, ...]
    mode: OutputMode
    clause: str

    @contextmanager
    def rows(
        self, engine: Engine, select: str, taken: RangeOfState, *, has_news: bool
    ) -> Iterator[StatefulRows]:
        """`select`: the planned write, over the query. Raises FixRequest TS1455, TS1456, TS1457."""
        assert self.query in select  # plans use a query as it is (plan/select_sql.py)
        if not has_news:
            yield StatefulRows(select.replace(self.query, f"select * from (\n{self.query}\n) where false", 1))
            return
        with engine.stateful.run(
            taken.table,
            self.query,
            self.streams,
            mode=self.mode,
            state=taken.state,
            key=taken.key,
            versions=taken.versions,
        ) as done:
            step = PositionStep(taken.state, done.state, is_reset=taken.begins)
            yield StatefulRows(
                select.replace(self.query, done.select, 1),
                {STATE_POSITION: step},
                StateFigures(done.late, done.state_rows, done.state_bytes),
            )


def plan_stateful(
    engine: Engine,
    settings: ModelSettings,
    query: str,
    streams: tuple[str, ...],
    clause: str,
    versions: Mapping[str, TableVersion],
    *,
    has_kinds: bool,
) -> StatefulModel:
    """`clause`: why one range cannot answer it. Raises Unsupported TS1844."""
    name = settings.node.rsplit(".", maxsplit=1)[-1]
    if has_kinds:
        raise _refused(
            name,
            clause,
            "its result has _row_kind: what Spark remembers of rows says nothing of rows taken back",
        )
    assert settings.table.streaming is not None
    try:
        mode = engine.stateful.choose_mode(
            query,
            streams,
            wanted=settings.table.streaming.output_modes,
            key=settings.table.primary_key,
            versions=versions,
        )
    except Unsupported as refusal:
        raise _refused(name, clause, f"{refusal.what}: {refusal.why}") from None
    return StatefulModel(query, streams, mode, clause)


def other_query(node: str) -> FixRequest:
    """A model whose SQL was changed."""
    return FixRequest(
        "TS1860",
        f"the SQL of model {node.rsplit('.', maxsplit=1)[-1]} is another than that of what it remembers",
        why="rows and totals of earlier runs were made by the SQL before, and cannot be taken over by another",
        fix="run it with --full-refresh, or take the change back; with on_configuration_change='continue' it stays",
    )


def _refused(name: str, clause: str, why: str) -> UnsupportedModelQuery:
    return UnsupportedModelQuery(
        "TS1844",
        f"model {name} cannot be kept up: over a stream it has {clause}",
        why=why,
        fix="a window of time needs a watermark (from … watermark column delay of interval 10 minutes); "
        "incremental_strategy='changed_keys' keeps any query equal to its full refresh; or read without stream()",
    )
