"""The commands by which an administrator gives the rights that docs/log-system.md lists."""

from __future__ import annotations

from tablestore_engine.log.kafka_rights import TRANSACTIONAL_PREFIX, Resource, Right, operations

READER_RIGHTS = (
    Right(Resource.DATA, "Read", "follow the log"),
    Right(Resource.MARKER, "Read", "find out what is published"),
)


def reader_acl_lines(principal: str, topic: str, marker_topic: str) -> tuple[str, ...]:
    """As acl_lines, of who follows a table's log and writes nothing."""
    named = {Resource.DATA: topic, Resource.MARKER: marker_topic}
    return tuple(
        f"--add --allow-principal {principal} --operation {right.operation} --topic {named[right.resource]}"
        for right in READER_RIGHTS
    )


def acl_lines(principal: str, topic: str, marker_topic: str) -> tuple[str, ...]:
    """Arguments of kafka-acls.sh, one line for each resource."""
    named = (
        (Resource.DATA, f"--topic {topic}"),
        (Resource.MARKER, f"--topic {marker_topic}"),
        (
            Resource.TRANSACTIONS,
            f"--transactional-id {TRANSACTIONAL_PREFIX} --resource-pattern-type prefixed",
        ),
    )
    return tuple(
        " ".join(
            (
                f"--add --allow-principal {principal}",
                *(f"--operation {word}" for word in operations(resource)),
                place,
            )
        )
        for resource, place in named
    )
