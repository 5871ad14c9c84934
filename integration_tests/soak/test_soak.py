"""Small doses of the long attacks with a fixed seed; `make test-nightly` takes that of the day, `make soak` all."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from integration_tests.interop.environments import CannotMake
from integration_tests.interop.java_paimon import JavaPaimon
from integration_tests.soak.planted_secrets import (
    PLACES,
    Secrets,
    command_lines,
    find_in_files,
    find_in_text,
    play_secrets,
)
from integration_tests.soak.random_tables import attack_table, random_table
from integration_tests.soak.six_histories import random_history
from integration_tests.soak.six_ways import SixWays, read_six_ways
from integration_tests.soak.store_kills import kill_over_store
from tablestore_engine.devservers.kafka_broker import BrokerInfo
from tablestore_engine.stream.normalize import Normalizer
from tests.doses import cases

SEED = int(os.environ.get("TABLESTORE_SEED", "739580"))


@pytest.mark.parametrize("turn", cases(range(6), 1))
def test_a_random_table_is_what_the_dict_says(turn: int, tmp_path: Path) -> None:
    """Rows, changelog and file invariants of a random history agree with the oracle after each commit."""
    seed = 10 * SEED + turn
    assert attack_table(random_table(seed), tmp_path / "warehouse" / "soak.db" / "t", []) >= 2


@pytest.mark.nightly
def test_writers_killed_over_a_server_that_is_killed_lose_and_double_nothing() -> None:
    """The same where files are objects, the server dies, and requests are lost."""
    report = kill_over_store(SEED, 8)
    assert report["writers killed"] >= 8
    assert report["server kills"] > 0
    assert report["faults of requests"] > 0
    assert report["acknowledged"] > 0


@pytest.mark.nightly
def test_planted_secrets_stay_where_they_were_planted(tmp_path: Path, broker: BrokerInfo) -> None:
    """Green and failing dbt commands over secrets in profile and environment leave none in files, output or topics."""
    assert play_secrets(SEED, tmp_path, broker)["commands"] == 11


def test_a_leaked_secret_would_be_found(tmp_path: Path) -> None:
    """In a file's content or name, inside base64 at any offset, in hex, in a URL, and in a child's command line."""
    secrets = Secrets.of(SEED)
    value = secrets.values["model"]
    for number in range(3):
        text = base64.b64encode(f"{'x' * number}{value} and more".encode())
        (tmp_path / f"b{number}").write_bytes(text)
    (tmp_path / "hex").write_text(value.encode().hex())
    (tmp_path / "url").write_text("a?b=" + value.replace("+", "%2B").replace("/", "%2F"))
    counts = {"files": 0, "bytes": 0}
    assert len(find_in_files(secrets, tmp_path, counts)) >= 5
    (tmp_path / "profiles.yml").write_text(value)
    assert all("profiles.yml" not in place for place in find_in_files(secrets, tmp_path, counts))
    child = [sys.executable, "-c", "import sys; sys.stdin.read()", value]
    with subprocess.Popen(child, stdin=subprocess.PIPE):  # returns when the program has replaced the fork
        lines = list(command_lines(os.getpid()))
    assert [find_in_text(secrets, line, "x") for line in lines].count([f"{PLACES[-1]} in x"]) == 1


@pytest.fixture(scope="module")
def six_ways(tmp_path_factory: pytest.TempPathFactory, broker: BrokerInfo) -> Iterator[SixWays]:
    """The broker, two engines and Java Paimon."""
    folder = tmp_path_factory.mktemp("six-ways")
    try:
        java = JavaPaimon(folder / "java")
    except CannotMake as reason:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"needs Java Paimon: {reason}")
    with SixWays(broker.url, folder / "warehouse", java) as world:
        yield world
    java.close()


def _find_nothing(_: Normalizer, rows: pa.Table, asked: npt.NDArray[np.int64]) -> object:
    return rows.slice(0, 0), np.full(len(asked), -1, np.int64)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", [2, 20261340])
def test_one_history_read_six_ways(six_ways: SixWays, seed: int) -> None:
    """Files, a plain consumer, hybrid, streams that stop, eventual and normalized, Java: one table at each snapshot."""
    counts = read_six_ways(random_history(seed), six_ways)
    assert counts["tables"] == 2
    assert counts["states"] > 50
    assert counts["stops"] > 5


@pytest.mark.nightly
def test_a_reader_that_is_wrong_is_noticed(six_ways: SixWays, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where normalizing does not look into the table, the fold is wrong, and the message says which seed shows it."""
    monkeypatch.setattr(Normalizer, "_find_based", _find_nothing)
    with pytest.raises(AssertionError, match="seed 3"):
        read_six_ways(random_history(3), six_ways)
