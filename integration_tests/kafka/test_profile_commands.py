"""Commands on a table with a log, in a project whose profile names the brokers, and nothing else does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from tablestore_engine.api import Engine
from tablestore_engine.cli.main import main
from tablestore_engine.devservers.kafka_broker import BrokerInfo
from tests.doses import cases

NAME = "demo.orders"


@pytest.fixture(scope="module")
def project(broker: BrokerInfo, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of four snapshots with a log."""
    folder = tmp_path_factory.mktemp("profile_commands")
    (folder / "dbt_project.yml").write_text("name: shop\nversion: '1'\nprofile: shop\n")
    target = f"{{type: tablestore, warehouse: ./warehouse, schema: demo, brokers: '{broker.url}'}}"
    (folder / "profiles.yml").write_text(f"shop: {{target: dev, outputs: {{dev: {target}}}}}\n")
    options = {"log.system": "kafka", "kafka.topic": "profile-commands", "snapshot.num-retained.min": 1}
    with Engine(str(folder / "warehouse"), log={"kafka.bootstrap.servers": broker.url}, environ={}) as engine:
        table = engine.create_table(
            NAME, pa.schema({"id": pa.int64(), "v": pa.string()}), primary_key="id", options=options
        )
        for number in range(4):
            table.upsert([{"id": number, "v": "x"}])
    return folder


@pytest.mark.parametrize(
    "words",
    cases([
        ["log", "show", NAME], ["log", "drop", "--dry-run"], ["compact", NAME, "--full"],
        ["expire", NAME, "--keep", "3"],
        ["gc", NAME, "--yes"], ["restore", NAME, "--to", "4"], ["rescale", NAME, "--buckets", "2"], ["publish", NAME],
        ["staged"], ["report", NAME, "--html", "-"],
        ["tail", NAME, "--from", "earliest", "--until", "now", "--read-mode", "log"],
    ], 6),
    ids=lambda words: words[0],
)  # fmt: skip
def test_command_on_a_table_with_a_log_has_the_brokers_of_the_profile(
    project: Path, words: Sequence[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Status 0 and no word of missing brokers, without a variable or a flag."""
    for name in ("TABLESTORE_WAREHOUSE", "TABLESTORE_KAFKA", "TABLESTORE_KAFKA_CONFIG", "DBT_PROFILES_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(project)
    status = main(words)
    printed = capsys.readouterr()
    assert (status, "no brokers" in printed.out + printed.err) == (0, False), printed
