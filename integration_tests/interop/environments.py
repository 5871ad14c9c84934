"""The environments of the peers: made on first use, kept in the cache, usable without network afterwards.

Steps      1 take the file lock  2 look for the stamp of this very version  3 build aside  4 rename into place
INVARIANT  a folder with a stamp is complete: it is renamed into place only after everything in it worked.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tablestore_engine.errors import FixRequest
from tablestore_engine.runtime.java import cache_folder, find_java

BUNDLE = ("org.apache.paimon", "paimon-bundle", "1.4.2")
ICEBERG_JAVA = ("org.apache.iceberg", "iceberg-spark-runtime-3.5_2.12", "1.11.0")
SPARK_CONNECTOR = ("org.apache.paimon", "paimon-spark-3.5", "0.9.0")
FLINK = (
    ("org.apache.flink", "flink-json", "1.20.1"),
    ("org.apache.flink", "flink-core", "1.20.1"),
    ("org.apache.flink", "flink-core-api", "1.20.1"),
    ("org.apache.flink", "flink-annotations", "1.20.1"),
    ("org.apache.flink", "flink-table-common", "1.20.1"),
    ("org.apache.flink", "flink-shaded-jackson", "2.14.2-17.0"),
    ("org.apache.flink", "flink-shaded-guava", "31.1-jre-17.0"),
    ("org.apache.flink", "flink-sql-avro-confluent-registry", "1.20.0"),
)
FLINK_VERSION, KAFKA_CONNECTOR, PAIMON_FLINK = "2.0.0", "4.0.1-2.0", ("paimon-flink-2.0", "1.4.2")
HIVE = (
    ("org.apache.paimon", "paimon-hive-connector-3.1", "1.2.0"),
    ("org.apache.hive", "hive-exec", "3.1.3"),
)
NESSIE = ("org.projectnessie.nessie", "nessie-quarkus", "0.99.0")
_FLINK_MODULES = (
    *("flink-table-planner-loader", "flink-table-runtime", "flink-table-api-java-bridge"),
    *("flink-clients", "flink-connector-files", "flink-json"),
)
_MAKE_SECONDS = 900
# pyspark is built from its source: 300 MB of jars would be compressed and unpacked again
_UNPACKED = ("--config-settings-package", "pyspark:--build-option=--compression=stored")
_IVY = """<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
 <info organisation="local" module="interop"/>
 <configurations><conf name="default"/></configurations>
 <dependencies>{dependencies}</dependencies></ivy-module>
"""


class CannotMake(Exception):
    """An environment could not be made: no network and no warm cache, or no Java."""


@dataclass(frozen=True)
class Environment:
    """One peer's own Python environment; `pins` are exact, so the stamp is the list itself."""

    name: str
    pins: tuple[str, ...]

    def python(self) -> Path:
        """The interpreter of the environment, made when missing."""
        stamp = hashlib.sha256("\n".join((sys.version, *self.pins)).encode()).hexdigest()[:12]
        folder = cache_folder() / f"interop-{self.name}-{stamp}"
        with _locked(folder):
            if not (folder / "ready").is_file():
                _make_venv(folder, self.pins)
        return folder / "bin" / "python"


SPARK35 = Environment("spark35", ("pyspark==3.5.9", "pyarrow==19.0.1"))
PYPAIMON = Environment("pypaimon", ("pypaimon==2.1.0", "pyarrow==19.0.1"))
RUST = Environment("rust", ("pypaimon-rust==0.4.0", "pyarrow==19.0.1"))
ICEBERG = Environment(
    "iceberg",
    (
        "duckdb==1.5.5",
        "duckdb-extension-avro==1.5.5",
        "duckdb-extension-iceberg==1.5.5",
        "duckdb-extension-httpfs==1.5.5",
        "pyiceberg==0.12.0",
        "pyarrow==26.0.1",
    ),
)
ICEBERG_CATALOG = Environment("iceberg-catalog", ("pyiceberg[sql-sqlite]==0.12.0", "pyarrow==26.0.1"))
SMALL_BUILD_PEERS = Environment(
    "small-build",
    ("dbt-core==1.11.16", "dbt-duckdb==1.11.1", "duckdb==2.0.1", "dbt-spark==1.11.0", "pyspark==4.3.0"),
)


def pyspark_jars() -> Path:
    """The jar folder of the pyspark that the project itself uses (Hadoop, py4j, Ivy)."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        raise CannotMake("pyspark is not installed: run `make install`")
    return Path(next(iter(spec.submodule_search_locations))) / "jars"


def java_command() -> str:
    """Path of `java`, chosen as the engine chooses it."""
    try:
        return str(Path(find_java().home) / "bin" / "java")
    except FixRequest as missing:
        raise CannotMake(str(missing)) from missing


def paimon_jars() -> dict[str, Path]:
    """Artifact name -> jar, fetched once into the cache."""
    wanted = (BUNDLE, SPARK_CONNECTOR)
    folder = "interop-jars-" + "-".join(f"{name}-{version}" for _, name, version in wanted)
    return _jars(folder, wanted, 88)


def iceberg_jar() -> Path:
    """Iceberg's Java reader for Spark 3.5."""
    return _jars(f"interop-iceberg-java-{ICEBERG_JAVA[2]}", (ICEBERG_JAVA,), 45)[ICEBERG_JAVA[1]]


def flink_jars() -> dict[str, Path]:
    """Flink's formats and what they stand on; nothing of a cluster."""
    return _jars("interop-flink-" + FLINK[0][2], FLINK, 32)


