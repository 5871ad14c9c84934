"""The reference pages of configuration name every key that is read, and no other."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

from dbt.adapters.tablestore.config.model_config import OWN_KEYS, PUBLISH_POLICIES, STRATEGIES
from dbt.adapters.tablestore.credentials import SPARK_KEYS, TablestoreCredentials
from tablestore_engine.spi import ReadWay

DOCS = Path(__file__).resolve().parents[2] / "docs"
DBTS = {"unique_key", "incremental_strategy", "on_schema_change"}  # which the page explains, too


def rows(page: str, until: str = "## Troubleshooting") -> list[tuple[str, str]]:
    """(key, values) of the tables; cells in code quotes only."""
    text = (DOCS / page).read_text().partition(until)[0]
    return re.findall(r"^\| `([\w.]+)` \| (.+?) \| .+? \| .+ \|$", text, re.MULTILINE)


def test_the_page_of_model_configuration_has_every_key() -> None:
    """Each key of the adapter once, with the choices that the code accepts."""
    found = [key for key, _ in rows("model-config.md")]
    assert sorted(found) == sorted({*OWN_KEYS, *DBTS})
    values = dict(rows("model-config.md"))
    assert set(re.findall(r"`(\w+)`", values["publish"])) == set(PUBLISH_POLICIES)
    assert set(re.findall(r"`([\w+]+)`", values["incremental_strategy"])) == set(STRATEGIES)


def test_the_page_of_the_profile_has_every_key() -> None:
    """Each field of a target, and each key of `spark`."""
    own = {one.name for one in fields(TablestoreCredentials)} - {"project_root"}
    found = [key for key, _ in rows("profile.md", until="## Environment")]
    assert sorted(found) == sorted({*own, "type", "threads", *SPARK_KEYS})
    assert set(re.findall(r"`(\w+)`", dict(rows("profile.md"))["read_way"])) == set(ReadWay)
