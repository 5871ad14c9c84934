"""The tables of docs/engines.md: engine x kind of table, one table for each operation.

Cells      from docs/engines.json, which the interop suite writes (integration_tests/interop/engine_matrix.py); where an
           engine cannot be asked, from ABSENT, with the reason
INVARIANT  no cell has a default: one that is in neither, in both, or `wrong` is a ValueError, and the page stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from string import ascii_lowercase

Cells = Mapping[str, Mapping[str, Mapping[str, str]]]  # engine → kind of table → operation → outcome

ENGINES = {
    "flink": ("Flink", "Flink 2.0.0 with `paimon-flink-2.0` 1.4.2"),
    "spark": ("Spark", "Spark 3.5 with `paimon-spark-3.5` 0.9.0"),
    "hive": ("Hive", "the read path of Hive 3.1.3 with `paimon-hive-connector-3.1` 1.2.0"),
    "java": ("Java", "Paimon's Java library 1.4.2"),
    "pypaimon": ("pypaimon", "pypaimon 2.1.0"),
    "rust": ("DataFusion", "pypaimon-rust 0.4.0, which contains DataFusion"),
    "duckdb": ("DuckDB", "DuckDB 1.5.5 over Iceberg metadata of both versions"),
    "pyiceberg": ("pyiceberg", "pyiceberg 0.12.0 over Iceberg metadata of both versions"),
    "spark-iceberg": (
        "Spark, Iceberg",
        "Spark 3.5 with `iceberg-spark-runtime-3.5` 1.11.0 over Iceberg metadata of both versions",
    ),
}
OPERATIONS = {
    "batch": "Batch, newest state",
    "past": "Batch, every past snapshot",
    "stream": "Stream of changes",
    "write": "Writes",
}
KINDS = {
    "all_types": "keyed, a column of each atomic type",
    "nested": "keyed, arrays, maps and structs",
    "key_types": "keyed by a column of each type",
    "with_time": "keyed, a TIME column",
    "sequence_field": "keyed, `sequence.field`",
    "partitioned_keyed": "keyed, partitioned, overwritten partitions",
    "overwritten_keyed": "keyed, whole table overwritten",
    "evolving_keyed": "keyed, columns added, renamed, dropped, widened",
    "without_changelog": "keyed, `changelog-producer` = `none`",
    "to_nothing_and_back": "keyed, all rows deleted, then new ones",
    "folding": "keyed, 30 commits with compactions",
    "rolled_manifests": "keyed, many manifests",
    "append": "no key, every type",
    "append_bucketed": "no key, `bucket-key`",
    "partitioned_append": "no key, partitioned, overwritten partitions",
    "every_partition_type": "no key, partitioned by each type",
    "evolving_append": "no key, columns added, renamed, dropped, widened",
    "hollow_rows": "no key, structs whose fields are all NULL",
}
_NO_STREAM = "cannot: {} has no streaming reader"
_READ_ONLY = "cannot: Iceberg metadata is for reading. Only Iceberg readers would see what is written there"
# (engine, operation) → why none of its cells can be run
ABSENT = {
    ("hive", "stream"): _NO_STREAM.format("Hive"),
    ("hive", "write"): "cannot: a Hive server that plans the tasks of a write is missing here",
    ("duckdb", "stream"): _NO_STREAM.format("DuckDB"),
    ("pyiceberg", "stream"): _NO_STREAM.format("pyiceberg"),
    ("spark-iceberg", "stream"): "cannot: Iceberg's streams have appended files only, and no deletes",
    ("duckdb", "write"): _READ_ONLY,
    ("pyiceberg", "write"): _READ_ONLY,
    ("spark-iceberg", "write"): _READ_ONLY,
}


def engine_lines(cells: Cells) -> list[str]:
    """What was asked, then for each operation a table and its notes. Raises ValueError for an unknown cell."""
    for engine, kinds in cells.items():
        _check_known(engine, kinds)
    lines = ["", *(f"- {short}: {version}." for short, version in ENGINES.values())]
    for operation, title in OPERATIONS.items():
        lines += ["", f"### {title}", "", *_table(cells, operation)]
    return [*lines, ""]


def _table(cells: Cells, operation: str) -> list[str]:
    notes: dict[str, str] = {}
    rows = []
    for kind, label in KINDS.items():
        found = (_short(_cell(cells, engine, kind, operation), notes) for engine in ENGINES)
        rows.append(f"| {label} | {' | '.join(found)} |")
    names = " | ".join(short for short, _ in ENGINES.values())
    head = [f"| table | {names} |", "|---|" + "---|" * len(ENGINES)]
    return [*head, *rows, "", *(f"- {letter}: {text}." for text, letter in notes.items())]


def _short(outcome: str, notes: dict[str, str]) -> str:
    """`OK`, `OK a`, `refused b` or `cannot c`; the letter is that of the note."""
    word, _, text = outcome.partition(": ")
    if word not in ("OK", "refused", "cannot") or (word != "OK" and not text):
        raise ValueError(f"a cell is {outcome!r}: OK, OK: limit, refused: reason or cannot: what is missing")
    return f"{word} {notes.setdefault(text, ascii_lowercase[len(notes)])}" if text else word


def _cell(cells: Cells, engine: str, kind: str, operation: str) -> str:
    found = cells.get(engine, {}).get(kind, {}).get(operation)
    absent = ABSENT.get((engine, operation))
    if (found is None) == (absent is None):
        state = "both recorded and absent" if found else "unknown"
        raise ValueError(f"the cell {engine}, {kind}, {operation} is {state}: run integration_tests/interop")
    return str(found or absent)


def _check_known(engine: str, kinds: Mapping[str, Mapping[str, str]]) -> None:
    unknown = [engine] if engine not in ENGINES else [one for one in kinds if one not in KINDS]
    unknown += [one for kind in kinds.values() for one in kind if one not in OPERATIONS]
    if unknown:
        raise ValueError(f"docs/engines.json has {unknown[0]!r}, which docs/engine_tables.py does not")
