"""Whether the topic of a table is still the one that its rows were published to.

CHANGE     what happens when the topic of a log was deleted, or created again under a reader or writer
INVARIANT  a topic is known by its id, not by its name: one that was created again has none of the rows.
"""

from __future__ import annotations

from tablestore_engine.errors import FixRequest, NotFound
from tablestore_engine.log.kafka.settings import LogSettings


def missing_topic(settings: LogSettings, name: str) -> NotFound:
    """TS1705."""
    return NotFound(
        "TS1705",
        f"topic {name} of {settings.table} does not exist",
        why="it was there when the table was made; someone deleted it, or the brokers are others",
        fix="correct 'kafka.bootstrap.servers', "
        "or give the log a new beginning with `tablestore publish --reset N`",
    )


def check_topic_id(settings: LogSettings, found_id: str, topic_id: str) -> None:
    """Raises FixRequest TS1706 when the topic found is another one than `topic_id`, with the same name."""
    if found_id != topic_id:
        raise FixRequest(
            "TS1706",
            f"topic {settings.topic} of {settings.table} is another one than before",
            why=f"expected topic id {topic_id}, got {found_id}: it was deleted and created again, "
            "so what was published is gone",
            fix="give the log a new beginning with `tablestore publish --reset N`",
        )
