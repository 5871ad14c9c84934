"""How Spark reads data files, as `doctor` and the first line of a run say it."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest
from pyspark.sql import SparkSession

from tablestore_engine.fileio.stores import open_root
from tablestore_engine.runtime.outside_world import SYSTEM
from tablestore_engine.spark.read_way import ChosenReads, choose_reads
from tablestore_engine.spark.spark_settings import ReadWay


def test_the_sentence_of_a_folder_names_links_and_the_setting(tmp_path: Path) -> None:
    """No session is asked for a folder."""
    _, fileio = open_root(str(tmp_path), SYSTEM.users)
    found = choose_reads(cast("SparkSession", None), fileio)
    assert found.sentence == (
        "Spark reads data files by symbolic links to local files (read_way: links): the warehouse is a folder"
    )


@pytest.mark.parametrize("way", [way for way in ReadWay if way is not ReadWay.AUTO])
def test_every_way_has_words_and_its_setting(tmp_path: Path, way: ReadWay) -> None:
    """The value of `read_way` can be copied from the sentence."""
    _, fileio = open_root(str(tmp_path), SYSTEM.users)
    assert f" (read_way: {way.value}): why" in ChosenReads(way, fileio, "why").sentence
