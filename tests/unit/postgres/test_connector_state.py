"""What is remembered of a source, how it may begin, and which tables can be followed."""

from __future__ import annotations

import errno
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tablestore_engine.api.database_sync import check_brokers, known_record
from tablestore_engine.errors import FixRequest, StorageError
from tablestore_engine.postgres.catalog_tables import (
    CatalogColumn,
    CatalogTable,
    Index,
    find_risky,
    key_of,
    why_unfit,
)
from tablestore_engine.postgres.connector_bootstrap import Found, decide_begin, has_loaded
from tablestore_engine.postgres.connector_state import (
    FollowedTable,
    SourceRecord,
    change_record,
    check_record,
    follow_as_is,
    read_record,
    topic_of,
    write_record,
)
from tablestore_engine.postgres.database_source import parse_source
from tablestore_engine.postgres.postgres_session import Identity, Slot, place_number
from tablestore_engine.postgres.publication_tables import why_torn
from tablestore_engine.postgres.unsent_values import Since, doubt_begin, fingerprint, why_doubted

SOURCE = parse_source("shop", "postgresql://app@localhost/shop", ["public.*"])
HERE = Identity("77", 1, "0/20", 180000)
FOLLOWED = FollowedTable(16384, ("id",), {"id": 1}, {"16390": "5"})
RECORD = SourceRecord("shop", ("public.*",), "77", 1, "kafka-1", "0/10", {"public.a": FOLLOWED})
LOADED = Found(RECORD, HERE, "kafka-1", Slot(is_active=False, is_lost=False), (), is_loaded=True)


def table(**other: Any) -> CatalogTable:
    """With a primary key, but for what is said."""
    words: dict[str, Any] = {
        "oid": 16384,
        "schema": "public",
        "name": "a",
        "kind": "r",
        "persistence": "p",
        "identity": "d",
        "root": 0,
        "has_children": False,
        "is_filtered": False,
        "leaves": {},
        "has_other_leaves": False,
        "file": "5",
        "published": "16400",
        "columns": (column("id", is_required=True), column("v", number=2)),
        "indexes": (primary("id"),),
    }
    return CatalogTable(**{**words, **other})


def column(
    name: str, *, number: int = 1, is_required: bool = False, generated: str = "", kind: str = "integer"
) -> CatalogColumn:
    """Of a table."""
    return CatalogColumn(name, number, generated, kind, is_required, "700")


def primary(*names: str) -> Index:
    """A primary key."""
    return Index(is_primary=True, is_identity=False, is_plain=True, columns=names)


def unique(*names: str, is_identity: bool = False, is_plain: bool = True) -> Index:
    """Another unique index."""
    return Index(is_primary=False, is_identity=is_identity, is_plain=is_plain, columns=names)


def test_a_record_comes_back(tmp_path: Path) -> None:
    """As it was written; a torn one is none; its place never goes back."""
    assert read_record(tmp_path) is None
    assert change_record(tmp_path, lambda known: known) is None
    write_record(tmp_path, RECORD)
    assert read_record(tmp_path) == RECORD
    change_record(tmp_path, lambda known: known.with_place("0/9"))
    assert read_record(tmp_path) == RECORD
    change_record(tmp_path, lambda known: known.with_place("1/0").without("public.a"))
    assert read_record(tmp_path) == replace(RECORD, reached="1/0", followed={})
    (tmp_path / "source.json").write_text("{")
    assert read_record(tmp_path) is None
    assert place_number("1/0") > place_number("0/FFFFFFFF")


@pytest.mark.parametrize(
    ("source", "here", "cluster"),
    [
        (replace(SOURCE, tables=("public.a",)), HERE, "kafka-1"),
        (replace(SOURCE, database="other"), HERE, "kafka-1"),
        (SOURCE, replace(HERE, system="78"), "kafka-1"),
        (SOURCE, replace(HERE, timeline=2), "kafka-1"),
        (SOURCE, replace(HERE, place="0/F"), "kafka-1"),
        (SOURCE, HERE, "kafka-2"),
    ],
)
def test_another_database_is_refused(source: Any, here: Identity, cluster: str) -> None:
    """TS1492, with the command that begins anew; another host of the same server is not another one."""
    check_record(RECORD, replace(SOURCE, host="elsewhere"), HERE, "kafka-1")
    with pytest.raises(FixRequest, match="TS1492") as error:
        check_record(RECORD, source, here, cluster)
    assert f"tablestore connect start shop --database {source.url} --table" in str(error.value)


