"""Tables whose data files lie outside of the warehouse, in SQL: read where the folder is allowed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tablestore_engine.api import Engine, SparkSettings, TablestoreError
from tablestore_engine.spark.spark_settings import ReadWay
from tests.unit.api.external_world import KEYED, PARTS, build, files_of

QUERIES = {
    f"select count(*), min(v), max(v) from {KEYED}": ((8, "t0", "t2"),),
    f"select id from {PARTS} where p = 'p1' and id > 20 order by id": ((21,), (23,)),
    f"select count(*) from {KEYED} version as of 1": ((4,),),
    "select count(*), max(v) from demo__changes_1_to_3.keyed": ((12, "t2"),),
}

ENDS = (*QUERIES,)[::3]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of external_world.build."""
    top = tmp_path_factory.mktemp("outside")
    build(top)
    return top


def test_sql_reads_external_files(spark: object, world: Path) -> None:
    """By links and through the engine queries have the rows; Spark's own reader, a folder that is not allowed and a
    link in one are refused. The lake stays as it is.
    """
    assert spark
    before, lake = files_of(world / "lake"), [str(world / "lake")]
    for way in (ReadWay.LINKS, ReadWay.PORTABLE):
        with Engine(
            world / "warehouse", spark=SparkSettings("local[2]", read_way=way), external_paths=lake
        ) as engine:
            for text in QUERIES if way is ReadWay.LINKS else ENDS:
                assert engine.sql(text).rows == QUERIES[text], (way, text)
    native = SparkSettings("local[2]", read_way=ReadWay.NATIVE)
    with Engine(world / "warehouse", spark=native, external_paths=lake) as engine:
        for text in ENDS:
            with pytest.raises(TablestoreError, match="TS1656"):
                engine.sql(text)
    with Engine(world / "warehouse") as engine:
        for text in ENDS:
            with pytest.raises(TablestoreError, match="TS1191"):
                engine.sql(text)
    assert files_of(world / "lake") == before


def test_sql_follows_no_link_in_an_allowed_folder(spark: object, tmp_path: Path) -> None:
    """A bucket of the lake that leads elsewhere is refused before Spark has a file of it, rows and changes alike."""
    assert spark
    build(tmp_path)
    (tmp_path / "lake" / "bucket-0").rename(tmp_path / "real")
    (tmp_path / "lake" / "bucket-0").symlink_to(tmp_path / "real")
    with Engine(tmp_path / "warehouse", external_paths=[str(tmp_path / "lake")]) as engine:
        for text in QUERIES:
            with pytest.raises(TablestoreError, match="TS1290"):
                engine.sql(text)
