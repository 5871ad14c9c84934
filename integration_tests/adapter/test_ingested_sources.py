"""Sources with meta.tablestore.cdc: change messages come into their tables before models read them."""

from __future__ import annotations

import json

import pytest

from integration_tests.adapter.conftest import Shop

SOURCES = """sources:
  - name: crm
    schema: demo
    tables:
      - name: clients
        config: {meta: {tablestore: {cdc: {format: debezium-json, path: clients.jsonl, key: [id], infer: true}}}}
      - name: plain
  - name: shop
    schema: demo
    tables:
      - name: items
        config: {meta: {tablestore: {cdc: {format: debezium-json, path: items.jsonl, key: id, infer: true}}}}
"""
MODEL = """{{ config(materialized='streaming', unique_key='id') }}
select id, upper(name) as name, _row_kind, _snapshot_id from {{ stream(source('crm', 'clients')) }}"""


def change(
    shop: Shop, file: str, *changes: tuple[str, dict[str, object] | None, dict[str, object] | None]
) -> None:
    """Messages behind those that are there."""
    path = shop.folder / file
    before = path.read_text() if path.exists() else ""
    lines = (json.dumps({"op": op, "before": old, "after": new}) for op, old, new in changes)
    path.write_text(before + "".join(f"{line}\n" for line in lines))


def prepared(shop: Shop) -> Shop:
    """Two sources with one row each."""
    shop.write("models/sources.yml", SOURCES)
    shop.write("models/loud.sql", MODEL)
    change(shop, "clients.jsonl", ("c", None, {"id": 1, "name": "ann"}))
    change(shop, "items.jsonl", ("c", None, {"id": 7, "name": "pen"}))
    return shop


def test_a_project_is_up_to_now_before_its_models(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """on-run-start ingests, a streaming model follows: creates, updates and deletes arrive in one dbt run."""
    monkeypatch.chdir(prepared(shop).folder)
    project = shop.folder / "dbt_project.yml"
    project.write_text(project.read_text() + '\non-run-start: "{{ tablestore_ingest() }}"\n')
    shop.dbt("run", "--select", "loud")
    assert shop.rows("select id, name from demo.loud") == [(1, "ANN")]
    change(
        shop,
        "clients.jsonl",
        ("u", {"id": 1, "name": "ann"}, {"id": 1, "name": "anna"}),
        ("c", None, {"id": 2, "name": "bob"}),
        ("d", {"id": 2, "name": "bob"}, None),
        ("c", None, {"id": 3, "name": "cy"}),
    )
    shop.dbt("run", "--select", "loud")
    assert shop.rows("select id, name from demo.loud order by id") == [(1, "ANNA"), (3, "CY")]
    assert shop.rows("select id from demo.items") == [(7,)]


def test_some_sources_of_a_project(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The operation takes names; one that is no such source is TS1848."""
    monkeypatch.chdir(prepared(shop).folder)
    shop.dbt("run-operation", "tablestore_ingest", "--args", "{select: [shop.items]}")
    assert "demo.items: " in shop.log
    assert shop.tables() == {"items"}
    shop.dbt("run-operation", "tablestore_ingest", "--args", "{select: crm.plain}", ok=False)
    assert "TS1848" in shop.log


def test_a_source_that_fails_keeps_no_other_back(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other one is ingested, the command fails with TS1849, and no model is built behind it."""
    monkeypatch.chdir(prepared(shop).folder)
    (shop.folder / "clients.jsonl").write_text("no change at all\n")
    project = shop.folder / "dbt_project.yml"
    project.write_text(project.read_text() + '\non-run-start: "{{ tablestore_ingest() }}"\n')
    shop.dbt("run", "--select", "loud", ok=False)
    assert "TS1849" in shop.log
    assert shop.rows("select id from demo.items") == [(7,)]
    assert shop.engine.find_table("demo.loud") is None


def test_words_that_nobody_knows_are_refused(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is ingested."""
    monkeypatch.chdir(prepared(shop).folder)
    for given, said in (("topics: x, ", "'topic'"), ("into: other.t, ", "into")):
        shop.write("models/sources.yml", SOURCES.replace("cdc: {format", f"cdc: {{{given}format", 1))
        shop.dbt("run-operation", "tablestore_ingest", ok=False)
        assert "TS1848" in shop.log
        assert said in shop.log
    shop.write("models/sources.yml", SOURCES.replace("format: debezium-json, path: clients", "path: clients"))
    shop.dbt("run-operation", "tablestore_ingest", ok=False)
    assert "names no format" in shop.log
    assert "demo" not in shop.engine.databases() or shop.tables() == set()
