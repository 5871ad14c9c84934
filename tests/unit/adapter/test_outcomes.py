"""Reading dbt's contexts, variables and errors."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from dbt_common.exceptions import CompilationError, DbtDatabaseError, DbtRuntimeError

from dbt.adapters.tablestore.dbt_errors import as_dbt_errors
from dbt.adapters.tablestore.pinned_reads import read_as_of
from dbt.adapters.tablestore.write.data_tests import keeps_failing_rows, read_outcome
from tablestore_engine.api import TableVersion
from tablestore_engine.errors import FixData, FixRequest
from tablestore_engine.spi import Verdict


def context(row: tuple[Any, ...] | None, kind: str = "test", severity: str = "ERROR") -> dict[str, Any]:
    """What dbt hands to post_model_hook for a data test."""
    result = None if row is None else {"table": SimpleNamespace(rows=[row])}
    return {
        "load_result": lambda _: result,
        "model": {"unique_id": "test.p.t", "resource_type": kind, "config": {"severity": severity}},
        "flags": SimpleNamespace(WARN_ERROR=False),
    }


@pytest.mark.parametrize(
    ("row", "verdict"),
    [
        ((0, False, False), Verdict.GREEN),
        ((2, True, True), Verdict.RED),
        ((2, "true", "true"), Verdict.RED),
        ((0, "false", "false"), Verdict.GREEN),
        (None, Verdict.ERROR),
    ],
)
def test_outcomes_of_data_tests(row: tuple[Any, ...] | None, verdict: Verdict) -> None:
    """The row of the test, or its absence, decides."""
    found = read_outcome(context(row))
    assert found is not None
    assert (found.test, found.verdict) == ("test.p.t", verdict)
    assert found.judge([] if row is None else [row]) == verdict


def test_other_nodes_have_no_outcome() -> None:
    """Unit tests bring a context too, models a config object."""
    assert read_outcome(context((0, False, False), "unit_test")) is None
    assert read_outcome(SimpleNamespace(get=lambda *_: None)) is None  # type: ignore[arg-type]


def test_as_of_names_without_schema_are_the_targets() -> None:
    """Both spellings, and every kind of version."""
    assert read_as_of({"tablestore_as_of": {"orders": 5, "raw.items": "audited"}}, "demo") == {
        "demo.orders": TableVersion(snapshot=5),
        "raw.items": TableVersion(tag="audited"),
    }
    assert read_as_of({}, "demo") == {}


def test_a_wrong_as_of_is_refused() -> None:
    """It must be a map."""
    with pytest.raises(DbtRuntimeError, match="TS1806"):
        read_as_of({"tablestore_as_of": 5}, "demo")


def test_errors_keep_their_text_and_change_their_kind() -> None:
    """A wrong model is a compilation error, the rest are database errors; errors of others pass."""
    with pytest.raises(CompilationError, match="TS1899 what"), as_dbt_errors():
        raise FixRequest("TS1899", "what", why="why", fix="fix")
    with pytest.raises(DbtDatabaseError, match="next: fix"), as_dbt_errors():
        raise FixRequest("TS1599", "what", why="why", fix="fix")
    with pytest.raises(DbtDatabaseError, match="next: fix"), as_dbt_errors():
        raise FixData("TS1699", "what", why="why", fix="fix")
    with pytest.raises(KeyError), as_dbt_errors():
        raise KeyError("x")


@pytest.mark.parametrize(
    ("configs", "expected"),
    [
        ([{}, {}], True),
        ([{"keep_failing_rows": True}, {"meta": {}}], True),
        ([{}, {"keep_failing_rows": False}], False),
        ([{"meta": {"tablestore": {"keep_failing_rows": False}}}, {}], False),
        ([{"keep_failing_rows": "false"}, {}], False),
        ([{"keep_failing_rows": "maybe"}, {}], False),
        ([{"meta": None}, {"meta": {"tablestore": "?"}}], True),
    ],
)
def test_each_model_of_a_test_may_forbid_to_keep_rows(configs: list[dict[str, Any]], expected: bool) -> None:
    """At the top level or under meta; what is no yes is a no."""
    nodes = {f"model.p.{at}": {"config": config} for at, config in enumerate(configs)}
    nodes["test.p.t"] = {"depends_on": {"nodes": [*nodes, "source.p.s"]}}
    assert keeps_failing_rows("test.p.t", nodes) is expected
    assert keeps_failing_rows("test.p.unknown", nodes)
