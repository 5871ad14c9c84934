"""Tables with bloom filters and bitmaps: reads, damage, and the life of index files."""

from __future__ import annotations

import datetime as dt
import logging
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tablestore_engine.api import Engine, Table
from tablestore_engine.errors import FixRequest
from tablestore_engine.store.read import index_pruning
from tests.doses import examples

TYPES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "i": (pa.int32(), [-(2**31), -1, 0, 1, 2**31 - 1]),
    "b": (pa.int64(), [*range(30), -(2**63), 2**63 - 1]),
    "s": (pa.string(), ["", "a", "a ", "é" * 40, "it's", *(f"v{number}" for number in range(30))]),
    "d": (pa.date32(), [dt.date(1582, 10, 4), dt.date(1970, 1, 1), dt.date(2026, 11, 30)]),
    "m": (pa.timestamp("ms"), [dt.datetime(1969, 12, 31, 23, 59, 59, 999_000), dt.datetime(2026, 1, 1)]),  # noqa: DTZ001
    "u": (pa.timestamp("us"), [dt.datetime(1969, 12, 31, 23, 59, 59, 999_999), dt.datetime(2026, 1, 1)]),  # noqa: DTZ001
    "f": (pa.bool_(), [False, True]),
}
SCHEMA = pa.schema([("id", pa.int64()), *((name, kind) for name, (kind, _) in TYPES.items())])
BLOOM, BITMAP = "file-index.bloom-filter.columns", "file-index.bitmap.columns"


def _make(
    engine: Engine, draw: random.Random, name: str = "d.t", **more: str
) -> tuple[Table, list[dict[str, Any]]]:
    """A table of several small files without other statistics, and its rows."""
    names = [name for name in TYPES if name != "f"]
    options = {
        "bucket": "1", "metadata.stats-mode": "none", BITMAP: ",".join(draw.sample([*names, "f"], 5)),
        BLOOM: ",".join(draw.sample(names, 4)), "file-index.in-manifest-threshold": draw.choice(["1 b", "10 mb"]),
        **more,
    }  # fmt: skip
    options |= {f"file-index.bloom-filter.{name}.items": "50" for name in options[BLOOM].split(",")}
    table = engine.create_table(name, SCHEMA, primary_key="id", options=options)
    found: dict[int, dict[str, Any]] = {}
    for _ in range(4):
        some = {name: draw.sample(values, min(3, len(values))) for name, (_, values) in TYPES.items()}
        batch = [
            {"id": number, **{name: draw.choice([*values, None]) for name, values in some.items()}}
            for number in draw.sample(range(60), 12)
        ]
        table.upsert(pa.Table.from_pylist(batch, SCHEMA))
        found |= {row["id"]: row for row in batch}
    return table, [found[number] for number in sorted(found)]


def _filter(draw: random.Random) -> tuple[str, str, list[Any]]:
    name = draw.choice(list(TYPES))
    values = draw.sample(TYPES[name][1], min(2, len(TYPES[name][1])))
    texts = [_literal(value) for value in values]
    if draw.random() < 0.5:
        return f"{name} = {texts[0]}", name, values[:1]
    return f"{name} in ({', '.join(texts)})", name, values


def _literal(value: Any) -> str:
    if isinstance(value, dt.datetime):
        return f"timestamp'{value.isoformat(sep=' ')}'"
    if isinstance(value, dt.date):
        return f"date'{value}'"
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value).lower()


