"""Hadoop's S3 connector for the Spark that is installed, fetched once as published jars.

WHY        the connector names one jar of 600 MB with clients of every service as its dependency; the five parts of it
           that it uses are 18 MB. Its analytics stream, the default for reading, needs a jar of its own.
INVARIANT  a connector fits one release of Hadoop: the one whose client jars pyspark has. Others are refused.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from tablestore_engine.devservers.java_bundles import JavaBundle, ensure_bundle
from tablestore_engine.errors import FixRequest
from tablestore_engine.runtime.java import find_java

_SDK = "software.amazon.awssdk"
_CLIENT_JAR = "hadoop-client-api-"
# release of Hadoop → releases of Amazon's client and of the analytics stream that it was built with
_BUILT_WITH: Mapping[str, tuple[str, str]] = MappingProxyType({"3.5.0": ("2.35.4", "1.3.1")})


def s3_bundle(hadoop: str) -> JavaBundle:
    """The jars for one release of Hadoop. Raises FixRequest TS1943."""
    if hadoop not in _BUILT_WITH:
        raise FixRequest(
            "TS1943",
            f"the S3 connector for Hadoop {hadoop} cannot be fetched",
            why=f"it is known for Hadoop {', '.join(_BUILT_WITH)}, and this pyspark has Hadoop {hadoop}",
            fix=f"add org.apache.hadoop:hadoop-aws:{hadoop} to spark.jars.packages, or remove spark.connector "
            "from the profile: the portable way needs no connector",
        )
    sdk, analytics = _BUILT_WITH[hadoop]
    parts = ("s3", "s3-transfer-manager", "sts", "apache-client", "netty-nio-client")
    return JavaBundle(
        f"Hadoop's S3 connector {hadoop}",
        f"hadoop-aws-{hadoop}",
        (
            ("org.apache.hadoop", "hadoop-aws", hadoop),
            *((_SDK, part, sdk) for part in parts),
            ("software.amazon.s3.analyticsaccelerator", "analyticsaccelerator-s3", analytics),
        ),
        51,
        18,
        f"hadoop-aws-{hadoop}.jar",
        left_out=((_SDK, "bundle"), ("org.slf4j", "*")),
    )


def hadoop_release() -> str:
    """Of the Hadoop client jars in pyspark, which is located and not imported. Raises FixRequest TS1943."""
    spec = importlib.util.find_spec("pyspark")
    homes = list(spec.submodule_search_locations or ()) if spec is not None else []
    jars = sorted(path for home in homes for path in (Path(home) / "jars").glob(f"{_CLIENT_JAR}*.jar"))
    if not jars:
        raise FixRequest(
            "TS1943",
            "the release of Hadoop is unknown",
            why=f"expected {_CLIENT_JAR}*.jar in pyspark's folder `jars`, found none",
            fix="install pyspark with its jars (pip install pyspark), or remove spark.connector from the profile",
        )
    return jars[-1].stem.removeprefix(_CLIENT_JAR)


def fetch_s3_jars(say: Callable[[str], None]) -> tuple[str, ...]:
    """Paths of the jars; downloads them when they are missing. Raises FixRequest TS1910, TS1943, RetryError TS1911."""
    folder = ensure_bundle(s3_bundle(hadoop_release()), find_java().home, say=say)
    return tuple(sorted(str(jar) for jar in folder.glob("*.jar")))
