"""`make test-changed`: which tests a change is tried on."""

from __future__ import annotations

from tests.changed import ENGINE, REAL_PARTS, ROOT, pick_suites, pick_tests


def test_every_folder_has_its_suites() -> None:
    """A new folder of the engine is named, and each suite is there."""
    parts = {
        f"{ENGINE}/{one.name}" for one in (ROOT / ENGINE).iterdir() if one.is_dir() or one.suffix == ".py"
    }
    assert parts - {f"{ENGINE}/__init__.py", f"{ENGINE}/__pycache__"} == {
        one for one in REAL_PARTS if one.startswith(ENGINE)
    }
    suites = {suite for each in REAL_PARTS.values() for suite in each}
    assert all((ROOT / "integration_tests" / one).is_dir() for one in suites)


def test_a_change_is_tried_on_what_imports_it() -> None:
    """Through other modules and helpers of tests too; a test that knows only the engine's door is not chosen."""
    tests = pick_tests([f"{ENGINE}/store/stage/staging.py"])
    assert {"tests/unit/store/test_stage_kills.py", "tests/unit/store/test_staging.py"} <= tests
    assert "tests/unit/format/test_schema.py" not in tests
    assert "integration_tests/adapter/test_build.py" not in tests
    assert pick_tests(["tests/house/test_changed.py"]) == {"tests/house/test_changed.py"}
    assert pick_suites([f"{ENGINE}/log/kafka/publisher.py", "README.md"]) == {"integration_tests/kafka"}
