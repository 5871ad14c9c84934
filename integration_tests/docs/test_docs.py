"""Every command and snippet of docs/*.md is executed, in the order of the page; README's in test_quickstart.py.
test_blocks.py lists those that run elsewhere.

Exceptions, each checked another way: `make …` must be a target of the Makefile; `tablestore demo` runs in
integration_tests/demo, `tablestore convert` and `certify`, which need other engines, in integration_tests/interop,
here their arguments are parsed; `tablestore broker`, `s3` and `cluster` get data folders of their own.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import yaml

from dbt.adapters.tablestore.credentials import TablestoreCredentials
from integration_tests.docs.project import ROOT, Project, fill_project, leftovers
from integration_tests.docs.snippets import Snippet, is_of_project, list_commands, read_snippets
from tablestore_engine.devservers.kafka_broker import BrokerInfo, stop_broker
from tablestore_engine.devservers.s3_server import stop_s3_server
from tablestore_engine.devservers.spark_cluster import stop_cluster

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
WITH_CODE = [page for page in PAGES if page.name != "README.md" and read_snippets(page)]
# nightly: up to a minute each
LONG_PAGES = {
    *("commands.md", "changes-as-input.md", "spark-streaming.md", "databases.md", "sql.md"),
    *("streaming-reads.md", "ingest.md", "model-config.md", "object-stores.md"),
    *("engines.md", "merge-engines.md", "moving.md", "kafka-envelope.md", "log-system.md"),
    *(
        "python-api.md",
        "publishing.md",
        "streaming.md",
        "time-travel.md",
        "clusters.md",
        "python-models.md",
        "unit-tests.md",
        "profile.md",
        "concepts.md",
        "ui.md",  # by day integration_tests/ui
    ),
}
# the tables that they read are of a PostgreSQL server: they are parsed
PARSED = {"models/revenue.sql"}


@pytest.fixture(scope="session")
def project(broker: BrokerInfo, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """The pages' project with seven snapshots of demo.orders. Its commands share a Spark session, the first build too;
    those of README and of `tablestore init` have none.
    """
    made = Project(tmp_path_factory.mktemp("shop"), broker.url)
    yield fill_project(made)
    made.run(["tablestore", "session", "stop"])


@pytest.fixture
def broker_folder(tmp_path: Path) -> Iterator[Path]:
    """Data of the broker that a page starts, beside it those of an S3 server; neither runs on after the page."""
    folder = tmp_path / "broker"
    yield folder
    stop_broker(folder)
    stop_s3_server(folder.with_name("s3"))
    stop_cluster(folder / "cluster")


def check_make(words: tuple[str, ...]) -> str | None:
    """What is wrong with a `make` line."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    missing = [word for word in words[1:] if word not in targets]
    return f"the Makefile has no target {missing[0]}" if missing else None


def run_command(words: tuple[str, ...], project: Project, broker_folder: Path) -> str | None:
    """Run one command line; None, or what went wrong."""
    if words[0] == "make":
        return check_make(words)
    if words[0] == "tablestore" and words[1] in {"demo", "convert", "certify"}:
        words = (*words, "--help")
    if words[:2] == ("tablestore", "broker"):
        words = (*words, "--data-dir", str(broker_folder))
    if words[:2] == ("tablestore", "s3"):
        words = (*words, "--data-dir", str(broker_folder.with_name("s3")))
    if words[:2] == ("tablestore", "cluster"):
        words = (*words, "--data-dir", str(broker_folder / "cluster"))
    done = project.run(words)
    return None if done.returncode == 0 else f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}"


def run_sql(line: str, project: Project) -> str | None:
    """Run one query of a model through dbt; None, or what went wrong."""
    done = project.run(["dbt", "--quiet", "show", "--inline", line.partition(" --")[0], "--output", "json"])
    return None if done.returncode == 0 else f"{done.stdout}\n{done.stderr}"


def run_python(text: str, project: Project) -> str | None:
    """Run a program in the project folder; None, or what went wrong."""
    done = project.run([sys.executable, "-"], stdin=project.localized(text))
    return None if done.returncode == 0 else done.stderr


def profile_output(snippet: Snippet) -> dict[str, object]:
    """Keys of one output: the block is a whole profile, or a part of an output."""
    given = yaml.safe_load(snippet.text)
    profiles = [one for one in given.values() if isinstance(one, dict) and "outputs" in one]
    (output,) = profiles[0]["outputs"].values() if profiles else (given,)
    return {str(key): value for key, value in output.items() if key != "type"}


def run_snippet(snippet: Snippet, project: Project, broker_folder: Path) -> list[str]:
    """Problems of one block; a block with a file name becomes part of the project."""
    if snippet.file_name is not None:
        project.put(snippet.file_name, snippet.text)
        return []
    problems: list[str | None] = []
    if snippet.language == "bash":
        problems = [run_command(words, project, broker_folder) for words in list_commands(snippet)]
    elif snippet.language == "sql":
        lines = [line for line in snippet.text.splitlines() if line and not line.startswith("--")]
        problems = [run_sql(line, project) for line in lines]
    elif snippet.language == "python":
        problems = [run_python(snippet.text, project)]
    return [f"{snippet.page}:{snippet.line}: {problem}" for problem in problems if problem]


def run_last_files(snippets: Sequence[Snippet], project: Project) -> list[str]:
    """Problems of files of the project that no command of dbt on the page follows: models are built, others parsed."""
    last: list[str] = []
    for one in snippets:
        if is_of_project(one):
            last.append(str(one.file_name))
        elif one.language == "bash" and any(words[0] == "dbt" for words in list_commands(one)):
            last = []
    models = [Path(name).stem for name in last if name.endswith(".sql") and name not in PARSED]
    command = ["dbt", "run", "--select", *models] if models else ["dbt", "parse"]
    done = project.run(command) if last else None
    return [] if done is None or done.returncode == 0 else [f"{last}: {done.stdout}{done.stderr}"]


def test_nothing_of_sparks_stays_where_commands_run(project: Project) -> None:
    """Not behind the project's own `dbt build`, nor behind `tablestore sql`, each a process in the user's folder. They
    have a session; test_init_project.py looks where there is none.
    """
    done = project.run(["tablestore", "sql", "select count(*) from demo.orders"])
    assert done.returncode == 0, done.stderr
    assert leftovers(project.folder) == []


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=pytest.mark.nightly if page.name in LONG_PAGES else ()) for page in WITH_CODE],
    ids=[page.name for page in WITH_CODE],
)
def test_everything_on_the_page_runs(page: Path, project: Project, broker_folder: Path) -> None:
    """Each command, query and program of the page does what it says: it ends with success."""
    project.forget_pages()
    project.stage()
    snippets = read_snippets(page)
    problems = [problem for snippet in snippets for problem in run_snippet(snippet, project, broker_folder)]
    problems += run_last_files(snippets, project)
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("page", WITH_CODE, ids=[page.name for page in WITH_CODE])
def test_keys_of_a_profile_are_accepted(page: Path) -> None:
    """YAML without a file name is part of a profile (test_blocks.py)."""
    for one in read_snippets(page):
        if one.language == "yaml" and one.file_name is None:
            given = profile_output(one)
            warehouse = "s3://bucket/prefix" if "storage" in given else "warehouse"
            output = {"warehouse": warehouse, "schema": "demo", **given}
            output.pop("threads", None)  # dbt's own, which it takes out before
            TablestoreCredentials.validate(output)
            TablestoreCredentials.from_dict(output)


def test_links_lead_somewhere() -> None:
    """Each relative link of README and docs names a file or folder that exists."""
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} → {target}"
