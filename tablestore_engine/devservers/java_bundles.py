"""Programs in Java that are fetched once as published jars and then used offline: Kafka, and Connect with Debezium.

CHANGE     where the Kafka broker and Kafka Connect come from
Steps      1 say what comes, how much and where to  2 Ivy (a jar inside pyspark) resolves and retrieves into a
           folder of our own  3 one rename puts it in place; who loses that race drops its copy
INVARIANT  no host is named here: Ivy's default repository is used, or the settings file that
           TABLESTORE_IVY_SETTINGS names (a site with a mirror).
INVARIANT  a folder is there only when it is complete (`program_cache.py`); Ivy checks each jar against its
           published checksum.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tablestore_engine.devservers.program_cache import put_in_place, work_folder
from tablestore_engine.errors import FixRequest, RetryError
from tablestore_engine.runtime.java import cache_folder, make_in_cache
from tablestore_engine.runtime.outside_world import SYSTEM, Runtime

KAFKA_VERSION, DEBEZIUM_VERSION = (
    "4.3.1",
    "3.5.0.Final",
)  # newer releases are not complete in every repository
SETTINGS_ENV = "TABLESTORE_IVY_SETTINGS"
_LOG4J = (
    ("org.apache.logging.log4j", "log4j-slf4j-impl", "2.24.3"),
    ("org.apache.logging.log4j", "log4j-core", "2.24.3"),
)  # only a compile dependency of Kafka's, so its two run-time parts are named by hand


@dataclass(frozen=True)
class JavaBundle:
    """`jars`: how many at least; `main`: the file without which it is nothing; `name` as in a sentence."""

    name: str
    folder_name: str
    modules: tuple[tuple[str, str, str], ...]
    jars: int
    mebibytes: int
    main: str
    left_out: tuple[tuple[str, str], ...] = ()  # dependencies that do not come; `*`: all of an organisation

    @property
    def folder(self) -> Path:
        """Where the jars lie, whether they are there or not."""
        return cache_folder() / self.folder_name


KAFKA = JavaBundle(
    f"Apache Kafka {KAFKA_VERSION}",
    f"kafka-{KAFKA_VERSION}",
    (("org.apache.kafka", "kafka_2.13", KAFKA_VERSION), *_LOG4J),
    46,
    44,
    f"kafka_2.13-{KAFKA_VERSION}.jar",
)
CONNECT = JavaBundle(
    f"Kafka Connect {KAFKA_VERSION} with Debezium {DEBEZIUM_VERSION}",
    f"connect-{KAFKA_VERSION}-debezium-{DEBEZIUM_VERSION}-login",
    (
        ("org.apache.kafka", "connect-runtime", KAFKA_VERSION),
        ("org.apache.kafka", "connect-basic-auth-extension", KAFKA_VERSION),
        ("org.apache.kafka", "connect-json", KAFKA_VERSION),
        ("io.debezium", "debezium-connector-postgres", DEBEZIUM_VERSION),
        *_LOG4J,
    ),
    71,
    40,
    f"debezium-connector-postgres-{DEBEZIUM_VERSION}.jar",
)


def ensure_bundle(
    bundle: JavaBundle, java_home: str, *, say: Callable[[str], None], runtime: Runtime = SYSTEM
) -> Path:
    """The folder of the jars; downloads it when missing. Raises FixRequest TS1910, RetryError TS1911."""
    folder = bundle.folder
    if folder.is_dir():
        return folder
    say(f"Downloading {bundle.name} once: {bundle.jars} jars, about {bundle.mebibytes} MiB, into {folder}")
    with work_folder(folder, runtime=runtime) as work:
        make_in_cache(work / "lib")
        _retrieve(bundle, java_home, work, say)
        put_in_place(work / "lib", folder)
    say(f"{bundle.name} is in place; it will not be downloaded again")
    return folder


def _find_ivy() -> Path:
    """Ivy ships with pyspark; the package is located, not imported (importing it costs a second)."""
    spec = importlib.util.find_spec("pyspark")
    homes = list(spec.submodule_search_locations or ()) if spec is not None else []
    jars = sorted(path for home in homes for path in (Path(home) / "jars").glob("ivy-*.jar"))
    if not jars:
        raise FixRequest(
            "TS1910",
            "programs in Java cannot be fetched",
            why="expected ivy-*.jar in pyspark's folder `jars`, found none",
            fix="install pyspark with its jars (pip install pyspark), or use a broker of your own",
        )
    return jars[-1]


def _retrieve(bundle: JavaBundle, java_home: str, work: Path, say: Callable[[str], None]) -> None:
    """Run Ivy; every few modules and jars are one line of progress."""
    dependencies = "".join(
        f'<dependency org="{org}" name="{name}" rev="{rev}" conf="default->default"/>'
        for org, name, rev in bundle.modules
    ) + "".join(f'<exclude org="{org}" module="{name}"/>' for org, name in bundle.left_out)
    (work / "ivy.xml").write_text(
        '<ivy-module version="2.0"><info organisation="local" module="bundle"/>'
        f'<configurations><conf name="default"/></configurations><dependencies>{dependencies}</dependencies>'
        "</ivy-module>",
        "utf-8",
    )
    tail = _run_ivy(bundle, _ivy_command(java_home, work), say)
    jars = list((work / "lib").glob("*.jar"))
    if not any(jar.name == bundle.main for jar in jars) or len(jars) < bundle.jars:
        raise RetryError(
            "TS1911",
            f"{bundle.name} could not be downloaded",
            why=f"expected {bundle.jars} jars, got {len(jars)}; Ivy's last lines: " + " | ".join(tail),
            fix=f"check the network and repeat; with a mirror name an Ivy settings file in {SETTINGS_ENV}",
        )


def _ivy_command(java_home: str, work: Path) -> list[str]:
    """The types are parted by a space: with a comma Ivy silently retrieves nothing."""
    settings = os.environ.get(SETTINGS_ENV)
    return [
        str(Path(java_home) / "bin" / "java"),
        f"-Divy.default.ivy.user.dir={work / 'home'}",
        "-jar",
        str(_find_ivy()),
        *(["-settings", settings] if settings else []),
        *("-cache", str(work / "ivy"), "-ivy", str(work / "ivy.xml"), "-confs", "default"),
        *("-types", "jar", "bundle"),
        *("-retrieve", str(work / "lib" / "[artifact]-[revision](-[classifier]).[ext]"), "-sync"),
    ]


def _run_ivy(bundle: JavaBundle, command: list[str], say: Callable[[str], None]) -> list[str]:
    """The last lines of Ivy's output; what it retrieved is judged by the caller, not its exit status."""
    tail: deque[str] = deque(maxlen=6)
    found = done = 0
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as ivy:
        for line in ivy.stdout or ():
            if line.strip():
                tail.append(line.strip())
            if line.startswith("\tfound "):
                found += 1
                if found % 8 == 0:
                    say(f"  resolving: {min(found, bundle.jars)} of {bundle.jars}")
            if "[SUCCESSFUL ]" in line:
                done += 1
                if done % 4 == 0:
                    say(f"  {min(done, bundle.jars)} of {bundle.jars} jars")
    return list(tail)
