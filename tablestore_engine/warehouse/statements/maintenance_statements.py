"""OPTIMIZE, VACUUM, and what has no effect here: hooks of projects that come from other adapters.

CHANGE     OPTIMIZE, VACUUM and statements without effect
INVARIANT  they change no row, but expire records. While a table's new rows wait for their tests they leave it alone,
           and say so: a hook runs behind its model, and must not fail what is written already.
"""

from __future__ import annotations

from tablestore_engine.spark.fetch_rows import Fetched
from tablestore_engine.sql import statement as sql
from tablestore_engine.warehouse.statements.running_statement import RunningStatement, StatementResult

_ORDER = "rows lie by partition, bucket and primary key"
_WHOLE = "the whole table was compacted"


def optimize(run: RunningStatement, s: sql.Optimize) -> StatementResult:
    """One run per bucket without dead rows; ZORDER BY sorts the rows of a table that has no order of its own."""
    if _waits(run, s.name):
        return _waiting("OPTIMIZE", s.name)
    place = run.place(s.name)
    is_sorted = bool(s.z_order) and not run.actions.can_cluster(*place)
    done = run.actions.compact(*place, z_order=() if is_sorted else s.z_order)
    notices = [f"OPTIMIZE … WHERE: {_WHOLE}"] * s.has_filter + [f"OPTIMIZE … ZORDER: {_ORDER}"] * is_sorted
    return StatementResult(_lines(done), notice="; ".join(notices) or None)


def vacuum(run: RunningStatement, s: sql.Vacuum) -> StatementResult:
    """Old snapshots go, with the files that nothing else needs, and files that nothing names."""
    if _waits(run, s.name):
        return _waiting("VACUUM", s.name)
    done = run.actions.vacuum(*run.place(s.name), retain_hours=s.retain_hours, dry_run=s.dry_run)
    return StatementResult(_lines(*done))


def analyze(run: RunningStatement, s: sql.Analyze) -> StatementResult:
    """Rows and values are counted, and stored with a snapshot that changes no row."""
    if _waits(run, s.name):
        return _waiting("ANALYZE", s.name)
    run.schema(s.name)
    return StatementResult(_lines(run.actions.analyze(*run.place(s.name), s.columns)))


def no_effect(_: RunningStatement, s: sql.NoEffect) -> StatementResult:
    return StatementResult(notice=f"{s.verb} has no effect: {s.why}")


def _lines(*texts: str) -> Fetched:
    return Fetched((("result", "string"),), tuple((text,) for text in texts))


def _waits(run: RunningStatement, name: sql.TableName) -> bool:
    version = run.overrides.version(*run.place(name))
    return version is not None and version.branch is not None


def _waiting(verb: str, name: sql.TableName) -> StatementResult:
    return StatementResult(notice=f"{verb} of {name} has no effect: its new rows wait for their tests")
