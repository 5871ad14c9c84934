"""What a batch may not be: of several tables, of another key, with messages that cannot be read.

INVARIANT  all is checked before anything is committed.
"""

from __future__ import annotations

from collections.abc import Sequence

from tablestore_engine.errors import FixData, FixRequest
from tablestore_engine.format.data_type import DataField
from tablestore_engine.format.row_kind import ROW_KIND_COLUMN
from tablestore_engine.ingest.decoded_messages import DecodedMessages, UnreadableMessage
from tablestore_engine.ingest.ingest_spec import IngestSpec
from tablestore_engine.log.message_source import RawMessages
from tablestore_engine.spark.incoming_frame import VIOLATION_COLUMN

_HELPERS = frozenset({ROW_KIND_COLUMN.lower(), VIOLATION_COLUMN.lower()})


def one_table(
    spec: IngestSpec, title: str, known: str | None, changes: DecodedMessages, raw: RawMessages
) -> str | None:
    """`known`: of earlier batches. Raises FixData TS1427, unless a pattern says which tables are meant.

    Of a pattern those count that came last: a table may have got another name.
    """
    if spec.source_table is not None:
        return (
            known if not changes.tables else next(iter(changes.tables)) if len(changes.tables) == 1 else None
        )
    tables = dict.fromkeys([*([] if known is None else [known]), *changes.tables])
    if len(tables) > 1:
        first, other = list(tables)[:2]
        raise FixData(
            "TS1427",
            f"{title} has changes of several tables",
            why=f"of {first}, and of {other} at {raw.place(changes.tables[other])}",
            fix="say which are meant (source_table, --source-table): a name, or a pattern as shop.orders_*",
        )
    return next(iter(tables), None)


def check_keys(spec: IngestSpec, key: tuple[str, ...], changes: DecodedMessages, raw: RawMessages) -> None:
    """Where the caller has named no key, it is the messages' own. Raises FixRequest TS1420."""
    names = {name.lower() for name in key}
    for told, number in changes.keys.items():
        if {name.lower() for name in told} == names:
            continue
        raise no_target(
            spec.into,
            f"its key is {', '.join(key)}, that of the message at {raw.place(number)} is {', '.join(told)}: rows would "
            "fall together, or not find each other",
        )


def no_target(table: str, why: str) -> FixRequest:
    return FixRequest(
        "TS1420",
        f"changes cannot go into {table}",
        why=why,
        fix="ingest into a table with the primary key of the source's and without sequence.field; a key that the call "
        "names (key, --key) counts whatever messages say",
    )


def check_names(columns: Sequence[DataField], changes: DecodedMessages) -> None:
    """Raises FixRequest TS1435; what the table does not take may be called as it likes."""
    wanted = {one.name.lower() for one in columns}
    for one in columns:
        if one.name.lower() in _HELPERS:
            raise _forbidden(
                one.name, f"{ROW_KIND_COLUMN} and {VIOLATION_COLUMN} stand beside rows that are written"
            )
    for part in changes.parts:
        seen: set[str] = set()
        for name in part.types:
            if name.lower() in seen & wanted:
                raise _forbidden(name, "another column of the messages has this name in another case")
            seen.add(name.lower())


def _forbidden(name: str, why: str) -> FixRequest:
    return FixRequest(
        "TS1435",
        f"column name {name!r} of the messages is not allowed",
        why=why,
        fix="rename the column in the source, or let the connector leave it out (column.exclude.list)",
    )


def unreadable(spec: IngestSpec, title: str, dead: Sequence[UnreadableMessage], raw: RawMessages) -> FixData:
    """TS1421, of the first one."""
    first = dead[0]
    more = f"; {len(dead) - 1} more of this batch" if len(dead) > 1 else ""
    return FixData(
        "TS1421",
        f"a message of {title} for {spec.into} cannot be read as {spec.format}: {raw.place(first.number)}",
        why=first.reason + more,
        fix="correct the source or the call (columns, decimals, infer); or keep such messages in the table "
        f"{spec.dead_letters} and continue (on_error='dead_letter')",
    )
