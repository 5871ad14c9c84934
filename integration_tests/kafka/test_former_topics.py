"""`tablestore log drop` on a real broker: topics of dropped tables go, and nothing else."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from integration_tests.kafka.secure import LoggedTable
from integration_tests.kafka.topics import topics_left
from tablestore_engine.cli.main import main
from tablestore_engine.devservers.kafka_broker import BrokerInfo
from tests.doses import cases

MARKERS = "__snapshots"


@dataclass(frozen=True)
class Shop:
    """A warehouse whose table `d.t` had the topic `topic`, which somebody made before it, and was dropped."""

    folder: Path
    topic: str
    log: dict[str, str]
    admin: AdminClient
    run: Callable[..., tuple[int, str, str]]

    @property
    def both(self) -> set[str]:
        """The topics of the table."""
        return {self.topic, self.topic + MARKERS}

    def make_topic(self, there: set[str]) -> None:
        """By an administrator; `there`: all of the name afterwards."""
        for done in self.admin.create_topics([NewTopic(self.topic, 1, 1)], operation_timeout=10).values():
            done.result()
        assert topics_left(self.admin, self.topic, there) == there

    def delete(self, *names: str) -> None:
        """By an administrator."""
        for done in self.admin.delete_topics(list(names), operation_timeout=10).values():
            done.result()
        there = self.both - set(names)
        assert topics_left(self.admin, self.topic, there) == there

    def listed(self) -> list[dict[str, Any]]:
        """What a dry run of the whole warehouse says."""
        status, out, _ = self.run("--dry-run", "--json")
        assert status == 0
        return list(json.loads(out))


@pytest.fixture
def shop(broker: BrokerInfo, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Shop:
    """See Shop."""
    admin = AdminClient({"bootstrap.servers": broker.url})
    table, log = LoggedTable(tmp_path, f"left-{uuid.uuid4().hex}"), {"kafka.bootstrap.servers": broker.url}

    def run(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        place = ["--warehouse", str(tmp_path), "--bootstrap", broker.url]
        status = main(["log", "drop", *words, *place])
        return status, *capsys.readouterr()

    made = Shop(tmp_path, table.topic, log, admin, run)
    made.make_topic({table.topic})
    table.write(log)
    table.drop(log)
    assert topics_left(admin, table.topic, made.both) == made.both
    return made


def test_topics_that_a_drop_left_are_listed_and_deleted(shop: Shop) -> None:
    """A dry run deletes nothing; then both are gone, and so is the record."""
    (found,) = shop.listed()
    assert (found["table"], found["log"], found["kept"]) == ("d.t", shop.topic, None)
    assert set(found["deleted"]) == shop.both
    assert f"{shop.topic}, {shop.topic}{MARKERS} would be deleted" in shop.run("d.t", "--dry-run")[1]
    assert topics_left(shop.admin, shop.topic, shop.both) == shop.both
    status, out, _ = shop.run("d.t")
    assert (status, f"{shop.topic}, {shop.topic}{MARKERS} deleted" in out) == (0, True)
    assert topics_left(shop.admin, shop.topic) == set()
    assert shop.listed() == []
    status, _, said = shop.run("d.t")
    assert (status, "TS1032" in said) == (1, True)


@pytest.mark.nightly  # by day topics of living tables, below
def test_new_table_of_the_name_with_another_topic_keeps_its_own(shop: Shop) -> None:
    """The identity counts, not the name."""
    new = LoggedTable(shop.folder, f"{shop.topic}-new")
    new.write(shop.log)
    assert shop.run("d.t")[0] == 0
    assert topics_left(shop.admin, shop.topic, {new.topic, new.topic + MARKERS}) == {
        new.topic,
        new.topic + MARKERS,
    }
    new.write(shop.log)
    assert new.published(shop.log) == [1, 2]


def test_topic_that_a_living_table_of_another_warehouse_has_stays(shop: Shop, tmp_path: Path) -> None:
    """It claimed the topics after somebody deleted them: its uuid is in the markers."""
    shop.delete(*shop.both)
    other = LoggedTable(tmp_path / "elsewhere", shop.topic)
    other.write(shop.log)
    (found,) = shop.listed()
    assert found["deleted"] == []
    assert "belongs to the table with uuid" in found["kept"]
    status, out, _ = shop.run("d.t")
    assert (status, "kept: " in out) == (1, True)
    other.write(shop.log)
    assert other.published(shop.log) == [1, 2]


def test_topic_that_a_living_table_of_this_warehouse_has_is_refused(shop: Shop) -> None:
    """TS1033 names the table."""
    shop.delete(*shop.both)
    new = LoggedTable(shop.folder, shop.topic)
    new.write(shop.log)
    assert shop.listed()[0]["kept"] == "it is the log of the table d.t"
    status, _, said = shop.run("d.t")
    assert (status, "TS1033" in said) == (1, True)
    assert new.published(shop.log) == [1]


def test_topic_that_was_made_again_stays_and_the_markers_go(shop: Shop) -> None:
    """The id of the data topic is not that of the markers."""
    shop.delete(shop.topic)
    shop.make_topic(shop.both)
    status, out, _ = shop.run("d.t")
    assert (status, "created again by another program" in out) == (1, True)
    assert topics_left(shop.admin, shop.topic, {shop.topic}) == {shop.topic}


def test_topic_without_markers_stays(shop: Shop) -> None:
    """Nothing says whose rows it has; --forget removes the record, and leaves the topic."""
    shop.delete(shop.topic + MARKERS)
    status, out, _ = shop.run("d.t")
    assert (status, f"no marker says whose {shop.topic} is" in out) == (1, True)
    assert shop.run("d.t", "--forget")[0] == 0
    assert shop.listed() == []
    assert topics_left(shop.admin, shop.topic, {shop.topic}) == {shop.topic}


def test_topics_that_are_gone_keep_the_record(shop: Shop) -> None:
    """Other brokers may have them; the line names the way out."""
    shop.delete(*shop.both)
    status, out, _ = shop.run("d.t")
    assert (status, "--forget removes the record" in out) == (0, True)
    assert len(shop.listed()) == 1


@pytest.mark.parametrize("words", cases([(), ("d",), ("d.t", "--dry-run", "--forget")], 1))
def test_words_that_delete_too_much_or_contradict_end_with_2(shop: Shop, words: tuple[str, ...]) -> None:
    """A database or nothing is for the list alone."""
    with pytest.raises(SystemExit) as stopped:
        shop.run(*words)
    assert stopped.value.code == 2
    assert topics_left(shop.admin, shop.topic, shop.both) == shop.both
