"""What tells one Spark's jars from another's."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pyspark
import pytest

from tablestore_engine.spark.class_archive import identity_of, jars_folder


def make_jar(path: Path, **entries: str) -> Path:
    """A jar with these files; `__` in a name is a slash."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as jar:
        for name, text in entries.items():
            jar.writestr(name, text)
    return path


def test_identity_changes_with_each_fact_of_a_jar(tmp_path: Path) -> None:
    """Path of the folder, name, size and time; what is no jar does not count."""
    jar = make_jar(tmp_path / "a" / "one.jar", x="1")
    os.utime(jar, ns=(5, 5))
    first = identity_of(jar.parent)
    (jar.parent / "README").touch()
    assert identity_of(jar.parent) == first
    copied = make_jar(tmp_path / "b" / "one.jar", x="1")
    os.utime(copied, ns=(5, 5))
    seen = {first, identity_of(copied.parent)}
    os.utime(jar, ns=(5, 6))
    seen.add(identity_of(jar.parent))
    make_jar(jar, x="1", y="2")
    os.utime(jar, ns=(5, 5))
    seen.add(identity_of(jar.parent))
    jar.rename(jar.with_name("two.jar"))
    seen.add(identity_of(jar.parent))
    assert len(seen) == 5


def test_another_spark_is_looked_at_where_it_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """SPARK_HOME wins, as in Spark's own scripts."""
    monkeypatch.delenv("SPARK_HOME", raising=False)
    assert jars_folder() == Path(pyspark.__file__).parent / "jars"
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert jars_folder() == tmp_path / "jars"
