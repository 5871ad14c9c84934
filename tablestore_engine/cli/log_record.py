"""Where messages lie in a log, as JSON for programs.

Names      log_record   under the names that programs know: topic, offsets
"""

from __future__ import annotations

from tablestore_engine.api import LogPosition


def log_record(position: LogPosition | None) -> dict[str, object]:
    """`offsets` maps parts of the log to [first, next); null and {} where nothing was published."""
    if position is None:
        return {"topic": None, "offsets": {}}
    return {"topic": position.name, "offsets": position.as_lists()}
