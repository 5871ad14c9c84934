"""The long attacks: `python -m integration_tests.soak.run [attack ...] [--seed S] [--count N]`; `make soak` runs all.

Steps      1 each attack with a fresh seed (printed first, so that a failure can be shown again)  2 its counts as one
           line  3 with --record: counts, seeds and commit into docs/reliability.json
INVARIANT  the first fault ends the run with a status other than 0, the seed in its message; nothing is tried again.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from integration_tests.interop.java_paimon import JavaPaimon
from integration_tests.interop.peers import Peer, rust_peer
from integration_tests.s3.store_mode import is_on
from integration_tests.soak.dbt_rounds import play_rounds
from integration_tests.soak.kill_runs import folder_of_a_run, kill_many
from integration_tests.soak.killed_followers import killed_followers
from integration_tests.soak.killed_ingests import killed_ingests
from integration_tests.soak.killed_streams import killed_streams
from integration_tests.soak.large_bucket import fill_bucket
from integration_tests.soak.planted_secrets import play_secrets
from integration_tests.soak.query_attack.attack import Attack
from integration_tests.soak.query_attack.planted import PLANTS
from integration_tests.soak.query_attack.record import QueryRecord
from integration_tests.soak.random_batches import random_batches
from integration_tests.soak.random_streams import random_streams
from integration_tests.soak.random_tables import attack_table, random_table
from integration_tests.soak.six_histories import random_history
from integration_tests.soak.six_ways import SixWays, read_six_ways
from integration_tests.soak.statement_attack.attack import attack as attack_statements
from integration_tests.soak.store_kills import kill_over_store
from integration_tests.soak.stream_minutes import stream_minutes
from tablestore_engine.devservers.kafka_broker import start_broker, stop_broker

ROOT = Path(__file__).resolve().parents[2]
RECORD = ROOT / "docs" / "reliability.json"
ROUNDS_OF_A_PROJECT = 5
Counts = dict[str, int]


@contextmanager
def _peers() -> Iterator[Sequence[Peer]]:
    """Java Paimon and pypaimon-rust, for all attacks of a run."""
    with tempfile.TemporaryDirectory(prefix="soak-peers-") as folder:
        java, rust = JavaPaimon(Path(folder) / "java"), rust_peer(Path(folder) / "rust")
        yield (java, rust)
        rust.close()
        java.close()


def run_tables(seed: int, count: int) -> Counts:
    """`count` random tables, each state compared with the oracle, three of them with each peer."""
    steps = states = 0
    with _peers() as peers:
        for number in range(seed, seed + count):
            table = random_table(number)
            with folder_of_a_run() as folder:
                states += attack_table(table, folder / "warehouse" / "soak.db" / "t", peers)
            steps += len(table.steps)
    return {"tables": count, "commits": steps, "states compared by three readers": states}


def run_kills(seed: int, count: int) -> Counts:
    """At least `count` killed writers over tables of all merge engines; over an S3 server without logs and peers."""
    say = partial(print, flush=True)
    if is_on():
        total = kill_many(seed, count, "", say=say)
    else:
        with _peers() as peers, folder_of_a_run() as folder:
            broker = start_broker(folder / "broker", say=print)
            try:
                total = kill_many(seed, count, broker.url, peers, say)
            finally:
                stop_broker(folder / "broker")
    return {"kills": total.kills, "acknowledged": total.acknowledged, "replayed": total.snapshots}


def run_dbt(seed: int, count: int) -> Counts:
    """Projects of five rounds each, until `count` rounds were played."""
    kinds: Counter[str] = Counter()
    for number in range(0, count, ROUNDS_OF_A_PROJECT):
        with folder_of_a_run() as folder:
            rounds = min(ROUNDS_OF_A_PROJECT, count - number)
            kinds.update(play_rounds(seed + number, rounds, folder))
    return {"rounds": count, **kinds}


def run_large(_: int, count: int) -> Counts:
    """One bucket of `count` rows of 8 kB; nothing in it is random."""
    with folder_of_a_run() as folder:
        return fill_bucket(count, folder)


def run_secrets(seed: int, count: int) -> Counts:
    """`count` projects with planted secrets, each with new ones, over one broker."""
    total: Counter[str] = Counter()
    with folder_of_a_run() as folder:
        broker = start_broker(folder / "broker", say=print)
        try:
            for number in range(seed, seed + count):
                place = folder / str(number)
                place.mkdir()
                total.update(play_secrets(number, place, broker))
        finally:
            stop_broker(folder / "broker")
    return {"projects": count, **total}


def run_six_ways(seed: int, count: int) -> Counts:
    """`count` histories, each written with both kinds of log and read six ways."""
    total: Counter[str] = Counter()
    with folder_of_a_run() as folder:
        broker, java = start_broker(folder / "broker", say=print), JavaPaimon(folder / "java")
        try:
            with SixWays(broker.url, folder / "warehouse", java) as world:
                for number in range(seed, seed + count):
                    total += read_six_ways(random_history(number), world)
                    print(f"six-ways: {number - seed + 1} so far", flush=True)
        finally:
            java.close()
            stop_broker(folder / "broker")
    return {"histories": count, **total}


def run_stream(seed: int, count: int) -> Counts:
    """`count` minutes of run-stream under a steady load."""
    with folder_of_a_run() as folder:
        return stream_minutes(count, seed, folder)


def run_followers(seed: int, count: int) -> Counts:
    """`count` histories of tables, followed by dbt models whose runs are killed."""
    with folder_of_a_run() as folder:
        return killed_followers(seed, count, folder)


def run_batches(seed: int, count: int) -> Counts:
    """`count` random batches below models by changed_keys."""
    with folder_of_a_run() as folder:
        return random_batches(seed, count, folder)


def run_ingests(seed: int, count: int) -> Counts:
    """`count` tables of a PostgreSQL that everything is killed on the way of."""
    with folder_of_a_run() as folder:
        return killed_ingests(seed, count, folder)


def run_streams(seed: int, count: int) -> Counts:
    """`count` tables followed by Spark's streams, which are killed."""
    with folder_of_a_run() as folder:
        return killed_streams(seed, count, folder)


