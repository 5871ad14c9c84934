"""Every directory and file name of a table, drawn once (format.md#layout).

    <location>/schema/schema-<N>            <location>/tag/tag-<name>
    <location>/snapshot/snapshot-<N>        <location>/consumer/consumer-<id>
    <location>/snapshot/LATEST, EARLIEST    <location>/changelog/changelog-<N>, LATEST, EARLIEST
    <location>/manifest/<name>              <location>/index/<name>        <location>/statistics/<name>
    <location>/expire/floor-<N>-<uuid>, keep-<N>   ours, while snapshots expire or are rolled back (store/expiry)
    <location>/expire/sweep-<uuid>                 ours, while orphan files are deleted (store.commit.orphan_notice)
    <location>/branch/branch-<b>/{schema,snapshot,tag,consumer,changelog}/…
    <location>/expire/turn-<ms>-<expected ms>-<uuid>   ours, while writers are in each other's way (commit_queue)
    <location>/[<k>=<v>/…]bucket-<b>/<data or changelog file>

INVARIANT  data, manifest, index and statistics files are shared by all branches; only metadata is per branch.
INVARIANT  temporary names start with a dot: readers parse every `snapshot-*` and `schema-*` (format.md#layout).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tablestore_engine.errors import FixData, FixRequest

MAIN_BRANCH = "main"
CONSUMER_PREFIX, BRANCH_PREFIX = "consumer-", "branch-"
FLOOR_PREFIX, KEEP_PREFIX, SWEEP_PREFIX, TURN_PREFIX = "floor-", "keep-", "sweep-", "turn-"
DROPPED_PREFIX, CLONE_PREFIX = ".tablestore-dropped-", ".tablestore-clone-"
DATABASE_FILE = ".tablestore-database"  # makes a database without tables exist where there are no folders
STAGED_ROWS = ".tablestore/staged"
STREAMING_STATES = ".tablestore/states"
STATES_OF_BRANCH = "$branch_"  # between the names of a table and a branch
LEFT_LOGS = ".tablestore/left-logs"
POSTPONE_BUCKET = -2
UNAWARE_BUCKET = -1
_NAME = re.compile(r"[^/\\\x00-\x1f]+")
_DIGITS_MAX = 18  # ids are 64-bit numbers


@dataclass(frozen=True)
class TableLayout:
    """Paths of one table directory; `branch` moves schema, snapshots, tags, consumers and changelogs."""

    location: str
    branch: str = MAIN_BRANCH

    @property
    def name(self) -> str:
        """`demo.orders`, for people: the last two folders of the location."""
        database, _, table = self.location.rpartition("/")
        return f"{database.rpartition('/')[2].removesuffix('.db')}.{table}"

    @property
    def root(self) -> str:
        """Directory of this branch's metadata: the table directory for main."""
        return self.location if self.branch == MAIN_BRANCH else self.branch_dir(self.branch)

    @property
    def schema_dir(self) -> str:
        return f"{self.root}/schema"

    def schema_path(self, schema_id: int) -> str:
        """``schema/schema-<N>``, N = 0, 1, 2 …"""
        return f"{self.schema_dir}/schema-{schema_id}"

    @property
    def snapshot_dir(self) -> str:
        """Directory of snapshots and their two hints."""
        return f"{self.root}/snapshot"

    def snapshot_path(self, snapshot_id: int) -> str:
        """``snapshot/snapshot-<N>``, N = 1, 2, 3 …"""
        return f"{self.snapshot_dir}/snapshot-{snapshot_id}"

    @property
    def latest_hint(self) -> str:
        """``snapshot/LATEST``: the decimal id as text without newline."""
        return f"{self.snapshot_dir}/LATEST"

    @property
    def earliest_hint(self) -> str:
        """``snapshot/EARLIEST``."""
        return f"{self.snapshot_dir}/EARLIEST"

    @property
    def expire_dir(self) -> str:
        """Directory of what expiry and rollback tell each other; empty while neither is at work."""
        return f"{self.root}/expire"

    def floor_path(self, snapshot_id: int, uuid: str) -> str:
        """``expire/floor-<N>-<uuid>``: snapshots below N do not count any more, though their files may be there."""
        return f"{self.expire_dir}/{FLOOR_PREFIX}{snapshot_id}-{uuid}"

    def keep_path(self, snapshot_id: int) -> str:
        """``expire/keep-<N>``: a rollback to N is at work."""
        return f"{self.expire_dir}/{KEEP_PREFIX}{snapshot_id}"

    @property
    def sweeps_dir(self) -> str:
        """Directory in which the deletion of orphan files notifies writers: one for all branches, as data files are."""
        return f"{self.location}/expire"

    def sweep_path(self, uuid: str) -> str:
        """``expire/sweep-<uuid>``: the names in it are being deleted."""
        return f"{self.sweeps_dir}/{SWEEP_PREFIX}{uuid}"

    @property
    def changelog_dir(self) -> str:
        """Directory of changelogs that outlive their snapshot."""
        return f"{self.root}/changelog"

    @property
    def tag_dir(self) -> str:
        return f"{self.root}/tag"

    def tag_path(self, name: str) -> str:
        """``tag/tag-<name>``; the name is checked (FixRequest TS1107)."""
        check_tag_name(name)
        return f"{self.tag_dir}/tag-{name}"

    @property
    def consumer_dir(self) -> str:
        return f"{self.root}/consumer"

    def consumer_path(self, consumer_id: str) -> str:
        """``consumer/consumer-<id>``; the id is checked (FixRequest TS1107)."""
        _check_name("consumer", consumer_id)
        return f"{self.consumer_dir}/{CONSUMER_PREFIX}{consumer_id}"

    @property
    def manifest_dir(self) -> str:
        """Directory of manifests, manifest lists and index manifests, shared by branches."""
        return f"{self.location}/manifest"

    def manifest_path(self, name: str) -> str:
        """``manifest/<name>``."""
        return f"{self.manifest_dir}/{check_file_name(name)}"

    @property
    def index_dir(self) -> str:
        """Directory of hash indexes and deletion vectors, shared by branches."""
        return f"{self.location}/index"

    def index_path(self, name: str) -> str:
        """``index/<name>``."""
        return f"{self.index_dir}/{check_file_name(name)}"

    @property
    def statistics_dir(self) -> str:
        """Directory of ANALYZE results, shared by branches."""
        return f"{self.location}/statistics"

    def statistics_path(self, name: str) -> str:
        """``statistics/<name>``."""
        return f"{self.statistics_dir}/{check_file_name(name)}"

    @property
    def branches_dir(self) -> str:
        return f"{self.location}/branch"

    def branch_dir(self, name: str) -> str:
        """``branch/branch-<name>``; the name is checked (FixRequest TS1107)."""
        check_branch_name(name)
        return f"{self.branches_dir}/{BRANCH_PREFIX}{name}"

    def on_branch(self, name: str) -> TableLayout:
        """The layout of another branch of the same table (``main`` gives the table itself)."""
        return TableLayout(self.location, name)

    def partition_dir(self, partition_path: str) -> str:
        """Directory of one partition; `partition_path` is '' or ``k=v/k=v/`` of partition.partition_path."""
        return f"{self.location}/{partition_path}".rstrip("/")

    def bucket_dir(self, partition_path: str, bucket: int) -> str:
        """Directory of one bucket; -1 (unaware) is bucket-0, -2 is bucket-postpone."""
        return f"{self.partition_dir(partition_path)}/{bucket_name(bucket)}"

    def data_file(self, partition_path: str, bucket: int, name: str) -> str:
        """Path of a data or changelog file: always computed, manifests hold names only."""
        return f"{self.bucket_dir(partition_path, bucket)}/{check_file_name(name)}"


