"""What a TracedQuery says of a query whose inputs change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from tablestore_engine.format.data_type import DataField

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from tablestore_engine.format.group_state_file import GroupState
    from tablestore_engine.spark.merged_rows import FindRows

GROUPS_MAX = 500_000  # more are not kept: small groups are cheap to evaluate


@dataclass(frozen=True)
class AffectedKeys:
    """`rows`: the columns of the key, each key once, of the types of `schema`; None: `clause` says why there are none.
    `view`: a temporary view of them, if it was made. `nullable`: the columns with a NULL among them. `is_cut`: there
    are more than were asked for.
    """

    view: str | None
    count: int
    clause: str = ""
    nullable: frozenset[str] = frozenset()
    is_cut: bool = False
    rows: pa.Table | None = None
    schema: StructType | None = None


@dataclass(frozen=True)
class Before:
    """`find_rows`: stored rows of the result. `views`: names of views for rows and for keys to evaluate. `state`: of
    all groups, if the query has one.
    """

    find_rows: FindRows
    views: tuple[str, str]
    state: GroupState | None = None


@dataclass(frozen=True)
class Deltas:
    """`view`: temporary view with `rows` rows of the result and their row kinds. `again`: keys to evaluate besides. If
    there are none, `table` has the rows of plain types in place of a view; `fields`: without the row kinds.
    `is_merged`: the rows follow from stored ones, so that these must be the same when the rows are written.

    `clause`: why there are no deltas. `state`: of all groups behind the changes, if the query has one. `keys`: of rows
    that are put or deleted, and of those for which the query was or is evaluated; `evaluated`: the latter.
    """

    view: str | None = None
    rows: int = 0
    again: AffectedKeys = AffectedKeys(None, 0)
    is_merged: bool = False
    clause: str = ""
    table: pa.Table | None = None
    fields: tuple[DataField, ...] = ()
    state: GroupState | None = None
    keys: int = 0
    evaluated: int = 0


@dataclass(frozen=True)
class FollowedInput:
    """How the keys are found that a change of a table affects: by a join of its changes with `joined`, none: from them
    alone. `clause`: why they cannot be found.
    """

    table: str
    joined: tuple[str, ...] = ()
    clause: str | None = None


@dataclass(frozen=True)
class FollowedDeltas:
    """Whether changes of one table have deltas: `clause` says why not, else it is empty. `joined`: tables that each run
    reads for them; `by_key`: those of which it reads a row for each changed one, as long as these are few.
    `lacks_count`: there are groups without count(*), so that a group that loses rows is evaluated.
    """

    clause: str = ""
    joined: tuple[str, ...] = ()
    lacks_count: bool = False
    by_key: tuple[str, ...] = ()
