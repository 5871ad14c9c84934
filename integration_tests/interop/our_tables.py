"""Tables that our engine writes: every type, keyed and append, partitioned and not, through the same steps as Java's.

Expected   our commits show themselves in their last snapshot; a fold before it shows the rows as they were.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from integration_tests.interop.golden import EVERYBODY, KINDS, Kind
from integration_tests.interop.oracle import DYNAMIC
from integration_tests.interop.sample_data import ALL_TYPES, NESTED_TYPES, make_rows
from integration_tests.interop.scenarios import Step, append_steps, evolving_steps, keyed_steps
from integration_tests.interop.schemas import Schema, Type, schema

_HOMES = {"dt": ["a", "b/c=d é%", "2024-01-01"]}
_FEW: dict[str, Type] = {"id": "BIGINT", "text": "STRING", "price": "DECIMAL(18, 4)", "at": "TIMESTAMP(6)"}
KEY_TYPES: dict[str, Type] = {
    "k_int": "INT", "k_big": "BIGINT", "k_tiny": "TINYINT", "k_small": "SMALLINT", "k_bool": "BOOLEAN",
    "k_dec": "DECIMAL(10, 2)", "k_dec38": "DECIMAL(38, 4)", "k_text": "STRING", "k_char": "CHAR(5)",
    "k_date": "DATE", "k_ts3": "TIMESTAMP(3)", "k_ts6": "TIMESTAMP(6)", "k_ltz": "TIMESTAMP(6) WITH LOCAL TIME ZONE",
    "k_bytes": "BYTES", "k_double": "DOUBLE",
}  # fmt: skip


def one_row_per_key(rounds: list[Step]) -> list[Step]:
    """Steps whose commits name each key once: the last change of a key wins, as in Java's own buffer."""
    made = []
    for step in rounds:
        last = {(row.get("dt"), row["id"]): (kind, row) for kind, row in step.changes}
        made.append(replace(step, changes=tuple(last.values())) if step.changes else step)
    return made


def _keyed(columns: Mapping[str, Type], *, seed: int, small: int = 3, **options: str) -> Kind:
    made = schema(columns, keys=("id",), options={"bucket": "2"}).with_options(**options)
    steps = [
        *keyed_steps(made, seed=seed, small=small),
        Step(compact=True),
        *keyed_steps(made, seed=seed + 1, small=1)[1:],
    ]
    return Kind(made, one_row_per_key(steps), early=False)


def _to_nothing_and_back() -> Kind:
    """Delete-only commits down to zero rows, then rows again."""
    made = schema(_FEW, keys=("id",), options={"bucket": "2"})
    rows = make_rows(_FEW, range(12), seed=4, required=("id",))
    steps = [
        Step(tuple(("+I", row) for row in rows)),
        Step(tuple(("-D", row) for row in rows[:5])),
        Step(tuple(("-D", row) for row in rows[5:])),
        Step(tuple(("+I", row) for row in rows[3:7])),
        Step(compact=True),
    ]
    return Kind(made, steps, early=False)


def _folding() -> Kind:
    """Thirty commits on one bucket: levels run out more than once and are folded."""
    made = schema(_FEW, keys=("id",), options={"bucket": "1", "num-levels": "6"})
    rows = [make_rows(_FEW, [(n * 5) % 17, (n * 3 + 1) % 17], seed=n, required=("id",)) for n in range(30)]
    return Kind(
        made, one_row_per_key([Step(tuple(("+U", row) for row in pair)) for pair in rows]), early=False
    )


def _rolled_manifests() -> Kind:
    """Base lists of several manifests, some with DELETEs of files that an earlier one added, and their full merges."""
    limits = {
        "manifest.target-file-size": "6 kb",
        "manifest.full-compaction-threshold-size": "48 kb",
        "manifest.merge-min-count": "3",
        "manifest.compression": "null",
    }
    made = schema(_FEW, keys=("id",), options={"bucket": "8", "num-levels": "6", **limits})
    rows = [make_rows(_FEW, range(n * 3 % 20, n * 3 % 20 + 12), seed=n, required=("id",)) for n in range(16)]
    return Kind(made, [Step(tuple(("+U", row) for row in some)) for some in rows], early=False)


def _partitioned_keyed() -> Kind:
    columns = {"dt": "STRING", **_FEW}
    made = schema(columns, keys=("dt", "id"), partitions=("dt",), options={"bucket": "2"})
    steps = one_row_per_key(keyed_steps(made, seed=3, small=3, home=_HOMES))
    return Kind(made, [*steps, *_overwrites(made), Step(compact=True)], early=False)


def _partitioned_append() -> Kind:
    columns = {"dt": "STRING", **_FEW}
    made = schema(columns, partitions=("dt",))
    return Kind(
        made,
        [*append_steps(made, seed=3, home={"dt": [*_HOMES["dt"], None]}), *_overwrites(made)],
        early=False,
    )


