"""How many file operations each kind of dbt node makes: a look that an operation repeats is a request of a store."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest

from integration_tests.adapter.conftest import Shop
from tablestore_engine.fileio.base import FileIO, FolderStore
from tablestore_engine.fileio.local import LocalFileIO

_COUNTED = {
    name
    for port in (FileIO, FolderStore)
    for name, member in vars(port).items()
    if callable(member) and not name.startswith("_")
} - {"run_together"}
_START = re.compile(r"^\d+ of \d+ START .* (?:demo\.)?(\w+) \.+ \[")
COMMAND = "before the first node"
QUERY = "select id, v from {{ ref('fed') }}"
MODELS = {
    "shown": f"{{{{ config(materialized='view') }}}} {QUERY}",
    "whole": f"{{{{ config(materialized='table') }}}} {QUERY}",
    "merged": f"{{{{ config(materialized='incremental', unique_key='id') }}}} {QUERY}",
    "gated": f"{{{{ config(materialized='incremental', unique_key='id') }}}} {QUERY}",
    "keyed": "{{ config(materialized='incremental', incremental_strategy='changed_keys', unique_key='id') }} "
    + QUERY,
    "streamed": "{{ config(materialized='streaming', unique_key='id') }} "
    "select id, v, _row_kind, _snapshot_id from {{ stream(ref('fed')) }}",
}
SNAPSHOT = (
    "{% snapshot kept %} {{ config(unique_key='id', strategy='check', check_cols=['v']) }} "
    + QUERY
    + " {% endsnapshot %}"
)
TEST = "models: [{name: gated, columns: [{name: id, data_tests: [{not_null: {name: no_gap}}]}]}]"
# File operations of the first run and of a second one with one changed row, in a schema of these tables; rounded up.
LIMITS = {
    COMMAND: (10, 44), "fed": (60, 38), "shown": (12, 12), "whole": (60, 30), "merged": (64, 34),
    "gated": (72, 60), "no_gap": (68, 46), "keyed": (70, 38), "streamed": (70, 40), "kept": (70, 40),
}  # fmt: skip


@pytest.fixture
def operations(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Of the command that runs, by node."""
    found: Counter[str] = Counter()
    node = [COMMAND]

    def hear(line: str) -> None:
        if started := _START.match(line):
            node[0] = started[1]
        elif line.startswith("Running with dbt"):
            node[0] = COMMAND

    def counted(name: str) -> Any:
        inner = getattr(LocalFileIO, name)

        def call(*arguments: Any, **named: Any) -> Any:
            found[node[0]] += 1
            return inner(*arguments, **named)

        return call

    for name in _COUNTED:
        monkeypatch.setattr(LocalFileIO, name, counted(name))
    shop.on_line = hear
    return found


def test_each_kind_of_node_makes_so_many_file_operations(shop: Shop, operations: Counter[str]) -> None:
    """First and second run of every kind of node: no more than LIMITS says."""
    shop.output["threads"] = 1
    for name, text in MODELS.items():
        shop.write(f"models/{name}.sql", text)
    shop.write("models/gated.yml", TEST)
    shop.write("snapshots/kept.sql", SNAPSHOT)
    shop.write("seeds/fed.yml", "seeds: [{name: fed, config: {primary_key: id}}]")
    counts: dict[str, tuple[int, ...]] = {}
    for value in ("a", "b"):
        shop.write("seeds/fed.csv", f"id,v\n1,{value}\n2,z\n")
        operations.clear()
        shop.dbt("build", "--select", "fed", *MODELS, "kept", "no_gap")
        counts = {name: (*counts.get(name, ()), count) for name, count in operations.items()}
    assert shop.rows("select v from demo.keyed where id = 1") == [("b",)]
    too_many = {name: each for name, each in counts.items() if any(map(int.__gt__, each, LIMITS[name]))}
    assert not too_many