def flink_cluster_jars() -> tuple[Path, ...]:
    """Folder and jars of a Flink cluster of one JVM with its connectors for Kafka and Paimon.

    Paimon's connector needs Hadoop's classes, which pyspark has.
    """
    connectors = (
        ("org.apache.flink", "flink-sql-connector-kafka", KAFKA_CONNECTOR),
        ("org.apache.paimon", *PAIMON_FLINK),
    )
    modules = (("org.apache.flink", name, FLINK_VERSION) for name in _FLINK_MODULES)
    with_others = _dependencies((*modules, ("org.slf4j", "slf4j-nop", "1.7.36")), "default->default")
    lines = with_others + _dependencies(connectors, "default->master")
    files = tuple(f"{name}-{version}.jar" for _, name, version in connectors)
    folder = fetched(f"interop-flink-{FLINK_VERSION}-paimon-{PAIMON_FLINK[1]}", lines, files, 190)
    return (folder, *sorted(pyspark_jars().glob("hadoop-client-*.jar")))


def hive_jars() -> tuple[Path, ...]:
    """Paimon's connector and Hive's classes, with those of Hadoop that pyspark has."""
    folder = _jars("interop-hive-" + "-".join(version for *_, version in HIVE), HIVE, 90)
    shared = ("hadoop-client-", "commons-", "guava-", "log4j-", "slf4j-api-", "antlr-runtime-", "libthrift-")
    return (*folder.values(), *sorted(one for part in shared for one in pyspark_jars().glob(f"{part}*.jar")))


def nessie_jar() -> Path:
    """Nessie's server, a REST catalog of Iceberg. It runs on Java 21."""
    org, name, version = NESSIE
    runner = f'<artifact name="{name}" type="jar" ext="jar" m:classifier="runner"/>'
    line = (
        f'<dependency org="{org}" name="{name}" rev="{version}" conf="default->master">{runner}</dependency>'
    )
    file = f"{name}-{version}-runner.jar"
    return fetched(f"interop-nessie-{version}", line, (file,), 245) / file


def _dependencies(wanted: Iterable[tuple[str, str, str]], configurations: str) -> str:
    return "".join(
        f'<dependency org="{org}" name="{name}" rev="{version}" conf="{configurations}"/>'
        for org, name, version in wanted
    )


def _jars(folder: str, wanted: tuple[tuple[str, str, str], ...], megabytes: int) -> dict[str, Path]:
    files = tuple(f"{name}-{version}.jar" for _, name, version in wanted)
    place = fetched(folder, _dependencies(wanted, "default->master"), files, megabytes)
    return {name: place / file for (_, name, _), file in zip(wanted, files, strict=True)}


def fetched(name: str, dependencies: str, files: tuple[str, ...], megabytes: int) -> Path:
    """The folder in the cache that holds these files; `dependencies` is what Ivy is told."""
    folder = cache_folder() / name
    with _locked(folder):
        if not (folder / "ready").is_file():
            _fetch(folder, dependencies, files, megabytes)
    return folder / "lib"


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f".{folder.name}.lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _make_venv(folder: Path, pins: tuple[str, ...]) -> None:
    """A venv cannot be moved (its scripts hold its path): made in place, the stamp comes last."""
    shutil.rmtree(folder, ignore_errors=True)
    _say(f"making the environment {folder.name}: {', '.join(pins)} (once, kept in {folder.parent})")
    _run([sys.executable, "-m", "venv", "--without-pip", str(folder)], f"venv for {', '.join(pins)}")
    python = str(folder / "bin" / "python")
    what = f"pip install {' '.join(pins)}"
    try:  # an eighth of pip's processor time; it does not read pip's settings
        _run(
            [sys.executable, "-m", "uv", "pip", "install", "-q", "--python", python, *_UNPACKED, *pins], what
        )
    except CannotMake:
        by_pip = ("-m", "pip", "--python", python, "install", "-q", "--disable-pip-version-check")
        _run([sys.executable, *by_pip, *pins], what)
    (folder / "ready").write_text("\n".join(pins) + "\n")


def _fetch(folder: Path, dependencies: str, files: tuple[str, ...], megabytes: int) -> None:
    aside = folder.with_name(f".{folder.name}.{os.getpid()}")
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(parents=True)
    _say(f"fetching {', '.join(files)} ({megabytes} MB, once)")
    (aside / "ivy.xml").write_text(_IVY.format(dependencies=dependencies))
    ivy = next(pyspark_jars().glob("ivy-*.jar"))
    settings = os.environ.get("TABLESTORE_IVY_SETTINGS")
    command = [java_command(), "-jar", str(ivy), "-cache", str(aside / "ivy"), "-ivy", str(aside / "ivy.xml")]
    command += ["-settings", settings] if settings else []
    pattern = str(aside / "lib" / "[artifact]-[revision](-[classifier]).[ext]")
    command += ["-confs", "default", "-types", "jar", "bundle", "tar.gz", "-retrieve", pattern, "-sync"]
    _run(command, f"fetching {files[0]}")
    missing = [name for name in files if not (aside / "lib" / name).is_file()]
    if missing:
        shutil.rmtree(aside)
        raise CannotMake(f"the repository did not deliver {', '.join(missing)}")
    shutil.rmtree(aside / "ivy")
    (aside / "ready").touch()
    shutil.rmtree(folder, ignore_errors=True)
    aside.rename(folder)


def _run(command: list[str], what: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_MAKE_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as failed:
        raise CannotMake(f"{what} failed: {failed}; it needs network once") from failed
    if done.returncode != 0:
        tail = (done.stdout + done.stderr)[-1500:]
        raise CannotMake(f"{what} failed (it needs network once):\n{tail}")


def _say(text: str) -> None:
    sys.stderr.write(f"interop: {text}\n")
    sys.stderr.flush()
