"""The features of the interop matrix: a line for each, with the function that gives it to a table.

CHANGE     which features random tables have: add a line to its axis; what is drawn decides nothing about outcomes
Order      an axis sees what those before it have drawn
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from integration_tests.interop.matrix import rules
from integration_tests.interop.matrix.draft import Draft, Feature
from integration_tests.interop.sample_data import ALL_TYPES, NESTED_TYPES
from integration_tests.interop.schemas import Type

_PARTITIONS: Mapping[str, tuple[Type, Sequence[Any]]] = {
    "p_text": ("STRING", ("a", "b:c=d é%", " x", "2024-01-01")),
    "p_day": ("DATE", (dt.date(2024, 1, 1), dt.date(1969, 12, 31), dt.date(2030, 2, 28))),
    "p_int": ("INT", (7, -3, 2_000_000)),
    "p_dec": ("DECIMAL(10, 2)", (Decimal("-1.50"), Decimal("7.00"))),
    "p_bool": ("BOOLEAN", (True, False)),
    "p_ts": ("TIMESTAMP(3)", (dt.datetime(2024, 1, 1, 12, 34, 56, 789000), dt.datetime(2024, 1, 1))),  # noqa: DTZ001
}
_CENTS = (Decimal("0.01"), Decimal("-7.25"), Decimal("120.00"))


def _options(**options: str) -> Callable[[Draft], None]:
    """`_` of a name stands for `-`, `__` for `.`."""
    named = {key.replace("__", ".").replace("_", "-"): value for key, value in options.items()}
    return lambda draft: draft.options.update(named)


def _nothing(_: Draft) -> None:
    """The axis leaves the table as it is."""


# keys, columns, partitions, buckets ----------------------------------------------------------------------------


def _key(draft: Draft) -> None:
    draft.keys = ("id",)


def _wide_key(draft: Draft) -> None:
    draft.columns["k_text"] = draft.chance.choice(("STRING", "VARCHAR(20)"))
    draft.columns["k_day"] = draft.chance.choice(("TIMESTAMP(3)", "DECIMAL(10, 2)", "INT", "BOOLEAN"))
    draft.keys = ("id", "k_text", "k_day")


def _no_key(draft: Draft) -> None:
    draft.deletes = "none"


def _atomic(draft: Draft) -> None:
    for name in draft.chance.sample(sorted(ALL_TYPES), 5):
        draft.columns[name] = ALL_TYPES[name]


def _nested(draft: Draft) -> None:
    for name in draft.chance.sample(sorted(NESTED_TYPES), 2):
        draft.columns[name] = NESTED_TYPES[name]
    draft.columns["c_text"] = "STRING"


def _time(draft: Draft) -> None:
    draft.columns.update({"c_time": "TIME(3)", "c_int": "INT"})


def _partitioned(*names: str) -> Callable[[Draft], None]:
    def add(draft: Draft) -> None:
        for name in names or draft.chance.sample(sorted(_PARTITIONS), 1):
            draft.columns = {name: _PARTITIONS[name][0], **draft.columns}
            draft.values[name] = _PARTITIONS[name][1]
            draft.partitions = (name, *draft.partitions)
        draft.keys = (*draft.partitions, *draft.keys) if draft.is_keyed else ()

    return add


def _across_partitions(draft: Draft) -> None:
    draft.need(fits=draft.is_keyed)
    draft.columns = {"p_text": "STRING", **draft.columns}
    draft.values["p_text"] = _PARTITIONS["p_text"][1]
    draft.partitions, draft.moves = ("p_text",), True


def _fixed(draft: Draft) -> None:
    draft.need(fits=draft.is_keyed and not draft.moves)
    draft.options["bucket"] = str(draft.chance.choice((1, 2, 3)))


def _bucket_function(draft: Draft) -> None:
    draft.need(fits=draft.keys == ("id",) and not draft.moves)
    draft.options.update({"bucket": "3", "bucket-function.type": "mod", "bucket-key": "id"})


def _dynamic(draft: Draft) -> None:
    draft.need(fits=draft.is_keyed)
    draft.options.update({"bucket": "-1", "dynamic-bucket.target-row-num": "7"})


def _unaware(draft: Draft) -> None:
    draft.need(fits=not draft.is_keyed)
    draft.options["bucket"] = "-1"


def _bucketed(draft: Draft) -> None:
    draft.need(fits=not draft.is_keyed)
    draft.options.update({"bucket": "2", "bucket-key": "id"})


# merge engines -------------------------------------------------------------------------------------------------


def _deduplicate(draft: Draft) -> None:
    draft.need(fits=draft.is_keyed)


def _ignore_delete(draft: Draft) -> None:
    draft.need(fits=draft.is_keyed and not draft.moves)
    draft.options["ignore-delete"] = "true"
    draft.rule = rules.latest_without_deletes


def _kind_column(draft: Draft) -> None:
    draft.need(fits=draft.is_keyed and draft.rule is rules.latest and not draft.moves)
    draft.columns["kind"], draft.kind_column = "STRING", "kind"
    draft.options["rowkind.field"] = "kind"


def _sequence(*columns: str) -> Callable[[Draft], None]:
    def add(draft: Draft) -> None:
        draft.need(fits=draft.is_keyed and not draft.moves)
        for name in columns:
            draft.columns[name], draft.values[name] = "INT", range(5)
        draft.options["sequence.field"] = ",".join(columns)
        draft.rule, draft.deletes = rules.by_sequence(*columns), "none"

    return add


def _first_row(draft: Draft) -> None:
    draft.need(fits=draft.is_keyed and not draft.moves)
    ignores = draft.chance.random() < 0.5
    draft.options["merge-engine"] = "first-row"
    draft.rule, draft.deletes = rules.first, "free" if ignores else "none"
    if ignores:
        draft.options["ignore-delete"] = "true"


def _partial(on_delete: str, **options: str) -> Callable[[Draft], None]:
    def add(draft: Draft) -> None:
        draft.need(fits=draft.is_keyed and not draft.moves)
        _options(merge_engine="partial-update", **options)(draft)
        draft.rule = rules.partial(on_delete=on_delete)
        draft.deletes = {"": "none", "remove": "final", "ignore": "free"}[on_delete]

    return add


def _groups(draft: Draft) -> None:
    draft.need(fits=draft.is_keyed and not draft.moves)
    draft.columns.update(
        {"g": "INT", "ga": "STRING", "gs": "BIGINT", "h": "INT", "hb": "STRING", "hm": "DATE"}
    )
    draft.values.update({"g": range(4), "gs": range(9), "h": range(3)})
    draft.filled |= {"g", "h"}
    _options(
        merge_engine="partial-update",
        fields__g__sequence_group="ga,gs",
        fields__h__sequence_group="hb,hm",
        fields__gs__aggregate_function="sum",
        fields__hm__aggregate_function="max",
    )(draft)
    draft.values["hm"] = [dt.date(2024, 1, day) for day in range(1, 9)]
    draft.rule = rules.in_groups({"g": ("ga", "gs"), "h": ("hb", "hm")}, {"gs": "sum", "hm": "max"})
    draft.deletes = "none"


def _aggregating(
    columns: Mapping[str, tuple[Type, str, Sequence[Any]]], *, deletes: str = "none", **options: str
) -> Callable[[Draft], None]:
    """{column: type, function, values}."""

    def add(draft: Draft) -> None:
        draft.need(fits=draft.is_keyed and not draft.moves)
        draft.options.update({"merge-engine": "aggregation"})
        for name, (type_, function, values) in columns.items():
            draft.columns[name], draft.values[name] = type_, values
            draft.options[f"fields.{name}.aggregate-function"] = function
        _options(**options)(draft)
        removes = "aggregation__remove_record_on_delete" in options
        draft.rule = rules.aggregated({name: one[1] for name, one in columns.items()}, removes=removes)
        draft.deletes = deletes
        draft.retracted = frozenset(columns) if deletes == "free" else None

    return add


_SUMS: Mapping[str, tuple[Type, str, Sequence[Any]]] = {
    "s_int": ("INT", "sum", range(-5, 9)),
    "s_big": ("BIGINT", "sum", (2**40, -3, 10**15)),
    "s_dec": ("DECIMAL(18, 2)", "sum", _CENTS),
}
_PICKS: Mapping[str, tuple[Type, str, Sequence[Any]]] = {
    "a_min": ("STRING", "min", ("b", "a", "A", "zz")),
    "a_max": ("DATE", "max", (dt.date(2024, 1, 1), dt.date(1969, 1, 1), dt.date(2030, 5, 5))),
    "a_first": ("INT", "first_value", range(9)),
    "a_some": ("STRING", "first_non_null_value", "abcd"),
    "a_last": ("STRING", "last_value", "abcd"),
    "a_and": ("BOOLEAN", "bool_and", (True, False)),
    "a_or": ("BOOLEAN", "bool_or", (True, False)),
    "a_times": ("BIGINT", "product", (1, -1, 2, 3)),
}
_MAPS: Sequence[Any] = ([("a", 1)], [("b", 2), ("a", 9)], [("c", None)], [])
_LISTS: Mapping[str, tuple[Type, str, Sequence[Any]]] = {
    "l_text": ("STRING", "listagg", ("x", "y", "z z")),
    "l_ints": (("ARRAY", "INT"), "collect", ([1], [2, 3, 2], [], [None, 1])),
    "l_map": (("MAP", "STRING", "INT"), "merge_map", _MAPS),
}


# changelogs, files, indexes ------------------------------------------------------------------------------------


def _producer(name: str) -> Callable[[Draft], None]:
    def add(draft: Draft) -> None:
        first = draft.options.get("merge-engine") == "first-row"
        plain = draft.rule is rules.latest
        draft.need(fits=draft.is_keyed and (not first or name == "lookup"))
        draft.need(fits=not draft.moves or name in ("lookup", "none"))
        draft.need(fits=name != "input" or plain)
        draft.options["changelog-producer"] = name

    return add


def _vectors(**options: str) -> Callable[[Draft], None]:
    def add(draft: Draft) -> None:
        producer = draft.options.get("changelog-producer", "none")
        first = draft.options.get("merge-engine") == "first-row"
        draft.need(fits=not first and producer != "full-compaction")
        _options(deletion_vectors__enabled="true", **options)(draft)

    return add


def _merge_on_read(draft: Draft) -> None:
    draft.options["deletion-vectors.enabled"] = "false"


def _format(name: str) -> Callable[[Draft], None]:
    def add(draft: Draft) -> None:
        kinds = {str(type_).split("(")[0] for type_ in draft.columns.values()}
        if name == "orc":  # Java reads -0.0 in ORC as 0.0, and drops blanks of CHAR (golden.py)
            draft.need(fits=not kinds & {"CHAR", "FLOAT", "DOUBLE"})
        draft.options["file.format"] = name

    return add


def _index(kind: str) -> Callable[[Draft], None]:
    def add(draft: Draft) -> None:
        plain = [one for one, type_ in draft.columns.items() if type_ in ("STRING", "INT", "BIGINT", "DATE")]
        draft.need(fits=bool(plain) and draft.options.get("file.format") == "parquet")
        draft.options[f"file-index.{kind}.columns"] = ",".join(plain[:2])

    return add


# layout, rules of rows ------------------------------------------------------------------------------------------


def _clustered(draft: Draft) -> None:
    draft.need(fits=not draft.is_keyed and draft.options.get("bucket") == "-1")
    draft.columns["l_int"] = "INT"
    draft.options["clustering.columns"] = "id,l_int"
    draft.options["clustering.strategy"] = draft.chance.choice(("order", "zorder", "hilbert"))


def _defaults(draft: Draft) -> None:
    draft.need(fits=draft.options.get("merge-engine") in (None, "first-row"))
    draft.columns.update({"d_text": "STRING", "d_int": "INT"})
    draft.defaults.update({"d_text": ("new", "new"), "d_int": ("7", 7)})


def _record_expiry(draft: Draft) -> None:
    """Of rows that are young until 2033: when older ones go depends on compactions."""
    draft.need(fits=draft.is_keyed)
    draft.columns["r_time"], draft.values["r_time"] = "INT", (2_000_000_000, 2_000_000_001)
    draft.filled.add("r_time")  # paimon-spark 0.9.0 fails on NULL
    draft.options.update({"record-level.expire-time": "1 d", "record-level.time-field": "r_time"})


# histories -----------------------------------------------------------------------------------------------------


def _evolves(draft: Draft) -> None:
    """The columns that the history changes."""
    draft.columns.update({"e_old": "STRING", "e_gone": "INT", "e_wide": "INT", "e_ratio": "FLOAT"})
    draft.need(fits=draft.options.get("file.format") != "orc")
    draft.history.append("evolve")


def _happens(name: str, *, partitioned: bool = False) -> Callable[[Draft], None]:
    def add(draft: Draft) -> None:
        draft.need(fits=not partitioned or (bool(draft.partitions) and not draft.moves))
        draft.history.append(name)

    return add


def _sometimes(name: str, add: Callable[[Draft], None], weight: float = 0.3) -> tuple[Feature, ...]:
    """An axis of its own: the feature, or nothing."""
    return Feature(name, add, weight), Feature("", _nothing, 1 - weight)


AXES: tuple[tuple[Feature, ...], ...] = (
    (
        Feature("key of one column", _key, 4),
        Feature("key of three columns", _wide_key),
        Feature("no key", _no_key, 2),
    ),
    (Feature("atomic types", _atomic, 3), Feature("nested types", _nested), Feature("TIME", _time, 0.3)),
    (
        Feature("no partitions", _nothing, 3),
        Feature("partitions by one column", _partitioned(), 3),
        Feature("partitions by two columns", _partitioned("p_day", "p_text")),
        Feature("keys across partitions", _across_partitions, 0.5),
    ),
    (
        Feature("fixed buckets", _fixed, 4),
        Feature("`bucket-function.type` = `mod`", _bucket_function),
        Feature("dynamic buckets", _dynamic, 2),
        Feature("no buckets", _unaware, 2),
        Feature("append table with buckets", _bucketed),
    ),
    (
        Feature("`deduplicate`", _deduplicate, 4),
        Feature("`ignore-delete`", _ignore_delete),
        Feature("`sequence.field`", _sequence("at")),
        Feature("`sequence.field` of two columns", _sequence("at", "nth"), 0.6),
        Feature("`first-row`", _first_row, 1.5),
        Feature("`partial-update`", _partial("")),
        Feature("`partial-update`, deletes ignored", _partial("ignore", ignore_delete="true"), 0.6),
        Feature(
            "`partial-update.remove-record-on-delete`",
            _partial("remove", partial_update__remove_record_on_delete="true"),
            0.6,
        ),
        Feature("sequence groups, with aggregates", _groups),
        Feature("`aggregation`: sums, with retractions", _aggregating(_SUMS, deletes="free")),
        Feature("`aggregation`: first, last, min, max, bool, product", _aggregating(_PICKS)),
        Feature("`aggregation`: listagg, collect, merge_map", _aggregating(_LISTS)),
        Feature(
            "`aggregation.remove-record-on-delete`",
            _aggregating(_SUMS, deletes="final", aggregation__remove_record_on_delete="true"),
            0.6,
        ),
    ),
    (
        Feature("changelog producer `lookup`", _producer("lookup"), 4),
        Feature("changelog producer `none`", _producer("none")),
        Feature("changelog producer `input`", _producer("input")),
        Feature("changelog producer `full-compaction`", _producer("full-compaction"), 0.4),
    ),
    (
        Feature("deletion vectors of 32 bits", _vectors(), 4),
        Feature("deletion vectors of 64 bits", _vectors(deletion_vectors__bitmap64="true")),
        Feature("no deletion vectors", _merge_on_read, 0.6),
    ),
    (
        Feature("Parquet", _format("parquet"), 7),
        Feature("ORC", _format("orc")),
        Feature("Avro", _format("avro")),
    ),
    (
        Feature("bloom-filter indexes", _index("bloom-filter"), 1),
        Feature("bitmap indexes", _index("bitmap"), 1),
        Feature("", _nothing, 4),
    ),
    _sometimes("`rowkind.field`", _kind_column, 0.15),
    _sometimes("clustering", _clustered, 0.4),
    _sometimes("defaults of columns", _defaults, 0.15),
    _sometimes("record expiry", _record_expiry, 0.12),
    _sometimes("columns added, renamed, dropped, widened", _evolves),
    _sometimes("overwritten table", _happens("overwrite table"), 0.2),
    _sometimes("overwritten partition", _happens("overwrite partition", partitioned=True)),
    _sometimes("dynamic overwrite", _happens("overwrite dynamic", partitioned=True)),
    _sometimes("full compaction", _happens("compact"), 0.5),
    _sometimes("tags", _happens("tag")),
    _sometimes("expired snapshots", _happens("expire")),
    _sometimes("branches, fast-forward", _happens("branch"), 0.25),
)
FEATURES: tuple[str, ...] = tuple(one.name for axis in AXES for one in axis if one.name)
