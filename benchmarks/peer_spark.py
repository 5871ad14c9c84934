"""One system of the workload on Spark, in a process and an environment of its own; prints one JSON object.

Steps      1 session  2 the work once on a quarter of the rows, thrown away  3 load, upserts, upserts of a few rows,
           reads, each timed  4 the checksum of all columns, files and bytes  5 a load of computed rows
INVARIANT  rows and sums are as the plan says after the load and after the last upsert, or the process fails.
Usage      python peer_spark.py PLAN.json (benchmarks/spark_peers.py writes it). Only `ours` imports the project.
"""

import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import ClassVar

from pyspark.sql import SparkSession

COLUMNS = (
    "id bigint, name string, city string, amount double, score double, price decimal(18,2), "
    "updated_at timestamp_ntz, quantity int"
)
MERGE = (
    "merge into {table} t using parquet.`{path}` s on t.id = s.id "
    "when matched then update set * when not matched then insert *"
)
# A load whose rows have to be computed: no way of copying files serves it
QUERY = "id, name, upper(city) as city, amount, score, price, updated_at, quantity"
GROUPS = "select city, count(*), sum(quantity) from {table} group by city"
SUMS = "select count(*), sum(id), sum(quantity) from {table}"
# The same for everyone; shuffle partitions are those that our session has on two cores
CONF = {
    "spark.driver.memory": "6g",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


class Peer:
    """A table format with a catalog of Spark. `conf`, `ddl` and `change` are all that differs."""

    catalog = "spark_catalog"
    conf: ClassVar = {}
    ddl = ""
    change = MERGE

    def __init__(self, plan):
        self.folder = plan["folder"]
        builder = SparkSession.builder.master("local[2]").appName("bench")
        conf = {**CONF, **self.conf, "spark.sql.warehouse.dir": f"{self.folder}/default"}
        if plan["jars"]:
            conf["spark.jars"] = ",".join(plan["jars"])
        for name, value in conf.items():
            builder = builder.config(name, value.format(folder=self.folder))
        self.spark = builder.getOrCreate()
        self.spark.sparkContext.setLogLevel("ERROR")
        self.spark.sql(f"create database if not exists {self.catalog}.bench")

    def name(self, table):
        return f"{self.catalog}.bench.{table}"

    def create(self, table):
        self.spark.sql(f"create table {self.name(table)} ({COLUMNS}) {self.ddl}")

    def load(self, table, path, columns="*"):
        self.spark.sql(f"insert into {self.name(table)} select {columns} from parquet.`{path}`")

    def upsert(self, table, path):
        self.spark.sql(self.change.format(table=self.name(table), path=path))

    def prepare_reads(self, table, final):
        """Only the plain files have to."""

    def frame(self, table):
        return self.spark.table(self.name(table))

    def read(self, table):
        """Every column of every row, none kept."""
        self.frame(table).write.format("noop").mode("overwrite").save()

    def rows(self, statement, table):
        return [tuple(row) for row in self.spark.sql(statement.format(table=self.name(table))).collect()]

    def close(self):
        self.spark.stop()


class Paimon(Peer):
    """Merge on read, no changelog; its inline compaction is on, as by default."""

    catalog = "paimon"
    conf: ClassVar = {
        "spark.sql.catalog.paimon": "org.apache.paimon.spark.SparkCatalog",
        "spark.sql.catalog.paimon.warehouse": "file:{folder}",
        "spark.sql.extensions": "org.apache.paimon.spark.extensions.PaimonSparkSessionExtensions",
    }
    ddl = (
        "tblproperties ('primary-key'='id', 'bucket'='2', 'file.format'='parquet', 'file.compression'='zstd')"
    )
    change = "insert into {table} select * from parquet.`{path}`"


class Iceberg(Peer):
    """Merge on read in two buckets; it keeps no changelog."""

    catalog = "ice"
    conf: ClassVar = {
        "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.ice.type": "hadoop",
        "spark.sql.catalog.ice.warehouse": "file:{folder}",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    }
    ddl = (
        "using iceberg partitioned by (bucket(2, id)) tblproperties ('format-version'='2', "
        "'write.merge.mode'='merge-on-read', 'write.update.mode'='merge-on-read', "
        "'write.delete.mode'='merge-on-read', 'write.parquet.compression-codec'='zstd')"
    )


class Delta(Peer):
    """Deletion vectors and the change data feed."""

    conf: ClassVar = {
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    }
    ddl = "using delta tblproperties ('delta.enableDeletionVectors'='true', 'delta.enableChangeDataFeed'='true')"

    def read(self, table):
        """A noop write of a table with deletion vectors is refused ("non-pinned table snapshot")."""
        self.frame(table)._jdf.queryExecution().toRdd().count()


class Plain(Peer):
    """The limit: two sorted Parquet files of the same rows; an upsert only writes its batch, a read has the result."""

    def create(self, table):
        """Its load does."""

    def load(self, table, path, columns="*"):
        self._write(path, self._place(table), columns)

    def upsert(self, _table, path):
        self._write(path, f"{self.folder}/batch")

    def prepare_reads(self, table, final):
        if final:
            self._write(final, self._place(table))

    def frame(self, table):
        return self.spark.read.parquet(self._place(table))

    def rows(self, statement, table):
        return super().rows(statement.replace("{table}", f"parquet.`{self._place(table)}`"), table)

    def _place(self, table):
        return f"{self.folder}/plain/{table}"

    def _write(self, path, target, columns="*"):
        shutil.rmtree(target, ignore_errors=True)
        rows = self.spark.read.parquet(path).selectExpr(*columns.split(", "))
        rows.repartition(2, "id").sortWithinPartitions("id").write.parquet(target)


class Ours(Peer):
    """Two buckets and a full changelog, by the engine's own session."""

    def __init__(self, plan):
        from tablestore_engine.api import Engine, SparkSettings, TableSpec, WriteMode, WriteSpec

        settings = SparkSettings(master="local[2]", conf={"spark.driver.memory": CONF["spark.driver.memory"]})
        self.folder = plan["folder"]
        self.engine = Engine(self.folder, spark=settings)
        self.engine.create_database("bench")
        self.spark = self.engine.spark
        spec = TableSpec(primary_key=("id",), options={"bucket": "2"})
        self.spec = WriteSpec(table=spec, mode=WriteMode.UPSERT)

    def name(self, table):
        return f"bench.{table}"

    def create(self, table):
        """The first write does."""

    def load(self, table, path, columns="*"):
        rows = self.spark.read.parquet(path).selectExpr(*columns.split(", "))
        self.engine.write(self.name(table), rows, self.spec)

    upsert = load

    def frame(self, table):
        return self.engine.query(f"select * from {self.name(table)}")

    def rows(self, statement, table):
        return [tuple(row) for row in self.engine.sql(statement.format(table=self.name(table))).rows]

    def close(self):
        self.engine.close()


SYSTEMS = {"ours": Ours, "paimon": Paimon, "iceberg": Iceberg, "delta": Delta, "plain": Plain}


class Clock:
    """Wall seconds by operation."""

    def __init__(self):
        self.seconds = {}

    def time(self, name, work):
        started = time.monotonic()
        value = work()
        self.seconds.setdefault(name, []).append(round(time.monotonic() - started, 4))
        return value


def check(what, got, expected):
    """Exact, or the run is void."""
    if tuple(got) != tuple(expected):
        raise SystemExit(f"{what}: expected {expected}, got {got}: the measurement is void")


def run(peer, table, plan):
    """All operations on a new table; seconds by operation."""
    clock = Clock()
    peer.create(table)
    clock.time("load", lambda: peer.load(table, plan["base"]))
    check("sums after the load", peer.rows(SUMS, table)[0], plan["loaded"])
    for path in plan["batches"]:
        clock.time("upsert", lambda: peer.upsert(table, path))  # noqa: B023 - run at once
    clock.seconds["all upserts"] = [round(sum(clock.seconds["upsert"]), 4)]
    for path in plan["small"]:
        clock.time("few rows", lambda: peer.upsert(table, path))  # noqa: B023
    peer.prepare_reads(table, plan["final"])
    for _ in range(plan["reads"]):
        clock.time("full read", lambda: peer.read(table))
        check("sums", clock.time("aggregates", lambda: peer.rows(SUMS, table))[0], plan["sums"])
        groups = clock.time("groups", lambda: peer.rows(GROUPS, table))
        check("groups", [sum(row[at] for row in groups) for at in (1, 2)], plan["sums"][::2])
    for key, quantity in plan["points"]:
        text = f"select * from {{table}} where id = {key}"
        found = clock.time("one key", lambda: peer.rows(text, table))  # noqa: B023
        check("one key", [(row[0], row[7]) for row in found], [(key, quantity)])
    return clock.seconds


def load_query(peer, table, plan):
    """Seconds of a load of computed rows into a new table, after all other work of the process."""
    clock = Clock()
    peer.create(table)
    clock.time("load of a query", lambda: peer.load(table, plan["base"], QUERY))
    check("sums after the load of a query", peer.rows(SUMS, table)[0], plan["loaded"])
    return clock.seconds


def main(path):
    """Warm up, measure, print."""
    plan = json.loads(Path(path).read_text())
    peer = SYSTEMS[plan["system"]](plan)
    warm = {**plan, **plan["warm"]}
    run(peer, "warm", warm)
    load_query(peer, "warm_query", warm)
    before = stored(plan["folder"])
    seconds = run(peer, "rows", plan)
    columns = ", ".join(part.split()[0] for part in COLUMNS.split(", "))
    hashed = peer.frame("rows").selectExpr(f"bit_xor(xxhash64({columns}))").collect()[0][0]
    files, size = (after - earlier for after, earlier in zip(stored(plan["folder"]), before, strict=True))
    seconds.update(load_query(peer, "query", plan))
    print(json.dumps({"seconds": seconds, "hash": hashed, "files": files, "bytes": size}))
    peer.close()


def stored(folder):
    """Files and bytes."""
    found = [Path(place) / name for place, _, names in os.walk(folder) for name in names]
    found = [one for one in found if not one.name.endswith(".crc")]
    return len(found), sum(one.stat().st_size for one in found)


main(*sys.argv[1:])