def bucket_name(bucket: int) -> str:
    """``bucket-<b>``; ``bucket-0`` for unaware (-1), ``bucket-postpone`` for -2."""
    if bucket == POSTPONE_BUCKET:
        return "bucket-postpone"
    return f"bucket-{0 if bucket == UNAWARE_BUCKET else bucket}"


def database_location(warehouse: str, database: str) -> str:
    """``<warehouse>/<db>.db``; the name is checked (FixRequest TS1107)."""
    _check_name("database", database)
    return f"{warehouse.rstrip('/')}/{database}.db"


def table_location(warehouse: str, database: str, table: str) -> str:
    """``<warehouse>/<db>.db/<table>``; the names are checked (FixRequest TS1107)."""
    _check_name("table", table)
    return f"{database_location(warehouse, database)}/{table}"


def staged_rows_location(warehouse: str) -> str:
    """Rows that tasks of Spark wrote and nobody has committed yet: in no table's folder, so no table's orphan files."""
    return f"{warehouse}/{STAGED_ROWS}"


def streaming_states_location(warehouse: str) -> str:
    """What queries with state remember, a folder for each table that one writes."""
    return f"{warehouse}/{STREAMING_STATES}"


def left_logs_location(warehouse: str) -> str:
    """Records of logs that outlived their tables."""
    return f"{warehouse}/{LEFT_LOGS}"


