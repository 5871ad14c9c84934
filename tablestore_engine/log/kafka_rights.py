"""The rights that a table's log needs of the brokers: one list, for the docs, the development broker and errors.

CHANGE     the ACLs that a table's log needs
INVARIANT  with exactly these a table can be made, written, read back, changed and dropped; without any one of them
           something of it is refused (integration_tests/kafka/test_rights.py). Describe comes with the others, and
           DescribeConfigs with AlterConfigs. No right on a group or on the cluster is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

TRANSACTIONAL_PREFIX = "ts-"


class Resource(StrEnum):
    DATA = "the data topic"
    MARKER = "the marker topic"
    TRANSACTIONS = "the transactional ids ts-…"


@dataclass(frozen=True)
class Right:
    """`operation` in Kafka's word; `purpose`: what fails without it."""

    resource: Resource
    operation: str
    purpose: str


_D, _M, _T = Resource.DATA, Resource.MARKER, Resource.TRANSACTIONS
RIGHTS = (
    Right(_D, "Create", "make a table"),
    Right(_D, "Write", "publish"),
    Right(_D, "Read", "find out what is published, read back"),
    Right(_D, "AlterConfigs", "check the topic's settings, let a changed log.retention reach them"),
    Right(_D, "Alter", "let the topic grow with the table's buckets"),
    Right(_D, "Delete", "drop a table"),
    Right(_M, "Create", "make a table"),
    Right(_M, "Write", "publish"),
    Right(_M, "Read", "find out what is published"),
    Right(_M, "DescribeConfigs", "check the topic's settings"),
    Right(_M, "Delete", "drop a table"),
    Right(_T, "Write", "publish in transactions"),
)


def operations(resource: Resource) -> tuple[str, ...]:
    return tuple(right.operation for right in RIGHTS if right.resource is resource)
