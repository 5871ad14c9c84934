"""Pure rules about topics: what new ones get, what existing ones must have, what goes with a dropped table."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablestore_engine.log.kafka.client_config import ClientConfig
from tablestore_engine.log.kafka.commit_marker import CommitMarker
from tablestore_engine.log.kafka.kafka_topic import LogTopics, TopicFacts
from tablestore_engine.log.kafka.log_base import place_hash
from tablestore_engine.log.kafka.log_lifecycle import plan_drop
from tablestore_engine.log.kafka.settings import LogSettings
from tablestore_engine.log.kafka.topic_settings import data_config, find_misfits, marker_config
from tablestore_engine.log.message_envelope import ChangelogMode

SETTINGS = LogSettings(
    "d.t", "u1", "t", 2, ChangelogMode.UPSERT, ClientConfig({"bootstrap.servers": "a:1"}), place="/w/d.db/t"
)
DATA, MARKER = TopicFacts("one", 2), TopicFacts("two", 1)
OURS = CommitMarker("u1", 7, "me:1", "one")


@given(st.integers(1, 9), st.none() | st.integers(1, 2**40))
def test_new_topics_fit(replication: int, retention_ms: int | None) -> None:
    """Whatever replication and retention a table asks for, what we make is what we accept."""
    settings = replace(SETTINGS, replication=replication, retention_ms=retention_ms)
    assert find_misfits(data_config(settings), replication, is_marker=False) == {}
    assert find_misfits(marker_config(settings), replication, is_marker=True) == {}


def test_as_many_replicas_must_have_a_row_as_can() -> None:
    """min.insync.replicas is 2 from replication 3 on, 1 for one replica, else the brokers' own; no unclean election."""
    for replication, wanted in ((None, None), (1, "1"), (2, None), (3, "2"), (5, "2")):
        settings = replace(SETTINGS, replication=replication)
        for config in (data_config(settings), marker_config(settings)):
            assert config.get("min.insync.replicas") == wanted
            assert config["unclean.leader.election.enable"] == "false"


@given(
    st.sets(st.sampled_from(["compact", "delete"])),
    st.integers(1, 5),
    st.integers(1, 5),
    st.booleans(),
    st.booleans(),
)
def test_what_is_told_to_be_changed_fits_then(
    policies: set[str], min_isr: int, replicas: int, is_unclean: bool, is_marker: bool
) -> None:
    """The values that an error names are themselves accepted: who follows the advice is not refused again."""
    config = {
        "cleanup.policy": ",".join(sorted(policies)),
        "min.insync.replicas": str(min_isr),
        "unclean.leader.election.enable": str(is_unclean).lower(),
    }
    misfits = find_misfits(config, replicas, is_marker=is_marker)
    healed = {**config, **{key: wanted for key, (wanted, _) in misfits.items()}}
    assert find_misfits(healed, replicas, is_marker=is_marker) == {}
    assert ("min.insync.replicas" in misfits) == (min_isr > replicas or (min_isr < 2 and replicas >= 3))


@pytest.mark.parametrize(
    ("topics", "newest", "goes"),
    [
        (LogTopics(DATA, MARKER), OURS, {"t", "t__snapshots"}),
        (LogTopics(None, MARKER), OURS, {"t__snapshots"}),
        (LogTopics(replace(DATA, topic_id="other"), MARKER), OURS, {"t__snapshots"}),
        (LogTopics(DATA, MARKER), replace(OURS, table_uuid="u2"), set()),
        (
            LogTopics(DATA, MARKER),
            CommitMarker("u2", 0, "", "one", place=place_hash(SETTINGS)),
            {"t", "t__snapshots"},
        ),
        (LogTopics(DATA, MARKER), CommitMarker("u2", 0, "", "one", place="elsewhere"), set()),
        (LogTopics(DATA, MARKER), None, set()),
        (LogTopics(DATA, None), None, set()),
        (LogTopics(None, MARKER), None, {"t__snapshots"}),
        (LogTopics(None, None), None, set()),
    ],
)
def test_what_goes_with_a_table(topics: LogTopics, newest: CommitMarker | None, goes: set[str]) -> None:
    """Only what the newest marker calls this table's, and the very topic that it speaks of."""
    assert set(plan_drop(SETTINGS, topics, newest)) == goes


def test_without_an_option_the_brokers_decide_how_many_replicas_there_are() -> None:
    """A new topic asks for their default, and leaves min.insync.replicas to them too."""
    settings = replace(SETTINGS, replication=None)
    assert data_config(settings) == {**data_config(replace(SETTINGS, replication=2))}
    assert "min.insync.replicas" not in marker_config(settings)
