"""What tells one Spark's jars from another's, and which of them extend sessions."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pyspark
import pytest

from tablestore_engine.spark.session_extensions import ML_FUNCTIONS, may_wait
from tablestore_engine.spark.spark_jars import (
    PROVIDERS,
    find_extension_providers,
    identity_of,
    jars_folder,
)


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


def test_providers_of_all_jars_are_found(tmp_path: Path) -> None:
    """As ServiceLoader reads them: comments and empty lines are none."""
    make_jar(tmp_path / "plain.jar", x="1")
    make_jar(tmp_path / "one.jar", **{PROVIDERS: "# a licence\n\na.One # the first\na.Two\n"})
    make_jar(tmp_path / "two.jar", **{PROVIDERS: "b.Three"})
    assert find_extension_providers(tmp_path) == {"a.One", "a.Two", "b.Three"}


def test_the_installed_spark_has_the_one_provider_that_can_wait() -> None:
    """A Spark that brings another one loads it at the start, and this test says that it does."""
    assert find_extension_providers(jars_folder()) == {ML_FUNCTIONS}


def test_another_spark_is_looked_at_where_it_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """SPARK_HOME wins, as in Spark's own scripts."""
    monkeypatch.delenv("SPARK_HOME", raising=False)
    assert jars_folder() == Path(pyspark.__file__).parent / "jars"
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert jars_folder() == tmp_path / "jars"


@pytest.mark.parametrize(
    ("providers", "conf", "environ"),
    [
        (None, {}, {}),
        ({ML_FUNCTIONS, "a.One"}, {}, {}),
        (set(), {}, {}),
        ({ML_FUNCTIONS}, {"spark.jars": "mine.jar"}, {}),
        ({ML_FUNCTIONS}, {"spark.jars.packages": "a:b:1"}, {}),
        ({ML_FUNCTIONS}, {"spark.driver.extraClassPath": "mine"}, {}),
        ({ML_FUNCTIONS}, {"spark.sql.extensions.test.loadFromCp": "true"}, {}),
        ({ML_FUNCTIONS}, {}, {"SPARK_HOME": "elsewhere"}),
        ({ML_FUNCTIONS}, {}, {"SPARK_CONF_DIR": "elsewhere"}),
        ({ML_FUNCTIONS}, {}, {"PYSPARK_SUBMIT_ARGS": "--jars mine.jar pyspark-shell"}),
    ],
)
def test_what_is_not_proven_loads_at_the_start(
    providers: set[str] | None, conf: dict[str, str], environ: dict[str, str]
) -> None:
    """Providers that nobody looked for, others than Spark's own, and each way that jars come from elsewhere."""
    found = None if providers is None else frozenset(providers)
    assert may_wait(frozenset({ML_FUNCTIONS}), {"spark.sql.shuffle.partitions": "4"}, {})
    assert not may_wait(found, conf, environ)
