"""The kinds of commit of a warehouse: what each checks, sends and releases, and whether old files expire after it.

CHANGE     what is done around a commit: a row here, performed by Warehouse.run_commit
INVARIANT  a kind whose rows reach the log checks the log before the commit; only a kind that changes no visible row
           has no check.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class LogCheck(StrEnum):
    """Who asks the table's log, before the commit, whether it can take the rows."""

    TABLE = "run_commit, with the table's schema"
    STAGED = "run_commit, with the schema of the staged snapshot"
    WRITER = "the commit, once it knows the schema that its rows bring"
    NONE = "nobody: no visible row changes"


class Sends(StrEnum):
    """What the log gets after the commit."""

    PENDING = "everything that it lacks"
    ROWS = "everything that it lacks, if this commit has a changelog"
    NOTHING = "nothing: the user asked for that"


@dataclass(frozen=True)
class CommitSteps:
    """One kind. `sends_first`: the log gets what it lacks before the commit as well; `releases`: the staged snapshot
    is dropped once the log has its rows; `expires`: partitions and snapshots that are due.
    """

    name: str
    check: LogCheck
    sends: Sends = Sends.PENDING
    sends_first: bool = False
    releases: bool = False
    expires: bool = True


WRITE = CommitSteps("write", LogCheck.WRITER)
WRITE_UNSENT = CommitSteps("write with publish=False", LogCheck.WRITER, Sends.NOTHING)
COMPACT = CommitSteps("compaction", LogCheck.NONE, Sends.ROWS)
COMPACT_LEVEL_ZERO = CommitSteps("compaction that readers see", LogCheck.TABLE, Sends.ROWS)
RESTORE = CommitSteps("restore", LogCheck.TABLE)
RESCALE = CommitSteps("rescale", LogCheck.TABLE, sends_first=True)
ANALYZE = CommitSteps("analysis", LogCheck.NONE, Sends.ROWS)
CONVERT = CommitSteps("conversion", LogCheck.NONE, Sends.ROWS)
PUBLISH_STAGED = CommitSteps("publication of a staged snapshot", LogCheck.STAGED, releases=True)
EXPIRE_PARTITIONS = CommitSteps("expiry of partitions", LogCheck.TABLE, Sends.ROWS, expires=False)
KINDS = (
    WRITE, WRITE_UNSENT, COMPACT, COMPACT_LEVEL_ZERO, RESTORE, RESCALE, ANALYZE, CONVERT, PUBLISH_STAGED,
    EXPIRE_PARTITIONS,
)  # fmt: skip
