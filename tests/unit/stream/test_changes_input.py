"""A table as the input of another: which tables have changes that say everything."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tablestore_engine.api import Engine, Table, TableSpec, WriteSpec
from tablestore_engine.errors import FixRequest

KEYED = ("id",)


def written_twice(folder: Path, key: tuple[str, ...], **options: str) -> tuple[Table, str]:
    """A table whose only row was put twice, and the position of a reader that knows the first."""
    engine = Engine(str(folder / "w"))
    engine.create_database("d")
    spec = WriteSpec(table=TableSpec(primary_key=key, options=options))
    position = ""
    for v in ("a", "b"):
        engine.write("d.t", pa.table({"id": [1], "v": [v]}), spec)
        step = engine.table("d.t").plan_changes(None).step
        position = position or str(step.after if step is not None else "")
    return engine.table("d.t"), position


@pytest.mark.parametrize(
    ("key", "options", "rows"),
    [
        (KEYED, {}, 2),
        (KEYED, {"changelog-producer": "lookup"}, 2),
        ((), {"bucket": "-1"}, 1),
        ((), {"bucket": "-1", "changelog-producer": "none"}, 1),
    ],
)
def test_tables_that_say_everything_are_followed(
    tmp_path: Path, key: tuple[str, ...], options: dict[str, str], rows: int
) -> None:
    """With a complete changelog, or without a key, where every row is a new one."""
    table, position = written_twice(tmp_path, key, **options)
    assert table.plan_changes(None, only=True).step is not None
    assert table.count_changed_rows(table.plan_changes(position, only=True)) == rows


def test_a_key_without_a_changelog_is_not_followed(tmp_path: Path) -> None:
    """An update would look like a new row: refused from the beginning; who compares all rows knows that it has to."""
    table, position = written_twice(tmp_path, KEYED, **{"changelog-producer": "none"})
    for known in (None, position):
        with pytest.raises(FixRequest, match="TS1481"):
            table.plan_changes(known, only=True)
    assert table.count_changed_rows(table.plan_changes(position)) is None
    newest = table.plan_changes(None).step
    assert newest is not None
    assert table.count_changed_rows(table.plan_changes(newest.after)) == 0
