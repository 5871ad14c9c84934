"""A merge engine is one file, one line of the registry and its name among the built ones; nothing else knows any."""

from __future__ import annotations

from pathlib import Path

from tablestore_engine.lsm.changelog_producer import PRODUCERS
from tablestore_engine.lsm.merge_engine_registry import ENGINES
from tablestore_engine.options import MERGE_ENGINES, OPTIONS

ENGINE = Path(__file__).resolve().parents[2] / "tablestore_engine"


def test_what_is_built_is_what_is_registered() -> None:
    """Tables, the adapter and the documentation go by options.MERGE_ENGINES, merging by the registry: same names."""
    assert tuple(ENGINES) == MERGE_ENGINES
    assert set(MERGE_ENGINES) <= set(OPTIONS["merge-engine"].values)


def test_nobody_asks_which_engine_it_is() -> None:
    """Behind the seam no module compares names of engines or imports one: only the registry, the default, the table."""
    knows = {
        "lsm/merge_engine_registry.py",
        "store/row_traits.py",
        "options/table_options.py",
        "warehouse/write/target_schema.py",
    }
    for path in ENGINE.rglob("*.py"):
        text = path.read_text()
        if str(path.relative_to(ENGINE)) not in knows | {"lsm/merge_engine_registry.py"}:
            assert '"deduplicate"' not in text, path
            assert "lsm.deduplicate" not in text, path


def test_every_changelog_producer_has_its_hooks() -> None:
    """Each value of `changelog-producer` says who tells its changes; none tells them twice."""
    assert set(PRODUCERS) == set(OPTIONS["changelog-producer"].values)
    assert not [name for name, one in PRODUCERS.items() if one.writes_at_merge and one.reads_delta]
