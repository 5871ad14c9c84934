"""The environments and jars of the peers on Spark: each has the pyspark that its release is made for.

INVARIANT  all is made and kept by integration_tests/interop/environments.py, in the cache; no network is needed later.
"""

from __future__ import annotations

from pathlib import Path

from integration_tests.interop.environments import Environment, fetched

PAIMON_VERSION = "1.4.2"
DELTA = Environment("delta", ("pyspark==4.2.1",))
ICEBERG = Environment("iceberg-spark", ("pyspark==4.1.4",))
PAIMON = Environment("paimon-spark", ("pyspark==4.0.5",))
_DELTA_JARS = (
    ("io.delta", "delta-spark_4.2_2.13", "4.4.0"),
    ("io.delta", "delta-storage", "4.4.0"),
    ("io.delta", "delta-kernel-api", "4.4.0"),
    ("io.delta", "delta-kernel-defaults", "4.4.0"),
    ("io.delta", "delta-kernel-unitycatalog", "4.4.0"),
    ("io.unitycatalog", "unitycatalog-client", "0.6.0"),
    ("io.unitycatalog", "unitycatalog-hadoop", "0.6.0"),
)


def pyspark_jars_of(environment: Environment) -> Path:
    """The folder of jars of the environment's own pyspark."""
    return next(environment.python().parent.parent.glob("lib/python*/site-packages/pyspark/jars"))


def delta_jars() -> list[Path]:
    """Delta and what it needs besides Spark's jars."""
    return _jars("bench-delta-spark-4.4.0", _DELTA_JARS, 14)


def iceberg_jars() -> list[Path]:
    """Iceberg's runtime for Spark 4.1."""
    wanted = (("org.apache.iceberg", "iceberg-spark-runtime-4.1_2.13", "1.12.0"),)
    return _jars("bench-iceberg-spark-1.12.0", wanted, 48)


def paimon_bundle() -> Path:
    """Paimon's own classes, without those of a connector."""
    wanted = (("org.apache.paimon", "paimon-bundle", PAIMON_VERSION),)
    return _jars(f"bench-paimon-{PAIMON_VERSION}", wanted, 49)[0]


def _jars(name: str, wanted: tuple[tuple[str, str, str], ...], megabytes: int) -> list[Path]:
    files = tuple(f"{artifact}-{version}.jar" for _, artifact, version in wanted)
    lines = "".join(
        f'<dependency org="{org}" name="{artifact}" rev="{version}" conf="default->master"/>'
        for org, artifact, version in wanted
    )
    folder = fetched(name, lines, files, megabytes)
    return [folder / file for file in files]
