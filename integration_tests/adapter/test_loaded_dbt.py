"""`tablestore dbt` does what `dbt` does: the same output, exit status, artifacts and rows, in a process loaded before.

Two copies of one project run the same commands: one by the program `dbt`, one by `tablestore dbt` with a session.
"""

from __future__ import annotations

import difflib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from tablestore_engine.api import Engine
from tablestore_engine.runtime.java import cache_folder
from tablestore_engine.runtime.resident.session_place import place_of
from tests.doses import is_nightly

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="commands are served on Linux only")
HANG_SECONDS = 300
FILES = {
    "dbt_project.yml": "{name: shop, version: '1.0.0', profile: shop, flags: {send_anonymous_usage_stats: false}}",
    "profiles.yml": (
        "shop: {target: dev, outputs: {dev: {type: tablestore, warehouse: ./warehouse, schema: demo, threads: 2,"
        " spark: {master: 'local[2]'}}}}"
    ),
    "seeds/events.csv": "id,amount\n1,10\n2,20\n",
    "models/orders.sql": (
        "{{ config(materialized='tablestore', primary_key='id') }}\n"
        "select id, amount, '{{ env_var(\"REGION\", \"none\") }}' as region from {{ ref('events') }}"
    ),
    "models/totals.sql": "{{ config(materialized='table') }} select sum(amount) as total from {{ ref('orders') }}",
    "models/schema.yml": "models: [{name: orders, columns: [{name: amount, data_tests: [not_null]}]}]",
    "snapshots/past.yml": (
        "snapshots: [{name: past, relation: ref('orders'), config: {unique_key: id, strategy: check,"
        " check_cols: all}}]"
    ),
    "macros/say.sql": "{% macro say(word) %}{{ print('it says ' ~ word) }}{% endmacro %}",
}
RED = "id,amount\n1,10\n2,\n3,5\n"
SLOW = "{{ config(materialized='table') }} select count(*) as n from range(100000000000) where sqrt(id) > 3"


