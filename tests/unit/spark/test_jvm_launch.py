"""For which sessions a JVM may begin ahead, and that nothing of a user's conf is written down for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tablestore_engine.spark.jvm_launch import plan_start

OURS = {
    "spark.driver.memory": "2g",
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
    "spark.ui.enabled": "no",
}


def test_a_start_has_what_the_jvm_itself_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory and Java's flags; settings of SQL come with the session, so that no value of them is written down."""
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS", raising=False)
    monkeypatch.setenv("SPARK_HOME", "spark")
    asked = {"spark.driver.memory": "3g", "spark.sql.planted": "secret"}
    start = plan_start(asked, {**OURS, **asked}, {"JAVA_HOME": "java"}, tmp_path)
    assert start is not None
    assert start.program == "spark/bin/spark-submit"
    assert start.arguments == (
        "--load-spark-defaults",
        *("--conf", "spark.driver.extraJavaOptions=-XX:+UseParallelGC"),
        *("--conf", "spark.driver.memory=3g"),
        "pyspark-shell",
    )
    assert (start.environment, start.scratch) == ({"JAVA_HOME": "java"}, str(tmp_path))


@pytest.mark.parametrize(
    ("asked", "more"),
    [
        ({"spark.driver.extraJavaOptions": "-Dpassword=x"}, {}),
        ({"spark.hadoop.fs.s3a.secret.key": "x"}, {}),
        ({"spark.jars": "mine.jar"}, {}),
        ({"spark.plugins": "mine"}, {}),
        ({}, {"spark.jars": "connector.jar"}),
    ],
)
def test_whatever_else_decides_over_a_jvm_is_started_as_before(
    asked: dict[str, str], more: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Java's flags, Hadoop's settings, jars of the user or of ours, plugins."""
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS", raising=False)
    assert plan_start({}, OURS, {}, tmp_path) is not None
    assert plan_start(asked, {**OURS, **asked, **more}, {}, tmp_path) is None


def test_arguments_of_the_environment_are_kept_for_the_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PYSPARK_SUBMIT_ARGS may have anything in it."""
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--jars mine.jar pyspark-shell")
    assert plan_start({}, OURS, {}, tmp_path) is None
