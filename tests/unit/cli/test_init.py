"""init: which files, in which folders, and that they are the quickstart of README.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from dbt.adapters.tablestore.credentials import TablestoreCredentials
from tablestore_engine.cli.init import project_files, project_name
from tablestore_engine.cli.main import main

ROOT = Path(__file__).parents[3]


def _blocks() -> list[str]:
    return re.findall(r"^```\w+\n(.*?)^```$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)


def test_files_are_those_of_the_quickstart() -> None:
    """Seed, model and tests are the blocks of README.md, character by character."""
    files = project_files("shop", "localhost:9092")
    (seed,) = [one for one in _blocks() if "<<'CSV'" in one]
    assert files["seeds/order_events.csv"] == seed.partition("\n")[2].removesuffix("CSV\n")
    for name, comment in (("models/orders.sql", "--"), ("models/orders.yml", "#")):
        assert f"{comment} {name}\n{files[name]}" in _blocks()


@pytest.mark.parametrize("brokers", [None, "localhost:9092", 'a"b:1'])
def test_the_profile_is_one_that_the_adapter_accepts(brokers: str | None) -> None:
    """With brokers the model has a log and the profile names them; without, neither."""
    files = project_files("shop", brokers)
    project, profile = yaml.safe_load(files["dbt_project.yml"]), yaml.safe_load(files["profiles.yml"])
    output = profile[project["profile"]]["outputs"]["dev"]
    assert output.pop("type") == "tablestore"
    assert output.pop("threads") == 2
    TablestoreCredentials.validate(output)
    made = TablestoreCredentials.from_dict(output)
    assert made.log == ({} if brokers is None else {"kafka.bootstrap.servers": brokers})
    assert ("log_system" in files["models/orders.sql"]) is (brokers is not None)


def test_init_creates_a_project_in_a_new_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The folder may be missing or have hidden files; every file is printed, and how to go on."""
    folder = tmp_path / "My shop 2"
    assert main(["init", str(folder)]) == 0
    said = capsys.readouterr().out
    for name, text in project_files("my_shop_2", None).items():
        assert (folder / name).read_text() == text
        assert name in said
    assert "dbt build" in said
    hidden = tmp_path / "hidden"
    (hidden / ".git").mkdir(parents=True)
    assert main(["init", str(hidden), "--brokers", "localhost:9092"]) == 0
    assert "log_system" in (hidden / "models/orders.sql").read_text()


def test_init_refuses_a_folder_with_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A project, other files, a file: TS1944, and nothing was written."""
    (tmp_path / "dbt_project.yml").write_text("mine")
    for place, why in ((tmp_path, "it has a dbt project"), (tmp_path / "dbt_project.yml", "it is a file")):
        assert main(["init", str(place)]) == 1
        said = capsys.readouterr().err
        assert said.startswith("TS1944")
        assert why in said
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("dbt_project.yml", "mine")]


def test_init_never_overwrites_a_hidden_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A .gitignore of the user stays as it is."""
    (tmp_path / ".gitignore").write_text("mine")
    assert main(["init", str(tmp_path)]) == 0
    assert (tmp_path / ".gitignore").read_text() == "mine"
    assert (tmp_path / "dbt_project.yml").exists()
    assert ".gitignore" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("folder", "name"),
    [("shop", "shop"), ("My shop", "my_shop"), ("2shop", "project_2shop"), ("…", "project")],
)
def test_a_project_has_a_name_that_dbt_accepts(folder: str, name: str) -> None:
    """Letters, digits and underscores, no digit first."""
    assert project_name(folder) == name
