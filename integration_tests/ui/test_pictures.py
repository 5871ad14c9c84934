"""The pictures of docs/ui.md are made here, and a digest of what they are made from shows when they are stale.

`make screenshots` writes them, with the digest; every run takes them and looks at their size.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from integration_tests.ui.conftest import Open, Served
from tests.doses import cases

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
STORED = IMAGES / "ui-pictures.json"
WRITE_TO = "TABLESTORE_SCREENSHOTS"
BYTES_MAX = 150_000
PICTURES = {"ui-table-light": "light", "ui-table-dark": "dark", "ui-failing-rows": "light"}


def digest() -> str:
    """Of the page's files, the warehouse, and this file."""
    assets = sorted((ROOT / "tablestore_engine" / "ui" / "assets").iterdir())
    made_from = [*assets, ROOT / "tests" / "unit" / "ui" / "page_world.py", Path(__file__)]
    found = hashlib.sha256()
    for path in made_from:
        found.update(f"{path.name}\n".encode() + path.read_bytes())
    return found.hexdigest()


@pytest.mark.parametrize("name", cases(PICTURES, 1))
def test_picture(watch: Open, shop: Served, tmp_path: Path, name: str) -> None:
    """Taken from the page, small, and written where the environment says."""
    page = watch(height=940, color_scheme=PICTURES[name]).open(shop.of("demo.orders"))
    page.locator(".timeline").wait_for()
    page.evaluate("document.getElementById('place').textContent = '/data/warehouse'")
    expect(page.locator("nav .line", has_text=re.compile("^…$"))).to_have_count(0)
    file = tmp_path / f"{name}.png"
    if name == "ui-failing-rows":
        page.locator("#staged").screenshot(path=file)
    else:
        for end in ("35", "36"):
            page.locator(f'.snap[data-end="{end}"]').click()
        page.get_by_role("heading", name="Difference").wait_for()
        page.evaluate("window.scrollTo(0, 0)")
        page.screenshot(path=file)
    assert 5_000 < file.stat().st_size < BYTES_MAX
    if os.environ.get(WRITE_TO):
        (ROOT / os.environ[WRITE_TO] / file.name).write_bytes(file.read_bytes())
        STORED.write_text(json.dumps({"digest": digest()}) + "\n")


def test_pictures_of_the_docs_are_of_this_page() -> None:
    """Else run `make screenshots` and look at them."""
    assert json.loads(STORED.read_text())["digest"] == digest(), "the pictures are stale: make screenshots"
    for name in PICTURES:
        assert (IMAGES / f"{name}.png").stat().st_size < BYTES_MAX
        assert f"images/{name}.png" in (ROOT / "docs" / "ui.md").read_text()
