"""Tags: names for snapshots that expiry leaves alone.

INVARIANT  a tag is a full copy of its snapshot, created exclusively: it never moves.
INVARIANT  a tag that `create` returned keeps its files: it was there while the snapshot still counted (expire).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from tablestore_engine.errors import NotFound, TagTaken
from tablestore_engine.fileio.base import FileIO
from tablestore_engine.format.layout import TableLayout
from tablestore_engine.format.snapshot import Tag, decode_tag, encode_tag
from tablestore_engine.store.metadata.foreign_files import claim_over
from tablestore_engine.store.metadata.snapshots import SnapshotStore

TAG_PREFIX = "tag-"


@dataclass(frozen=True)
class TagStore:
    fileio: FileIO
    layout: TableLayout
    snapshots: SnapshotStore

    def create(
        self,
        name: str,
        snapshot_id: int | None = None,
        *,
        create_time: datetime | None = None,
        time_retained: timedelta | None = None,
    ) -> Tag:
        """Name a snapshot (default: the newest). Raises FixRequest TS1319, NotFound TS1302, TS1320.

        `time_retained`: how long after `create_time`, of UTC, the tag stays; without both it stays until it is deleted.
        """
        if snapshot_id is None:
            snapshot_id = self.snapshots.find_latest_id()
            if snapshot_id is None:
                raise NotFound(
                    "TS1320",
                    f"{self.layout.root} has nothing to tag",
                    why="nothing was committed yet",
                    fix="write to the table first",
                )
        path = self.layout.tag_path(name)
        is_kept = time_retained is not None
        tag = Tag(self.snapshots.get(snapshot_id), create_time if is_kept else None, time_retained)
        data = encode_tag(tag)
        is_new = self.fileio.create_exclusive(path, data) or claim_over(
            self.fileio, path, data, self._is_foreign, self.snapshots.check_table
        )
        if not is_new and self.get(name).snapshot != tag.snapshot:
            raise TagTaken(
                "TS1319",
                f"tag {name!r} of {self.layout.root} exists already",
                why=f"it names snapshot {self.get(name).snapshot.id}",
                fix="choose another name, or delete the tag first",
            )
        if is_new and self.snapshots.find(snapshot_id) != tag.snapshot:
            self.fileio.delete(path)  # it expired meanwhile, and the expiry may not have seen the tag
            self.snapshots.get(snapshot_id)
        return tag

    def get(self, name: str) -> Tag:
        """A tag. Raises NotFound TS1321."""
        path = self.layout.tag_path(name)
        with suppress(NotFound):
            tag = decode_tag(self.fileio.read(path), path)
            if not self.snapshots.is_foreign(tag.snapshot):
                return tag
        there = ", ".join(self.list_all())
        raise NotFound(
            "TS1321",
            f"{self.layout.root} has no tag {name!r}",
            why=f"the table has the tags {there}" if there else "the table has no tags",
            fix="correct the name",
        )

    def delete(self, name: str) -> None:
        """Remove a tag; its snapshot stays until it expires. Raises NotFound TS1321."""
        self.get(name)
        self.fileio.delete(self.layout.tag_path(name))

    def list_names(self) -> tuple[str, ...]:
        """Names of the files: also a tag that a former table of this name left, which `get` does not find."""
        names = [status.name for status in self.fileio.list(self.layout.tag_dir)]
        return tuple(name.removeprefix(TAG_PREFIX) for name in names if name.startswith(TAG_PREFIX))

    def list_all(self) -> Mapping[str, int]:
        """Name → snapshot id, by name."""
        found: dict[str, int] = {}
        for name in self.list_names():
            path = self.layout.tag_path(name)
            snapshot = decode_tag(self.fileio.read(path), path).snapshot
            if not self.snapshots.is_foreign(snapshot):
                found[name] = snapshot.id
        return found

    def _is_foreign(self, data: bytes) -> bool:
        return self.snapshots.is_foreign(decode_tag(data).snapshot)
