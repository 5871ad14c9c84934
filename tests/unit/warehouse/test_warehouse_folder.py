"""Where a warehouse lies: folders, `file:` addresses, and stores that there is no code for."""

from __future__ import annotations

from pathlib import Path

import pytest

from tablestore_engine.api import Engine, local_folder
from tablestore_engine.errors import FixRequest


@pytest.mark.parametrize(
    "text", ["s3://bucket/wh", "s3a://b", "hdfs://n/wh", "gs://b", "abfs://c@a/wh", "s3:wh", "file://host/wh"]
)
def test_stores_without_code_are_refused(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An address of another store is refused by its scheme, and no folder of that name is made."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FixRequest, match=text.partition(":")[0]) as refused:
        Engine(text)
    assert refused.value.code == "TS1060"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("form", ["{}", "file:{}", "file://{}", "file://localhost{}"])
def test_local_addresses_are_one_folder(form: str, tmp_path: Path) -> None:
    """A plain path and its `file:` forms name the same warehouse, blanks included."""
    folder = tmp_path / "my warehouse"
    given = form.format(str(folder).replace(" ", "%20") if form.startswith("file:") else folder)
    with Engine(given) as engine:
        engine.create_database("demo")
        assert engine.warehouse == str(folder)
    assert (folder / "demo.db").is_dir()


def test_relative_folders_stay_relative() -> None:
    """A folder below, a home folder and a drive-like single letter are no schemes; a colon can be written with ./."""
    assert local_folder("warehouse") == "warehouse"
    assert local_folder("./a:b") == "./a:b"
    assert local_folder("~/wh") == "~/wh"
    assert local_folder("file:wh") == "wh"
