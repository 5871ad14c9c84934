"""A node of the development broker is a voter when a majority of metadata logs says so."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from pathlib import Path

import pytest

from tablestore_engine.devservers.broker_controllers import is_voter
from tablestore_engine.devservers.broker_node import BrokerNode, nodes_of

OLD, NEW = b"0123456789abcdef", b"fedcba9876543210"


def batch(content: bytes, *, control: bool) -> bytes:
    """One record batch: base offset, length, leader epoch, magic, checksum, attributes, and the rest of its head."""
    behind = (
        bytes(4)
        + b"\x02"
        + bytes(4)
        + (0x20 if control else 0).to_bytes(2, "big")
        + bytes(4 + 8 + 8 + 8 + 2 + 4 + 4)
        + content
    )
    return bytes(8) + len(behind).to_bytes(4, "big") + behind


@pytest.fixture
def nodes(tmp_path: Path) -> tuple[BrokerNode, ...]:
    """Three of one cluster; node 2 has the directory NEW, and no log names it."""
    made = nodes_of(tmp_path, 3)
    for node in made:
        (node.data / "__cluster_metadata-0").mkdir(parents=True)
        say(node, batch(b"voters " + OLD, control=True), "0.log")
    text = urlsafe_b64encode(NEW).decode().rstrip("=")
    (made[1].data / "meta.properties").write_text(f"node.id=2\ndirectory.id={text}\nversion=1\n")
    return made


def say(node: BrokerNode, content: bytes, name: str) -> None:
    """Append to a file of its metadata."""
    with (node.data / "__cluster_metadata-0" / name).open("ab") as log:
        log.write(content)


def test_a_majority_makes_a_voter(nodes: tuple[BrokerNode, ...]) -> None:
    """Its old directory does not count, nor does one log alone."""
    assert not is_voter(nodes[1], nodes)
    say(nodes[0], batch(b"voters " + NEW, control=True), "0.log")
    assert not is_voter(nodes[1], nodes)
    say(nodes[2], batch(b"x", control=False) + batch(b"voters " + NEW, control=True), "0.log")
    assert is_voter(nodes[1], nodes)


def test_a_snapshot_counts_like_a_segment(nodes: tuple[BrokerNode, ...]) -> None:
    """The segments behind it may be gone."""
    for node in nodes[:2]:
        (node.data / "__cluster_metadata-0" / "0.log").unlink()
        say(node, batch(b"voters " + NEW, control=True), "7-1.checkpoint")
    assert is_voter(nodes[1], nodes)


@pytest.mark.parametrize("kept", [0, 11, 20, 60, 70, -1])
def test_a_batch_that_is_being_written_does_not_count(nodes: tuple[BrokerNode, ...], kept: int) -> None:
    """Wherever it ends; and records that only mention a directory do not either."""
    whole = batch(b"voters " + NEW, control=True)
    for node in nodes:
        say(node, batch(b"broker " + NEW, control=False) + whole[:kept], "0.log")
    assert not is_voter(nodes[1], nodes)
    for node in nodes:
        say(node, whole[kept:], "0.log")
    assert is_voter(nodes[1], nodes)


def test_bytes_that_are_no_batches_end_the_search(nodes: tuple[BrokerNode, ...]) -> None:
    """A preallocated segment ends in zeros."""
    for node in nodes:
        say(node, bytes(500), "0.log")
        say(node, batch(b"voters " + NEW, control=True), "0.log")
    assert not is_voter(nodes[1], nodes)
