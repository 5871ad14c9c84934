"""`tablestore ingest`: arguments become a spec, files become a table, the report is printed."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tablestore_engine.api import Engine, IngestSpec
from tablestore_engine.errors import FixRequest
from tests.unit.cli.conftest import Run
from tests.unit.ingest.histories import engine_at


def changes(path: Path, *rows: dict[str, object]) -> Path:
    """A file of inserts."""
    path.write_text("".join(json.dumps({"before": None, "after": row, "op": "c"}) + "\n" for row in rows))
    return path


def test_a_file_into_a_table(run: Run, tmp_path: Path) -> None:
    """Key, types, options and rules are those of the arguments; again there is nothing to do."""
    path = changes(tmp_path / "in.jsonl", {"id": 1, "p": "1.50"}, {"id": 2, "p": "x"})
    words = ["ingest", "debezium-json", "--path", str(path), "--into", "demo.prices"]
    more = ["--key", "id", "--column", "id=INT", "--column", "p=DECIMAL(10,2)", "--decimals", "text"]
    rules = ["--on-error", "dead_letter", "--option", "bucket=2", "--rows", "1"]
    done = run(*words, *more, *rules, "--json")
    assert done.status == 0, done.err
    assert (done.json["upserts"], done.json["dead"], done.json["table"]) == (1, 1, "demo.prices")
    told = run(*words, *rules)
    assert (told.status, told.out) == (0, "demo.prices: 0 messages: 0 upserts, 0 deletes · 0 commits\n")
    shown = run("show", "demo.prices", "--json").json
    assert shown["options"]["bucket"] == "2"


def test_a_signal_is_no_success(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run up to now that was stopped before has status 1; a follower that was stopped has 0."""

    @contextmanager
    def stopped() -> Iterator[threading.Event]:
        stop = threading.Event()
        stop.set()
        yield stop

    monkeypatch.setattr("tablestore_engine.cli.ingest.stopped_by_signals", stopped)
    path = changes(tmp_path / "in.jsonl", {"id": 1})
    words = ["ingest", "debezium-json", "--path", str(path), "--into", "demo.t", "--key", "id", "--infer"]
    done = run(*words)
    assert (done.status, done.out.endswith("stopped before the end\n")) == (1, True)
    done = run(*words, "--json")
    assert (done.status, done.json["complete"]) == (1, False)
    assert run(*words, "--follow").status == 0


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--column", "v"], "TS1439"), (["--option", "=2"], "TS1439"), (["--path", "x", "--topic", "y"], "TS1419"),
        ([], "TS1419"), (["--topic", "y", "--rows", "0"], "TS1418"),
    ],
)  # fmt: skip
def test_arguments_that_mean_nothing(run: Run, words: list[str], code: str) -> None:
    """One error, with what to write; nothing is made."""
    done = run("ingest", "debezium-json", "--into", "demo.prices", *words)
    assert done.status == 1
    assert code in done.err


def test_brokers_that_nobody_has_named(tmp_path: Path) -> None:
    """TS1436 says where to name them; no setting that exactly-once depends on is for sale (TS1701)."""
    spec = IngestSpec(format="debezium-json", into="d.t", topic="x")
    with pytest.raises(FixRequest, match="TS1436"):
        engine_at(tmp_path).ingest(spec)
    owned = {"kafka.bootstrap.servers": "127.0.0.1:1", "kafka.isolation.level": "read_uncommitted"}
    with pytest.raises(FixRequest, match=r"TS1701[\s\S]*isolation\.level"):
        Engine(str(tmp_path), log=owned, environ={}).ingest(spec)