@pytest.fixture
def left_out(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """How many files each read left out by their indexes."""
    counts: list[int] = []
    real = index_pruning.prune_by_indexes

    def counted(fileio: Any, files: Any, wanted: Any, schema: Any) -> Any:
        before = tuple(files)
        after = real(fileio, before, wanted, schema)
        counts.append(len(before) - len(after))
        return after

    monkeypatch.setattr(index_pruning, "prune_by_indexes", counted)
    return counts


def test_random_filters_give_the_rows_of_a_table_that_is_read_whole(
    tmp_path: Path, left_out: list[int]
) -> None:
    """Over all indexed types, embedded and in files, with renamed, widened and added columns."""
    draw = random.Random(42)
    with Engine(str(tmp_path)) as engine:
        for number in range(examples(4, 60)):
            table, rows = _make(engine, draw, f"d.t{number}")
            for _ in range(15):
                text, name, values = _filter(draw)
                expected = [row for row in rows if row[name] in values and row[name] is not None]
                found = table.scan(filter=text).to_arrow().sort_by("id").to_pylist()
                assert found == expected, text
            table.rename_column("s", "renamed")
            table.add_column("s", "string")
            assert table.scan(filter="s = 'a'").to_arrow().num_rows == 0
            expected = [row for row in rows if row["s"] == "a"]
            assert table.scan(filter="renamed = 'a'").to_arrow().num_rows == len(expected)
            assert table.verify() == ()
    assert sum(left_out) > len(left_out) // 2


def test_an_index_of_another_file_loses_rows_and_verify_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the random filters would notice: the planted error, past the checksum."""
    with Engine(str(tmp_path)) as engine:
        options = {
            "bucket": "1",
            "metadata.stats-mode": "none",
            BITMAP: "s",
            "file-index.in-manifest-threshold": "1 b",
        }
        table = engine.create_table("d.t", SCHEMA, primary_key="id", options=options)
        for number, word in enumerate(("one", "two")):
            table.upsert(pa.Table.from_pylist([{"id": number, "s": word}], SCHEMA))
        first, second = sorted(tmp_path.glob("d.db/t/bucket-0/*.index"))
        first.write_bytes(second.read_bytes())
        monkeypatch.setattr(index_pruning, "verify_name_checksum", lambda *_: None)
        found = [table.scan(filter=f"s = '{word}'").to_arrow().num_rows for word in ("one", "two")]
        assert sorted(found) == [0, 1]
        [problem] = table.verify()
        assert "lacks a value of column s" in problem


def test_a_missing_or_damaged_index_is_a_warning_and_the_file_is_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """No row is lost, each file is named once, and verify has it as a problem."""
    with Engine(str(tmp_path)) as engine:
        draw = random.Random(3)
        table, rows = _make(engine, draw, **{"file-index.in-manifest-threshold": "1 b", BITMAP: "s"})
        files = sorted(tmp_path.glob("d.db/t/bucket-0/*.index"))
        assert len(files) == 4
        files[0].unlink()
        files[1].write_bytes(b"\0" * 40)
        files[2].write_bytes(files[2].read_bytes()[:-1] + b"?")
        with caplog.at_level(logging.WARNING):
            for _ in range(2):
                for word in {row["s"] for row in rows if row["s"] is not None}:
                    text = f"s = {_literal(word)}"
                    expected = [row for row in rows if row["s"] == word]
                    assert table.scan(filter=text).to_arrow().sort_by("id").to_pylist() == expected
        assert sum("file index of" in one.message for one in caplog.records) == 3
        assert len(table.verify()) == 3


def test_index_files_live_and_go_with_their_data_files(tmp_path: Path) -> None:
    """Compaction and expiry delete them, clone and rename take them along, the orphan search knows them."""
    with Engine(str(tmp_path)) as engine:
        more = {"file-index.in-manifest-threshold": "1 b", "tablestore.expire-grace": "0 s", BITMAP: "s"}
        table, rows = _make(engine, random.Random(5), **more)
        folder = tmp_path / "d.db" / "t" / "bucket-0"
        table.compact(full=True)
        assert len(list(folder.glob("data-*.parquet"))) == len(list(folder.glob("data-*.index"))) == 5
        assert not list(folder.glob("changelog-*.index"))
        table.expire(keep=1)
        [data], [index] = list(folder.glob("data-*.parquet")), list(folder.glob("*.index"))
        assert index.name.startswith(data.name.removesuffix(".parquet"))
        lost = folder / f"data-{'0' * 8}-0000-0000-0000-{'0' * 12}-0.parquet.index"
        lost.write_bytes(b"x")
        assert [Path(one.path).name for one in table.orphans(older_than_ms=0).found] == [lost.name]
        engine.clone("d.t", "d.copy")
        engine.rename("d.copy", "d.other")
        assert (tmp_path / "d.db" / "other" / "bucket-0" / index.name).exists()
        copy = engine.table("d.other")
        assert copy.verify() == ()
        assert copy.scan().to_arrow().num_rows == len(rows)
        index.unlink()
        engine.clone("d.t", "d.third")  # its reads warn, as those of its source
        assert engine.table("d.third").scan(filter="s = 'a'").to_arrow().num_rows == sum(
            row["s"] == "a" for row in rows
        )


@pytest.mark.parametrize(
    "options",
    [
        {BLOOM: "f"},
        {BITMAP: "nowhere"},
        {BITMAP: "x"},
        {BLOOM: "s", "file-index.bloom-filter.i.items": "5"},
    ],
)
def test_a_column_that_cannot_be_indexed_is_refused(tmp_path: Path, options: dict[str, str]) -> None:
    """BOOLEAN in a bloom filter, FLOAT, columns that are not there, settings of columns without an index."""
    with Engine(str(tmp_path)) as engine, pytest.raises(FixRequest, match=r"TS1147|TS1087"):
        engine.create_table(
            "d.t", SCHEMA.append(pa.field("x", pa.float64())), primary_key="id", options=options
        )


@pytest.mark.parametrize("value", ["0", "1", "0.0", "-0.1", "1.5", "x"])
def test_a_rate_that_is_none_is_refused(tmp_path: Path, value: str) -> None:
    """It lies between 0 and 1."""
    options = {BLOOM: "s", "file-index.bloom-filter.s.fpp": value}
    with Engine(str(tmp_path)) as engine, pytest.raises(FixRequest, match="TS1084"):
        engine.create_table("d.t", SCHEMA, primary_key="id", options=options)
