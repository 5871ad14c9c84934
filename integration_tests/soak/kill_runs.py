"""Many tables whose writers are killed, one after the other; a run that is stopped goes on where it was.

Steps      1 a table of the seed, every fourth one with a log  2 its kills and its judge (writer_kills.py)  3 what it
           gave, into the file of the run  4 at the end the mix: engine, producer, buckets and command -> kills
INVARIANT  a file counts for one seed and one commit: other code, or another seed, begins anew.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from integration_tests.interop.peers import Peer
from integration_tests.nightly_record import ran_on
from integration_tests.soak.killed_tables import table_of_seed
from integration_tests.soak.writer_kills import KillReport, kill_writers

ROOT = Path(__file__).resolve().parents[2]
KILLS_OF_A_TABLE = 16
_LOG_EACH = 4


@contextmanager
def folder_of_a_run() -> Iterator[Path]:
    """For one table or project; it stays when something is found, for whoever has to find out why."""
    folder = Path(tempfile.mkdtemp(prefix="soak-"))
    try:
        yield folder
    except BaseException:
        print(f"kept: {folder}", flush=True)
        raise
    shutil.rmtree(folder)


def kill_many(
    seed: int, count: int, url: str, peers: Sequence[Peer] = (), say: Callable[[str], None] = print
) -> KillReport:
    """At least `count` killed processes over tables `seed`, `seed` + 1 …; `url`: brokers, '' for tables without logs.

    Raises AssertionError at the first fault, with the seed of the table.
    """
    path = ROOT / "build" / f"kills-{seed}.json"
    done = _read(path)
    total = KillReport()
    for one in done:
        total += _report(one)
    number = len(done)
    while total.kills < count:
        log = url if url and number % _LOG_EACH == _LOG_EACH - 1 else ""
        table = table_of_seed(seed + number, log=bool(log))
        readers = [one for one in peers if one.name.startswith("java") or table.engine == "deduplicate"]
        with folder_of_a_run() as folder:
            kills = min(KILLS_OF_A_TABLE, count - total.kills)
            report = kill_writers(seed + number, kills, folder, readers, url=log)
        total, number = total + report, number + 1
        done.append(_written(report))
        _write(path, done)
        say(f"kills: {total.kills} so far; seed {table.seed}: {table}")
    say(mix_table(total))
    return total


def mix_table(report: KillReport) -> str:
    """Kills by engine, producer and buckets in rows, commands in columns."""
    works = sorted({work for *_, work in report.mix})
    rows: dict[tuple[str, ...], Counter[str]] = {}
    for (*place, work), count in report.mix.items():
        rows.setdefault(tuple(place), Counter())[work] += count
    lines = [f"| engine | producer | buckets | {' | '.join(works)} |", "|---" * (3 + len(works)) + "|"]
    for place, counts in sorted(rows.items()):
        lines.append(f"| {' | '.join(place)} | {' | '.join(str(counts[work] or '') for work in works)} |")
    return "\n".join(lines)


def _read(path: Path) -> list[dict[str, object]]:
    if not path.exists():
        return []
    kept = json.loads(path.read_text())
    return list(kept["tables"]) if kept["commit"] == ran_on() else []


def _write(path: Path, tables: Sequence[object]) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"commit": ran_on(), "tables": tables}))


def _written(report: KillReport) -> dict[str, object]:
    mix = [[*place, count] for place, count in report.mix.items()]
    return {
        "kills": report.kills,
        "acknowledged": report.acknowledged,
        "snapshots": report.snapshots,
        "mix": mix,
    }


def _report(one: dict[str, object]) -> KillReport:
    mix = Counter({tuple(place): count for *place, count in one["mix"]})  # type: ignore[misc,attr-defined]
    return KillReport(one["kills"], one["acknowledged"], one["snapshots"], mix)  # type: ignore[arg-type]
