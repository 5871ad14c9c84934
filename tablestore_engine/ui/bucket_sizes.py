"""Files, bytes and rows by level and by bucket, for the drawing of a table's size. From metadata alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tablestore_engine.api import Table
from tablestore_engine.store.files.stored_file import StoredFile

BUCKETS_MAX = 60


@dataclass
class FileSums:
    """`deleted`: rows in the files that are no part of the table any more."""

    files: int = 0
    bytes: int = 0
    rows: int = 0
    deleted: int = 0

    def add(self, file: StoredFile) -> None:
        """One more file."""
        self.files += 1
        self.bytes += file.meta.file_size
        self.rows += file.meta.row_count
        self.deleted += file.meta.row_count - file.visible_rows

    def as_record(self) -> dict[str, int]:
        """Names as in `tablestore files --json`."""
        return {"files": self.files, "bytes": self.bytes, "rows": self.rows, "deleted": self.deleted}


def read_bucket_sizes(table: Table) -> dict[str, object]:
    """Sums by level; and by bucket and level of the largest BUCKETS_MAX buckets."""
    return sum_files(table.scan().plan().files)


def sum_files(files: Iterable[StoredFile]) -> dict[str, object]:
    """Of these files. Largest buckets first; `more` counts the buckets that are left out."""
    levels: dict[int, FileSums] = {}
    buckets: dict[tuple[str, int], dict[int, FileSums]] = {}
    for file in files:
        level = file.meta.level
        levels.setdefault(level, FileSums()).add(file)
        place = (file.partition_path.strip("/"), file.bucket)
        buckets.setdefault(place, {}).setdefault(level, FileSums()).add(file)
    largest = sorted(buckets.items(), key=lambda one: (-sum(sums.bytes for sums in one[1].values()), one[0]))
    return {
        "levels": _level_records(levels),
        "buckets": [
            {"partition": partition, "bucket": bucket, "levels": _level_records(found)}
            for (partition, bucket), found in largest[:BUCKETS_MAX]
        ],
        "more": max(len(largest) - BUCKETS_MAX, 0),
    }


def _level_records(levels: dict[int, FileSums]) -> list[dict[str, int]]:
    return [{"level": level, **levels[level].as_record()} for level in sorted(levels)]
