"""One writing process: `python -m tests.concurrency.writer_process <root> <writer> <commits> <mode>`."""

from __future__ import annotations

import sys
from pathlib import Path

from tablestore_engine.runtime.outside_world import SYSTEM
from tests.unit.store.table_world import open_table, put, row


def main() -> None:
    """Commit `commits` times: shared keys that everybody updates, and keys of our own; or compact so often."""
    root, writer, commits, mode = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    store = open_table(Path(root), runtime=SYSTEM)
    for turn in range(commits):
        own = row(1_000 * (writer + 1) + turn, f"w{writer}")
        if mode == "compact":
            store.compact(full=True)
        elif mode == "append":
            put(store, own)
        else:
            put(
                store,
                own,
                row(turn % 3, f"w{writer}", turn),
                commit_user=f"w{writer}",
                commit_identifier=turn,
            )


if __name__ == "__main__":
    main()
