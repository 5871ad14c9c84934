"""`@staged` in diff, changelog and files: the staged snapshot beside the published ones."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tablestore_engine.api import (
    Engine,
    FixRequest,
    NotFound,
    OnSchemaChange,
    TableSpec,
    WriteMode,
    WriteSpec,
)
from tests.unit.cli.conftest import KEYED, Run, orders

STAGED = orders((2, "bob", 9.0), (5, "eve", 5.0), (3, "cy", 3.5))  # main has 2, 3, 4


def stage(engine: Engine, rows: pa.Table = STAGED, name: str = "try", **more: Any) -> None:
    """The whole table anew, staged."""
    spec = WriteSpec(table=KEYED, mode=WriteMode.OVERWRITE_TABLE, stage=name, **more)
    engine.write("demo.orders", rows, spec)


def counts(record: dict[str, Any]) -> tuple[int, int, int]:
    """Inserted, updated, deleted."""
    return record["inserted"], record["updated"], record["deleted"]


def test_diff_with_staged_counts_and_samples(run: Run, engine: Engine) -> None:
    """The same as after it is published: 5 comes, 2 changes, 4 goes; an earlier A has the changes before as well."""
    stage(engine)
    for ends in (("3", "@staged"), ("@staged",), ("3", "@staged:try")):
        diff = run("diff", "demo.orders", *ends, "--json").json
        assert (diff["from"], diff["to"], diff["staged"], counts(diff)) == (3, 4, "try", (1, 1, 1))
        (updated,) = diff["samples"]["updated"]
        assert (updated["before"]["amount"], updated["after"]["amount"]) == (2.0, 9.0)
    early = run("diff", "demo.orders", "1", "@staged", "--json").json
    assert counts(early) == (1, 1, 1)  # 4 came and went, 1 went
    text = run("diff", "demo.orders", "1", "@staged").out
    assert "snapshot 1 to 4 (@staged): +1 ~1 -1" in text
    engine.gate.publish(engine.gate.read_book("demo.orders").staged)
    published = [run("diff", "demo.orders", start, "4", "--json").json for start in ("3", "1")]
    assert published[0]["samples"] == diff["samples"]
    assert published[1]["samples"] == early["samples"]


def test_diff_from_staged_is_the_mirror(run: Run, engine: Engine) -> None:
    """@staged as A says what going back to the published snapshot would change."""
    stage(engine)
    there, back = (
        run("diff", "demo.orders", *ends, "--json").json for ends in (("1", "@staged"), ("@staged", "1"))
    )
    assert (back["from"], back["to"]) == (4, 1)
    assert there["samples"]["inserted"] == back["samples"]["deleted"]
    assert there["samples"]["updated"][0]["before"] == back["samples"]["updated"][0]["after"]


def test_diff_of_a_staged_first_snapshot(run: Run, engine: Engine) -> None:
    """A table that nobody has seen: all rows are new."""
    spec = WriteSpec(table=KEYED, stage="first")
    engine.write("demo.new", orders((1, "a", 1.0), (2, "b", 2.0)), spec)
    diff = run("diff", "demo.new", "@staged", "--json").json
    assert (diff["from"], counts(diff)) == (0, (2, 0, 0))


def test_diff_with_staged_of_rows_without_a_key(run: Run, engine: Engine) -> None:
    """Rows are counted as they come and go."""
    append = WriteSpec(table=TableSpec(partition_by=("day",)), mode=WriteMode.APPEND, stage="more")
    engine.write("demo.events", pa.table({"id": [3], "day": ["wed"]}), append)
    assert counts(run("diff", "demo.events", "1", "@staged", "--json").json) == (1, 0, 0)
    assert engine.table("demo.events").diff(0, "@staged").inserted == 3


def test_diff_with_staged_that_adds_a_column(run: Run, engine: Engine) -> None:
    """The columns are those of the staged snapshot; rows of before have NULL there."""
    rows = STAGED.append_column("note", pa.array(["x", "y", "z"]))
    stage(engine, rows, on_schema_change=OnSchemaChange.REPLACE)
    diff = run("diff", "demo.orders", "1", "@staged", "--json").json
    assert diff["samples"]["inserted"] == [{"order_id": 5, "customer": "eve", "amount": 5.0, "note": "y"}]
    assert {one["note"] for one in diff["samples"]["deleted"]} == {None}
    assert "note" in run("diff", "demo.orders", "1", "@staged").out


def test_diff_with_a_staged_snapshot_of_an_older_base(run: Run, engine: Engine) -> None:
    """Compaction alone changes no row: the newest snapshot stands for the base. Other rows are refused."""
    stage(engine)
    engine.table("demo.orders").compact(full=True)
    newest = str(engine.table("demo.orders").latest_snapshot_id())
    assert int(newest) > 3
    assert counts(run("diff", "demo.orders", newest, "@staged", "--json").json) == (1, 1, 1)
    engine.write("demo.orders", orders((7, "zoe", 7.0)), WriteSpec(table=KEYED))
    newest = str(engine.table("demo.orders").latest_snapshot_id())
    refused = run("diff", "demo.orders", newest, "@staged")
    assert refused.status == 1
    assert "TS1545" in refused.err
    assert counts(run("diff", "demo.orders", "@staged", "--json").json) == (1, 1, 1)


def test_staged_of_several_names_them(run: Run, engine: Engine) -> None:
    """`@staged` is refused, `@staged:NAME` is one of them; two of them are never compared."""
    stage(engine)
    stage(engine, orders((9, "ida", 9.0)), name="other")
    refused = run("diff", "demo.orders", "1", "@staged")
    assert "TS1544" in refused.err
    assert "try, other" in refused.err
    assert counts(run("diff", "demo.orders", "3", "@staged:other", "--json").json) == (1, 0, 3)
    assert "TS1545" in run("diff", "demo.orders", "@staged:try", "@staged:other").err


def test_staged_without_any_is_refused(run: Run, engine: Engine) -> None:
    """None staged, another name, and a word that is neither."""
    with pytest.raises(NotFound, match="TS1546"):
        engine.table("demo.orders").diff(1, "@staged")
    stage(engine)
    assert "TS1546" in run("diff", "demo.orders", "1", "@staged:nope").err
    with pytest.raises(SystemExit):
        run("diff", "demo.orders", "1", "@stage")


def test_staged_table_of_its_own_is_refused(run: Run, engine: Engine) -> None:
    """One with another key waits beside the table; the error says where its rows are."""
    spec = WriteSpec(table=TableSpec(primary_key=("customer",)), mode=WriteMode.OVERWRITE_TABLE)
    engine.write(
        "demo.orders", orders((1, "ann", 1.5)), WriteSpec(**{**vars(spec), "stage": "next", "beside": True})
    )
    with pytest.raises(FixRequest, match="TS1547"):
        engine.table("demo.orders").diff(1, "@staged")
    assert "__at_branch_next" in run("diff", "demo.orders", "@staged").err


def test_changelog_and_files_of_staged(run: Run, engine: Engine) -> None:
    """changelog --until @staged ends with its changes; files --snapshot @staged lists its files."""
    stage(engine)
    rows = run("changelog", "demo.orders", "--since", "2", "--until", "@staged", "--json").json
    assert [(one["_snapshot_id"], one["_row_kind"], one["order_id"]) for one in rows] == [
        (3, "-D", 1), (4, "-U", 2), (4, "+U", 2), (4, "-D", 4), (4, "+I", 5),
    ]  # fmt: skip
    files = run("files", "demo.orders", "--snapshot", "@staged", "--json").json
    assert sum(one["rows"] - one["deleted"] for one in files) == 3
