"""Links that Spark reads as tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from tablestore_engine.errors import EngineBug
from tablestore_engine.spark.linked_files import link_file


def test_a_file_of_an_object_store_is_never_linked(tmp_path: Path) -> None:
    """Spark would read no rows from such a link, without an error: TS1530."""
    with pytest.raises(EngineBug, match="TS1530"):
        link_file("s3://bucket/wh/demo.db/t/bucket-0/data-1.parquet", tmp_path / "data-1.parquet")
    assert list(tmp_path.iterdir()) == []
