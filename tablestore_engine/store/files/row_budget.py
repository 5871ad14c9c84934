"""How many rows bucket work and reads hold at once: the one place that says what a step is.

CHANGE     how many rows are in memory at once
WHY        a compaction needs some 0.2 GB for a million rows of eight plain columns, an upsert or overwrite 0.3 (new and
           old rows, the order, the output): half a million stay near 150 MB, so that the tasks of a process's threads
           (task_runner.THREADS_MAX) fit together, while a step still costs nothing beside its rows. Work below that
           is one step: as if there were none. Bytes, because rows of documents are a thousand times larger;
           they are compressed, a fifth of what Arrow makes of them.
"""

from __future__ import annotations

from collections.abc import Iterable

from tablestore_engine.store.files.stored_file import StoredFile

STEP_ROWS = 500_000
STEP_BYTES = 32 << 20


def step_rows(files: Iterable[StoredFile]) -> int:
    """At least one row, at most STEP_ROWS, and as few as have STEP_BYTES in these files; STEP_ROWS of none."""
    metas = [file.meta for file in files]
    if not metas:
        return STEP_ROWS
    rows, size = sum(meta.row_count for meta in metas), sum(meta.file_size for meta in metas)
    return max(1, min(STEP_ROWS, rows * STEP_BYTES // max(size, 1)))
