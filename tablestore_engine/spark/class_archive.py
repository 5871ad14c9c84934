"""A class-data archive for local sessions: Spark's classes are mapped instead of loaded, which halves the start.

Names      archive_path()     where the archive of this pyspark and this Java lies
           archive_flags()    JVM flags that use it when it is there
           has_base_archive() whether this Java can make one (the packaged JRE cannot)
           build_in_background()   start the one-time build, niced and detached, unless somebody else is at it
           main()             the builder process: a tiny session whose JVM dumps its classes when it ends
Steps      build: claim the mark file → run the session with -XX:ArchiveClassesAtExit=<aside> → replace
INVARIANT  the archive appears whole or not at all; a JVM that cannot use it starts as if there were none.
WHY        session and three first queries, 2 loaded cores, one run each: 11.9 s without, 9.6 s with it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyspark
from pyspark.sql import SparkSession

from tablestore_engine.runtime.java import JavaChoice, cache_folder, make_in_cache

FAST_START_ENV = "TABLESTORE_FAST_START"
_STALE_SECONDS = 900
_QUIET = "-Xlog:disable -Xlog:all=off"
_NICE = 19
GC_FLAG = "-XX:+UseParallelGC"


def archive_path(java: JavaChoice) -> Path:
    """One archive per pyspark version, Java version and Java home."""
    key = re.sub(r"[^A-Za-z0-9.]+", "_", f"{pyspark.__version__}-{java.version}-{java.home}")
    return cache_folder() / "class-archive" / f"spark-{key}.jsa"


def is_wanted() -> bool:
    """Whether the user lets us keep an archive (TABLESTORE_FAST_START=0 switches it off)."""
    return os.environ.get(FAST_START_ENV, "1") not in ("0", "false", "no")


def archive_flags(java: JavaChoice) -> str:
    """Flags for the driver JVM; empty while the archive does not exist."""
    path = archive_path(java)
    if not is_wanted() or not path.is_file() or " " in str(path):
        return ""
    return f"-Xshare:auto -XX:SharedArchiveFile={path} {_QUIET}"


def build_in_background(java: JavaChoice) -> bool:
    """Start the builder unless the archive exists or another process builds it; whether it was started."""
    path = archive_path(java)
    if not is_wanted() or path.is_file() or " " in str(path) or not has_base_archive(java):
        return False
    if not _claim(_mark(path)):
        return False
    env = {
        **os.environ,
        "JAVA_HOME": java.home,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
    }
    subprocess.Popen(
        [sys.executable, "-m", "tablestore_engine.spark.class_archive", str(path)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=path.parent,  # what Spark leaves where it runs must not lie in the user's folder
        env=env,
        start_new_session=True,
    )
    return True


def has_base_archive(java: JavaChoice) -> bool:
    """Whether this Java brings the archive of its own classes: without it the JVM dumps none of ours, at each try."""
    return any((Path(java.home) / "lib" / "server").glob("classes*.jsa"))


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


def main(target: str) -> None:
    """Build the archive at `target`; the JVM writes it while it ends, so wait for that end."""
    path = Path(target)
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    rows = path.with_name(f".rows-{os.getpid()}")
    os.nice(_NICE)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.catalogImplementation", "in-memory")
        .config("spark.sql.warehouse.dir", f"{rows}/catalog")
        .config("spark.driver.extraJavaOptions", f"{GC_FLAG} -XX:ArchiveClassesAtExit={aside} {_QUIET}")
        .getOrCreate()
    )
    gateway = spark.sparkContext._gateway
    process = gateway.proc if gateway is not None else None
    done = False
    try:
        _exercise(spark, f"{rows}/parquet")
        done = True
    finally:
        spark.stop()
        if process is not None:
            process.stdin.close()  # the gateway ends when its input ends
            process.wait(timeout=_STALE_SECONDS)
        if done and aside.is_file():
            aside.replace(path)
        aside.unlink(missing_ok=True)
        shutil.rmtree(rows, ignore_errors=True)
        _mark(path).unlink(missing_ok=True)


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
    main(sys.argv[1])
