"""Names that `tablestore_engine.api` had before: they work, with a warning that says the present one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tablestore_engine import api, spi
from tablestore_engine.api.former_names import FORMER_NAMES

CHANGELOG = Path(__file__).resolve().parents[3] / "CHANGELOG.md"


@pytest.mark.parametrize("former", sorted(FORMER_NAMES))
def test_former_name_is_imported_warns_and_is_in_the_changelog(former: str) -> None:
    """The warning and CHANGELOG.md have both names; the object is that of spi."""
    now = FORMER_NAMES[former][0]
    with pytest.warns(
        DeprecationWarning, match=f"api.{former} is deprecated: use tablestore_engine.spi.{now}$"
    ):
        assert getattr(api, former) is getattr(spi, now)
    assert former not in api.__all__
    line = f"`{now}`" if former == now else f"| `{former}` | `spi.{now}` |"
    assert line in CHANGELOG.read_text()


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
