"""Topics as brokers tell them: a moment behind what was just deleted."""

from __future__ import annotations

import time
from collections.abc import Collection

from confluent_kafka.admin import AdminClient

SECONDS = 120


def topics_left(admin: AdminClient, part: str, wanted: Collection[str] = ()) -> set[str]:
    """Brokers go on telling a deleted topic until they have heard of it."""
    deadline = time.monotonic() + SECONDS
    while True:
        found = {name for name in admin.list_topics(timeout=10).topics if part in name}
        if found == set(wanted) or time.monotonic() > deadline:
            return found
        time.sleep(0.05)
