"""What of the format is read, written or refused: one table, asked before anything else is done (format.md#options).

CHANGE     which Paimon features are read, written and refused
INVARIANT  a feature that changes which rows are right is refused, never ignored (P6).
"""

# ruff: noqa: PLC0415 - imports in functions: a table that needs none of it loads none of it (decision 0137)
from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from tablestore_engine.errors import Unsupported
from tablestore_engine.format.data_type import BINARY_ROOTS, TIMESTAMP_ROOTS, is_fine_timestamp
from tablestore_engine.format.layout import POSTPONE_BUCKET, file_format
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.options import AGGREGATE_FUNCTIONS, MERGE_ENGINES, OPTIONS

Detect = Callable[[TableSchema], str | None]  # the option or column that shows the feature, None without it

READABLE_FORMATS = ("parquet", "orc", "avro")
_WRITTEN = ("parquet",)


@dataclass(frozen=True)
class Capability:
    """One feature; `detect` gives the evidence in a schema, e.g. ``row-tracking.enabled=true``.

    `fix`: what a writer may do instead; empty: another engine, or another table.
    """

    feature: str
    detect: Detect
    why: str
    read: bool = False
    write: bool = False
    fix: str = ""


def option_in(
    key: str, *, refused: Collection[str] = ("true",), allowed: Collection[str] | None = None
) -> Detect:
    """Detects an option whose value is in `refused`, or, when given, not in `allowed` (case does not matter)."""

    def detect(schema: TableSchema) -> str | None:
        value = schema.options.get(key)
        if value is None:
            return None
        text = value.strip().lower()
        hit = text not in allowed if allowed is not None else text in refused
        return f"{key}={value}" if hit else None

    return detect


def option_like(pattern: str) -> Detect:
    """Detects any option whose whole key matches the regular expression."""
    compiled = re.compile(pattern)

    def detect(schema: TableSchema) -> str | None:
        for key, value in sorted(schema.options.items()):
            if compiled.fullmatch(key):
                return f"{key}={value}"
        return None

    return detect


def column_of(roots: Collection[str]) -> Detect:
    """Detects a column, at any depth, of one of these types."""

    def detect(schema: TableSchema) -> str | None:
        for field in schema.fields:
            for type_ in field.type.walk():
                if type_.root in roots:
                    return f"column {field.name} has {type_.root}"
        return None

    return detect


def _mixed_times(schema: TableSchema) -> str | None:
    """A nested column with timestamps in nanoseconds and others: Arrow reads INT96 of a column in one unit."""
    for field in schema.fields:
        kinds = {is_fine_timestamp(part) for part in field.type.walk() if part.root in TIMESTAMP_ROOTS}
        if len(kinds) > 1:
            return f"column {field.name} has timestamps of more than 6 digits and of fewer"
    return None


def _binary_partition(schema: TableSchema) -> str | None:
    for field in schema.fields_of(schema.partition_keys):
        if field.type.root in BINARY_ROOTS:
            return f"partition column {field.name}"
    return None


def _floating_partition(schema: TableSchema) -> str | None:
    for field in schema.fields_of(schema.partition_keys):
        if field.type.root in ("FLOAT", "DOUBLE"):
            return f"partition column {field.name} is {field.type.root}"
    return None


def _other_function(schema: TableSchema) -> str | None:
    """An aggregate function of a table that uses them."""
    from tablestore_engine.options import DEFAULT_FUNCTION, FieldOptions

    if schema.options.get("merge-engine", "").strip().lower() not in ("aggregation", "partial-update"):
        return None
    named = FieldOptions(schema.options).keys("aggregate-function")
    for key in (DEFAULT_FUNCTION, *named):
        value = schema.options.get(key)
        if value is not None and value not in AGGREGATE_FUNCTIONS:
            return f"{key}={value}"
    return None


def _other_tags(schema: TableSchema) -> str | None:
    """A table whose commits make tags, by another time or with other names than ours do."""
    if option_in("tag.automatic-creation", allowed=("", "none"))(schema) is None:
        return None
    rules = (
        option_in("tag.automatic-creation", allowed=("process-time",)),
        option_in("tag.period-formatter", allowed=("with_dashes",)),
        option_like(r"tag\.creation-period-duration"),
        option_in("tag.automatic-completion"),
    )
    return next((found for rule in rules if (found := rule(schema)) is not None), None)


def _bucket(wanted: Callable[[TableSchema, int], bool]) -> Detect:
    def detect(schema: TableSchema) -> str | None:
        return f"bucket={schema.bucket_count}" if wanted(schema, schema.bucket_count) else None

    return detect


def _log_of(schema: TableSchema) -> str | None:
    system = schema.options.get("log.system", "none")
    return f"log.system={system}" if system.strip().lower() != "none" else None


def _no_bucket_key(schema: TableSchema) -> str | None:
    fixed = not schema.is_keyed and schema.bucket_count > 0 and not schema.bucket_keys
    return f"bucket={schema.bucket_count} without bucket-key" if fixed else None