@pytest.mark.parametrize(
    ("found", "begins_anew"),
    [
        (LOADED, False),
        (replace(LOADED, record=replace(RECORD, reached=None)), False),
        (replace(LOADED, record=replace(RECORD, reached=None), is_loaded=False), True),
        (replace(LOADED, record=None, slot=None), True),
        (replace(LOADED, record=None), None),
        (replace(LOADED, record=None, slot=None, topics=("shop.public.a",)), None),
        (replace(LOADED, is_loaded=False), None),
        (replace(LOADED, slot=None), None),
        (replace(LOADED, slot=Slot(is_active=False, is_lost=True)), None),
    ],
)
def test_how_a_source_begins(found: Found, begins_anew: bool | None) -> None:
    """On where it was; anew where nothing was promised; else it is refused: TS1493."""
    if begins_anew is not None:
        assert decide_begin(SOURCE, found) is begins_anew
        return
    with pytest.raises(FixRequest, match=r"TS1493.*(\n.*)*--anew"):
        decide_begin(SOURCE, found)


def test_offsets_say_whether_the_load_is_complete() -> None:
    """In Debezium's words, which lie in a file of Java's; what is not understood is not complete."""
    assert has_loaded(
        b'..{"last_snapshot_record":true,"lsn":2,"snapshot":"INITIAL","snapshot_completed":true}x'
    )
    assert has_loaded(b'..{"lsn_proc":24,"messageType":"COMMIT","lsn_commit":24,"lsn":24}x')
    assert not has_loaded(
        b'..{"last_snapshot_record":false,"lsn":2,"snapshot":"INITIAL","snapshot_completed":false}x'
    )
    assert not has_loaded(b"")


@pytest.mark.parametrize(
    ("given", "key"),
    [
        (table(), ("id",)),
        (table(identity="f"), ("id",)),
        (table(identity="n"), ()),
        (table(identity="i", indexes=(primary("id"), unique("v", is_identity=True))), ()),
        (table(indexes=()), ()),
        (table(indexes=(unique("id", is_identity=True),), identity="i"), ("id",)),
        (table(indexes=(unique("id"),), identity="f"), ("id",)),
        (table(indexes=(unique("id"),)), ()),
        (table(indexes=(unique("id", is_plain=False),), identity="f"), ()),
        (table(indexes=(unique("v"),), identity="f"), ()),
        (table(indexes=(unique("id"), unique("id", "v")), identity="f"), ()),
    ],
)
def test_a_key_is_one_that_every_change_tells(given: CatalogTable, key: tuple[str, ...]) -> None:
    """The primary key, or one unique index that all rows are in; without one: TS1491."""
    assert key_of(given) == key
    trouble = why_unfit(given, 180000)
    assert (trouble is None) if key else (trouble is not None and trouble.code == "TS1491")


@pytest.mark.parametrize(
    "other",
    [
        {"kind": "f"},
        {"persistence": "u"},
        {"has_children": True},
        {"has_other_leaves": True},
        {"is_filtered": True},
        {"columns": (column("id", is_required=True), column("v", generated="v"))},
        {"columns": (column("id", is_required=True), column("v", kind="money[]"))},
    ],
)
def test_what_the_log_has_no_word_of_is_refused(other: dict[str, Any]) -> None:
    """TS1491."""
    trouble = why_unfit(table(**other), 180000)
    assert trouble is not None
    assert trouble.code == "TS1491"


def test_stored_generated_columns_need_a_new_server() -> None:
    """PostgreSQL tells their values from version 18 on."""
    given = table(columns=(column("id", is_required=True), column("v", generated="s")))
    assert why_unfit(given, 180000) is None
    assert why_unfit(given, 170005) is not None


def test_risky_columns_are_known() -> None:
    """Arrays whose unchanged value Debezium cannot tell; with the whole row in the log it need not."""
    kinds = (
        "integer",
        "text[]",
        "character varying(9)[]",
        "numeric(5,2)[]",
        "boolean[]",
        "uuid[]",
        "bit varying(9)",
    )
    columns = tuple(column(kind, kind=kind) for kind in kinds)
    assert find_risky(table(columns=columns)) == ("numeric(5,2)[]", "boolean[]", "bit varying(9)")
    assert find_risky(table(columns=columns, identity="f")) == ()


LEAF = {"16390": ("5", "public.a_1", "700", "700", "made")}


@pytest.mark.parametrize(
    ("now", "word"),
    [
        (table(leaves=LEAF), None),
        (table(leaves=LEAF, oid=16999), "created again"),
        (table(leaves=LEAF, published=""), "publication"),
        (table(leaves=LEAF, published="16401"), "publication"),
        (table(leaves=LEAF, indexes=(primary("v"),), columns=(column("v", is_required=True),)), "key"),
        (table(), "detached"),
        (table(leaves={"16390": ("6", "public.a_1", "700", "700", "made")}), "truncated"),
    ],
)
def test_what_a_catalog_says_of_a_table(now: CatalogTable, word: str | None) -> None:
    """TS1495 where rows came or went that replication did not send."""
    trouble = why_torn(SOURCE, now, replace(FOLLOWED, published="16400"))
    if word is None:
        assert trouble is None
    else:
        assert trouble is not None
        assert trouble.code == "TS1495"
        assert word in trouble.why


