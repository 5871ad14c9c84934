"""The conf of a session is decided before anything starts."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pyspark
import pytest
from pyspark import SparkConf

from tablestore_engine.errors import Unsupported
from tablestore_engine.runtime.java import find_java
from tablestore_engine.runtime.scratch import ScratchPlace
from tablestore_engine.spark import session
from tablestore_engine.spark.jvm_launch import _properties_file
from tablestore_engine.spark.session import _start_environment, spark_conf
from tablestore_engine.spark.spark_settings import SparkSettings

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    ("master", "partitions"), [("local", "4"), ("local[2]", "4"), ("local[8]", "16"), ("local[4,2]", "8")]
)
def test_local_masters_shuffle_into_few_partitions(master: str, partitions: str, tmp_path: Path) -> None:
    """Small queries on a few cores do not pay for 200 shuffle partitions."""
    conf = spark_conf(SparkSettings(master=master), tmp_path, "")
    assert conf["spark.sql.shuffle.partitions"] == partitions


def test_rows_of_a_local_session_go_through_sockets_of_its_folder() -> None:
    """Not on a cluster, whose workers have other folders, and not where a socket's name would be too long."""
    key = "spark.python.unix.domain.socket"
    conf = spark_conf(SparkSettings(master="local[2]"), Path("/tmp/scratch"), "")
    assert (conf[f"{key}.enabled"], conf[f"{key}.dir"]) == ("true", "/tmp/scratch")
    for master, folder in (
        ("local[2]", "/" + "x" * 60),
        ("local-cluster[1,1,1024]", "/s"),
        ("spark://h:1", "/s"),
    ):
        assert f"{key}.enabled" not in spark_conf(SparkSettings(master=master), Path(folder), "")


def test_the_users_conf_wins(tmp_path: Path) -> None:
    """What the profile says replaces our default, and a cluster keeps Spark's own."""
    settings = SparkSettings(master="local[2]", conf={"spark.sql.shuffle.partitions": "64"})
    assert spark_conf(settings, tmp_path, "")["spark.sql.shuffle.partitions"] == "64"
    assert "spark.sql.shuffle.partitions" not in spark_conf(
        SparkSettings(master="spark://host:7077"), tmp_path, ""
    )


def test_the_second_compiler_of_a_local_driver_waits_and_the_users_flag_wins(tmp_path: Path) -> None:
    """The Java of this machine takes the flags as they are, and the last one of a name."""
    java, settings = find_java(), SparkSettings(master="local[1]")
    flags = session.driver_flags(settings, java)
    own = "-XX:Tier4CompileThreshold=15000"
    conf = spark_conf(replace(settings, conf={"spark.driver.extraJavaOptions": own}), tmp_path, flags)
    command = [
        f"{java.home}/bin/java",
        *conf["spark.driver.extraJavaOptions"].split(),
        "-XX:+PrintFlagsFinal",
    ]
    done = subprocess.run([*command, "-version"], check=True, capture_output=True, text=True)
    said = dict(re.findall(r"(Tier4\w+Threshold) += (\d+)", done.stdout))
    assert (said["Tier4InvocationThreshold"], said["Tier4CompileThreshold"]) == ("50000", "15000")
    assert "Tier4" not in session.driver_flags(SparkSettings(master="spark://host:7077"), java)


@pytest.mark.parametrize(
    ("master", "authenticate", "encrypted"),
    [
        ("local", "true", None),
        ("local[2]", "true", None),
        ("local[2,3]", "true", None),
        ("local-cluster[1,1,1024]", None, None),
        ("spark://127.0.0.1:7077", None, "true"),
        ("spark://host:7077", None, "true"),
        ("yarn", None, "true"),
    ],
)
def test_ports_of_a_session_authenticate_where_spark_makes_the_secret(
    master: str, authenticate: str | None, encrypted: str | None, tmp_path: Path
) -> None:
    """A local driver is closed to other users; what leaves the machine is encrypted where the cluster authenticates."""
    conf = spark_conf(SparkSettings(master=master), tmp_path, "")
    assert (conf.get("spark.authenticate"), conf.get("spark.network.crypto.enabled")) == (
        authenticate,
        encrypted,
    )