def _past_scan_mode(schema: TableSchema) -> str | None:
    """`scan.mode`, or `log.scan`, that is not of the newest snapshot; only readers that follow may begin elsewhere."""
    for key in ("scan.mode", "log.scan"):
        evidence = option_in(key, allowed=OPTIONS["scan.mode"].values)(schema)
        if evidence is not None:
            return evidence
    return None


def _other_default(schema: TableSchema) -> str | None:
    """A default of a column that this engine would give another value than Java."""
    if all(field.default_value is None for field in schema.fields):
        return None
    from tablestore_engine.format.column_default import find_other_default

    return find_other_default(schema)


def _other_kind_column(schema: TableSchema) -> str | None:
    """A column of row kinds that Paimon refuses, or without a key."""
    if "rowkind.field" not in schema.options:
        return None
    from tablestore_engine.format.kind_column import find_other_kind_column

    return find_other_kind_column(schema)


_SET_PARQUET = "set it to parquet there: files in the other format stay readable"
_CONVERT = "convert it: `tablestore convert DATABASE.TABLE`, with the other engine's jobs on it stopped"
CAPABILITIES: tuple[Capability, ...] = (
    # shape of the table
    Capability("table type", option_in("type", allowed=("", "table")), "only plain tables hold rows in our layout"),
    Capability(
        "BLOB or VECTOR column", column_of(("BLOB", "VECTOR")),
        "BLOB needs data evolution, and Java has no Parquet form of VECTOR",
    ),
    Capability(
        "timestamps of two units in one column", _mixed_times,
        "years before 1677 and after 2262 could be written, and not read again", read=True,
        fix="give all timestamps of that column the same number of digits",
    ),
    Capability(
        "binary partition column", _binary_partition,
        "Java names its directory by the identity of an object, another one for each write",
    ),
    Capability(
        "floating partition column", _floating_partition,
        "its directory name differs between versions of Java (1.17549435E-38 or 1.1754944E-38)", read=True,
    ),
    Capability(
        "postponed bucket", _bucket(lambda _s, n: n == POSTPONE_BUCKET),
        "rows wait for a bucket until a compaction of Flink; no engine shows them before", read=True,
    ),
    Capability("bucket count", _bucket(lambda _s, n: n == 0 or n < POSTPONE_BUCKET), "no such bucket mode"),
    Capability(
        "log of keys across partitions",
        lambda schema: _log_of(schema) if schema.crosses_partitions else None,
        "the delete in the old partition and the new row may come in any order", read=True,
        fix="leave log.system out: streams read the changelog of the files",
    ),
    Capability(
        "fixed buckets without key", _no_bucket_key,
        "Paimon makes no such table: versions up to 0.8 put a row into a bucket by all its columns, newer ones refuse",
        read=True, fix="name columns in 'bucket-key', or leave 'bucket' out",
    ),
    Capability(
        "bucket function", option_in("bucket-function.type", allowed=("default", "mod", "hive")),
        "the bucket of a row is not known", read=True,
    ),
    # which version of a row wins
    Capability(
        "merge engine", option_in("merge-engine", allowed=MERGE_ENGINES),
        f"only {', '.join(MERGE_ENGINES)} is implemented; other engines combine rows",
    ),
    Capability(
        "aggregate function", _other_function,
        f"only {', '.join(AGGREGATE_FUNCTIONS)} are known; rbm64 and sketches have bytes of a Java library",
        fix="use another function (rbm32, collect with distinct), or write the table in an engine that has this one",
    ),
    Capability(
        "changelog producer", option_in("changelog-producer", allowed=("none", "lookup", "input")),
        "Paimon refuses it beside deletion vectors; lookup has the same changes, with each commit", read=True,
        fix="leave 'changelog-producer' out for a new table (lookup); a table of another engine: "
        "`tablestore convert DATABASE.TABLE`, with the other engine's jobs on it stopped",
    ),
    Capability(
        "row kind column of another kind", _other_kind_column,
        "row kinds are texts of a table with a primary key", read=True,
    ),
    Capability("nullable primary key", option_in("primary-key.nullable"), "keys are NOT NULL here"),
    Capability(
        "default of another engine", _other_default, "NULL would be written instead", read=True,
        fix="change the default there to a literal of the column's type, or leave it out",
    ),
    # deletion vectors
    Capability(
        "merge on read of level 0", option_in("deletion-vectors.merge-on-read"),
        "writers here take level 0 in, so that no reader has to merge", read=True,
        fix="set it to false there: rows in level 0 are then shown after the next compaction, ours too",
    ),
    # what each commit of a table is followed by
    Capability(
        "Iceberg metadata in a catalog",
        option_in("metadata.iceberg.storage", allowed=("", *OPTIONS["metadata.iceberg.storage"].values)),
        "Iceberg readers would see an old state: no catalog is updated", read=True,
    ),
    Capability(
        "tags by another rule", _other_tags, "our commits make tags by the time of their snapshot, named with dashes",
        read=True, fix="set tag.automatic-creation to none there",
    ),
    Capability("commit callbacks", option_like(r"commit\.callbacks"), "no Java class is called here", read=True),
    Capability(
        "partitions in a metastore", option_in("metastore.partitioned-table"),
        "new partitions would be missing there", read=True,
    ),
    Capability(
        "changelogs that outlive snapshots", option_like(r"changelog\.(num-retained\.(min|max)|time-retained)"),
        "our expiry deletes a changelog with its snapshot", read=True,
    ),
    # files
    Capability("manifest format", option_in("manifest.format", allowed=("", "avro")), "only Avro manifests are read"),
    Capability("index files beside data", option_in("index-file-in-data-file-dir"), "vectors would be missing"),
    Capability(
        "file format", option_in("file.format", allowed=_WRITTEN), "only parquet is written", read=True,
        fix=_SET_PARQUET,
    ),
    Capability(
        "changelog file format", option_in("changelog-file.format", allowed=_WRITTEN),
        "only parquet is written", read=True, fix=_SET_PARQUET,
    ),
    Capability("format per level", option_like(r"file\.format\.per\.level"), "one format for all levels", read=True),
    Capability(
        "external data files", option_like(r"data-file\.external-paths(\..*)?"),
        "our files would be in another folder than the table says", read=True,
    ),
    Capability("data directory", option_like(r"data-file\.path-directory"), "files are in another directory"),
    Capability("map layout", option_like(r"map\.storage-layout(\..*)?"), "maps are stored in another shape"),
    # newer ways to number and arrange rows
    Capability("row tracking", option_in("row-tracking.enabled"), "row ids are not assigned"),
    Capability("data evolution", option_in("data-evolution.enabled"), "rows are split over several files"),
    Capability("clustered keys", option_in("pk-clustering-override"), "files are not sorted by key"),
    Capability("snapshot ordering", option_in("sequence.snapshot-ordering"), "rows are ordered by snapshot"),
    Capability(
        "sequence number mode", option_in("write.sequence-number-init-mode", refused=("snapshot",)),
        "sequence numbers start from the snapshot",
    ),
    Capability("chain table", option_in("chain-table.enabled"), "rows are spread over branches"),
    Capability("primary key index", option_like(r"pk-.*\.index\.columns"), "the index would not be kept"),
    # options that change what a plain read returns
    Capability("fallback branch", option_like(r"scan\.fallback-branch"), "partitions come from another branch"),
    Capability(
        "fixed scan position",
        option_like(r"scan\.(snapshot-id|tag-name|timestamp|timestamp-millis|version|watermark|.*creation-time.*)"),
        "every read would travel in time", write=True,
    ),
    Capability(
        "scan mode in the past", _past_scan_mode, "a plain read of other engines is of that state", write=True
    ),
    Capability("incremental scan", option_like(r"incremental-between.*"), "reads would be partial", write=True),
    Capability("authorised queries", option_in("query-auth.enabled"), "rows and columns are filtered by a server"),
)  # fmt: skip


