"""Which nodes of the development broker are voters of its controller quorum, read from their metadata logs.

Why        a node that lost its disk comes back under a new directory id, and joins the voters a few seconds after its
           replicas are in sync. Until then the old id counts as a voter that is dead: if another node dies in that
           time, no majority is left, for good. No client for Python asks for the voters
Where      the voters are control records in `__cluster_metadata-0`, in its segments and its snapshots (checkpoints),
           which hold record batches of Kafka's format, version 2. A node is a voter when a majority of the nodes has
           a control batch with its directory id
INVARIANT  only reads; a batch that is being written counts once it is whole.
Source     https://kafka.apache.org/documentation/#recordbatch
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator, Sequence

from tablestore_engine.devservers.broker_node import BrokerNode

_LENGTH = struct.Struct(">8xi")  # of what follows, behind the base offset
_ATTRIBUTES = struct.Struct(">21xh")
_CONTROL = 0x20
_HEADER_BYTES = 61


def is_voter(node: BrokerNode, nodes: Sequence[BrokerNode]) -> bool:
    """Whether a majority of `nodes` knows the controller of `node`, with the directory that it has now, as a voter."""
    directory = _directory_id(node)
    knowing = sum(any(directory in batch for batch in _control_batches(one)) for one in nodes)
    return 2 * knowing > len(nodes)


def _directory_id(node: BrokerNode) -> bytes:
    lines = (node.data / "meta.properties").read_text("utf-8").splitlines()
    text = next(line for line in lines if line.startswith("directory.id=")).removeprefix("directory.id=")
    return base64.urlsafe_b64decode(text + "==")


def _control_batches(node: BrokerNode) -> Iterator[bytes]:
    folder = node.data / "__cluster_metadata-0"
    for path in (*folder.glob("*.log"), *folder.glob("*.checkpoint")):
        try:
            content = path.read_bytes()
        except FileNotFoundError:  # the node removes what is behind a newer snapshot
            continue
        yield from (batch for batch in _batches(content) if _ATTRIBUTES.unpack_from(batch)[0] & _CONTROL)


def _batches(content: bytes) -> Iterator[bytes]:
    begin = 0
    while begin + _HEADER_BYTES <= len(content):
        end = begin + _LENGTH.size + _LENGTH.unpack_from(content, begin)[0]
        if not begin + _HEADER_BYTES <= end <= len(content):
            return
        yield content[begin:end]
        begin = end
