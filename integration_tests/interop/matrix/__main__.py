"""Random tables through all engines: python -m integration_tests.interop.matrix --tables 300 --seconds 1500

Steps      1 the seeds without an outcome, of this generator and of these versions   2 the engines, started once
           3 a table in each direction, its outcome into docs/interop.json at once   4 what is wrong, with its seed
Exit       0: no table is wrong. `--seeds 7,9` runs these again and shows what they are
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from integration_tests.interop.flink_tables import FlinkTables
from integration_tests.interop.java_paimon import JavaPaimon
from integration_tests.interop.matrix.case import Case, CaseRun, Engines
from integration_tests.interop.matrix.record import RECORD, is_done, read_record, write_record
from integration_tests.interop.peers import pypaimon_peer, rust_peer, spark_peer
from integration_tests.nightly_record import ran_on

_STARTS = {"spark": spark_peer, "pypaimon": pypaimon_peer, "rust": rust_peer, "flink": FlinkTables}


@contextmanager
def started(folder: Path, names: Sequence[str] = tuple(_STARTS)) -> Iterator[Engines]:
    """Java and the engines of these names. Raises CannotMake."""
    with ExitStack() as stack:
        java = JavaPaimon(folder / "java")
        stack.callback(java.close)
        inserters: dict[str, Any] = {}
        for name in names:
            (folder / name).mkdir()
            inserters[name] = _STARTS[name](folder / name)
            stack.callback(inserters[name].close)
        yield Engines(java, inserters)


def main(words: Sequence[str]) -> int:
    """0 when no table is wrong."""
    parser = argparse.ArgumentParser(prog="python -m integration_tests.interop.matrix")
    parser.add_argument("--tables", type=int, default=300)
    parser.add_argument("--seconds", type=float, default=1500.0)
    parser.add_argument("--seeds", default="")
    parser.add_argument("--record", type=Path, default=RECORD)
    parser.add_argument("--keep", type=Path, help="folder for tables that are wrong")
    parser.add_argument("--verbose", action="store_true", help="tracebacks of what is wrong")
    asked = parser.parse_args(words)
    logging.basicConfig(level=logging.INFO if asked.verbose else logging.ERROR)
    record, ends = read_record(asked.record), time.monotonic() + asked.seconds
    seeds = [int(one) for one in asked.seeds.split(",") if one] or _missing(record, asked.tables)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, started(Path(folder)) as engines:
        for seed in seeds:
            if time.monotonic() > ends:
                break
            _run(seed, engines, asked.keep or Path(folder) / "w", record)
            write_record(record, asked.record)
    return _report(record, asked.tables)


def _missing(record: dict[str, Any], tables: int) -> list[int]:
    return [seed for seed in range(tables) if not is_done(record["tables"].get(str(seed)), Case(seed).mark)]


def _run(seed: int, engines: Engines, warehouse: Path, record: dict[str, Any]) -> None:
    case, begun = Case(seed), time.monotonic()
    outcomes = CaseRun(case, engines, warehouse).run()
    record["tables"][str(seed)] = {
        "commit": ran_on(),
        "mark": case.mark,
        "features": case.draft.features,
        "outcomes": outcomes,
    }
    print(f"table {seed}: {time.monotonic() - begun:.1f} s, {', '.join(case.draft.features)}")
    wrong: dict[str, list[str]] = {}
    for engine, cells in outcomes.items():
        for direction, outcome in cells.items():
            if outcome.startswith("wrong"):
                wrong.setdefault(outcome, []).append(f"{engine}, {direction}")
    for outcome, where in wrong.items():
        print(f"  {'; '.join(where)}: {outcome}")
    sys.stdout.flush()


def _report(record: dict[str, Any], tables: int) -> int:
    left = _missing(record, tables)
    wrong = [seed for seed in left if str(seed) in record["tables"]]
    print(f"{tables - len(left)} of {tables} tables are done; wrong or drawn otherwise: {wrong}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
