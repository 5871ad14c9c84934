"""The conf of a session is decided before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tablestore_engine.spark.session import SparkSettings, spark_conf


@pytest.mark.parametrize(
    ("master", "partitions"), [("local", "4"), ("local[2]", "4"), ("local[8]", "16"), ("local[4,2]", "8")]
)
def test_local_masters_shuffle_into_few_partitions(master: str, partitions: str, tmp_path: Path) -> None:
    """Small queries on a few cores do not pay for 200 shuffle partitions."""
    conf = spark_conf(SparkSettings(master=master), tmp_path, "")
    assert conf["spark.sql.shuffle.partitions"] == partitions


def test_the_users_conf_wins(tmp_path: Path) -> None:
    """What the profile says replaces our default, and a cluster keeps Spark's own."""
    settings = SparkSettings(master="local[2]", conf={"spark.sql.shuffle.partitions": "64"})
    assert spark_conf(settings, tmp_path, "")["spark.sql.shuffle.partitions"] == "64"
    assert "spark.sql.shuffle.partitions" not in spark_conf(
        SparkSettings(master="spark://host:7077"), tmp_path, ""
    )
