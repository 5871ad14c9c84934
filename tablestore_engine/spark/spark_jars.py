"""The jars of the Spark that a session is started with: where they lie, whether they changed.

INVARIANT  two folders with one identity are the same files at the same place: Java takes a class archive only then.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pyspark


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
