"""One following process: `python -m tests.concurrency.follower_process <root> <folder> <mode>`.

What it makes of a batch and the position behind it become one file in one step; only then the consumer moves.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from tablestore_engine.runtime.outside_world import SYSTEM
from tests.unit.store.table_world import open_table
from tests.unit.stream.stream_world import reader


def main() -> None:
    """Go on behind the last file, until there is a file `end` that names the last snapshot."""
    root, folder, mode = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    store = open_table(root, runtime=SYSTEM)
    done = sorted(folder.glob("batch-*"))
    position = json.loads(done[-1].read_text())["position"] if done else None
    number = len(done)
    last: list[int] = []

    def wait(_: float) -> bool:
        SYSTEM.sleep(0.01)
        if not last and (folder / "end").exists():
            last.append(int((folder / "end").read_text()))
        return bool(last) and stream.snapshot_id > last[0]

    stream = reader(
        store,
        None if position else mode,
        position=position,
        until=None,
        consumer_id="f",
        batch_rows=2,
        wait=wait,
    )
    stream.commit()
    for batch in stream:
        number += 1
        text = json.dumps({"rows": batch.to_pylist(), "position": stream.position})
        fresh = folder / f"fresh-{number:06}"
        fresh.write_text(text)
        os.replace(fresh, folder / f"batch-{number:06}")
        stream.commit(backward=True)  # killed between file and commit, it is behind at the next start


if __name__ == "__main__":
    main()