def _overwrites(made: Schema) -> list[Step]:
    """A static partition, the partitions of the rows, and the whole table."""
    columns = {column.name: column.type for column in made.columns}

    def rows(keys: range, seed: int, *homes: str) -> tuple[dict[str, Any], ...]:
        listed = make_rows(columns, keys, seed=seed, required=("dt",))
        return tuple({**row, "dt": homes[n % len(homes)]} for n, row in enumerate(listed))

    return [
        Step(overwrite=rows(range(0, 9, 3), 5, "a"), partition={"dt": "a"}),
        Step(overwrite=rows(range(20, 26), 6, "2024-01-01", "new"), partition=DYNAMIC),
        Step(overwrite=rows(range(4), 7, "a", "last")),
    ]


def _overwritten_keyed() -> Kind:
    """Whole-table overwrites, one of them with half the rows as they were."""
    made = schema(_FEW, keys=("id",), options={"bucket": "2"})
    first = make_rows(_FEW, range(20), seed=1, required=("id",))
    second = [*first[:10], *make_rows(_FEW, range(15, 25), seed=2, required=("id",))]
    steps = [Step(tuple(("+I", row) for row in first)), Step(overwrite=tuple(second)), Step(overwrite=())]
    return Kind(made, [*steps, Step(overwrite=tuple(first[5:8]))], early=False)


def _sequence() -> Kind:
    """Rows with an older sequence value lose, whatever the order of commits; the oracle is given the winners."""
    golden = KINDS["sequence_field"]()
    return Kind(golden.schema, golden.steps, early=False)


def _key_types() -> Kind:
    """A key of fifteen columns, one of each type that a key can have."""
    made = schema({"id": "INT", **KEY_TYPES, "v": "STRING"}, keys=("id", *KEY_TYPES), options={"bucket": "3"})
    return Kind(
        made, [Step(tuple(("+I", row) for row in key_rows(first, "v"))) for first in (0, 6)], early=False
    )


def key_rows(first: int, prefix: str, count: int = 12) -> list[dict[str, Any]]:
    """Rows whose key columns all depend on the number alone."""
    moment = dt.datetime(2024, 2, 29, 12, 34, 56)  # noqa: DTZ001
    return [
        {
            "id": n, "k_int": -n, "k_big": n * 2**33 - 5, "k_tiny": n - 8, "k_small": -300 + n, "k_bool": n % 2 == 0,
            "k_dec": Decimal(n * 7 - 30).scaleb(-2), "k_dec38": Decimal(n * 10**20 - 128).scaleb(-4),
            "k_text": "é日本語-long"[: n + 1], "k_char": "abcde"[: n % 5], "k_date": dt.date(1970, 1, 1 + n),
            "k_ts3": moment + dt.timedelta(milliseconds=n), "k_ts6": moment + dt.timedelta(microseconds=n - 6),
            "k_ltz": (moment + dt.timedelta(microseconds=n)).replace(tzinfo=dt.UTC), "k_bytes": bytes(range(n)),
            "k_double": n / 8 - 0.5, "v": f"{prefix}{n}",
        }
        for n in range(first, first + count)
    ]  # fmt: skip


def _evolving(*, keyed: bool) -> Kind:
    first, steps = evolving_steps(keyed=keyed, options={"bucket": "1"} if keyed else {})
    return Kind(first, steps, early=False)


OURS: dict[str, Callable[[], Kind]] = {
    "all_types": lambda: _keyed({"id": "BIGINT", **ALL_TYPES}, seed=11),
    "nested": lambda: _keyed({"id": "BIGINT", **NESTED_TYPES}, seed=12, small=1),
    "with_time": lambda: replace(
        _keyed({"id": "BIGINT", "t": "TIME(3)"}, seed=13, small=1), readers=EVERYBODY - {"spark"}
    ),
    "to_nothing_and_back": _to_nothing_and_back,
    "folding": _folding,
    "rolled_manifests": _rolled_manifests,
    "key_types": _key_types,
    "sequence_field": _sequence,
    "without_changelog": lambda: _keyed(_FEW, seed=14, small=2, changelog_producer="none"),
    "overwritten_keyed": _overwritten_keyed,
    "partitioned_keyed": _partitioned_keyed,
    "partitioned_append": _partitioned_append,
    "append": lambda: replace(KINDS["append"](), early=False),
    "append_bucketed": lambda: replace(KINDS["append_bucketed"](), early=False),
    "every_partition_type": lambda: replace(KINDS["every_partition_type"](), early=False),
    "hollow_rows": lambda: replace(KINDS["hollow_rows"](), early=False),
    "evolving_keyed": lambda: _evolving(keyed=True),
    "evolving_append": lambda: _evolving(keyed=False),
}
