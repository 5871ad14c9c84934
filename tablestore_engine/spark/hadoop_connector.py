"""Places of an object store as Hadoop's file systems name them, and whether a session can use them.

CHANGE     whether Spark's Hadoop connector can be used
INVARIANT  no credentials here: Hadoop's own providers take them from the environment of each JVM.
INVARIANT  settings stand in the options of each relation, never in the session's configuration, which a user owns.
DANGER     Hadoop keeps one file system for a scheme and bucket, whatever the settings: of two endpoints with a bucket
           of the same name the second would be read from the first. So the settings of the kept one are compared.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from py4j.java_gateway import is_instance_of
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import SparkSession

from tablestore_engine.fileio.store_address import StoreAddress

_NONE: Mapping[str, str] = MappingProxyType({})
_CLASSES = MappingProxyType(
    {
        "s3": "org.apache.hadoop.fs.s3a.S3AFileSystem",
        "gs": "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem",
        "az": "org.apache.hadoop.fs.azurebfs.SecureAzureBlobFileSystem",
    }
)
_JARS = MappingProxyType({"s3": "hadoop-aws", "gs": "gcs-connector", "az": "hadoop-azure"})
_MISSING = "java.io.FileNotFoundException"


@dataclass(frozen=True)
class HadoopPlaces:
    """`ours`: how paths of the warehouse begin, `theirs`: the same for Hadoop; `options` of a relation."""

    ours: str
    theirs: str
    root: str
    connector: str = "the file system of Hadoop"
    class_name: str = ""
    options: Mapping[str, str] = field(default_factory=lambda: _NONE, hash=False)

    def path(self, path: str) -> str:
        """Of one data file."""
        return self.theirs + path.removeprefix(self.ours)


def local_places() -> HadoopPlaces:
    """Files of this machine, which every session can read."""
    return HadoopPlaces("/", "file:///", "file:///")


def places_of(address: StoreAddress, environment: Mapping[str, str] = os.environ) -> HadoopPlaces:
    """Settings that the engine's client takes from the environment are in the options: Hadoop does not look there."""
    ours = f"{address.scheme}://{address.bucket}/"
    settings = address.settings
    options: dict[str, str] = {}
    match address.scheme:
        case "s3":
            theirs, options = f"s3a://{address.bucket}/", _s3a_options(address, environment)
        case "gs":
            theirs = ours
            if settings.endpoint is not None:
                options["fs.gs.storage.root.url"] = settings.endpoint
        case _:
            account = settings.account or environment.get("AZURE_STORAGE_ACCOUNT_NAME", "")
            theirs = f"abfss://{address.bucket}@{account}.dfs.core.windows.net/"
    root = theirs + address.prefix
    jar = _JARS[address.scheme]
    return HadoopPlaces(ours, theirs, root, f"the Hadoop connector {jar}", _CLASSES[address.scheme], options)


def _s3a_options(address: StoreAddress, environment: Mapping[str, str]) -> dict[str, str]:
    settings = address.settings
    endpoint, region = address.endpoint(environment), address.region(environment)
    options: dict[str, str] = {"fs.s3a.path.style.access": str(settings.path_style).lower()}
    if endpoint is not None:
        options["fs.s3a.endpoint"] = endpoint
        options["fs.s3a.connection.ssl.enabled"] = str(not endpoint.lower().startswith("http:")).lower()
    if region is not None:
        options["fs.s3a.endpoint.region"] = region
    if settings.anonymous:
        provider = "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"
        options["fs.s3a.aws.credentials.provider"] = provider
    return options


def why_unusable(session: SparkSession, places: HadoopPlaces) -> str | None:
    """None: the connector is there and has answered. One or two requests to the store."""
    jvm: Any = session._jvm
    if not _has_class(jvm, places.class_name):
        return f"the session has no {places.connector.removeprefix('the ')} (class {places.class_name})"
    try:
        conf = session._jsparkSession.sessionState().newHadoopConfWithOptions(_scala_map(jvm, places.options))
        path = jvm.org.apache.hadoop.fs.Path(places.root)
        system = path.getFileSystem(conf)
        kept = system.getConf()
        for key, value in places.options.items():
            if kept.get(key) != value:
                return f"the session uses {places.theirs} already with another {key}"
        system.getFileStatus(path)
    except Py4JJavaError as error:
        java: Any = error.java_exception
        if is_instance_of(session.sparkContext._gateway, java, _MISSING):
            return None  # the store answered: nothing lies there yet
        return f"{places.connector} does not answer: {str(java.toString()).splitlines()[0][:300]}"
    except Py4JError as error:
        return f"{places.connector} cannot be asked: {str(error).splitlines()[0][:300]}"
    return None


def _has_class(jvm: Any, name: str) -> bool:  # noqa: ANN401 - py4j's
    """As Spark loads classes, those of spark.jars too."""
    try:
        jvm.org.apache.spark.util.Utils.classForName(name, False, False)
    except Py4JJavaError:
        return False
    return True


def _scala_map(jvm: Any, values: Mapping[str, str]) -> Any:  # noqa: ANN401 - py4j's
    pairs = jvm.java.util.HashMap()
    for key, value in values.items():
        pairs.put(key, value)
    return jvm.PythonUtils.toScalaMap(pairs)
