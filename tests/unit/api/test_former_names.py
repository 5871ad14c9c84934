"""Names that `tablestore_engine.api` had before: they work, with a warning that says the present one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tablestore_engine import api

CHANGELOG = Path(__file__).resolve().parents[3] / "CHANGELOG.md"


@pytest.mark.parametrize("former", sorted(api._FORMER_NAMES))
def test_former_name_is_imported_warns_and_is_in_the_changelog(former: str) -> None:
    """The warning and CHANGELOG.md have both names."""
    now = api._FORMER_NAMES[former].__name__
    with pytest.warns(DeprecationWarning, match=f"{former} is deprecated: use {now}"):
        assert getattr(api, former) is getattr(api, now)
    assert former not in api.__all__
    assert f"| `{former}` | `{now}` |" in CHANGELOG.read_text()


def test_unknown_name_is_an_attribute_error() -> None:
    """Nothing else is answered."""
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = api.Nothing


def test_former_method_calls_the_present_one_and_warns(tmp_path: Path) -> None:
    """Engine.successors is Engine.replacements."""
    engine = api.Engine(str(tmp_path))
    engine.create_database("d")
    with pytest.warns(DeprecationWarning, match="successors is deprecated: use replacements"):
        assert engine.successors("d") == engine.replacements("d") == ()
    assert "| `Engine.successors` | `Engine.replacements` |" in CHANGELOG.read_text()
