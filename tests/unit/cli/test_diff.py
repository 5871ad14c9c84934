"""`tablestore diff`: net changes, and tags on either side; tags in `tablestore changelog`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from tablestore_engine.api import Engine, NotFound, TableSpec, WriteMode, WriteSpec
from tests.unit.cli.conftest import KEYED, Run, orders
from tests.unit.cli.test_staged_diff import counts

NONE = TableSpec(primary_key=("order_id",), options={"changelog-producer": "none"})


def test_rows_that_are_as_before_are_no_change(run: Run, engine: Engine) -> None:
    """A value that came back, and rows that were deleted and restored."""
    for amount in (9.0, 2.0):
        engine.write("demo.orders", orders((2, "bob", amount)), WriteSpec(table=KEYED))
    assert "snapshot 3 to 5: +0 ~0 -0" in run("diff", "demo.orders", "3", "5").out
    table = engine.table("demo.orders")
    engine.write(
        "demo.orders",
        orders((2, "", 0.0), (3, "", 0.0), (4, "", 0.0), kinds=[3, 3, 3]),
        WriteSpec(table=KEYED),
    )
    table.restore(snapshot=3)
    found = run("diff", "demo.orders", "3", "--json").json
    assert (found["to"], counts(found)) == (7, (0, 0, 0))
    assert found["samples"] == {"inserted": [], "updated": [], "deleted": []}
    assert [row["_row_kind"] for row in table.changes(4, 5).to_pylist()] == ["-U", "+U"]


def test_diff_of_tags(run: Run, engine: Engine) -> None:
    """On either side, as the id that it names; a tag that does not exist is named."""
    table = engine.table("demo.orders")
    table.tag("t1", 1)
    table.tag("t2", 2)
    by_id = run("diff", "demo.orders", "1", "2", "--json").json
    by_tag = run("diff", "demo.orders", "t1", "t2", "--json").json
    assert (by_tag.pop("from_tag"), by_tag.pop("to_tag")) == ("t1", "t2")
    assert by_tag == by_id
    assert "snapshot 2 (tag t2) to 1: +0 ~1 -1" in run("diff", "demo.orders", "t2", "1").out
    refused = run("diff", "demo.orders", "t3")
    assert refused.status == 1
    assert "TS1321" in refused.err
    with pytest.raises(NotFound, match="TS1321"):
        table.diff("t3")


def test_diff_of_tags_whose_snapshots_expired(run: Run, engine: Engine) -> None:
    """The rows of both states are compared, with the same result, also with a staged snapshot."""
    spec = WriteSpec(table=TableSpec(("order_id",), options={"tablestore.expire-grace": "0 ms"}))
    engine.write("demo.now", orders((1, "ann", 1.5), (2, "bob", 2.5), (3, "cy", 3.5)), spec)
    engine.write("demo.now", orders((2, "bob", 2.0), (4, "dee", 4.0)), spec)
    engine.write("demo.now", orders((1, "ann", 1.5), kinds=[3]), spec)
    table = engine.table("demo.now")
    table.tag("t1", 1)
    table.tag("t2", 2)
    engine.write("demo.now", orders((2, "bob", 9.0), (5, "eve", 5.0)), replace(spec, stage="try"))
    ends = (("t1", "t2"), ("t2", "t1"), ("t1", "3"), ("3", "t2"), ("t1", "@staged"), ("@staged", "t2"))
    before = [run("diff", "demo.now", *pair, "--json").json for pair in ends]
    table.expire(keep=1, older_than_ms=0)
    assert table.snapshot_ids() == (3,)
    after = [run("diff", "demo.now", *pair, "--json").json for pair in ends]
    assert list(map(_sorted, after)) == list(map(_sorted, before))
    assert counts(after[0]) == (1, 1, 0)
    assert table.diff("t1") == table.diff("t1", 3)


def test_diff_without_changelog_compares_rows(run: Run, engine: Engine) -> None:
    """`changelog-producer: none` stores an upsert of an existing key as an insert."""
    spec = WriteSpec(table=NONE)
    engine.write("demo.bare", orders((1, "ann", 1.0), (2, "bob", 2.0)), spec)
    engine.write("demo.bare", orders((1, "ann", 1.0), (2, "bob", 3.0), (3, "cy", 3.0)), spec)
    assert counts(run("diff", "demo.bare", "1", "2", "--json").json) == (1, 1, 0)
    engine.write("demo.bare", orders((1, "ann", 7.0)), WriteSpec(table=NONE, stage="try"))
    assert counts(run("diff", "demo.bare", "2", "@staged", "--json").json) == (0, 1, 0)


def test_rows_without_a_key_cancel_out(run: Run, engine: Engine) -> None:
    """Rows that were replaced by equal ones are as they were."""
    table = engine.table("demo.events")
    anew = WriteSpec(mode=WriteMode.OVERWRITE_TABLE)
    table.write(pa.table({"id": [3], "day": ["wed"]}), anew)
    table.write(pa.table({"id": [2, 1, 1], "day": ["tue", "mon", "mon"]}), anew)
    found = run("diff", "demo.events", "1", "3", "--json").json
    assert (counts(found), found["samples"]["inserted"]) == ((1, 0, 0), [{"id": 1, "day": "mon"}])


def test_negative_samples_are_refused(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    """The message says what is expected; 0 prints the counts alone."""
    with pytest.raises(SystemExit):
        run("diff", "demo.orders", "1", "--samples", "-1")
    assert "0 or more" in capsys.readouterr().err
    assert run("diff", "demo.orders", "1", "--samples", "0").out.count("\n") == 1


def test_changelog_of_tags(run: Run, engine: Engine) -> None:
    """A tag is the snapshot that it names: the same rows as for the ids, on either side and on both."""
    table = engine.table("demo.orders")
    for number in (1, 2, 3):
        table.tag(f"t{number}", number)
    for since, until in (("t1", "3"), ("1", "t3"), ("t1", "t3"), ("0", "t2"), ("t2", None), ("t2", "t2")):
        words = [("--since", since), ("--until", until)]
        by_tag = run("changelog", "demo.orders", "--json", *(w for pair in words if pair[1] for w in pair))
        ids = [(word, end and end.removeprefix("t")) for word, end in words]
        by_id = run("changelog", "demo.orders", "--json", *(w for pair in ids if pair[1] for w in pair))
        assert (by_tag.json, by_tag.err) == (by_id.json, "")
    unknown = run("changelog", "demo.orders", "--until", "t9")
    assert (unknown.status, "TS1321" in unknown.err) == (1, True)
    back = run("changelog", "demo.orders", "--since", "t3", "--until", "t1")
    assert (back.status, "TS1016" in back.err) == (1, True)


def test_changelog_of_tags_without_stored_changelog_is_that_of_ids(run: Run, engine: Engine) -> None:
    """`diff` compares the rows of `changelog-producer: none`; `changelog` prints what is stored, also of tags."""
    for amount in (1.0, 2.0):
        engine.write("demo.bare", orders((1, "ann", amount)), WriteSpec(table=NONE))
    engine.table("demo.bare").tag("t1", 1)
    by_id = run("changelog", "demo.bare", "--since", "1", "--json").json
    assert run("changelog", "demo.bare", "--since", "t1", "--json").json == by_id
    assert [one["_row_kind"] for one in by_id] == ["+I"]


def test_changelog_of_a_tag_whose_snapshot_expired_prints_net_changes(run: Run, engine: Engine) -> None:
    """The rows of both states are compared, and stderr says so; backwards is refused as for ids."""
    spec = WriteSpec(table=TableSpec(("order_id",), options={"tablestore.expire-grace": "0 ms"}))
    for amount in (1.0, 2.0, 3.0):
        engine.write("demo.now", orders((1, "ann", amount), (2, "bob", 2.5)), spec)
    table = engine.table("demo.now")
    table.tag("t1", 1)
    engine.write("demo.now", orders((2, "bob", 9.0)), replace(spec, stage="try"))
    table.expire(keep=1, older_than_ms=0)
    assert run("changelog", "demo.now", "--since", "1").status == 1
    done = run("changelog", "demo.now", "--since", "t1", "--json")
    assert [(one["_row_kind"], one["amount"]) for one in done.json] == [("-D", 1.0), ("+I", 3.0)]
    assert done.err.startswith("net changes of snapshot 1 (tag t1) to 3")
    staged = run("changelog", "demo.now", "--since", "t1", "--until", "@staged", "--json")
    assert sorted((one["_row_kind"], one["amount"]) for one in staged.json) == [
        ("+I", 3.0), ("+I", 9.0), ("-D", 1.0), ("-D", 2.5)
    ]  # fmt: skip
    assert staged.err.startswith("net changes of snapshot 1 (tag t1) to 4 (@staged)")
    back = run("changelog", "demo.now", "--since", "3", "--until", "t1")
    assert (back.status, "TS1016" in back.err) == (1, True)


def test_changelog_since_a_staged_snapshot_is_refused(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    """No published snapshot follows it."""
    with pytest.raises(SystemExit):
        run("changelog", "demo.orders", "--since", "@staged")
    assert "neither a snapshot id nor a tag" in capsys.readouterr().err


def _sorted(record: dict[str, Any]) -> dict[str, Any]:
    samples = {kind: sorted(rows, key=repr) for kind, rows in record["samples"].items()}
    return {**record, "samples": samples}
