"""compact on a real warehouse: by the command and by Table.compact."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tablestore_engine.api import CompactReport, Engine, TableSpec, WriteMode, WriteSpec
from tablestore_engine.cli.compact import parse_partition
from tablestore_engine.errors import FixRequest
from tests.doses import cases

from .conftest import Run


def test_full_folds_once(run: Run, engine: Engine) -> None:
    """compact --full leaves one file and all rows, and says what it did; a second time it has nothing to do."""
    table = engine.table("demo.orders")
    before, files = table.scan().to_arrow().sort_by("order_id"), table.facts()
    first, second = (run("compact", "demo.orders", "--full", "--json").json for _ in range(2))
    assert (first["compacted"], first["snapshots"], first["snapshot"]) == (True, [4], 4)
    assert (first["before"]["files"], first["before"]["bytes"]) == (files.files, files.bytes)
    assert (first["after"]["files"], first["after"]["rows"]) == (1, 3)
    assert first["after"]["bytes"] == table.facts().bytes
    assert (second["compacted"], second["snapshot"], second["snapshots"]) == (False, 4, [])
    assert table.scan().to_arrow().sort_by("order_id") == before


def test_nothing_is_due(run: Run, engine: Engine) -> None:
    """Without --full two runs stay two runs, and the text says that nothing was due; with it what became of them."""
    assert run("compact", "demo.orders").out == "demo.orders: nothing is due\n"
    assert engine.table("demo.orders").latest_snapshot_id() == 3
    first, before, after = run("compact", "demo.orders", "--full").out.splitlines()
    assert first == "demo.orders: snapshot 4, 2 files → 1"
    assert before.startswith("  before  2 files, 5 rows, ")
    assert after.startswith("  after   1 files, 3 rows, ")
    assert run("compact", "demo.orders", "--full").out == "demo.orders: in its best shape already\n"


def test_one_partition(run: Run, engine: Engine) -> None:
    """--partition joins the files of one day; one that is not there is an error with exit status 1."""
    append = WriteSpec(mode=WriteMode.APPEND)
    for number in range(2):
        engine.write("demo.events", pa.table({"id": [number, number], "day": ["mon", "tue"]}), append)
    done = run("compact", "demo.events", "--partition", "day=mon", "--full", "--json").json
    assert (done["before"]["files"], done["after"]["files"]) == (3, 1)
    assert engine.table("demo.events").facts().files == 4
    missing = run("compact", "demo.events", "--partition", "day=sun")
    assert missing.status == 1
    assert "TS1370" in missing.err
    assert "day='sun'" in missing.err


def test_rows_are_sorted(run: Run, engine: Engine) -> None:
    """--order-by sorts an append table; a keyed table is refused."""
    append = WriteSpec(mode=WriteMode.APPEND)
    for number in range(3):
        engine.write("demo.plain", pa.table({"a": [3, 1, 2], "b": [number] * 3}), append)
    done = run("compact", "demo.plain", "--order-by", "order:b,a", "--json").json
    assert (done["before"]["files"], done["after"]["files"]) == (3, 1)
    found = engine.table("demo.plain").scan().to_arrow().to_pylist()
    assert [(one["b"], one["a"]) for one in found] == [(b, a) for b in range(3) for a in (1, 2, 3)]
    assert "TS1214" in run("compact", "demo.orders", "--order-by", "order_id").err


@pytest.mark.parametrize("words", [["mon"], ["=mon"], ["day=mon", "day=tue"]])
def test_words_that_name_no_partition(run: Run, words: list[str]) -> None:
    """TS1960 before anything is opened."""
    with pytest.raises(FixRequest, match="TS1960"):
        parse_partition(words)
    assert run("compact", "demo.events", "--partition", *words).status == 1


def test_values_keep_their_signs() -> None:
    """The first = ends the column, what follows is the value, an empty one too."""
    assert parse_partition(["a=b=c", "d="]) == {"a": "b=c", "d": ""}


def test_through_the_api(tmp_path: Path) -> None:
    """Table.compact takes values of the column's type, and reports like the command."""
    with Engine(str(tmp_path)) as engine:
        options = {"tablestore.compaction": "dedicated"}
        spec = WriteSpec(table=TableSpec(primary_key=("day", "id"), partition_by=("day",), options=options))
        for turn in range(12):
            rows = pa.table({"id": [1, 2], "day": pa.array([0, turn % 2], pa.date32()), "v": [turn, turn]})
            engine.write("d.t", rows, spec)
        table = engine.table("d.t")
        assert table.compact(partition={"day": "1970-01-02"}) == CompactReport(table.identifier, 12)
        report = table.compact(partition={"day": rows["day"][0].as_py()})
        assert report.snapshot_ids == (13,)
        assert report.summary() == f"snapshot 13, {report.before.files} files → 1"
        assert table.compact().is_empty
        assert table.scan().to_arrow().num_rows == 3
        assert table.verify() == ()


@pytest.mark.parametrize(
    "words", cases([("compact", "--full"), ("restore", "--to", "2"), ("rescale", "--buckets", "2")], 1),
    ids=lambda words: words[0],
)  # fmt: skip
def test_commit_whose_expiry_fails_ends_with_status_1(
    run: Run, warehouse: Path, words: tuple[str, ...]
) -> None:
    """The commit stands; the error is printed, and is in the JSON."""
    options = {
        "snapshot.num-retained.min": 1,
        "snapshot.num-retained.max": 2,
        "tablestore.expire-grace": "0 ms",
    }
    schema = pa.schema({"id": pa.int64()})
    table = Engine(str(warehouse)).create_table("demo.t", schema, primary_key="id", options=options)
    for number in range(3):
        table.upsert([{"id": number}])
    consumer = warehouse / "demo.db/t/consumer/consumer-flink"
    consumer.parent.mkdir()
    consumer.write_text("{")
    done = run(words[0], "demo.t", *words[1:])
    assert (done.status, "did not expire: TS1391" in done.out) == (1, True)
    assert table.latest_snapshot_id() == 4
    assert "not_expired" in run(words[0], "demo.t", *words[1:], "--json").json