@dataclass(frozen=True)
class Project:
    """`program`: how dbt is called."""

    folder: Path
    program: tuple[str, ...]
    environment: Mapping[str, str]

    def start(self, words: tuple[str, ...], **variables: str) -> subprocess.Popen[str]:
        """A command that runs."""
        return subprocess.Popen(
            [*self.program, *words],
            cwd=self.folder,
            env={**self.environment, **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            process_group=0,
            preexec_fn=_as_in_a_terminal,  # noqa: PLW1509 - this process has one thread
        )

    def run(self, *words: str, **variables: str) -> tuple[object, ...]:
        """Exit status, output without times, states of nodes, rows of the tables."""
        process = self.start(words, **variables)
        said, _ = process.communicate(timeout=HANG_SECONDS)
        return process.returncode, self._plain(said), self._states(), self._rows()

    def _plain(self, said: str) -> list[str]:
        """Threads print in any order."""
        text = said.replace(str(self.folder), "<folder>")
        text = re.sub(
            r"\d\d:\d\d:\d\d(\.\d+Z)?|\d+\.\d+ ?s(econds)?|\d+ minutes|in [\d.]+s|\x1b\[\d*m", "", text
        )
        left_out = ("partial parsing", "Starting full parse")
        return sorted(line.rstrip() for line in text.splitlines() if not any(one in line for one in left_out))

    def _states(self) -> list[tuple[str, str]] | None:
        found = self.folder / "target" / "run_results.json"
        if not found.exists():
            return None
        return sorted((one["unique_id"], one["status"]) for one in json.loads(found.read_text())["results"])

    def _rows(self) -> dict[str, list[object]]:
        if not (self.folder / "warehouse").exists():
            return {}
        kept = {"orders": ["id", "amount", "region"], "totals": ["total"], "past": ["id", "amount", "region"]}
        with Engine(str(self.folder / "warehouse")) as engine:
            tables = {name: engine.find_table(f"demo.{name}") for name in kept}
            return {
                name: sorted(map(str, table.scan(columns=kept[name]).to_arrow().to_pylist()))
                for name, table in tables.items()
                if table is not None
            }


def _difference(one: object, other: object) -> str:
    return "\n".join(
        difflib.unified_diff(*(str(each).split("', '") for each in (one, other)), "dbt", "served", n=0)
    )


def _as_in_a_terminal() -> None:
    """What runs in the background of a script ignores Ctrl-C, and so do its programs."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _make(folder: Path) -> Path:
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Project, Project]]:
    """Plain, served. The session of the second ends with the test."""
    cache = tmp_path / "cache"
    cache.mkdir()
    archive = cache_folder() / "class-archive"
    if archive.exists():
        (cache / "class-archive").symlink_to(archive)
    roots = os.pathsep.join(filter(None, [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "TABLESTORE_CACHE": str(cache), "PYTHONPATH": roots, "DBT_PROFILES_DIR": "."}
    environment["PYTHONHASHSEED"] = "0"  # dbt prints some lists in the order of a set
    tablestore = (sys.executable, "-m", "tablestore_engine.cli.main")
    dbt = str(Path(sys.executable).with_name("dbt"))
    plain = Project(_make(tmp_path / "plain"), (dbt,), environment)
    served = Project(_make(tmp_path / "served"), (*tablestore, "dbt"), environment)

    def session(word: str) -> None:
        command = [*tablestore, "session", word]
        subprocess.run(command, cwd=served.folder, env=environment, check=True, capture_output=True)

    session("start")
    yield plain, served
    session("stop")


def _server(project: Project, monkeypatch: pytest.MonkeyPatch) -> int | None:
    monkeypatch.setenv("TABLESTORE_CACHE", project.environment["TABLESTORE_CACHE"])
    return place_of(project.folder).process()


def test_it_does_what_dbt_does(pair: tuple[Project, Project], monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands that work, tests that fail, wrong words, variables of the environment; files that change in between.

    By day the served commands alone, and a wrong word in both ways: each other command in both starts a JVM.
    """
    plain, served = pair

    def at_night(*words: str, status: int | None = None) -> None:
        if is_nightly():
            got = both(*words)[0]
            assert status in {None, got}

    def both(*words: str, **variables: str) -> tuple[object, ...]:
        expected, got = plain.run(*words, **variables), served.run(*words, **variables)
        for one, other in zip(expected, got, strict=True):
            assert other == one, f"{words}: {_difference(one, other)}"
        return got

    either = both if is_nightly() else served.run
    assert either("build")[0] == 0
    server = _server(served, monkeypatch)
    assert server is not None
    at_night("parse", "--no-partial-parse")
    at_night("ls", "--output", "name")
    at_night("--no-use-colors", "compile", "--select", "totals")
    at_night("show", "--inline", "select 1 as one")
    at_night("run-operation", "say", "--args", "{word: hello}")
    at_night("run", "--select", "nothing_of_that_name")
    wrong = [one.run("run", "--selec", "x")[:2] for one in pair]  # by day plain dbt has built nothing
    assert wrong[0] == wrong[1]
    assert wrong[1][0] == 2
    at_night("test")
    for project in pair:
        (project.folder / "seeds" / "events.csv").write_text(RED)
    at_night("build", status=1)
    at_night("retry", status=1)
    for project in pair:
        (project.folder / "seeds" / "events.csv").write_text(RED.replace("2,\n", "2,7\n"))
    at_night("build", status=0)
    assert _server(served, monkeypatch) == server
    status, _, _, rows = either("run", REGION="north")
    assert status == 0
    assert "north" in str(rows)
    assert _server(served, monkeypatch) != server
    at_night("debug", "--connection")
    at_night("clean")
    at_night("--version")
    at_night("no-such-command")


@pytest.mark.nightly  # by day test_interrupts.py, signals in tests/unit/runtime
def test_ctrl_c_in_a_query_and_the_next_command(
    pair: tuple[Project, Project], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The terminal's signal goes to the whole group; the command ends as dbt does and leaves nothing half-made, and the
    next one works in the same server, with the same session.
    """
    _, served = pair
    assert served.run("build")[0] == 0
    server = _server(served, monkeypatch)
    jvm = place_of(served.folder).jvm()
    assert jvm is not None
    (served.folder / "models" / "slow.sql").write_text(SLOW)
    process = served.start(("run", "--select", "slow"))
    assert process.stdout is not None
    for line in process.stdout:
        if "START sql table model demo.slow" in line:
            break
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=HANG_SECONDS)
    assert process.returncode != 0
    with Engine(str(served.folder / "warehouse")) as engine:
        assert engine.staged("demo") == ()
        assert engine.find_table("demo.slow") is None
    (served.folder / "models" / "slow.sql").unlink()
    assert served.run("build")[0] == 0
    assert _server(served, monkeypatch) == server
    assert place_of(served.folder).jvm() == jvm


def _children(pid: int) -> list[int]:
    try:
        return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:  # it has ended
        return []


def _victims(project: Project, caller: int, server: int | None) -> dict[str, list[int]]:
    """Processes that take part in a command, as they are now."""
    supervisors = [] if server is None else _children(server)
    jvm = place_of(project.folder).jvm()
    return {
        "caller": [caller],
        "server": [] if server is None else [server],
        "supervisor": supervisors,
        "command": [one for each in supervisors for one in _children(each)],
        "jvm": [] if jvm is None else [jvm.pid],
    }


@pytest.mark.nightly
def test_random_kills(pair: tuple[Project, Project], monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever of a build is killed or interrupted, at a random moment: the next one ends well, with all rows."""
    _, served = pair
    draw = random.Random(int(os.environ.get("TABLESTORE_SEED", "1")))
    expected = [(1, 10)]
    assert served.run("build")[0] == 0
    ended_well = 0
    for number in range(2, 32):
        expected.append((number, draw.randrange(100)))
        lines = [f"{one},{amount}" for one, amount in expected]
        (served.folder / "seeds" / "events.csv").write_text("\n".join(["id,amount", *lines, ""]))
        process = served.start(("build",))
        try:
            process.communicate(timeout=draw.uniform(0.1, 4.0))
        except subprocess.TimeoutExpired:
            found = _victims(served, process.pid, _server(served, monkeypatch))
            picked = found[draw.choice(sorted(found))]
            for one in picked:
                with suppress(ProcessLookupError):
                    os.kill(one, draw.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGINT, signal.SIGTERM)))
            process.communicate(timeout=HANG_SECONDS)
        ended_well += process.returncode == 0
        status, said, _, rows = served.run("build")
        assert status == 0, (number, said)
        got = rows["orders"]  # type: ignore[index] # a dict, see run
        assert got == sorted(str({"id": one, "amount": amount, "region": "none"}) for one, amount in expected)
    assert 0 < ended_well < 30


@pytest.mark.nightly  # by day tests/unit/runtime/test_resident_process.py
def test_without_a_session_it_is_dbt(tmp_path: Path) -> None:
    """Nothing stays behind."""
    cache = tmp_path / "cache"
    folder = _make(tmp_path / "project")
    environment = {**os.environ, "TABLESTORE_CACHE": str(cache), "DBT_PROFILES_DIR": "."}
    command = (sys.executable, "-m", "tablestore_engine.cli.main", "dbt")
    shutil.rmtree(folder / "snapshots")
    assert Project(folder, command, environment).run("parse")[0] == 0
    assert not list(cache.glob("sessions/*/process.*"))
