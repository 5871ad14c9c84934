"""What the page knows of a table, part by part, and that a part fails alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tablestore_engine.api import Engine, FixRequest, NotFound, RetryError, WriteSpec
from tablestore_engine.ui import table_facts
from tablestore_engine.ui.compared_rows import parse_end, read_difference
from tablestore_engine.ui.page_answers import PageAnswers, read_first_rows
from tablestore_engine.ui.page_section import explain_trouble, read_part
from tablestore_engine.ui.table_facts import BUCKETS_MAX, read_streams, read_summary, read_table, sum_files
from tests.unit.store.table_world import make_table, put, row
from tests.unit.store.test_changelog import foreign_level_zero
from tests.unit.ui.conftest import World
from tests.unit.ui.page_world import HOSTILE, SetClock, build_orders, hold_back, open_engine, orders


def value(record: Any, part: str) -> Any:
    """Of a part that could be read."""
    assert "trouble" not in record[part], record[part]
    return record[part]["value"]


def test_table_has_its_facts_snapshots_and_tags(shop: World) -> None:
    """The newest commit, what each snapshot did, tags beside their snapshots."""
    found = read_table(shop.engine, "demo.orders", shop.clock.ms)
    facts, page = value(found, "facts"), value(found, "snapshots")
    assert (facts["rows"], facts["snapshot"], facts["primary_key"]) == (678, 36, ["order_id"])
    assert [one["id"] for one in page["snapshots"]] == list(range(1, 37))
    assert (page["total"], page["has_older"], page["history"]) == (36, False, [])
    assert page["tags"] == [{"name": "month_end", "snapshot": 14}, {"name": "audit_2026", "snapshot": 30}]
    first = page["snapshots"][0]
    assert (first["inserted"], first["kind"], first["stored_rows"]) == (300, "APPEND", 300)
    assert {one["kind"] for one in page["snapshots"]} == {"APPEND", "COMPACT"}


def test_rows_of_other_engines_that_wait_are_counted(tmp_path: Path) -> None:
    """Beside those that are visible, as `tablestore show` counts them."""
    store = make_table(tmp_path)
    put(store, row(1))
    foreign_level_zero(store, [row(7), row(8)], [0, 0])
    with Engine(str(tmp_path)) as engine:
        facts = value(read_table(engine, "demo.t", 0), "facts")
    assert (facts["rows"], facts["waiting_rows"]) == (1, 2)


def test_horizon_is_that_of_the_next_expiry(shop: World) -> None:
    """What the page draws is what a dry run of the table's own options would delete."""
    horizon = value(read_table(shop.engine, "demo.orders", shop.clock.ms), "horizon")
    report = shop.engine.table("demo.orders").expire(dry_run=True)
    assert horizon["end"] == report.end > 1
    assert (horizon["on_commit"], horizon["log_may_keep"]) == (True, False)


def test_sizes_are_those_of_the_live_files(shop: World) -> None:
    """By level and by bucket, each sum the same."""
    sizes = value(read_table(shop.engine, "demo.orders", shop.clock.ms), "sizes")
    facts = shop.engine.table("demo.orders").facts()
    assert sum(one["bytes"] for one in sizes["levels"]) == facts.bytes
    assert sum(one["rows"] - one["deleted"] for one in sizes["levels"]) == facts.rows
    assert sum(level["files"] for one in sizes["buckets"] for level in one["levels"]) == facts.files
    assert [one["level"] for one in sizes["levels"]] == sorted(one["level"] for one in sizes["levels"])


def test_many_buckets_are_cut(shop: World) -> None:
    """The largest stay, the others are counted."""
    (file, *_) = shop.engine.table("demo.orders").scan().plan().files
    from dataclasses import replace

    found: Any = sum_files([replace(file, bucket=at) for at in range(BUCKETS_MAX + 5)])
    assert (len(found["buckets"]), found["more"]) == (BUCKETS_MAX, 5)


def test_held_back_snapshot_shows_tests_and_failing_rows(shop: World) -> None:
    """Each test with its verdict; the rows that failed, NULL as None."""
    (staged,) = value(read_table(shop.engine, "demo.orders", shop.clock.ms), "staged")
    assert (staged["name"], staged["base_snapshot"], staged["red"]) == (
        "run",
        36,
        ["orders_amount_is_positive"],
    )
    verdicts = {staged["short"][one["test"]]: one["verdict"] for one in staged["tests"]}
    assert verdicts == {"unique_orders_order_id": "green", "orders_amount_is_positive": "red"}
    (failing,) = [one["failing"] for one in staged["tests"] if one["failing"]]
    assert failing["columns"] == ["order_id", "customer", "amount", "status"]
    assert failing["rows"][2] == ["711", None, "-250.0", "returned"]


def test_view_has_its_query(shop: World) -> None:
    """And no parts of a table."""
    found = read_table(shop.engine, "demo.large_orders", shop.clock.ms)
    assert found["kind"] == "view"
    assert "amount > 50" in value(found, "view")["sql"]


