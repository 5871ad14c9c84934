"""What the main branch of a table is on disk, so that a test can say that nothing of it has changed."""

from __future__ import annotations

from pathlib import Path

from tablestore_engine.api import Table

_OF_BRANCHES = ("branch/", "manifest/", "index/", "bucket-", "statistics/")


def main_files(table: Table) -> dict[str, bytes]:
    """Path → bytes of everything that is main's alone, and of all files that its snapshots name."""
    root = Path(table.store.location)
    shared = {str(Path(one).name) for one in table.system_table("files")["file_path"].to_pylist()}
    found = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        is_shared = name.startswith(_OF_BRANCHES) or "/bucket-" in name
        if path.is_file() and (not is_shared or path.name in shared):
            found[name] = path.read_bytes()
    return found
