"""Secrets planted in a profile, the environment and a model, dbt run over them, and a search in all that it leaves.

Steps      1 plant  2 green commands, then failing ones (wrong SQL, broker away, a secret in a config)  3 search the
           project, warehouse and temp folder, what was printed, the command lines, the topics
ALLOWED    profiles.yml and the model that is refused: there we planted. The environment of child processes: the system
           hands it on, and only the same user can read it. Nothing else.
INVARIANT  a value that is found anywhere else ends the run with its place.
"""

from __future__ import annotations

import base64
import json
import os
import random
import subprocess
import sys
import threading
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from confluent_kafka import Consumer, TopicPartition

from integration_tests.adapter.conftest import Shop
from integration_tests.adapter.test_publishing import GOOD
from tablestore_engine.devservers.kafka_broker import BrokerInfo

ROOT = Path(__file__).resolve().parents[2]
Counts = dict[str, int]
PLANTED_FILES = ("profiles.yml", "models/secret.sql")
PLACES = (
    "kafka.sasl.password", "kafka.ssl.key.password", "kafka.sasl.jaas.config", "spark.hadoop.fs.s3a.secret.key",
    "spark.hadoop.fs.azure.account.key.acme", "AWS_SECRET_ACCESS_KEY", "DBT_ENV_SECRET_PASSWORD", "model",
)  # fmt: skip
GREEN = (
    ("build",), ("test",), ("docs", "generate"), ("show", "--select", "orders"), ("compile",), ("debug",),
)  # fmt: skip
_SECRET_CONFIG = "materialized='tablestore', table_properties={{'fs.azure.account.key.x': '{}'}}"
_JAAS = 'a.OAuthBearerLoginModule required clientId="x" clientSecret="{}";'
_SECRET_MODEL = "{{{{ config(" + _SECRET_CONFIG + ") }}}} select 1 as id"


