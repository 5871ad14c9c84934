"""Columns whose stored values may differ from what replication sent, and the rows that have such values.

find_doubts compares the catalog with the record, find_unsent asks for rows. The rules:

Column     as before if number, type and meaning of the type are the same, and not both its entry in pg_attribute and
           the table's relfilenode changed: each ALTER that writes other values changes both
Added      rows from before have NULL, unless a default stands in the catalog or the table was rewritten since
Row        sent, if its transaction began after the first look that saw the catalog as it is: then the row was written
           after the ALTER. WHY not the ALTER's own transaction id: it may be older than rows that were written before
           the statement.
DANGER     transaction ids repeat after 2^32: in a database that has had so many, no row is taken as sent.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tablestore_engine.postgres.catalog_tables import CatalogColumn, CatalogTable, quoted
from tablestore_engine.postgres.connector_state import FollowedTable

_ALL_IDS, _HALF_IDS = 1 << 32, 1 << 31
_SAME_BYTES = {("character varying", "text"), ("text", "character varying")}
_NEXT = "select txid_snapshot_xmax(txid_current_snapshot())"


@dataclass(frozen=True)
class Doubt:
    """Rows of `relation` (SQL) that match `condition` may have values that replication did not send.

    `made`: instead of since the first look, rows younger than this transaction are sent. `cure`: an UPDATE that sends
    the rows.
    """

    relation: str
    condition: str
    why: str
    cure: str
    made: str = ""


@dataclass(frozen=True)
class Since:
    """`transaction`: the first one behind the first look; `is_usable`: rows can be compared with it."""

    transaction: int
    is_usable: bool


def next_transaction(connection: Any) -> int:  # noqa: ANN401 - psycopg's
    """No transaction with this id or a later one has ended; with its epoch.

    Who wrote before an ALTER has ended before it, since it locks the table: its id is lower in any later snapshot.
    """
    return int(connection.execute(_NEXT).fetchone()[0])


def fingerprint(table: CatalogTable) -> str:
    return hashlib.sha256(json.dumps(asdict(table), sort_keys=True).encode()).hexdigest()


def doubt_begin(table: CatalogTable, followed: FollowedTable, here: int) -> Since:
    """`here`: the next transaction. The first look at this state of the catalog is in the record, or is this one."""
    is_known = followed.doubt == fingerprint(table) and 0 < followed.doubt_since <= here
    since = followed.doubt_since if is_known else here
    return Since(since, is_usable=here < _ALL_IDS and here - since < _HALF_IDS)


def find_doubts(table: CatalogTable, followed: FollowedTable) -> tuple[Doubt, ...]:
    """Of its columns and its partitions; none where all values are what replication sent."""
    name, found = quoted((table.schema, table.name)), []
    for column in table.columns:
        why = why_doubted(column, table, followed)
        if why is not None:
            said = quoted((column.name,))
            is_known = column.name.lower() in _names(followed)  # the warehouse has values of that name
            condition = "true" if is_known else f"{said} is not null"
            found.append(Doubt(name, condition, why, _cure(name, column, followed)))
    key = quoted(followed.key[:1])
    for oid in table.leaves.keys() - followed.leaves.keys():
        _, leaf, made, _, how = table.leaves[oid]
        why = f"{leaf} was made a partition of it with rows of before, which replication did not send"
        found.append(
            Doubt(leaf, "true", why, f"update {leaf} set {key} = {key}", made if how == "made" else "")
        )
    return tuple(found)


def _cure(name: str, column: CatalogColumn, followed: FollowedTable) -> str:
    """A generated column cannot be set."""
    said = quoted((column.name,)) if not column.generated else quoted(followed.key[:1])
    return f"update {name} set {said} = {said}"


def _names(followed: FollowedTable) -> frozenset[str]:
    return frozenset(one.lower() for one in followed.columns)


def why_doubted(column: CatalogColumn, table: CatalogTable, followed: FollowedTable) -> str | None:
    """None where the values of a column are what replication sent."""
    name, number = column.name, followed.columns.get(column.name)
    is_rewritten = _is_rewritten(table, followed)
    if number is None and name.lower() not in _names(followed):
        is_added = column.number > max(followed.columns.values(), default=0)
        if is_added and not column.is_filled and not is_rewritten:
            return None
        return f"its column {name} was {'added' if is_added else 'renamed'}, and has values of before"
    if number != column.number:
        return f"its column {name} is another one than before: dropped and added again, or renamed"
    meaning = followed.meanings.get(name, {})
    if any(column.meaning.get(key) != text for key, text in meaning.items()):
        return f"labels or attributes of the type of its column {name} were changed"
    kind = followed.kinds.get(name, column.kind)
    if kind != column.kind and (is_rewritten or not followed.made or not _has_same_bytes(kind, column.kind)):
        return f"the type of its column {name} was {kind} and is {column.kind}"
    if is_rewritten and followed.made.get(name, column.made) != column.made:
        return f"its column {name} was altered and its rows were rewritten: they may have other values"
    return None


def _is_rewritten(table: CatalogTable, followed: FollowedTable) -> bool:
    files = {oid: facts[0] for oid, facts in table.leaves.items()}
    is_other = bool(followed.file) and table.file != followed.file
    return is_other or any(files.get(oid) != file for oid, file in followed.leaves.items())


def _has_same_bytes(before: str, now: str) -> bool:
    """Of a table that was not rewritten: whether its bytes have the same value in both types."""
    pair = re.sub(r"\(.*?\)", "", before), re.sub(r"\(.*?\)", "", now)
    return pair[0] == pair[1] or pair in _SAME_BYTES


def find_unsent(connection: Any, doubts: Sequence[Doubt], since: Since) -> Doubt | None:  # noqa: ANN401 - psycopg's
    """The first doubt that a row confirms; None where replication has sent every row. Raises psycopg.Error."""
    return next((one for one in doubts if _has_rows(connection, one, since)), None)


def _has_rows(connection: Any, doubt: Doubt, since: Since) -> bool:  # noqa: ANN401 - psycopg's
    """All names are quoted."""
    arguments: tuple[str, ...] = ()
    if doubt.made:
        older, arguments = "(age(xmin) >= age(%s::xid) or age(xmin) < 0)", (doubt.made,)
    elif since.is_usable:
        older, arguments = "(age(xmin) > age(%s::xid) or age(xmin) < 0)", (str(since.transaction),)
    else:
        older = "true"
    asked = f"select 1 from {doubt.relation} where {doubt.condition} and {older} limit 1"
    return connection.execute(asked, arguments).fetchone() is not None