def test_damaged_table_is_trouble_with_code_and_fix(shop: World) -> None:
    """In each of its parts, never an exception."""
    found: Any = read_table(shop.engine, "demo.returns", shop.clock.ms)
    parts = [part for part in found.values() if isinstance(part, dict)]
    assert len(parts) == 7
    assert {part["trouble"]["code"] for part in parts if "trouble" in part} == {"TS1111"}
    assert all(part["trouble"]["fix"] for part in parts if "trouble" in part)


def test_one_damaged_file_fails_its_own_part_alone(tmp_path: Path) -> None:
    """Without manifests there are no sizes; snapshots and what is staged are there."""
    clock = SetClock()
    engine = open_engine(tmp_path / "w", clock)
    build_orders(engine, clock)
    hold_back(engine, clock)
    for path in (tmp_path / "w" / "demo.db" / "orders" / "manifest").glob("manifest-list-*"):
        path.write_bytes(b"damaged")
    found: Any = read_table(Engine(engine.warehouse), "demo.orders", clock.ms)
    assert "trouble" in found["sizes"]
    assert len(value(found, "snapshots")["snapshots"]) > 30
    assert value(found, "columns")[0]["name"] == "order_id"


@pytest.mark.parametrize(
    "name", ["demo.missing", "demo.no.such", "../../etc.passwd", "demo./etc/passwd", "x", ""]
)
def test_names_that_are_no_tables(shop: World, name: str) -> None:
    """Each is refused by its name, before any path is made of it."""
    with pytest.raises((NotFound, FixRequest)):
        read_table(shop.engine, name, 0)


def test_streams_have_lag_and_state(shop: World) -> None:
    """Of one table, or of all; a damaged one is a trouble of its own."""
    own: Any = read_streams(shop.engine, "demo.daily_totals", shop.clock.ms)
    assert [(one["follows"], one["state_bytes"]) for one in own] == [
        ("kafka:payments", 48_128),
        ("demo.orders", 48_128),
    ]
    assert (own[1]["lag"]["snapshots"], own[1]["trouble"]) == (2, None)
    assert read_streams(shop.engine, "demo.orders", shop.clock.ms) == []
    every: Any = read_streams(shop.engine, None, shop.clock.ms)
    assert {one["table"]: one["trouble"] is None for one in every} == {
        "demo.daily_totals": True,
        "demo.returns": False,
    }


def test_consumers_and_summary(shop: World) -> None:
    """Where a named reader is; what the line of the list says."""
    (consumer,) = value(read_table(shop.engine, "demo.orders", 0), "consumers")
    assert (consumer["consumer"], consumer["lag_snapshots"]) == ("dashboard", 28)
    summary = read_summary(shop.engine, "demo.orders")
    assert (summary["rows"], summary["staged"], summary["red"]) == (678, 1, 1)


def test_first_rows_are_rows_of_the_newest_snapshot(shop: World, tmp_path: Path) -> None:
    """20 of 678, each one that a scan gives; long values are cut, NULL is None, columns after the 60th are counted."""
    found: Any = read_first_rows(shop.engine, "demo.orders")
    assert (len(found["rows"]), found["total"], found["more_columns"]) == (20, 678, 0)
    stored = [
        list(map(str, row.values())) for row in shop.engine.table("demo.orders").scan().to_arrow().to_pylist()
    ]
    assert all(row in stored for row in found["rows"])
    names = [f"c{at}" for at in range(63)]
    row = dict.fromkeys(names, "x" * 400) | {"c1": None}
    engine = open_engine(tmp_path, SetClock())
    engine.create_table("demo.wide", pa.schema([(one, pa.string()) for one in names])).append([row])
    wide: Any = read_first_rows(engine, "demo.wide")
    assert (len(wide["columns"]), wide["more_columns"], wide["total"]) == (60, 3, 1)
    assert wide["rows"][0][:2] == ["x" * 299 + "…", None]


def test_difference_is_that_of_the_command(shop: World) -> None:
    """The same counts and rows; the way back is the reverse; a staged snapshot is compared with its base."""
    there: Any = read_difference(shop.engine, "demo.orders", "33", "36")
    back: Any = read_difference(shop.engine, "demo.orders", "36", "33")
    counts = shop.engine.table("demo.orders").diff(33, 36)
    assert (there["inserted"], there["updated"], there["deleted"]) == (
        counts.inserted,
        counts.updated,
        counts.deleted,
    )
    assert (back["deleted"], back["inserted"]) == (there["inserted"], there["deleted"])
    assert {one["kind"] for one in there["samples"]} == {"inserted", "updated"}
    staged: Any = read_difference(shop.engine, "demo.orders", "36", "@staged:run")
    assert staged["inserted"] + staged["updated"] == 32


def test_difference_of_tags_is_that_of_their_snapshots(shop: World) -> None:
    """On either side; the title names them."""
    by_id: Any = read_difference(shop.engine, "demo.orders", "14", "30")
    by_tag: Any = read_difference(shop.engine, "demo.orders", "month_end", "audit_2026")
    assert by_tag.pop("title") == "snapshot 14 (tag month_end) to 30 (tag audit_2026)"
    for record in (by_id, by_tag):
        for name in ("title", "from", "to"):
            record.pop(name, None)
    assert by_tag == by_id


