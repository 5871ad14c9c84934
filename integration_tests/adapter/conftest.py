"""A copy of the shop project per test, run by dbt in this process over one JVM.

WHY      dbt parses about 600 macros of its own packages in each new project. Each project therefore starts with the
         manifest of a parsed copy, and dbt parses only what differs from it.
         Nor is target/manifest.json written unless a test asks for it; dbt_overhead.py says what else is left out.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from dbt.adapters.factory import reset_adapters
from dbt.cli.main import dbtRunner, dbtRunnerResult

from dbt.adapters.tablestore.connections import get_engine
from dbt.adapters.tablestore.credentials import TablestoreCredentials, describe_warehouse
from integration_tests.adapter.dbt_overhead import no_overhead
from integration_tests.warehouse_address import warehouse_address
from tablestore_engine.api import Engine

SOURCE = Path(__file__).parent.parent
_MANIFEST = "target/partial_parse.msgpack"
_PATH_LENGTH = 120  # of every project, so that the path in a saved manifest can be replaced by another one


class Shop:
    """One project on disk."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.output: dict[str, Any] = {
            "type": "tablestore",
            "warehouse": warehouse_address("./warehouse"),
            "schema": "demo",
            "threads": 2,
            "spark": {"master": "local[2]", "conf": {"spark.sql.shuffle.partitions": "2"}},
        }
        for name in ("models", "seeds", "macros"):
            shutil.copytree(SOURCE / name, folder / name)
        shutil.copy(SOURCE / "dbt_project.yml", folder)
        self.lines: list[str] = []
        self.shown: list[str] = []  # what a user sees without --debug
        self.keeps_manifest = True  # whether dbt writes target/manifest.json
        self.on_line: Callable[[str], None] = lambda _: None  # what somebody else does at that moment

    def write(self, name: str, text: str) -> None:
        """A file of the project, made or replaced."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def take(self, built: Path) -> None:
        """Models and tables of another project, as they are there."""
        for name in ("models", "warehouse"):
            shutil.copytree(built / name, self.folder / name, dirs_exist_ok=True)

    def orders(self, *rows: str) -> None:
        """The feed: what the next seed will hold."""
        self.write(
            "seeds/raw_orders.csv", "\n".join(["order_id,customer,amount,status,updated_at", *rows, ""])
        )

    def dbt(self, *arguments: str, ok: bool = True) -> dbtRunnerResult:
        """Run a dbt command; `ok` is the exit it must have."""
        result = self._invoke(*arguments)
        assert result.success is ok, "\n".join(self.lines[-40:])
        return result

    def try_dbt(self, *arguments: str) -> bool:
        """Run a dbt command; whether all of it ended well."""
        return self._invoke(*arguments).success

    def _invoke(self, *arguments: str) -> dbtRunnerResult:
        profile = {"shop": {"target": "dev", "outputs": {"dev": self.output}}}
        self.write("profiles.yml", yaml.safe_dump(profile))
        self.lines, self.shown = [], []
        runner = dbtRunner(callbacks=[lambda event: self._hear(str(event.info.msg), event.info.level)])
        folder = str(self.folder)
        with no_overhead(keeps_manifest=self.keeps_manifest):
            result = runner.invoke([*arguments, "--project-dir", folder, "--profiles-dir", folder])
        reset_adapters()
        return result

    def _hear(self, line: str, level: str) -> None:
        self.lines.append(line)
        if level != "debug":
            self.shown.append(line)
        self.on_line(line)

    @property
    def log(self) -> str:
        """Everything that the last command said, debug lines too."""
        return "\n".join(self.lines)

    @property
    def engine(self) -> Engine:
        """The engine of the profile, as readers outside dbt have it."""
        credentials = TablestoreCredentials.from_dict(
            {k: v for k, v in self.output.items() if k not in ("type", "threads")}
        )
        return get_engine(describe_warehouse(credentials, str(self.folder)))

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """What another user of the warehouse sees."""
        return [tuple(row) for row in self.engine.sql(sql).rows]

    def tables(self) -> set[str]:
        """Names of tables and views that others see."""
        return {info.identifier.name for info in self.engine.relations("demo")}

    def results(self, file: str = "run_results") -> dict[str, dict[str, Any]]:
        """run_results.json, or sources.json, by the name of the node or source table."""
        data = json.loads((self.folder / "target" / f"{file}.json").read_text())
        at = {"sources": 3}.get(file, 2)
        return {result["unique_id"].split(".")[at]: result for result in data["results"]}

    def response(self, name: str) -> dict[str, Any]:
        """adapter_response of a node."""
        answer: dict[str, Any] = self.results()[name]["adapter_response"]
        return answer


@dataclass(frozen=True)
class ParsedShop:
    """`manifest`: what dbt saved after it parsed the project in `folder`."""

    folder: Path
    manifest: bytes

    def give(self, shop: Shop) -> None:
        """dbt takes the project for one that it has parsed before."""
        path = shop.folder / _MANIFEST
        path.parent.mkdir()
        path.write_bytes(self.manifest.replace(str(self.folder).encode(), str(shop.folder).encode()))


def _padded(folder: Path) -> Path | None:
    """A new folder in it whose path has _PATH_LENGTH characters."""
    missing = _PATH_LENGTH - len(str(folder)) - 1
    if missing < 1:
        return None
    made = folder / ("p" * missing)
    made.mkdir()
    return made


@pytest.fixture(scope="session")
def parsed_shop(tmp_path_factory: pytest.TempPathFactory) -> ParsedShop | None:
    """The shop project, parsed once; None where temporary folders have names that are too long for it."""
    folder = _padded(tmp_path_factory.mktemp("parsed"))
    if folder is None:
        return None
    made = Shop(folder)
    made.dbt("parse")
    return ParsedShop(folder, (folder / _MANIFEST).read_bytes())


@pytest.fixture
def shop(tmp_path: Path, parsed_shop: ParsedShop | None) -> Iterator[Shop]:
    """A fresh project."""
    yield new_shop(tmp_path, parsed_shop)
    reset_adapters()


def new_shop(place: Path, parsed: ParsedShop | None) -> Shop:
    """A fresh project in a new folder."""
    folder = _padded(place)
    made = Shop(folder or place)
    made.keeps_manifest = False
    if folder is not None and parsed is not None:
        parsed.give(made)
    return made


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """dbt's own deprecations are not ours to fail on."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore"))
