"""What the publish coordinator says: what is held back and why, what of a publication failed, what cannot be replanned.

CHANGE     the lines of a dbt run about held-back and published tables
INVARIANT  pure: says of every table what is true of it, no more and no less.
"""

from __future__ import annotations

from collections.abc import Collection

from dbt.adapters.tablestore.gate.microbatches import lost_note
from tablestore_engine.api import RetryError, TableVersion
from tablestore_engine.spi import (
    PENDING,
    PUBLISHED,
    Outcome,
    Publication,
    Staged,
    kept_text,
    short_name,
    versioned_database,
)


def not_ours(item: Staged) -> RetryError:
    """TS1887: only the run that staged a batch can plan it again."""
    return RetryError(
        "TS1887",
        f"{item.table} cannot be planned again in this run",
        why="another writer committed rows, and batches of an earlier run are staged with those of this one",
        fix=f"dbt build --select {item.owner.split('.')[-1]}{lost_note(item.batches)}",
    )


def vanished(item: Staged) -> RetryError:
    """TS1890: what this run wrote is neither staged nor published any more."""
    return RetryError(
        "TS1890",
        f"the rows that this run wrote to {item.table} are gone: nothing of them is published",
        why=f"another process dropped staged snapshot {item.name} after they were written",
        fix=f"dbt build --select {item.owner.split('.')[-1]}{lost_note(item.batches)}",
    )


def joined_line(item: Staged) -> str:
    """Batches of this run go out with those of an earlier one."""
    return (
        f"{item.table}: batches of an earlier run wait in staged snapshot {item.name}; "
        "those of this run join them, and all are published together"
    )


def dropped(item: Staged, root: Staged, why: str) -> str:
    """What goes, since `root` does: that is the same, or what it was built from."""
    reason = why if item.key == root.key else "goes with it: it was built from it"
    return f"staged snapshot {item.snapshot} of {item.table}, which was waiting, {reason}{lost_note(item.batches)}"


def held_line(item: Staged, reason: str) -> str:
    """What is held back, why, and where its rows can be looked at."""
    if item.is_out:
        return f"{item.table}: {reason}; send it: tablestore publish {item.table}"
    database, table = item.table.split(".", maxsplit=1)
    if item.is_beside:
        where = f"`{versioned_database(database, TableVersion(branch=item.name))}`.`{table}`"
        return f"{item.table} NOT published: {reason}; its rows: select * from {where}"
    rows, changes = (
        f"tablestore head {item.table} --snapshot @staged",
        f"tablestore diff {item.table} @staged",
    )
    return f"{item.table} NOT published: {reason}; its rows: {rows}; its changes: {changes}"


def abstention(item: Staged, outcome: Outcome) -> str:
    """Of a test that was taken for a gate, since dbt's graph does not tell which version it reads."""
    read = sorted({one.snapshot for one in outcome.constants if one.table == item.table})
    which = ", ".join(str(number) for number in read)
    return (
        f"{short_name(outcome.test)} read {item.table} only at versions that it names itself (snapshot {which}): "
        "it says nothing about the staged rows, and they do not wait for it"
    )


def summary(held: Collection[Staged], ends: Collection[int | None]) -> str:
    """One line for all; a table that readers see already does not wait, only its log does.

    `ends`: when their retention ends.
    """
    waiting = sorted(item.table for item in held if not item.is_out)
    pending = sorted(item.table for item in held if item.is_out)
    first = min((until for until in ends if until is not None), default=None)
    said = []
    if waiting:
        names = ", ".join(waiting)
        said.append(
            f"{len(waiting)} of this run's tables wait, and readers do not see them yet: {names} (tablestore staged)"
            f"; kept until {kept_text(first)}"
        )
    if pending:
        names = ", ".join(pending)
        said.append(f"{len(pending)} of this run's tables are published, and their logs are pending: {names}")
    return "; ".join(said)


def failed(done: Collection[Publication]) -> RetryError:
    pending = [one for one in done if one.state == PENDING]
    refused = [one for one in done if one.state not in (PENDING, PUBLISHED)]
    names = ", ".join(one.staged.table for one in (*refused, *pending))
    waiting = [one for one in refused if one.waits_for_log]
    old = [one for one in refused if one not in waiting]
    owners = " ".join(sorted({(one.staged.owner or one.staged.table).split(".")[-1] for one in old}))
    steps = []
    if old:
        steps.append(f"build on what is there now: dbt build --select {owners}")
    if waiting:
        steps.append("set the log right, then dbt retry: what is staged waits with its verdicts")
    if pending:
        steps.append("send what is pending: dbt retry, or tablestore publish for each table")
    return RetryError(
        "TS1876",
        f"publishing {names} failed",
        why="; ".join(one.line() for one in done),
        fix="; ".join(steps),
    )


def red_again(tables: Collection[str], red: Collection[str]) -> RetryError:
    return RetryError(
        "TS1878",
        f"{', '.join(sorted(tables))} NOT published: planned again after a commit of another writer, "
        f"{', '.join(red)} failed",
        why="the tests passed on the rows before that commit, and fail on the rows with it",
        fix="look at the staged rows (tablestore staged show), correct the data, and build again",
    )
