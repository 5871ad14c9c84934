"""Contracts and comments of a model node."""

from __future__ import annotations

from typing import Any

import pytest

from dbt.adapters.tablestore.config.contract_and_docs import Contract, read_comments, read_contract
from tablestore_engine.errors import FixRequest


def model(*, enforced: bool = True, **extra: Any) -> dict[str, Any]:
    """A model node with constraints at both levels."""
    return {
        "name": "orders",
        "description": "All orders",
        "config": {"contract": {"enforced": enforced}, **extra},
        "columns": {
            "id": {
                "data_type": "bigint",
                "description": "Key",
                "constraints": [{"type": "primary_key"}, {"type": "check", "expression": "id > 0"}],
            },
            "v": {"data_type": "string", "constraints": [{"type": "not_null"}, {"type": "unique"}]},
        },
        "constraints": [
            {"type": "check", "expression": "v <> ''", "name": "v_filled"},
            {"type": "primary_key", "columns": ["id", "v"]},
            {"type": "foreign_key", "columns": ["v"], "to": "x"},
        ],
    }


def test_a_contract_is_key_not_null_and_checks() -> None:
    """Foreign keys are documentation, the rest is enforced."""
    assert read_contract(model()) == Contract(
        columns=(("id", "bigint"), ("v", "string")),
        primary_key=("id", "v"),
        not_null=("id", "v"),
        checks=(("id_check_2", "id > 0"), ("v_filled", "v <> ''")),
        unique=(("v",),),
    )


def test_unique_constraints_of_columns_and_of_the_model() -> None:
    """Each set once, in the order of the YAML; one without columns is refused."""
    node = model()
    node["constraints"] += [{"type": "unique", "columns": columns} for columns in (["id", "`v`"], ["v"])]
    assert read_contract(node).unique == (("v",), ("id", "v"))
    node["constraints"].append({"type": "unique", "expression": "(lower(v))"})
    with pytest.raises(FixRequest, match="TS1809"):
        read_contract(node)


def test_without_enforcement_nothing_is_asked() -> None:
    """The same YAML without contract.enforced does not touch the write."""
    assert read_contract(model(enforced=False)) == Contract()


def test_comments_only_where_persist_docs_asks() -> None:
    """Relation and columns are asked for one by one."""
    assert read_comments(model()) == (None, {})
    assert read_comments(model(persist_docs={"relation": True})) == ("All orders", {})
    assert read_comments(model(persist_docs={"columns": True})) == (None, {"id": "Key"})


def test_comments_of_quoted_columns_come_later() -> None:
    """quote: true compares with case, which only the table's own column names can tell."""
    node = model(persist_docs={"columns": True})
    node["columns"]["id"]["quote"] = True
    assert read_comments(node) == (None, {})
