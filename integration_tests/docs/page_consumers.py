"""The consumers of docs/kafka-envelope.md as processes: each follows a topic into a copy, which is read here.

Programs   are the blocks of the page, as they stand there; `changed` replaces a part, to break one of the page's rules
Caught up  a copy has read a topic when its next offsets are those of another copy that has the expected rows
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

from integration_tests.docs.order_log import OrderLog, Rows
from integration_tests.docs.project import ROOT
from integration_tests.docs.snippets import read_snippets
from integration_tests.interop.java_source import java_program
from tablestore_engine.devservers.java_bundles import KAFKA

PAGE = ROOT / "docs" / "kafka-envelope.md"
WAIT_SECONDS = 60.0
Change = tuple[str, str]


def program(name: str, *changed: Change) -> str:
    """A file of the page, with these replacements, each of a text that stands there once."""
    (text,) = (one.text for one in read_snippets(PAGE) if one.file_name == name)
    for old, new in changed:
        assert text.count(old) == 1, f"{text.count(old)} times {old!r}"
        text = text.replace(old, new)
    return text


class PageConsumer(ABC):
    """A consumer with a copy of its own; `start` and `kill` as often as wanted."""

    name = ""
    copy_name = ""

    def __init__(self, folder: Path, log: OrderLog, *changed: Change) -> None:
        """In a new folder; not started."""
        folder.mkdir()
        self.folder, self.log = folder, log
        self.copy = folder / self.copy_name
        (folder / self.name).write_text(program(self.name, *changed))
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> PageConsumer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @abstractmethod
    def command(self) -> list[str]:
        """What starts the program."""

    def start(self) -> None:
        """Start it, as the page says."""
        arguments = [self.log.url, self.log.topic, self.copy_name]
        with (self.folder / "output").open("ab") as output:
            self._process = subprocess.Popen(
                [*self.command(), *arguments], cwd=self.folder, stdout=output, stderr=output
            )

    def kill(self) -> None:
        """SIGKILL, at whatever it does."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()

    def ended(self) -> str:
        """Wait until it stops by itself; what it printed."""
        assert self._process is not None
        self._process.wait(WAIT_SECONDS)
        return (self.folder / "output").read_text()

    @abstractmethod
    def raw_rows(self) -> list[Mapping[str, Any]]:
        """Rows of the copy, numbers with their digits; none before it is made."""

    @abstractmethod
    def positions(self) -> dict[int, int]:
        """{partition: next offset}."""

    def rows(self) -> Rows:
        """Orders of the copy."""
        return {row["order_id"]: (row["customer"], float(row["amount"])) for row in self.raw_rows()}

    def await_rows(self, expected: Rows) -> None:
        """Wait until the copy has these rows."""
        self._await(lambda: self.rows() == expected, lambda: f"{self.rows()} instead of {expected}")

    def await_positions(self, reached: Mapping[int, int]) -> None:
        """Wait until it has read so far."""
        self._await(
            lambda: all(self.positions().get(one, 0) >= end for one, end in reached.items()),
            lambda: f"{self.positions()} instead of {reached}",
        )

    def _await(self, is_there: Callable[[], bool], describe: Callable[[], str]) -> None:
        until = time.monotonic() + WAIT_SECONDS
        while not is_there():
            assert self._process is not None
            failed = self._process.poll() is not None or time.monotonic() > until
            assert not failed, f"{describe()}: {(self.folder / 'output').read_text()}"
            time.sleep(0.1)


class PythonConsumer(PageConsumer):
    """The program with SQLite."""

    name, copy_name = "orders_copy.py", "copy.sqlite"

    def command(self) -> list[str]:
        """By the Python of the tests."""
        return [sys.executable, self.name]

    def raw_rows(self) -> list[Mapping[str, Any]]:
        """By the query of the page."""
        texts = self.query('select "row" from copy where "row" is not null')
        return [json.loads(text, parse_float=Decimal) for (text,) in texts]

    def positions(self) -> dict[int, int]:
        """By SQL."""
        return dict(self.query("select partition, next from positions"))

    def forget(self, partition: int) -> None:
        """Let it read a partition from its beginning."""
        self.query(f"delete from positions where partition = {partition}")

    def query(self, text: str) -> list[Any]:
        """A query or a change of the copy; nothing before it is made."""
        if not self.copy.exists():
            return []
        with closing(sqlite3.connect(self.copy, timeout=30)) as opened, opened:
            known = opened.execute("select count(*) from sqlite_master").fetchone()
            return opened.execute(text).fetchall() if known[0] >= 2 else []


class JavaConsumer(PageConsumer):
    """OrdersCopy.java with a JSON file."""

    name, copy_name = "OrdersCopy.java", "copy.json"

    def command(self) -> list[str]:
        """With the jars of the development broker, which are those of Kafka's distribution."""
        return java_program(self.folder / self.name, (KAFKA.folder,))

    def raw_rows(self) -> list[Mapping[str, Any]]:
        """Rows that are there."""
        return [one["row"] for one in self._read().get("rows", {}).values() if one["row"] is not None]

    def positions(self) -> dict[int, int]:
        """Keys of JSON are texts."""
        return {int(one): following for one, following in self._read().get("positions", {}).items()}

    def forget(self, partition: int) -> None:
        """As PythonConsumer.forget."""
        copy = json.loads(self.copy.read_text())
        copy["positions"].pop(str(partition), None)
        written = self.folder / "edited"
        written.write_text(json.dumps(copy))
        os.replace(written, self.copy)

    def _read(self) -> dict[str, Any]:
        if not self.copy.exists():
            return {}
        copy: dict[str, Any] = json.loads(self.copy.read_text(), parse_float=Decimal)
        return copy
