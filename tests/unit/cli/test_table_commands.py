"""show, snapshots, files, diff, changelog on a real warehouse."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tablestore_engine.api import Engine, WriteSpec
from tablestore_engine.cli.page import NewestRows

from .conftest import KEYED, Run, orders


def test_show_lists_tables_and_views(run: Run) -> None:
    """Without a name every table and view is listed with its visible rows and newest snapshot."""
    found = {one["name"]: one for one in run("show", "--json").json}
    assert set(found) == {"demo.orders", "demo.events", "demo.big"}
    assert (found["demo.orders"]["rows"], found["demo.orders"]["snapshot"]) == (3, 3)
    assert (found["demo.big"]["kind"], found["demo.big"]["rows"]) == ("view", None)
    assert found == {one["name"]: one for one in run("show", "demo", "--json").json}


def test_show_table(run: Run, engine: Engine) -> None:
    """A table shows its columns, keys, options, comment, tags and staged snapshots."""
    engine.table("demo.orders").tag("monthly", 2)
    shown = run("show", "demo.orders", "--json").json
    assert [(one["name"], one["type"], one["nullable"]) for one in shown["columns"]] == [
        ("order_id", "bigint", False),
        ("customer", "string", True),
        ("amount", "double", True),
    ]
    assert (shown["primary_key"], shown["rows"], shown["comment"]) == (["order_id"], 3, "orders of the shop")
    assert (shown["tags"], shown["staged"]) == ({"monthly": 2}, [])
    assert shown["options"]["merge-engine"] == "deduplicate"
    assert "merge-engine" in run("show", "demo.orders").out


def test_show_refuses_unknown_names(run: Run) -> None:
    """A database or table that does not exist is an error with exit status 1 and no traceback."""
    for name, code in (("nope", "TS1925"), ("demo.nope", "TS1414")):
        done = run("show", name)
        assert (done.status, done.out) == (1, "")
        assert done.err.startswith(code)


def test_snapshots(run: Run, engine: Engine) -> None:
    """Each snapshot has its counts, its time in UTC and its tags, oldest first."""
    engine.table("demo.orders").tag("monthly", 2)
    found = run("snapshots", "demo.orders", "--json").json
    counts = [(one["id"], one["inserted"], one["updated"], one["deleted"], one["tags"]) for one in found]
    assert counts == [(1, 3, 0, 0, []), (2, 1, 1, 0, ["monthly"]), (3, 0, 0, 1, [])]
    assert all(one["committed_at"].endswith("Z") and one["kind"] == "APPEND" for one in found)


def test_snapshots_last(run: Run) -> None:
    """--last N keeps the newest N, and more than there are is all of them."""
    assert [one["id"] for one in run("snapshots", "demo.orders", "--last", "2", "--json").json] == [2, 3]
    assert len(run("snapshots", "demo.orders", "--last", "9", "--json").json) == 3
    assert run("snapshots", "demo.orders", "--last", "0", "--json").json == []


def test_files_of_a_keyed_table(run: Run) -> None:
    """Live files come with level, rows, deleted rows, exact size and key range."""
    files = run("files", "demo.orders", "--json").json
    assert sorted((one["rows"], one["deleted"], one["min_key"], one["max_key"]) for one in files) == [
        (2, 0, [2], [4]),
        (3, 2, [1], [3]),
    ]
    assert all(one["bytes"] == Path(one["path"]).stat().st_size and one["level"] > 0 for one in files)


def test_files_of_a_past_snapshot(run: Run) -> None:
    """--snapshot shows the files as they were, without later deletions."""
    files = run("files", "demo.orders", "--snapshot", "1", "--json").json
    assert [(one["rows"], one["deleted"]) for one in files] == [(3, 0)]


def test_files_of_an_append_table(run: Run) -> None:
    """Files of a partitioned append-only table name their partition and have no key range."""
    files = run("files", "demo.events", "--json").json
    assert [(one["partition"], one["rows"], one["min_key"]) for one in files] == [
        ({"day": "mon"}, 1, None),
        ({"day": "tue"}, 1, None),
    ]
    assert "day=mon" in run("files", "demo.events").out


def test_diff_between_snapshots(run: Run) -> None:
    """diff counts net changes of keys and shows the rows before and after."""
    diff = run("diff", "demo.orders", "1", "3", "--json").json
    assert (diff["from"], diff["to"]) == (1, 3)
    assert (diff["inserted"], diff["updated"], diff["deleted"]) == (1, 1, 1)
    four = {"order_id": 4, "customer": "dee", "amount": 4.0}
    one = {"order_id": 1, "customer": "ann", "amount": 1.5}
    assert (diff["samples"]["inserted"], diff["samples"]["deleted"]) == ([four], [one])
    (updated,) = diff["samples"]["updated"]
    assert (updated["before"]["amount"], updated["after"]["amount"]) == (2.5, 2.0)


def test_diff_backwards_is_the_mirror(run: Run) -> None:
    """diff B A says the opposite of diff A B, and B alone means the newest snapshot."""
    there, back = (
        run("diff", "demo.orders", *ends, "--json").json["samples"] for ends in (("1",), ("3", "1"))
    )
    assert (there["inserted"], there["deleted"]) == (back["deleted"], back["inserted"])
    assert there["updated"][0]["before"] == back["updated"][0]["after"]


def test_diff_samples_are_limited(run: Run, engine: Engine) -> None:
    """At most --samples rows of each kind are shown; the counts are of all."""
    from tablestore_engine.api import WriteSpec

    engine.write("demo.orders", orders(*((n, "new", 1.0) for n in range(100, 120))), WriteSpec(table=KEYED))
    diff = run("diff", "demo.orders", "3", "4", "--json").json
    assert (diff["inserted"], len(diff["samples"]["inserted"])) == (20, 5)
    assert (
        len(run("diff", "demo.orders", "3", "4", "--samples", "7", "--json").json["samples"]["inserted"]) == 7
    )


def test_diff_of_a_missing_snapshot(run: Run) -> None:
    """A snapshot that does not exist is named, and the ones that do."""
    done = run("diff", "demo.orders", "1", "9")
    assert done.status == 1
    assert "TS1302" in done.err
    assert "snapshots 1 to 3" in done.err


def test_changelog(run: Run) -> None:
    """changelog gives every changed row of (since, until] in order with kind and snapshot."""
    rows = run("changelog", "demo.orders", "--since", "1", "--until", "3", "--json").json
    assert [(one["_snapshot_id"], one["_row_kind"], one["order_id"]) for one in rows] == [
        (2, "-U", 2),
        (2, "+U", 2),
        (2, "+I", 4),
        (3, "-D", 1),
    ]


def test_changelog_limit_says_what_it_leaves_out(run: Run) -> None:
    """A limit never cuts silently: the note with the total goes to stderr, so that stdout stays JSON."""
    done = run("changelog", "demo.orders", "--limit", "2", "--json")
    assert [(one["_snapshot_id"], one["_row_kind"]) for one in done.json] == [(2, "+I"), (3, "-D")]
    assert done.err == "the newest 2 of 7 rows; see all with --all, or more with --limit N\n"


def test_changelog_prints_the_newest_page(run: Run, engine: Engine) -> None:
    """100 rows for a person, all with --all or --json, where nothing is said on stderr."""
    engine.write(
        "demo.orders", orders(*((number, "z", 1.0) for number in range(100, 300))), WriteSpec(table=KEYED)
    )
    page = run("changelog", "demo.orders")
    assert len(page.out.splitlines()) == 2 + 100
    assert page.out.splitlines()[-1].split()[:3] == ["4", "+I", "299"]
    assert page.err.startswith("the newest 100 of 207 rows; see all with --all")
    for words, lines in ((("--all",), 2 + 207), (("--limit", "150"), 2 + 150)):
        assert len(run("changelog", "demo.orders", *words).out.splitlines()) == lines
    everything = run("changelog", "demo.orders", "--json")
    assert (len(everything.json), everything.err) == (207, "")
    assert run("changelog", "demo.orders", "--limit", "0", "--json").json == []


@pytest.mark.parametrize("limit", [0, 1, 2, 3, 4, 5, 6, 9, None])
def test_newest_rows_are_those_at_the_end(limit: int | None) -> None:
    """Whatever the batches: the last rows, in their order, and the number of all."""
    batches = [pa.record_batch({"a": part}) for part in ([1, 2], [3], [4, 5, 6])]
    newest = NewestRows(limit)
    for batch in batches:
        newest.add(batch)
    values = [value for batch in newest.take() for value in batch.column("a").to_pylist()]
    assert values == [1, 2, 3, 4, 5, 6][6 - min(6, limit) :] if limit is not None else [1, 2, 3, 4, 5, 6]
    assert newest.total == 6
    assert (newest.note is None) is (limit is None or limit >= 6)


def test_sql_by_duckdb_needs_no_jvm(run: Run) -> None:
    """Rows by DuckDB, as a table and as JSON; a view is refused by name."""
    text = "select customer, sum(amount) as total from demo.orders group by all order by all"
    found = run("sql", "--engine", "duckdb", text, "--json").json
    assert found["columns"][1] == {"name": "total", "type": "DOUBLE"}
    assert len(found["rows"]) == len({row["customer"] for row in found["rows"]}) > 0
    assert "total" in run("sql", "--engine", "duckdb", text).out
    refused = run("sql", "--engine", "duckdb", "select * from demo.big")
    assert (refused.status, "TS1553" in refused.err) == (1, True)


def test_system_tables(run: Run) -> None:
    """All names without one; rows as JSON and as a table, with columns, a condition and a limit."""
    assert {"files", "snapshots"} <= set(run("system-table", "demo.orders", "--json").json)
    words = ("--columns", "snapshot_id,commit_kind", "--where", "snapshot_id > 1", "--limit", "1")
    found = run("system-table", "demo.orders", "snapshots", *words, "--json").json
    assert found == [{"snapshot_id": 2, "commit_kind": "APPEND"}]
    assert "snapshot_id" in run("system-table", "demo.orders$snapshots", *words).out
    kinds = run(
        "system-table", "demo.orders", "audit_log", "--since", "2", "--columns", "rowkind", "--json"
    ).json
    assert kinds == [{"rowkind": "-D"}]
    for words, code in ((("demo.orders", "nothing"), "TS1490"), (("demo.orders$files", "tags"), "TS1947")):
        assert run("system-table", *words).err.startswith(code)


def test_branches(run: Run, engine: Engine) -> None:
    """Created from a snapshot, written by Python, listed, brought to main, deleted."""
    run("branch", "create", "demo.orders", "dev", "--snapshot", "3")
    engine.table("demo.orders").branch("dev").upsert(orders((9, "zoe", 9.0)))
    assert run("branch", "list", "demo.orders", "--json").json == [
        {"branch": "dev", "snapshot": 4, "rows": 4}
    ]
    assert "dev" in run("branch", "list", "demo.orders").out
    shown = run("system-table", "demo.orders", "branches", "--columns", "branch_name", "--json").json
    assert shown == [{"branch_name": "dev"}]
    done = run("branch", "fast-forward", "demo.orders", "dev", "--json").json
    assert (done["before"], done["added"]) == (3, [4])
    assert "nothing new" in run("branch", "fast-forward", "demo.orders", "dev").out
    assert "removed" in run("branch", "delete", "demo.orders", "dev").out
    for words, code in (
        (("delete", "demo.orders", "dev"), "TS1346"),
        (("create", "demo.orders", "main"), "TS1107"),
        (("create", "demo.orders", "new", "--tag", "nothing"), "TS1321"),
    ):
        done = run("branch", *words)
        assert done.err.startswith(code), done.err