def replacements_location(warehouse: str, database: str) -> str:
    """``<db>.db/.tablestore/next``: tables that wait to take the place of what has their name, one folder each."""
    return f"{database_location(warehouse, database)}/.tablestore/next"


def find_id(name: str, prefix: str) -> int | None:
    """The number of ``<prefix><N>``, e.g. ``find_id('snapshot-12', 'snapshot-')`` = 12; None for other names."""
    number = name[len(prefix) :]
    is_number = (
        name.startswith(prefix) and number.isascii() and number.isdigit() and len(number) <= _DIGITS_MAX
    )
    return int(number) if is_number else None


def find_floor_id(name: str) -> int | None:
    """The number of ``floor-<N>-<uuid>``; None for other names."""
    return find_id(name[: name.find("-", len(FLOOR_PREFIX))], FLOOR_PREFIX)


def file_format(name: str) -> str:
    """The format of a data file: the text behind its last dot, lower case; '' when there is none (format.md#layout)."""
    return name.rpartition(".")[2].lower() if "." in name else ""


def check_file_name(name: str) -> str:
    """The name that a metadata file gives, when it is one name in its folder. Raises FixData TS1190."""
    if _NAME.fullmatch(name) and not name.startswith(".") and name.isprintable():
        return name
    raise FixData(
        "TS1190",
        f"a metadata file names the file {name[:200]!r}",
        why="a file name has no separators, no control characters and no point in front; this one could lead elsewhere",
        fix="do not use this table before you know who wrote it; restore its metadata from a copy",
    )


def check_tag_name(name: str) -> None:
    """Raises FixRequest TS1107 unless `name` is not blank, not a number, and safe in a path."""
    _check_name("tag", name)
    if name.isdigit():
        raise _bad_name("tag", name, "a number would be taken for a snapshot id")


def check_branch_name(name: str) -> None:
    """Raises FixRequest TS1107 unless `name` is not blank, not a number, not `main`, and safe in a path."""
    _check_name("branch", name)
    if name.isdigit() or name == MAIN_BRANCH:
        raise _bad_name("branch", name, "a branch is not called by a number or 'main'")


def check_stage_name(name: str) -> None:
    """Raises FixRequest TS1107 for one that could be read as another stage of another branch."""
    if "@" in name:
        raise _bad_name("staged snapshot", name, "'@' stands before the branch that a snapshot is staged for")


def _check_name(kind: str, name: str) -> None:
    if not name.strip() or name in (".", "..") or not _NAME.fullmatch(name):
        raise _bad_name(kind, name, "blank, '.', '..', slashes and control characters are not allowed")


def _bad_name(kind: str, name: str, why: str) -> FixRequest:
    return FixRequest(
        "TS1107", f"{kind} name {name!r} is not allowed", why=why, fix=f"choose another {kind} name"
    )