@dataclass(frozen=True)
class Secrets:
    """place -> value; no value is a part of another or of anything that the machine has by itself."""

    values: Mapping[str, str]

    @classmethod
    def of(cls, seed: int) -> Secrets:
        """One value for each place."""
        chance = random.Random(seed)
        return cls({place: f"S3cr+t/{chance.getrandbits(96):024x}" for place in PLACES})

    def forms(self) -> Iterator[tuple[str, bytes]]:
        """Every value as it may stand somewhere."""
        for place, value in self.values.items():
            raw = value.encode()
            yield place, raw
            yield place, raw.hex().encode()
            yield place, urllib.parse.quote(value, safe="").encode()
            for skipped in range(3):  # base64 of a longer text that has the value at any offset
                yield place, base64.b64encode(raw[skipped:])[: (len(raw) - skipped) // 3 * 4]


def find_in_text(secrets: Secrets, text: bytes, where: str) -> list[str]:
    """`place in where` for each value that the text has."""
    return [f"{place} in {where}" for place, form in secrets.forms() if form in text]


def find_in_files(secrets: Secrets, folder: Path, counts: Counts) -> list[str]:
    """The same for names and contents of all files below a folder, but for those that were planted."""
    found: list[str] = []
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        found += find_in_text(secrets, name.encode(), f"the name {name}")
        if path.is_file() and name not in PLANTED_FILES:
            content = path.read_bytes()
            counts["files"] += 1
            counts["bytes"] += len(content)
            found += find_in_text(secrets, content, name)
    return found


@dataclass
class Watcher:
    """Command lines seen so far."""

    lines: set[bytes] = field(default_factory=set)

    def run(
        self, command: Sequence[str], folder: Path, env: Mapping[str, str], told: bytes
    ) -> tuple[int, bytes]:
        """Run to the end with `told` as standard input, sampling meanwhile; status and everything that was printed."""
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=dict(env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        done = threading.Event()
        sampler = threading.Thread(target=self._sample, args=(process.pid, done))
        sampler.start()
        try:
            said, _ = process.communicate(told)
        finally:
            done.set()
            sampler.join()
        return process.returncode, said

    def _sample(self, root: int, done: threading.Event) -> None:
        while not done.wait(0.05):
            self.lines |= set(command_lines(root))


def command_lines(root: int) -> Iterator[bytes]:
    """Of a process and all below it, as any user of the machine can read them."""
    parents, lines = dict[int, int](), dict[int, bytes]()
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                status = (folder / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
                lines[int(folder.name)] = (folder / "cmdline").read_bytes()
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has ended between the listing and the look
            parents[int(folder.name)] = int(status[1])
    wanted = {root}
    while more := {pid for pid, parent in parents.items() if parent in wanted} - wanted:
        wanted |= more
    yield from (lines[pid] for pid in wanted if pid in lines)


def play_secrets(
    seed: int,
    folder: Path,
    broker: BrokerInfo,
    *,
    green: Sequence[Sequence[str]] = GREEN,
    failing: bool = True,
) -> Counts:
    """One project with its commands. Raises AssertionError with the places of what leaked."""
    secrets, watcher, project = Secrets.of(seed), Watcher(), folder / "project"
    project.mkdir()
    shop, topic = Shop(project), f"secrets_{seed}"
    temporary = folder / "tmp"
    temporary.mkdir()
    env = {**os.environ, "TMPDIR": str(temporary), "TERM": "dumb"} | {
        name: secrets.values[name] for name in ("AWS_SECRET_ACCESS_KEY", "DBT_ENV_SECRET_PASSWORD")
    }
    counts: Counts = {"commands": 0, "files": 0, "bytes": 0, "command lines": 0, "messages": 0}
    _plant(shop, secrets, broker.url, topic)
    steps = [_step(words) for words in green] + (_failing(shop, secrets) if failing else [])
    status, said = watcher.run(
        [sys.executable, "-m", "integration_tests.soak.dbt_steps"],
        project,
        {**env, "PYTHONPATH": str(ROOT)},
        json.dumps(steps).encode(),
    )
    assert status == 0, f"seed {seed}: status {status}\n{said.decode()[-4000:]}"
    counts["commands"] = len(steps)
    found = find_in_text(secrets, said, "what dbt printed")
    for line in watcher.lines:
        found += find_in_text(secrets, line, f"the command line {line[:80]!r}")
    counts["command lines"] = len(watcher.lines)
    found += find_in_files(secrets, project, counts) + find_in_files(secrets, temporary, counts)
    found += _find_in_topics(secrets, broker.url, topic, counts)
    assert found == [], f"seed {seed}: " + "; ".join(sorted(set(found)))
    assert min(counts["messages"], counts["files"], counts["command lines"]) > 0, counts
    return counts


def _step(
    words: Sequence[str], *, ok: bool = True, write: Mapping[str, str | None] | None = None
) -> dict[str, object]:
    return {"words": list(words), "ok": ok, "write": dict(write or {})}


def _failing(shop: Shop, secrets: Secrets) -> list[dict[str, object]]:
    """A wrong query, a broker that is not there, settings that are misspelt or unreadable, a secret in a config.

    What they say must not repeat a secret.
    """
    log, secret = shop.output["log"], secrets.values["kafka.sasl.password"]
    wrong = [
        {**log, "kafka.sasl.pasword": secret},
        {**log, "kafka.sasl.jaas.config": f"a.B required c='{secret}"},
    ]
    away = {**shop.output, "log": {**shop.output["log"], "kafka.bootstrap.servers": "127.0.0.1:9"}}
    return [
        _step(
            ["build", "--select", "wrong"],
            ok=False,
            write={"models/wrong.sql": "select nope from {{ ref('orders') }}"},
        ),
        _step(
            ["run", "--select", "orders"],
            ok=False,
            write={"models/wrong.sql": None, "profiles.yml": _profile(away)},
        ),
        *(
            _step(
                ["run", "--select", "orders"],
                ok=False,
                write={"profiles.yml": _profile({**shop.output, "log": one})},
            )
            for one in wrong
        ),
        _step(
            ["parse"],
            ok=False,
            write={
                "profiles.yml": _profile(shop.output),
                "models/secret.sql": _SECRET_MODEL.format(secrets.values["model"]),
            },
        ),
    ]


def _profile(output: Mapping[str, object]) -> str:
    return yaml.safe_dump({"shop": {"target": "dev", "outputs": {"dev": dict(output)}}})


def _plant(shop: Shop, secrets: Secrets, brokers: str, topic: str) -> None:
    """The profile with its secrets, one of them by env_var, and a model with a topic."""
    spark = {place: secrets.values[place] for place in PLACES if place.startswith("spark.")}
    log = {place: secrets.values[place] for place in PLACES if place.startswith("kafka.")}
    log["kafka.sasl.jaas.config"] = _JAAS.format(log["kafka.sasl.jaas.config"])
    shop.output["spark"]["conf"] = {"spark.sql.shuffle.partitions": "2", **spark}
    shop.output["log"] = {
        "kafka.bootstrap.servers": brokers,
        "kafka.socket.timeout.ms": "2000",
        "kafka.sasl.username": "{{ env_var('DBT_ENV_SECRET_PASSWORD') }}",
        **log,
    }
    shop.write("profiles.yml", _profile(shop.output))
    shop.orders(GOOD)
    model = shop.folder / "models/orders.sql"
    config = f"materialized='tablestore', log_system='kafka', kafka_topic='{topic}',"
    model.write_text(model.read_text().replace("materialized='tablestore',\n", config + "\n"))


def _find_in_topics(secrets: Secrets, brokers: str, topic: str, counts: Counts) -> list[str]:
    """Keys, values and headers of the table's topic and of its marker topic."""
    found: list[str] = []
    consumer = Consumer({"bootstrap.servers": brokers, "group.id": "secrets", "enable.auto.commit": False})
    topics = [name for name in consumer.list_topics(timeout=30).topics if name.startswith(topic)]
    for name in topics:
        partitions = consumer.list_topics(name, timeout=30).topics[name].partitions
        for partition in partitions:
            first, end = consumer.get_watermark_offsets(TopicPartition(name, partition), timeout=30)
            consumer.assign([TopicPartition(name, partition, first)])
            while end > first and (message := consumer.poll(10)) is not None and message.error() is None:
                counts["messages"] += 1
                text = repr((message.key(), message.value(), message.headers())).encode()
                found += find_in_text(secrets, text, f"topic {name}")
                if message.offset() >= end - 2:  # the last offset of a transaction is its control record
                    break
    consumer.close()
    return found
