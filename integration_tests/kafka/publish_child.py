"""A publisher in a process of its own, so that it can be killed: argv = url, uuid, snapshots, latest, chunk rows."""

from __future__ import annotations

import dataclasses
import json
import sys

from integration_tests.kafka.source import Source, settings_of
from tablestore_engine.log.kafka.kafka_log import KafkaLog
from tablestore_engine.log.kafka.publisher import Publisher


def main(url: str, uuid: str, snapshots: str, latest: str, chunk_rows: str) -> None:
    """Publish up to `latest` and print the report as one JSON line."""
    source = Source(uuid=uuid)
    source.grow(int(snapshots))
    settings = dataclasses.replace(settings_of(source, url), chunk_rows=int(chunk_rows))
    with Publisher(KafkaLog(settings)) as publisher:
        report = publisher.publish_pending(int(latest), source.read, find_commit=source.find_commit)
    print(json.dumps({"snapshots": report.snapshots, "rows": report.rows, "published": report.published}))


if __name__ == "__main__":
    main(*sys.argv[1:])
