"""Somebody deletes a topic of a table between two rounds: first it is refused, then it is set right as the error says.

Recovery   `tablestore publish --reset N` on the command line, as docs/log-system.md has it. A transactional log that
           lost its markers alone needs none: its rows say how far it is.
INVARIANT  while it is refused, a write changes nothing in the table.
"""

from __future__ import annotations

import contextlib
import io
import random
import time
import uuid
from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from integration_tests.chaos.judge import Judge
from tablestore_engine.api import Engine, WriteSpec
from tablestore_engine.cli.main import main
from tablestore_engine.errors import RetryError, TablestoreError
from tablestore_engine.log.kafka.settings import MARKER_SUFFIX

_GONE_SECONDS = 10


@dataclass(frozen=True)
class Accident:
    """`again`: the data topic is there again, empty; codes of an eventual and of a transactional log."""

    name: str
    data: bool
    marker: bool
    again: bool = False
    eventual: str | None = "TS1705"
    transactional: str | None = "TS1705"

    def code(self, *, is_eventual: bool) -> str | None:
        """What publishing says; None when it heals by itself."""
        return self.eventual if is_eventual else self.transactional


ACCIDENTS = (
    Accident("data topic deleted", data=True, marker=False),
    Accident(
        "data topic deleted and created again",
        data=True,
        marker=False,
        again=True,
        eventual="TS1706",
        transactional="TS1706",
    ),
    Accident("marker topic deleted", data=False, marker=True, eventual="TS1707", transactional=None),
    Accident("both topics deleted", data=True, marker=True),
)


def play_accident(
    accident: Accident, judge: Judge, engine: Engine, url: str, warehouse: Path, chance: random.Random
) -> None:
    """To a table with snapshots, all of them published. `engine` may have a publisher open, which must notice."""
    topic, kind = judge.kind.topic(judge.epoch, judge.seed), judge.kind
    admin = AdminClient({"bootstrap.servers": url, "log_level": 0})
    named = ((topic, accident.data), (topic + MARKER_SUFFIX, accident.marker))
    delete_topics(url, [name for name, is_gone in named if is_gone])
    if accident.again:
        admin.create_topics([NewTopic(topic, kind.buckets, -1)])[topic].result()
        await_topics(url, lambda shown: topic in shown)
    where = f"{judge.where}, {accident.name}"
    code = accident.code(is_eventual=kind.is_eventual)
    command = ["publish", judge.name, "--warehouse", str(warehouse), "--bootstrap", url]
    judge.lost_markers = judge.lost_markers or accident.marker
    if code is None:
        status, said = run_command(command)
        if kind.shards == 1 or "TS1707" not in said:
            assert status == 0, f"{where}: {said}"
            return
        code = "TS1707"  # a shard none of whose partitions has a row cannot say how far it is
    for opened in (engine, Engine(str(warehouse), log={"kafka.bootstrap.servers": url})):
        check_refused(opened, judge.name, code, where)
        if opened is not engine:
            opened.close()
    status, said = run_command(command)
    assert (status, code in said) == (1, True), f"{where}: status {status}, {said}"
    latest = engine.table(judge.name).latest_snapshot_id() or 0
    # rows of an eventual log are complete with all snapshots alone; markers alone lost: nothing is to be sent twice
    behind = (0 if kind.is_eventual else chance.randint(0, latest)) if accident.data else latest
    status, said = run_command([*command, "--reset", str(behind)])
    assert status == 0, f"{where}, --reset {behind}: {said}"
    judge.resets += 1
    if accident.data:
        judge.base = behind


def check_refused(engine: Engine, name: str, code: str, where: str) -> None:
    """A write is refused before anything is there, a publication too."""
    before = engine.table(name).latest_snapshot_id()
    rows = pa.table({"id": [-1], "v": [uuid.uuid4().hex]})
    for act in (lambda: engine.write(name, rows, WriteSpec()), lambda: engine.table(name).publish()):
        said = find_error(act)
        while isinstance(said, RetryError):  # a busy machine
            said = find_error(act)
        assert said is not None, f"{where}: not refused"
        assert said.code == code, f"{where}: expected {code}, got {said}"
    assert engine.table(name).latest_snapshot_id() == before, f"{where}: something was written"


def find_error(act: Callable[[], object]) -> TablestoreError | None:
    """What it says."""
    try:
        act()
    except TablestoreError as error:
        return error
    return None


def delete_topics(url: str, names: Iterable[str]) -> None:
    """And wait until they are gone."""
    doomed, admin = list(names), AdminClient({"bootstrap.servers": url, "log_level": 0})
    for future in admin.delete_topics(doomed).values():
        future.result()
    await_topics(url, lambda shown: not shown & set(doomed))


def await_topics(url: str, is_so: Callable[[Set[str]], bool]) -> None:
    """For each broker: one may not know yet what another has learned. A new client asks the one that it is given."""
    deadline = time.monotonic() + _GONE_SECONDS
    for address in url.split(","):
        while time.monotonic() < deadline:
            admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
            if is_so(set(admin.list_topics(timeout=10).topics)):
                break
            time.sleep(0.02)


def run_command(words: list[str]) -> tuple[int, str]:
    """`tablestore …` in this process: status, and all it printed."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        status = main(words)
    text = said.getvalue()
    return run_command(words) if status and "TS1702" in text else (status, text)  # a busy machine