def test_other_brokers_are_refused(tmp_path: Path) -> None:
    """TS1497; a source of which nothing is written down is TS1484."""
    with pytest.raises(FixRequest, match=r"TS1484.*(\n.*)*--anew"):
        known_record(SOURCE, tmp_path)
    write_record(tmp_path, RECORD)
    assert known_record(SOURCE, tmp_path) == RECORD
    check_brokers(SOURCE, RECORD, "kafka-1")
    with pytest.raises(FixRequest, match="TS1497"):
        check_brokers(SOURCE, RECORD, "kafka-2")


@pytest.mark.parametrize(
    ("now", "is_rewritten", "word"),
    [
        (column("n", kind="numeric(10,2)"), False, None),
        (column("n", kind="numeric(12,2)"), False, None),
        (column("n", kind="numeric(12,2)"), True, "type"),
        (column("n", kind="text"), False, "type"),
        (column("n", number=9, kind="numeric(10,2)"), False, "another one"),
        (column("N", number=9, kind="numeric(10,2)"), False, "another one"),
        (column("c", kind="text"), False, None),
        (column("c", kind="text"), True, "type"),
        (replace(column("n", kind="numeric(10,2)"), made="701"), False, None),
        (replace(column("n", kind="numeric(10,2)"), made="701"), True, "rewritten"),
        (column("gone", number=3), False, "another one"),
        (column("new", number=3), False, None),
        (column("new", number=3), True, "added"),
        (replace(column("new", number=3), is_filled=True), False, "added"),
        (column("new", number=2), False, "renamed"),
    ],
)
def test_a_column_is_doubted_where_the_catalog_does_not_prove_its_values(
    now: CatalogColumn, is_rewritten: bool, word: str | None
) -> None:
    """Number, type, last ALTER and relfilenode decide; a widened type is accepted where no row was rewritten."""
    kinds = {"n": "numeric(10,2)", "c": "character varying(3)"}
    followed = replace(
        FOLLOWED,
        columns={"n": 1, "c": 1, "d": 2, "gone": 0},
        kinds=kinds,
        made={"n": "700", "c": "700"},
        leaves={},
        file="5",
    )
    found = why_doubted(now, table(file="6" if is_rewritten else "5"), followed)
    assert (found is None) if word is None else (found is not None and word in found)


def test_rows_are_compared_with_the_first_look_that_saw_the_catalog() -> None:
    """A doubt keeps its first transaction while the catalog stays; where ids may have come round no row is compared."""
    now = table()
    assert doubt_begin(now, FOLLOWED, 900) == Since(900, is_usable=True)
    known = replace(FOLLOWED, doubt=fingerprint(now), doubt_since=800)
    assert doubt_begin(now, known, 900) == Since(800, is_usable=True)
    assert doubt_begin(table(file="6"), known, 900) == Since(900, is_usable=True)
    assert doubt_begin(now, known, 1 << 32) == Since(800, is_usable=False)
    assert doubt_begin(now, known, 800 + (1 << 31)) == Since(800, is_usable=False)
    assert doubt_begin(now, known, 700) == Since(700, is_usable=True)


def test_a_table_is_remembered_as_it_is() -> None:
    """Columns by numbers, types and last ALTER, partitions by relfilenode; a dropped column keeps its name."""
    kinds, made = {"id": "integer", "v": "integer"}, {"id": "700", "v": "700"}
    remembered = FollowedTable(
        16384, ("id",), {"id": 1, "v": 2}, {"16390": "5"}, kinds, made, {}, "5", "16400"
    )
    assert follow_as_is(table(leaves=LEAF)) == remembered
    before = replace(FOLLOWED, columns={"id": 1, "old": 7})
    assert follow_as_is(table(leaves=LEAF), before).columns == {"id": 1, "v": 2, "old": 0}
    assert topic_of("shop", "public.Größe 1") == "shop.public.Gr__e_1"


def test_a_full_disk_leaves_the_record_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of ours, and what was written down before stays."""

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    write_record(tmp_path, RECORD)
    monkeypatch.setattr("os.replace", full)
    with pytest.raises(StorageError):
        write_record(tmp_path, RECORD.with_place("0/30"))
    assert read_record(tmp_path) == RECORD