def test_large_difference_of_compared_rows_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a tag whose snapshot has expired: by the rows of files, since no snapshot counts them."""
    engine = Engine(str(tmp_path))
    table = engine.create_table(
        "demo.t", pa.schema({"id": pa.int64()}), options={"tablestore.expire-grace": "0 ms"}
    )
    table.append([{"id": number} for number in range(101)])
    table.tag("first")
    table.overwrite([{"id": 1}])
    table.expire(keep=1, older_than_ms=0)
    found: Any = read_difference(engine, "demo.t", "first", "2")
    assert (found["inserted"], found["deleted"]) == (0, 100)
    monkeypatch.setattr("tablestore_engine.ui.compared_rows.CHANGED_ROWS_MAX", 100)
    with pytest.raises(FixRequest, match="TS1953"):
        read_difference(engine, "demo.t", "first", "2")


@pytest.mark.parametrize("text", ["", "x", "1e9", "-1", "9" * 40, "@staged:", "١", "1;2", HOSTILE])
def test_what_is_no_snapshot_is_refused(text: str) -> None:
    """Before anything is read."""
    with pytest.raises(FixRequest, match="TS1952"):
        parse_end(text, lambda: ["month_end"])


def test_large_difference_is_refused(shop: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the counts of the snapshots; no row is read."""
    monkeypatch.setattr("tablestore_engine.ui.compared_rows.CHANGED_ROWS_MAX", 100)
    with pytest.raises(FixRequest, match="TS1953"):
        read_difference(shop.engine, "demo.orders", "1", "36")


def test_expired_snapshot_of_an_open_page(tmp_path: Path) -> None:
    """It was there when the page was loaded: the answer says that it is gone."""
    clock = SetClock()
    engine = open_engine(tmp_path / "w", clock)
    build_orders(engine, clock)
    answers = PageAnswers(engine, clock)
    engine.table("demo.orders").delete_consumer("dashboard")
    engine.table("demo.orders").expire(keep=3)
    answer: Any = answers.find("difference")({"name": ["demo.orders"], "from": ["2"], "to": ["34"]})  # type: ignore[misc]
    assert answer["trouble"]["code"] == "TS1302"


def test_dropped_table_of_an_open_page(tmp_path: Path) -> None:
    """Each route says so."""
    clock = SetClock()
    engine = open_engine(tmp_path / "w", clock)
    engine.write("demo.orders", orders(1, 3), WriteSpec())
    answers = PageAnswers(engine, clock)
    engine.drop_table("demo.orders")
    for route in ("table", "snapshots", "streams", "topic", "difference"):
        answer: Any = answers.find(route)({"name": ["demo.orders"], "from": ["1"], "to": ["1"]})  # type: ignore[misc]
        assert answer["trouble"]["code"] == "TS1414", route
    found: Any = answers.find("summaries")({"name": ["demo.orders"]})  # type: ignore[misc]
    assert found["demo.orders"]["trouble"]["code"] == "TS1414"


def test_hostile_folders_are_listed_and_refused_one_by_one(hostile: World) -> None:
    """A database whose name is no name is a trouble; a table of that kind is listed and cannot be opened."""
    listed: Any = PageAnswers(hostile.engine, hostile.clock).find("tables")({})  # type: ignore[misc]
    names = [name for _, name in listed["relations"]]
    assert "demo.hostile" in names
    assert [one["trouble"]["code"] for one in listed["troubles"]] == ["TS1401"]
    (strange,) = [name for name in names if "<b>" in name]
    assert read_part(lambda: read_table(hostile.engine, strange, 0)).trouble is not None


def test_brokers_that_do_not_answer_are_asked_once(shop: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next tables get the same answer at once, for half a minute."""
    asked = []

    def away(*_: object) -> None:
        asked.append(1)
        raise RetryError("TS1702", "no Kafka broker answered", why="10 s", fix="start it")

    monkeypatch.setattr("tablestore_engine.ui.page_answers.read_topic", away)
    clock = SetClock()
    ask = PageAnswers(shop.engine, clock).find("topic")
    assert ask is not None
    answers: list[Any] = [ask({"name": [name]}) for name in ("demo.orders", "demo.customers")]
    assert {one["trouble"]["code"] for one in answers} == {"TS1702"}
    assert len(asked) == 1
    clock.wait(1)
    ask({"name": ["demo.orders"]})
    assert len(asked) == 2


def test_credentials_of_options_are_hidden(shop: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever an option of another engine is called."""
    monkeypatch.setattr(table_facts, "is_credential", lambda key: key == "bucket")
    assert value(read_table(shop.engine, "demo.orders", 0), "facts")["options"]["bucket"] == "(hidden)"


@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), ValueError("x\x1b[31m")])
def test_errors_of_others_are_explained_too(error: Exception) -> None:
    """Without a code, in one line, with a next step."""
    found = explain_trouble(error)
    assert found.code == ""
    assert found.fix
    assert "\x1b" not in found.why