def list_refusals(schema: TableSchema, *, write: bool) -> tuple[tuple[Capability, str], ...]:
    """Features of the table that we cannot write (or read), each with its evidence, in table order."""
    found = []
    for capability in CAPABILITIES:
        if not (capability.write if write else capability.read):
            evidence = capability.detect(schema)
            if evidence is not None:
                found.append((capability, evidence))
    return tuple(found)


def check_readable(schema: TableSchema, *, table: str = "") -> None:
    """Raises Unsupported TS1126 that names the features (and their options) that keep us from reading the table."""
    refusals = list_refusals(schema, write=False)
    if refusals:
        raise Unsupported(
            "TS1126",
            f"table {table} cannot be read: {_features(refusals)}".replace("  ", " "),
            why=_reasons(refusals),
            fix="read it with an engine that knows this feature, or copy it into a plain table there",
        )


def check_writable(schema: TableSchema, *, table: str = "") -> None:
    """Raises Unsupported TS1127 that names the features that keep us from writing; a table must be readable as well."""
    refusals = list_refusals(schema, write=True)
    if refusals:
        fixes = [one.fix for one, _evidence in refusals]
        raise Unsupported(
            "TS1127",
            f"table {table} cannot be written: {_features(refusals)}".replace("  ", " "),
            why=_reasons(refusals),
            fix=fixes[0]
            if all(fixes)
            else "write it with an engine that knows this feature, or create a plain table",
        )
    check_readable(schema, table=table)


def check_data_file(name: str) -> None:
    """Raises Unsupported TS1128 unless the extension of a data file is a format that is read here."""
    if file_format(name) not in READABLE_FORMATS:
        raise Unsupported(
            "TS1128",
            f"data file {name} cannot be read",
            why=f"format {file_format(name) or '(none)'!r}; expected {', '.join(READABLE_FORMATS)}",
            fix="compact the table with file.format=parquet in the engine that wrote it",
        )


def _features(refusals: Sequence[tuple[Capability, str]]) -> str:
    return ", ".join(f"{capability.feature} ({evidence})" for capability, evidence in refusals)


def _reasons(refusals: Sequence[tuple[Capability, str]]) -> str:
    return "; ".join(f"{capability.feature}: {capability.why}" for capability, _evidence in refusals)
