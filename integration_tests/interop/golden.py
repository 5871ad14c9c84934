"""Tables that Java Paimon writes: every kind that ours must read equal, or refuse by name.

Expected   `early` tables show a commit in its APPEND snapshot; with deletion vectors or a lookup changelog level 0 is
           hidden, so only the COMPACT snapshot that follows shows it.
"""

from __future__ import annotations

import copy
import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from integration_tests.interop.oracle import History, Oracle
from integration_tests.interop.rows import Change, Row, arrow_rows
from integration_tests.interop.sample_data import ALL_TYPES, NESTED_TYPES, PARTITION_TYPES, make_rows
from integration_tests.interop.scenarios import Step, append_steps, evolving_steps, keyed_steps
from integration_tests.interop.schemas import Schema, Type, schema

EVERYBODY = frozenset({"java", "spark", "pypaimon", "rust"})
_WIDE = ("merge_on_read", "deletion_vectors_lookup", "thin")
_FEW: dict[str, Type] = {"text": "STRING", "price": "DECIMAL(18, 4)", "at": "TIMESTAMP(6)"}
# no '/' in a value: Java 1.4.2 names a lookup file after the partition and fails on it ("No such file or directory")
_HOMES = {"dt": ["a", "b:c=d é%", "2024-01-01"]}


@dataclass(frozen=True)
class Kind:
    """How a golden table is made; `early` as above, `readers` who can read it."""

    schema: Schema
    steps: list[Step]
    early: bool = True
    readers: frozenset[str] = EVERYBODY


@dataclass
class Golden:
    """A table on disk and what its snapshots must show."""

    location: Path
    kind: Kind
    history: History = field(default_factory=History)


class Writer(Protocol):
    """Whoever can make a table go through the steps: Java, or our engine."""

    name: str

    def create(self, location: Path, schema: Schema) -> None:
        """A new table."""

    def alter(self, location: Path, *changes: tuple[Any, ...]) -> None:
        """Schema changes as JavaPaimon.alter has them."""

    def write(
        self,
        location: Path,
        rows: pa.Table,
        kinds: Sequence[str] | None = None,
        *,
        overwrite: Mapping[str, Any] | str | None = None,
    ) -> None:
        """One commit."""

    def compact(self, location: Path) -> None:
        """Full compaction."""

    def snapshots(self, location: Path) -> list[tuple[int, str]]:
        """Id and commit kind of every snapshot."""


def make_table(writer: Writer, location: Path, kind: Kind) -> Golden:
    """Write the table step by step and note what each snapshot must show."""
    golden, oracle = Golden(location, kind), Oracle(kind.schema)
    writer.create(location, kind.schema)
    known = 0
    for step in kind.steps:
        hidden = _emptied(oracle, step) if writer.name.startswith("java") else oracle.rows()
        changes = play(writer, location, oracle, step)
        ids = [number for number, _ in writer.snapshots(location) if number > known]
        known = max([known, *ids])
        golden.history.record(ids, oracle.rows() if kind.early else hidden, oracle.rows(), changes)
    return golden


def _emptied(oracle: Oracle, step: Step) -> list[Row]:
    """What the first snapshot of a step of Java shows while its new rows still lie in level 0."""
    if step.overwrite is None:
        return oracle.rows()
    emptied = copy.deepcopy(oracle)
    emptied.overwrite((), step.partition)
    return emptied.rows()


def play(writer: Writer, location: Path, oracle: Oracle, step: Step) -> list[Change]:
    """One step by the writer and by the oracle; the changes it must bring."""
    if step.compact:
        writer.compact(location)
        return []
    if step.schema is not None:
        writer.alter(location, *step.alter)
        oracle.evolve(step.schema)
        return []
    if step.overwrite is not None:
        rows = arrow_rows(oracle.schema, step.overwrite)
        writer.write(location, rows, overwrite=step.partition or {})
        return oracle.overwrite(step.overwrite, step.partition)
    rows = arrow_rows(oracle.schema, [row for _, row in step.changes])
    writer.write(location, rows, [kind for kind, _ in step.changes])
    return oracle.apply(step.changes)


def _keyed(
    name: str, *, readers: frozenset[str] = EVERYBODY, early: bool = True, **options: str
) -> tuple[str, Kind]:
    columns = {"id": "BIGINT", **(ALL_TYPES if name in _WIDE else _FEW)}
    made = schema(columns, keys=("id",), options={"bucket": "2"}).with_options(**options)
    seed = sum(name.encode())
    steps = [
        *keyed_steps(made, seed=seed),
        Step(compact=True),
        *keyed_steps(made, seed=seed + 1, small=2)[1:],
    ]
    return name, Kind(made, steps, early, readers)


