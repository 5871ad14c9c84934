"""The state of a table at the start of an operation: passed on, so that its steps need no further requests.

INVARIANT  it is right at one instant of the operation that looked, and is never kept beyond it. A plan may be made on
           it, since the claim looks at the table again; a retry looks anew.
"""

from __future__ import annotations

from dataclasses import dataclass

from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.snapshot import Snapshot


@dataclass(frozen=True)
class SeenTable:
    """`identity`: of the table that was looked at; `snapshot`: the newest one, None when there is none; `schema`: the
    table's (see schemas); `newest_schema_id`: the highest number of a schema file, None where nobody looked.
    """

    identity: str | None
    snapshot: Snapshot | None
    schema: TableSchema
    newest_schema_id: int | None = None
