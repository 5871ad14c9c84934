"""The form of deletion vectors that the option asks for is in the file; readers show the same rows in both."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.store.table_world import make_table, overwrite, put, row


@pytest.mark.parametrize(
    ("option", "magic"), [("false", bytes.fromhex("5e43f2d0")), ("true", bytes.fromhex("d1d33964"))]
)
@pytest.mark.parametrize("keys", [("id",), ()])
def test_new_vectors_have_the_form_of_the_option(
    tmp_path: Path, option: str, magic: bytes, keys: tuple[str, ...]
) -> None:
    """Behind the version byte and the size; of keyed and of append-only tables."""
    options = {"deletion-vectors.enabled": "true", "deletion-vectors.bitmap64": option}
    store = make_table(tmp_path, keys=keys, options=options)
    put(store, *map(row, range(9)))
    overwrite(store, *map(row, range(8)))  # one row goes, and is marked
    files = sorted((tmp_path / "demo.db/t/index").glob("index-*"))
    assert {file.read_bytes()[5:9] for file in files} == {magic}
    assert store.read().num_rows == 8