def _nested_keyed() -> Kind:
    made = schema({"id": "BIGINT", **NESTED_TYPES}, keys=("id",), options={"bucket": "1"})
    return Kind(made, keyed_steps(made, seed=7, small=2))


def _partitioned(*, keyed: bool, **options: str) -> Kind:
    columns = {"dt": "STRING", "id": "BIGINT", "v": "STRING", "n": "INT"}
    keys = ("dt", "id") if keyed else ()
    bucket = {"bucket": "2"} if keyed else {}
    made = schema(columns, keys=keys, partitions=("dt",), options=bucket).with_options(**options)
    steps = keyed_steps(made, seed=3, home=_HOMES) if keyed else append_steps(made, seed=3, home=_HOMES)
    replaced = [dict(row, dt="a") for row in make_rows(columns, range(0, 9, 3), seed=5, required=("dt",))]
    late = [Step(overwrite=tuple(replaced), partition={"dt": "a"}), Step(compact=True)]
    return Kind(made, [*steps, *late], early=not options)


def _every_partition_type() -> Kind:
    """One level per type; two rows with all values, one with all null, and edge values."""
    made = schema({"id": "BIGINT", **PARTITION_TYPES}, partitions=tuple(PARTITION_TYPES))
    day, moment = dt.date(2024, 1, 1), dt.datetime(2024, 1, 1, 12, 34, 56, 789123)  # noqa: DTZ001
    full: dict[str, Any] = {
        "p_bool": True, "p_tiny": -5, "p_small": -300, "p_int": 42, "p_big": -(2**63), "p_dec": Decimal("-1.50"),
        "p_dec20": Decimal("-0.0128"), "p_text": "a/b=c é:%", "p_varchar": "x y", "p_char": "ab", "p_date": day,
        "p_ts0": moment.replace(microsecond=0), "p_ts3": moment.replace(microsecond=789000), "p_ts6": moment,
    }  # fmt: skip
    other = {
        **full,
        "p_bool": False,
        "p_ts0": moment.replace(second=0, microsecond=0),
        "p_date": dt.date(1969, 12, 31),
    }
    rows = [
        {"id": 1, **full},
        {"id": 2, **full},
        {"id": 3},
        {"id": 4, **other, "p_text": "__DEFAULT"},
        *({"id": 10 + n, **full, name: None} for n, name in enumerate(PARTITION_TYPES)),
    ]
    return Kind(
        made,
        [Step(tuple(("+I", row) for row in rows)), Step(tuple(("+I", {**r, "id": 0}) for r in rows[:3]))],
    )


def _append(**options: str) -> Kind:
    made = schema({"id": "BIGINT", **ALL_TYPES, **NESTED_TYPES}).with_options(**options)
    return Kind(made, [*append_steps(made, seed=9), Step(compact=True), *append_steps(made, seed=10)[:2]])


def _orc(*, keyed: bool) -> Kind:
    """Without timestamps, which are refused; CHAR, whose blanks at the end ORC does not keep; and floating numbers, of
    which Java reads -0.0 as 0.0.
    """
    columns = {**ALL_TYPES, **NESTED_TYPES}
    left_out = ("CHAR(5)", "FLOAT", "DOUBLE")
    kept: dict[str, Type] = {
        name: type_
        for name, type_ in columns.items()
        if type_ not in left_out and "TIMESTAMP" not in str(type_)
    }
    bucket = {"bucket": "2"} if keyed else {}
    made = schema({"id": "BIGINT", **kept}, keys=("id",) if keyed else (), options=bucket)
    made = made.with_options(file__format="orc")
    steps = keyed_steps(made, seed=19) if keyed else append_steps(made, seed=19)
    return Kind(made, [*steps, Step(compact=True)])


def _sequence() -> Kind:
    """Rows with an older sequence value lose, whatever the order of commits."""
    made = schema(
        {"id": "BIGINT", "v": "STRING", "at": "INT"},
        keys=("id",),
        options={"bucket": "1", "sequence.field": "at"},
    )
    steps = [
        Step(tuple(("+I", {"id": n, "v": f"{at}", "at": at}) for n in range(at % 3, 12))) for at in (5, 6, 7)
    ]
    return Kind(made, steps)


