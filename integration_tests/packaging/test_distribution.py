"""What is uploaded: the source distribution has all that its tests need, the wheel what users run, and it runs alone.

WHY        an editable install finds files that the wheel does not have.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HOMEPAGE = "https://example.org/dbt-tablestore"
PROFILE = "p: {target: t, outputs: {t: {type: tablestore, warehouse: ./warehouse, schema: demo}}}\n"
MODEL = "{{ config(materialized='tablestore', primary_key='id') }} select 1 as id, 'a' as name"
WHERE = """
import dbt.adapters.tablestore, tablestore_demo, tablestore_engine
print(dbt.adapters.tablestore.__file__, tablestore_demo.__file__, tablestore_engine.__file__)
"""


def files_of_the_repository() -> list[str]:
    """As git lists them."""
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """(source distribution, wheel made from it), built from a copy without what git does not know."""
    base = tmp_path_factory.mktemp("built")
    for name in files_of_the_repository():
        (base / "source" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, base / "source" / name)
    environment = {**os.environ, "TABLESTORE_HOMEPAGE": HOMEPAGE}
    subprocess.run(
        [
            sys.executable,
            "-m",
            "build",
            "--outdir",
            str(base),
            str(base / "source"),
        ],  # the wheel from the archive
        env=environment,
        check=True,
        capture_output=True,
    )
    (archive,) = base.glob("*.tar.gz")
    (wheel,) = base.glob("*.whl")
    shutil.rmtree(base / "source")
    return archive, wheel


def test_the_source_distribution_is_the_repository(built: tuple[Path, Path]) -> None:
    """Every file but those of git and of the service that runs the tests."""
    with tarfile.open(built[0]) as archive:
        have = {name.partition("/")[2] for name in archive.getnames()}
    missing = [name for name in files_of_the_repository() if name not in have and name != ".gitignore"]
    assert missing == []


def test_the_wheel_has_the_packages_and_no_tests(built: tuple[Path, Path]) -> None:
    """Every module, macro and project of the three packages; nothing that only tests need."""
    names = set(zipfile.ZipFile(built[1]).namelist())
    packages = ("dbt/", "tablestore_engine/", "tablestore_demo/")
    wanted = {name for name in files_of_the_repository() if name.startswith(packages)}
    assert wanted - names == set()
    others = {name for name in names - wanted if ".dist-info/" not in name}
    assert others == set()


def test_the_package_page_leads_somewhere(built: tuple[Path, Path]) -> None:
    """twine accepts both files; every link of the page is absolute, and names a file of this version."""
    done = subprocess.run(
        [sys.executable, "-m", "twine", "check", "--strict", *map(str, built)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    with zipfile.ZipFile(built[1]) as wheel:
        (name,) = [one for one in wheel.namelist() if one.endswith(".dist-info/METADATA")]
        facts = Parser().parsestr(wheel.read(name).decode())
    assert (facts["License-Expression"], facts["Author"]) == ("Apache-2.0", "dbt-tablestore maintainers")
    assert facts["Requires-Python"] == ">=3.11,<3.14"
    links = re.findall(r"\]\(([^)]+)\)", str(facts.get_payload()))
    assert links
    assert [link for link in links if not link.startswith(("https://", "#"))] == []
    ours = [link for link in links if link.startswith(HOMEPAGE)]
    begin = re.compile(re.escape(HOMEPAGE) + "/(?:blob|raw)/v" + re.escape(facts["Version"]) + "/")
    assert all((ROOT / begin.sub("", link).partition("#")[0]).exists() for link in ours)
    images = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", str(facts.get_payload()))
    assert images
    assert [link for link in images if not link.startswith(f"{HOMEPAGE}/raw/")] == []


def find_python(version: str) -> str | None:
    """An interpreter that runs: of the path, or of a version manager."""
    managed = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    known = [shutil.which(f"python{version}"), *map(str, sorted(managed.glob(f"{version}.*/bin/python")))]
    for name in filter(None, known):
        done = subprocess.run([name, "-c", "import ensurepip"], capture_output=True, check=False)
        if done.returncode == 0:
            return name
    return None


@pytest.mark.nightly
@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_the_wheel_runs_with_the_source_gone(version: str, built: tuple[Path, Path], tmp_path: Path) -> None:
    """pip install in a fresh environment of each Python, then a build, a query and the demo's command line."""
    python = find_python(version)
    if python is None:
        pytest.skip(f"no Python {version} on this machine")
    project, binaries = tmp_path / "project", tmp_path / "venv" / "bin"
    subprocess.run([python, "-m", "venv", str(tmp_path / "venv")], check=True)
    pip = [str(binaries / "pip"), "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "-c", str(ROOT / "constraints.txt"), str(built[1])], check=True)
    (project / "models").mkdir(parents=True)
    (project / "models" / "m.sql").write_text(MODEL)
    (project / "dbt_project.yml").write_text("name: p\nversion: '1.0'\nprofile: p\n")
    (project / "profiles.yml").write_text(PROFILE)
    environment = {**os.environ, "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}"}
    environment.pop("PYTHONPATH", None)

    def run(*words: str) -> str:
        done = subprocess.run(
            words, cwd=project, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert run("python", "-c", WHERE).count(str(tmp_path / "venv")) == 3
    run("dbt", "build")
    assert "(1 row" in run("tablestore", "sql", "select * from demo.m") or "a" in run(
        "tablestore", "show", "demo.m"
    )
    assert "--no-kafka" in run("tablestore", "demo", "--help")
