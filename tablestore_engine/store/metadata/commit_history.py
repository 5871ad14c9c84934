"""Whether a commit was made before, answered without reading every snapshot.

Recent     property `tablestore.recent`: four bytes per earlier snapshot, newest first, of a digest of its (user,
           identifier); up to 255 of them, base64. A digest that is not ours proves that the snapshot is not ours;
           one that is (or one in 2^24 times looks like it) is read. A new user of a table with 10,000 snapshots reads
           40 of them. Snapshots of other engines have no such list and are read one by one.
Base       property `tablestore.base`: the uuid of the snapshot that the commit was planned on.
Version    of rows, not of a snapshot: a staged snapshot that is put on a compacted base is published with another id
           and uuid, with the same rows. Compactions and statistics keep the version of their rows.
INVARIANT  only the same pair is a repetition: a lower identifier of the same user is a commit of its own.
Expired    a digest that is ours, of a snapshot that does not count any more, is no "not found": else rows came twice.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping

from tablestore_engine.errors import (
    CommitExpired,
    FixRequest,
)
from tablestore_engine.format.snapshot import CommitKind, Snapshot
from tablestore_engine.store.metadata.identity import with_table
from tablestore_engine.store.metadata.snapshots import SnapshotStore

BASE_PROPERTY, RECENT_PROPERTY = "tablestore.base", "tablestore.recent"
RECENT_MAX = 255
NO_ROWS = "none"  # the version of a table that has no snapshot
_SAME_ROWS = frozenset({CommitKind.COMPACT, CommitKind.ANALYZE})
_DIGEST_BYTES = 4


def following_properties(base: Snapshot | None, identity: str | None = None) -> Mapping[str, str]:
    """Properties of a snapshot after `base`, of the table with that identity."""
    if base is None:
        return with_table(identity)
    digests = [_digest(base.commit_user, base.commit_identifier), *_recent(base)][:RECENT_MAX]
    made = {RECENT_PROPERTY: base64.b64encode(b"".join(digests)).decode(), **with_table(identity)}
    return made if base.uuid is None else {**made, BASE_PROPERTY: base.uuid}


def base_of(snapshot: Snapshot) -> str | None:
    """The uuid of its base; None when it does not say."""
    return (snapshot.properties or {}).get(BASE_PROPERTY)


def follows(snapshot: Snapshot, base: Snapshot | None) -> bool:
    """Whether `snapshot` was planned on `base`; snapshots that do not say so are believed."""
    said = base_of(snapshot)
    return said is None or (base is not None and (base.uuid is None or base.uuid == said))


def goes_back_to(snapshots: SnapshotStore, newest: Snapshot, snapshot: Snapshot) -> bool:
    """Whether `snapshot` is what lies, or lay, under its number in the line that ends with `newest`."""
    distance = newest.id - snapshot.id
    if distance <= 0:
        return newest.unique == snapshot.unique
    recent = _recent(newest)
    if distance <= len(recent):
        return recent[distance - 1] == _digest(snapshot.commit_user, snapshot.commit_identifier)
    following = snapshots.find(snapshot.id + 1)
    return following is not None and follows(following, snapshot)


def find_row_commit(snapshots: SnapshotStore, snapshot: Snapshot | None) -> Snapshot | None:
    """The newest commit up to this one that changed rows; compactions and statistics do not.

    When the history before a compaction has expired, the compaction itself is it; so is one of another
    engine's level-0 rows, which is why it has a changelog.
    """
    while (
        snapshot is not None
        and snapshot.commit_kind in _SAME_ROWS
        and snapshot.changelog_manifest_list is None
    ):
        before = snapshots.find(snapshot.id - 1)
        if before is None:
            break
        snapshot = before
    return snapshot


def rows_version(snapshots: SnapshotStore, snapshot: Snapshot | None) -> str:
    """`user:identifier` of the newest commit up to this one that changed rows; NO_ROWS without a snapshot."""
    found = find_row_commit(snapshots, snapshot)
    return NO_ROWS if found is None else commit_of(found)


def commit_of(snapshot: Snapshot) -> str:
    """`user:identifier`."""
    return f"{snapshot.commit_user}:{snapshot.commit_identifier}"


def find_commit(snapshots: SnapshotStore, newest: Snapshot, version: str, *, first: int) -> int | None:
    """The number, at `first` or behind it, of the snapshot of that commit in the line that ends with `newest`.

    One that has expired is found by its digest, as long as the newest snapshot lists it.
    """
    for number in range(first, newest.id + 1):
        found = newest if number == newest.id else snapshots.find(number)
        if found is not None and commit_of(found) == version:
            return number
    user, _, identifier = version.rpartition(":")
    distance, recent = newest.id - first, _recent(newest)
    is_told = 0 < distance <= len(recent) and snapshots.find(first) is None
    return first if is_told and recent[distance - 1] == _digest(user, int(identifier)) else None


def was_committed(snapshots: SnapshotStore, newest: Snapshot | None, version: str, *, first: int) -> bool:
    """Whether a snapshot is of that commit, among those from the id `first` on up to `newest`."""
    if newest is None:
        return False
    for number in range(newest.id, max(first, 1) - 1, -1):
        found = newest if number == newest.id else snapshots.find(number)
        if found is not None and commit_of(found) == version:
            return True
    return False


def find_pair(
    snapshots: SnapshotStore, newest: Snapshot, user: str, identifier: int, *, after: int | None = None
) -> Snapshot | None:
    """The snapshot of that pair among those up to `newest` (and behind `after`), newest first.

    Raises FixRequest TS1394 when it has expired: it was committed, and what it did cannot be told any more.
    """
    wanted, last = _digest(user, identifier), after or 0
    at: Snapshot | None = newest
    while at is not None and at.id > last:
        if _is_pair(at, user, identifier):
            return at
        recent = _recent(at)
        for distance, digest in enumerate(recent, start=1):
            if digest == wanted and at.id - distance > last:
                found = snapshots.find(at.id - distance)
                if found is None:
                    raise _expired(snapshots, at.id - distance, user, identifier)
                if _is_pair(found, user, identifier):
                    return found
        following = at.id - 1 - len(recent)
        at = snapshots.find(following) if following > last else None
    return None


def _expired(snapshots: SnapshotStore, number: int, user: str, identifier: int) -> FixRequest:
    return CommitExpired(
        "TS1394",
        f"commit {identifier} of {user} was committed before, and is not repeated",
        why=f"it is snapshot {number} of {snapshots.layout.root}, which has expired since",
        fix="its rows are in the table; for other rows use another commit identifier",
    )


def _is_pair(snapshot: Snapshot, user: str, identifier: int) -> bool:
    """Other engines give a compaction the identity of the rows before it: it is never the commit itself."""
    is_same = (snapshot.commit_user, snapshot.commit_identifier) == (user, identifier)
    return is_same and snapshot.commit_kind is not CommitKind.COMPACT


def _recent(snapshot: Snapshot) -> list[bytes]:
    text = (snapshot.properties or {}).get(RECENT_PROPERTY, "")
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return []  # another writer's idea of this property: its neighbours are read one by one
    return [data[at : at + _DIGEST_BYTES] for at in range(0, len(data), _DIGEST_BYTES)]


def _digest(user: str, identifier: int) -> bytes:
    return hashlib.sha256(f"{identifier}:{user}".encode()).digest()[:_DIGEST_BYTES]