def _evolving(*, keyed: bool, **options: str) -> Kind:
    named = schema({"x": "INT"}).with_options(**options).options
    first, steps = evolving_steps(keyed=keyed, options={"bucket": "1", **named} if keyed else named)
    return Kind(first, steps, early="deletion-vectors.enabled" not in named)


def _with_time() -> Kind:
    made = schema({"id": "BIGINT", "t": "TIME(3)"}, keys=("id",), options={"bucket": "1"})
    return Kind(made, keyed_steps(made, seed=2, small=0), readers=EVERYBODY - {"spark"})


def _hollow_rows() -> Kind:
    """Structs whose fields are all null: paimon-spark 0.9.0 shows them as null structs."""
    made = schema({"id": "BIGINT", "n_row": NESTED_TYPES["n_row"], "n_rows": NESTED_TYPES["n_rows"]})
    hollow = {"n_row": {"a": None, "b": None, "d": None}, "n_rows": [None, {"x": None, "y": None}]}
    rows = [{"id": 1, **hollow}, {"id": 2}, {"id": 3, "n_row": hollow["n_row"], "n_rows": []}]
    return Kind(made, [Step(tuple(("+I", row) for row in rows))], readers=EVERYBODY - {"spark"})


DV = {"deletion_vectors__enabled": "true"}
_NOT_64 = frozenset({"java"})
KINDS: dict[str, Callable[[], Kind]] = {
    **{
        name: (lambda kind=kind: kind)
        for name, kind in (
            _keyed("merge_on_read"),
            _keyed("deletion_vectors", early=False, **DV),
            _keyed("deletion_vectors_lookup", early=False, changelog_producer="lookup", **DV),
            _keyed(
                "deletion_vectors_64", early=False, readers=_NOT_64, deletion_vectors__bitmap64="true", **DV
            ),
            _keyed("changelog_lookup", changelog_producer="lookup"),
            _keyed("changelog_full_compaction", changelog_producer="full-compaction"),
            _keyed("changelog_input", changelog_producer="input"),
            _keyed("write_only", write_only="true"),
            _keyed("thin", readers=EVERYBODY - {"spark"}, data_file__thin_mode="true"),
            _keyed("avro_keyed", file__format="avro"),
            _keyed("avro_in_level_zero", file__format__per__level="0:avro"),
            _keyed("dynamic_bucket", bucket="-1", dynamic_bucket__target_row_num="20"),
        )
    },
    "nested_keyed": _nested_keyed,
    "with_time": _with_time,
    "hollow_rows": _hollow_rows,
    "sequence_field": _sequence,
    "append": _append,
    "orc_keyed": lambda: _orc(keyed=True),
    "orc_append": lambda: _orc(keyed=False),
    "avro_append": lambda: _append(file__format="avro"),
    "append_bucketed": lambda: _append(bucket="3", bucket_key="id"),
    "partitioned_append": lambda: _partitioned(keyed=False),
    "partitioned_keyed": lambda: _partitioned(keyed=True),
    "partitioned_vectors": lambda: _partitioned(keyed=True, changelog_producer="lookup", **DV),
    "every_partition_type": _every_partition_type,
    "evolving_keyed": lambda: _evolving(keyed=True),
    "evolving_append": lambda: _evolving(keyed=False),
    "evolving_vectors": lambda: _evolving(keyed=True, changelog_producer="lookup", **DV),
}


def _refused(
    why: str, columns: Mapping[str, Type] | None = None, *, keyed: bool = True, **options: str
) -> tuple[str, Kind]:
    keys, bucket = (("id",), {"bucket": "1"}) if keyed else ((), {})
    made = schema(columns or {"id": "BIGINT", "n": "INT"}, keys=keys, options=bucket).with_options(**options)
    rows = tuple(("+I", {"id": number, "n": bytes([number]) if columns else number}) for number in range(5))
    return why, Kind(made, [Step(rows), Step(rows)])


REFUSED: dict[str, tuple[str, Kind]] = {
    "orc_with_times": _refused(
        "at is a timestamp",
        {"id": "BIGINT", "n": "BYTES", "at": "TIMESTAMP(3)"},
        keyed=False,
        file__format="orc",
    ),
    "sketches": _refused(
        "aggregate function",
        {"id": "BIGINT", "n": "BYTES"},
        merge_engine="aggregation",
        fields__n__aggregate_function="theta_sketch",
    ),
    "row_tracking": _refused("row tracking", keyed=False, row_tracking__enabled="true"),
}
