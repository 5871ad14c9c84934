"""`dbt debug`: the checks of a profile, for which dbt makes the adapter without a project's arguments."""

from __future__ import annotations

from integration_tests.adapter.conftest import Shop


def test_debug_with_a_good_profile_passes(shop: Shop) -> None:
    """The connection test opens and closes a connection, around which dbt has no node and no arguments."""
    shop.dbt("debug")
    assert "Connection test: [OK connection ok]" in shop.log.replace("\x1b[32m", "").replace("\x1b[0m", "")