def run_models(seed: int, count: int) -> Counts:
    """`count` runs of random keyed streaming models."""
    with folder_of_a_run() as folder:
        return random_streams(seed, count, folder)


def run_store(seed: int, count: int) -> Counts:
    """`count` writers killed over an S3 server that is killed too, on a bad network."""
    return kill_over_store(seed, count)


def run_queries(
    seed: int, count: int, changes: int = 5, record: QueryRecord | None = None, seconds: float = math.inf
) -> Counts:
    """`count` random queries by changed_keys, `changes` rounds of changes each; those of the record are known."""
    # DuckDB judges every run; Spark, which takes most of the time, every tenth, and each one that DuckDB calls wrong
    report = Attack(seed, count, changes, spark_each=10, record=record, seconds=seconds).run()
    print("\n".join(report.lines()), flush=True)
    assert not report.findings, (
        f"seed {seed}: {len(report.findings)} findings, the first: {report.findings[0]}"
    )
    return report.recorded()


def run_plants(seed: int, count: int, changes: int = 5, names: Sequence[str] = tuple(PLANTS)) -> Counts:
    """Each error is put into the code, and has to be found by `count` random queries of `run_queries`."""
    tried, missed = 0, []
    for name in names:
        report = Attack(seed, count, changes, plant=name, spark_each=10, shrinks=0, stop_after=1).run()
        print(f"planted {name}: {'found' if report.findings else 'NOT FOUND'}", flush=True)
        tried += report.counts["queries"]
        missed += [] if report.findings else [name]
    assert not missed, f"seed {seed}: not found in {count} queries: {', '.join(missed)}"
    return {"planted errors, all found": len(names), "queries": tried}


def run_statements(seed: int, count: int) -> Counts:
    """`count` random statements with right and wrong names."""
    report = attack_statements(seed, count, say=partial(print, flush=True))
    assert not report.findings, f"{len(report.findings)} findings, the first: {report.findings[0]}"
    return dict(report.counts)


ATTACKS: dict[str, tuple[Callable[[int, int], Counts], int]] = {
    "tables": (run_tables, 100),
    "kills": (run_kills, 500),
    "dbt": (run_dbt, 20),
    "secrets": (run_secrets, 3),
    "six-ways": (run_six_ways, 200),
    "stream": (run_stream, 30),
    "followers": (run_followers, 200),
    "batches": (run_batches, 500),
    "ingests": (run_ingests, 200),
    "streams": (run_streams, 200),
    "models": (run_models, 3_000),
    "store": (run_store, 500),
    "queries": (run_queries, 3000),
    "plants": (run_plants, 90),
    "statements": (run_statements, 10_000),
    "large": (run_large, 300_000),
}


def main(words: Sequence[str]) -> int:
    """Run the named attacks (all by default); 0 when nothing was found."""
    parser = argparse.ArgumentParser(prog="python -m integration_tests.soak.run", description=__doc__)
    parser.add_argument("attack", nargs="*", default=[], help=", ".join(ATTACKS))
    parser.add_argument("--seed", type=int, help="default: that of docs/queries.json, or a fresh one")
    parser.add_argument("--count", type=int, help="tables, kills …; default: the size of the attack")
    parser.add_argument("--changes", type=int, default=5, help="queries, plants: rounds of changes of each")
    parser.add_argument("--planted", choices=sorted(PLANTS), help="plants: this error only")
    parser.add_argument(
        "--record",
        action="store_true",
        help="write the counts into docs/reliability.json; queries: each project into docs/queries.json, and continue",
    )
    parser.add_argument("--seconds", type=float, default=math.inf, help="queries: no project begins later")
    chosen = parser.parse_args(words)
    unknown = [name for name in chosen.attack if name not in ATTACKS]
    if unknown:
        parser.error(f"no such attack: {', '.join(unknown)} (there are {', '.join(ATTACKS)})")
    fresh = random.SystemRandom().randrange(1_000_000)
    for name in chosen.attack or ATTACKS:
        attack, usual = ATTACKS[name]
        count, started = chosen.count or usual, time.monotonic()
        seed = fresh if chosen.seed is None else chosen.seed
        if attack is run_queries:
            kept = QueryRecord() if chosen.record else None
            seed = seed if kept is None or chosen.seed is not None else kept.seed or seed
            attack = partial(run_queries, changes=chosen.changes, record=kept, seconds=chosen.seconds)
        elif attack is run_plants:
            names = [chosen.planted] if chosen.planted else tuple(PLANTS)
            attack = partial(run_plants, changes=chosen.changes, names=names)
        print(f"{name}: seed {seed}, {count}", flush=True)
        counts = attack(seed, count)
        seconds = round(time.monotonic() - started)
        print(f"{name}: " + ", ".join(f"{value:,} {what}" for what, value in counts.items()), flush=True)
        if chosen.record and name != "queries":
            record(name, {"seed": seed, "seconds": seconds, **counts})
    return 0


def record(name: str, counts: Counts) -> None:
    """Put the last run of an attack into docs/reliability.json, with the commit that it ran on."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()
    known = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    known[name] = {"commit": commit, **counts}
    RECORD.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
