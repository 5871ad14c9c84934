"""The jars of the Spark that a session is started with: where they lie, whether they changed, what they extend.

INVARIANT  two folders with one identity are the same files at the same place: Java takes a class archive only then.
"""

from __future__ import annotations

import hashlib
import os
import zipfile
from pathlib import Path

import pyspark

PROVIDERS = "META-INF/services/org.apache.spark.sql.SparkSessionExtensionsProvider"


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


def find_extension_providers(folder: Path) -> frozenset[str]:
    """Classes by which jars add to each session that starts, as Java's ServiceLoader would find them.

    Opens every jar: half a second. Raises OSError, zipfile.BadZipFile.
    """
    found: set[str] = set()
    for jar in sorted(folder.glob("*.jar")):
        with zipfile.ZipFile(jar) as file:
            if PROVIDERS in file.namelist():
                lines = file.read(PROVIDERS).decode("utf-8").splitlines()
                found.update(line.partition("#")[0].strip() for line in lines)
    return frozenset(found - {""})
