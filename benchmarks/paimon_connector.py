"""Paimon's connector for Spark 4.0, compiled from a checkout of its source: no registry that we reach has it.

Steps      1 the tree of the release out of the checkout  2 ANTLR makes the parser  3 scalac, then javac, against
           Paimon's bundle and the jars of the peer's pyspark  4 classes and resources become one jar in the cache
INVARIANT  the jar is renamed into place after the last step: one that exists is complete.
Usage      python -m benchmarks.paimon_connector CHECKOUT (a clone of apache/paimon that has the tag; two minutes)
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from benchmarks.spark_environments import PAIMON, PAIMON_VERSION, paimon_bundle, pyspark_jars_of
from integration_tests.interop.environments import fetched, java_command
from tablestore_engine.runtime.java import cache_folder

CONNECTOR = f"bench-paimon-spark-4.0-{PAIMON_VERSION}.jar"
_COMPILERS = ("scala-compiler-2.13.16.jar", "antlr4-4.13.1.jar")
_IVY = (
    '<dependency org="org.scala-lang" name="scala-compiler" rev="2.13.16" conf="default->default"/>'
    '<dependency org="org.antlr" name="antlr4" rev="4.13.1" conf="default->default"/>'
)
_GRAMMAR = Path("antlr4/org.apache.spark.sql.catalyst.parser.extensions")
_PACKAGE = "org.apache.spark.sql.catalyst.parser.extensions"
# As Paimon's own build: a class of a later module replaces the one of the same name
_MODULES = ("paimon-spark-common", "paimon-spark4-common", "paimon-spark-4.0")


def connector() -> Path | None:
    """The compiled jar, or None where nobody has compiled it on this machine."""
    jar = cache_folder() / CONNECTOR
    return jar if jar.is_file() else None


def compile_connector(checkout: Path) -> Path:
    """The jar in the cache. Raises CalledProcessError with what a compiler said on standard error."""
    with tempfile.TemporaryDirectory(prefix="tablestore-paimon-") as text:
        work = Path(text)
        sources = _sources(checkout, work)
        tools = fetched("bench-scala-2.13.16-antlr-4.13.1", _IVY, _COMPILERS, 39)
        jars = ":".join([str(paimon_bundle()), f"{pyspark_jars_of(PAIMON)}/*"])
        java = java_command()
        made = work / "parser" / Path(*_PACKAGE.split("."))
        antlr = [java, "-cp", f"{tools}/*", "org.antlr.v4.Tool", "-visitor", "-listener", "-o", str(made)]
        _run([*antlr, "-package", _PACKAGE, *map(str, sources.rglob("*.g4"))])
        scala, plain = sorted(sources.rglob("*.scala")), [*sources.rglob("*.java"), *made.glob("*.java")]
        classes = work / "classes"
        classes.mkdir()
        scalac = [java, "-Xss16m", "-Xmx2g", "-cp", f"{tools}/*", "scala.tools.nsc.Main", "-nowarn"]
        classpath = ":".join([*_expanded(jars)])
        _run([*scalac, "-cp", classpath, "-d", str(classes), *map(str, [*scala, *plain])])
        javac = [str(Path(java).with_name("javac")), "-nowarn", "-proc:none", "-cp", f"{classes}:{classpath}"]
        _run([*javac, "-d", str(classes), *map(str, plain)])
        return _pack((classes, sources / "resources"), cache_folder() / CONNECTOR)


def _sources(checkout: Path, work: Path) -> Path:
    """Folders `java`, `scala`, `antlr4` and `resources` of all modules over each other."""
    trees = [f"paimon-spark/{module}/src/main" for module in _MODULES]
    archive = work / "release.tar"
    tag = f"release-{PAIMON_VERSION}"
    _run(["git", "-C", str(checkout), "archive", "--output", str(archive), tag, *trees])
    shutil.unpack_archive(archive, work / "release")
    for tree in trees:
        shutil.copytree(work / "release" / tree, work / "sources", dirs_exist_ok=True)
    return work / "sources"


def _expanded(jars: str) -> list[str]:
    """scalac's class path knows no wildcards as Java's does."""
    parts = [Path(one) for one in jars.split(":")]
    return [
        str(jar)
        for part in parts
        for jar in (sorted(part.parent.glob("*.jar")) if part.name == "*" else [part])
    ]


def _pack(folders: tuple[Path, ...], target: Path) -> Path:
    aside = target.with_name(f".{target.name}.{os.getpid()}")
    with zipfile.ZipFile(aside, "w", zipfile.ZIP_DEFLATED) as jar:
        for folder in folders:
            for file in sorted(one for one in folder.rglob("*") if one.is_file()):
                jar.write(file, file.relative_to(folder))
    aside.rename(target)
    return target


def _run(command: list[str]) -> None:
    subprocess.run(command, check=True)


if __name__ == "__main__":
    print(compile_connector(Path(sys.argv[1])))
