"""A class-data archive for local sessions: Spark's classes are mapped instead of loaded, which halves the start.

CHANGE     the archive of Spark's classes
Steps      build: claim the mark file → the base, if this Java has none → run the session on it with
           -XX:ArchiveClassesAtExit=<aside> → replace → the mark goes → archives that were not used for longest go
INVARIANT  an archive appears whole or not at all; a JVM that cannot use it starts as if there were none.
INVARIANT  an archive belongs to the very jars that it was made from (identity_of): Java compares their
           paths and times, and loads every class from its jar when one differs.
INVARIANT  Spark's archive lies on one base: it is used with that, and made again when that is gone. A base is never
           replaced, a JVM may have it mapped.
CRASH      the mark of a builder that failed or died stays: the next try comes when it is stale, not at each session.
WHY        session and three first queries, 2 loaded cores, one run each: 11.9 s without, 9.6 s with it.
INVARIANT  two folders with one identity are the same files at the same place: Java takes a class archive only then.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyspark
from pyspark.sql import SparkSession

from tablestore_engine.runtime.java import JavaChoice, cache_folder, make_in_cache


def jars_folder() -> Path:
    """Of SPARK_HOME, else of the installed pyspark."""
    return Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent) / "jars"


def identity_of(folder: Path) -> str:
    """Twelve hex digits that change with the folder's path and with name, size and time of each jar."""
    facts = [str(folder)]
    with os.scandir(folder) as found:
        for jar in sorted(found, key=lambda entry: entry.name):
            if jar.name.endswith(".jar"):
                status = jar.stat()
                facts.append(f"{jar.name} {status.st_size} {status.st_mtime_ns}")
    return hashlib.sha256("\n".join(facts).encode("utf-8", "surrogateescape")).hexdigest()[:12]


FAST_START_ENV = "TABLESTORE_FAST_START"
_STALE_SECONDS = 900
_QUIET = "-Xlog:disable -Xlog:all=off"
_NICE = 19
GC_FLAG = "-XX:+UseParallelGC"
_DUMP_GC = "-XX:+UseG1GC"  # the only one that also puts objects into an archive; ParallelGC can load them
_SEPARATOR = ":"
_KEPT = 3  # archives of Spark, 190 MB each


def archive_path(java: JavaChoice) -> Path:
    """One archive per Java version, Java home, and the jars of one Spark."""
    key = re.sub(r"[^A-Za-z0-9.]+", "_", f"{pyspark.__version__}-{java.version}-{java.home}")
    return cache_folder() / "class-archive" / f"spark-{key}-{identity_of(jars_folder())}.jsa"


def is_wanted() -> bool:
    """Whether the user lets us keep an archive (TABLESTORE_FAST_START=0 switches it off)."""
    return os.environ.get(FAST_START_ENV, "1") not in ("0", "false", "no")


def find_base_path(java: JavaChoice) -> Path | None:
    """Spark's archive can only lie on one of Java's own classes; None when this Java brings that."""
    if any((Path(java.home) / "lib" / "server").glob("classes*.jsa")):
        return None
    key = re.sub(r"[^A-Za-z0-9.]+", "_", f"{java.version}-{java.home}")
    return cache_folder() / "class-archive" / f"java-{key}.jsa"


def archive_flags(java: JavaChoice) -> str:
    """Flags for the driver JVM; empty while an archive does not exist."""
    archives = _archives(java)
    if not is_wanted() or not _can_be_named(archives) or not all(path.is_file() for path in archives):
        return ""
    with suppress(OSError):  # the time of its last use; an archive without one goes first
        os.utime(archives[-1])
    return f"-Xshare:auto -XX:SharedArchiveFile={_SEPARATOR.join(map(str, archives))} {_QUIET}"


def build_in_background(java: JavaChoice) -> bool:
    """Start the builder unless the archives exist or another process builds them; whether it was started."""
    archives = _archives(java)
    if not is_wanted() or not _can_be_named(archives) or all(path.is_file() for path in archives):
        return False
    path = archive_path(java)
    if not _claim(_mark(path)):
        return False
    env = {
        **os.environ,
        "JAVA_HOME": java.home,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
    }
    subprocess.Popen(
        [sys.executable, "-m", "tablestore_engine.spark.class_archive", *map(str, reversed(archives))],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=path.parent,  # what Spark leaves where it runs must not lie in the user's folder
        env=env,
        start_new_session=True,
    )
    return True