@pytest.mark.parametrize("fails", [False, True])
def test_the_conf_file_is_for_this_user_alone(tmp_path: Path, fails: bool) -> None:
    """Mode 0600 from its first byte on, whatever the umask; gone at the end, also when Spark did not start."""
    before = os.umask(0)
    try:
        with (
            suppress(RuntimeError),
            _properties_file(SparkConf(loadDefaults=False).set("spark.x", "planted"), tmp_path) as path,
        ):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            assert "planted" in path.read_text()
            if fails:
                raise RuntimeError
    finally:
        os.umask(before)
    assert list(tmp_path.iterdir()) == []


def test_the_conf_file_is_never_another_users(tmp_path: Path) -> None:
    """A name that is there already, by chance or on purpose, is not written to."""
    (tmp_path / "spark.properties").write_text("")
    with pytest.raises(FileExistsError), _properties_file(SparkConf(loadDefaults=False), tmp_path):
        pass


@pytest.mark.parametrize(
    ("conf", "partitions"),
    [
        ({"spark.cores.max": "8"}, "16"),
        ({"spark.cores.max": 1}, "4"),
        ({"spark.executor.instances": "3", "spark.executor.cores": "4"}, "24"),
        ({"spark.executor.instances": "5"}, "10"),
        ({"spark.executor.instances": "many"}, None),
        ({}, None),
    ],
)
def test_clusters_shuffle_by_the_cores_that_conf_gives(
    conf: dict[str, str], partitions: str | None, tmp_path: Path
) -> None:
    """Where the profile limits the cores, partitions follow them; else Spark's own default stays."""
    found = spark_conf(SparkSettings("spark://host:7077", conf), tmp_path, "")
    assert found.get("spark.sql.shuffle.partitions") == partitions


def test_workers_of_a_loopback_master_run_this_python() -> None:
    """They are on this machine; elsewhere nothing is known of their Python."""
    near = _start_environment(SparkSettings("spark://127.0.0.1:7077"), "/java")
    far = _start_environment(SparkSettings("spark://host:7077"), "/java")
    assert (near["PYSPARK_PYTHON"], far.get("PYSPARK_PYTHON")) == (sys.executable, None)


def test_pyspark_that_was_not_tested_is_refused() -> None:
    """The package, the check at the start, and the environments of the nightly run have the same minor versions."""
    for version in ("4.1.0", "4.2.1", "4.3.0.dev0", pyspark.__version__):
        session.check_pyspark(version)
    for version in ("3.5.9", "4.0.5", "4.4.0", "5.0.0"):
        with pytest.raises(Unsupported, match="TS1500") as raised:
            session.check_pyspark(version)
        assert version in raised.value.what
    lowest, newest = session.PYSPARKS[0], session.PYSPARKS[-1]
    bound = f"pyspark>={lowest[0]}.{lowest[1]},<{newest[0]}.{newest[1] + 1}"
    assert f'"{bound}"' in (ROOT / "setup.py").read_text()
    installed = [ROOT / "constraints.txt", *sorted(ROOT.glob("constraints-pyspark-*.txt"))]
    pins = [re.search(r"^pyspark==(\d+)\.(\d+)", path.read_text(), re.MULTILINE) for path in installed]
    assert sorted((int(pin[1]), int(pin[2])) for pin in pins if pin) == list(session.PYSPARKS)
    targets = re.findall(r"^test-pyspark: (.*) ##", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert targets == [" ".join(path.stem.replace("constraints", "test") for path in installed[1:])]


def test_session_of_a_pyspark_that_was_not_tested_is_not_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything starts; a running session of a notebook is not taken either."""
    monkeypatch.setattr(pyspark, "__version__", "4.4.0")
    with pytest.raises(Unsupported, match="TS1500"):
        session.open_session(SparkSettings(), ScratchPlace(str(tmp_path)))