def _archives(java: JavaChoice) -> tuple[Path, ...]:
    """In the order of the flag: what Spark's archive lies on, if that is ours, then Spark's."""
    base = find_base_path(java)
    return (archive_path(java),) if base is None else (base, archive_path(java))


def _can_be_named(archives: tuple[Path, ...]) -> bool:
    """Paths that the flag, and the string it stands in, can carry."""
    return not any(sign in str(path) for path in archives for sign in (" ", _SEPARATOR))


def _mark(path: Path) -> Path:
    return path.with_suffix(".building")


def _claim(mark: Path) -> bool:
    """Create the mark exclusively; a mark left by a builder that died is taken over after a while."""
    make_in_cache(mark.parent)
    for _ in range(2):
        try:
            os.close(os.open(mark, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        except FileExistsError:
            try:
                stale = time.time() - mark.stat().st_mtime > _STALE_SECONDS
            except FileNotFoundError:
                continue
            if not stale:
                return False
            mark.unlink(missing_ok=True)
        else:
            return True
    return False


def dump_base(java_program: Path, path: Path) -> None:
    """Java's own classes at `path`, by its own list of them, unless they are there. Raises CalledProcessError."""
    if path.is_file():
        return
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    flags = ("-Xshare:dump", _DUMP_GC, f"-XX:SharedArchiveFile={aside}", *_QUIET.split())
    try:
        subprocess.run([str(java_program), *flags], check=True, capture_output=True, timeout=_STALE_SECONDS)
        with suppress(FileExistsError):  # somebody else's came first, and is as good
            os.link(aside, path)
    finally:
        aside.unlink(missing_ok=True)


def main(target: str, base: str = "") -> None:
    """Build the archive at `target`, on one at `base` that is made when it is not there.

    The JVM writes it while it ends, so wait for that end.
    """
    path = Path(target)
    os.nice(_NICE)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if base:
        dump_base(Path(os.environ["JAVA_HOME"]) / "bin" / "java", Path(base))
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        _run_session(aside, base, path.with_name(f".rows-{os.getpid()}"))
        aside.replace(path)
        _mark(path).unlink(missing_ok=True)
    finally:
        aside.unlink(missing_ok=True)
    _drop_unused(path.parent)


def _drop_unused(folder: Path) -> None:
    """All but the archives that were used last. A JVM that has one mapped keeps it; the next one starts without."""
    archives = sorted(folder.glob("spark-*.jsa"), key=lambda one: one.stat().st_mtime, reverse=True)
    for old in archives[_KEPT:]:
        old.unlink(missing_ok=True)


def _run_session(archive: Path, base: str, rows: Path) -> None:
    """A session that uses what ours use, whose JVM writes `archive` when it ends."""
    on_base = f"-XX:SharedArchiveFile={base} " if base else ""
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.catalogImplementation", "in-memory")
        .config("spark.sql.warehouse.dir", f"{rows}/catalog")
        .config(
            "spark.driver.extraJavaOptions",
            f"{GC_FLAG} {on_base}-XX:ArchiveClassesAtExit={archive} {_QUIET}",
        )
        .getOrCreate()
    )
    gateway = spark.sparkContext._gateway
    process = gateway.proc if gateway is not None else None
    try:
        _exercise(spark, f"{rows}/parquet")
    finally:
        spark.stop()
        if process is not None:
            process.stdin.close()  # the gateway ends when its input ends
            process.wait(timeout=_STALE_SECONDS)
        shutil.rmtree(rows, ignore_errors=True)


def _exercise(spark: SparkSession, folder: str) -> None:
    """Touch the classes that our statements use: DDL, parquet, aggregation, join, Python and Arrow."""
    numbers = spark.range(1000).selectExpr("id", "cast(id % 7 as string) k", "cast(id as decimal(18,2)) d")
    numbers.write.mode("overwrite").parquet(folder)
    spark.sql("create database if not exists demo")
    spark.sql(
        f"create table demo.h (id bigint, k string, d decimal(18,2)) using parquet options (path '{folder}')"
    )
    spark.sql("create view demo.v as select id, k, d from demo.h where _metadata.row_index >= 0")
    spark.sql(
        "select k, count(*), sum(h.d) from demo.v join demo.h using (k) group by k order by k"
    ).collect()
    spark.sql("select * from demo.v where id = 5").toArrow()
    numbers.repartition(2, "k").mapInArrow(_same, numbers.schema).toArrow()


def _same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


if __name__ == "__main__":
    main(*sys.argv[1:])
