"""Unknown table options: each place where options come in refuses what nobody knows, and keeps what others own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from dbt.adapters.tablestore.config.model_config import read_settings
from tablestore_engine.api import Engine, IngestSpec, TableSpec, WriteSpec
from tablestore_engine.cli.main import main
from tablestore_engine.errors import FixRequest, TablestoreError
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.options import check_options
from tablestore_engine.options.not_built import is_named
from tablestore_engine.options.paimon_keys import PAIMON_KEYS
from tablestore_engine.options.table_options import REFUSED, find_option
from tablestore_engine.sql.statement import AddColumns, SetProperties
from tablestore_engine.warehouse.statements.alter_statement import alter_schema
from tablestore_engine.warehouse.write.incoming_rows import from_arrow
from tablestore_engine.warehouse.write.target_schema import plan_target
from tablestore_engine.warehouse.write.write_spec import OnSchemaChange

ROWS = pa.table({"id": pa.array([], pa.int64())})
FIELDS = from_arrow(ROWS).fields
Place = Callable[[Engine, Path, dict[str, str]], object]


def _planned(options: Mapping[str, str], current: TableSchema | None = None) -> TableSchema:
    spec = TableSpec(("id",), options=options)
    return plan_target(current, FIELDS, spec, OnSchemaChange.IGNORE, table="d.t", new_uuid="u").schema


def _dbt(**config: object) -> object:
    return read_settings("m", {"materialized": "table", **config}, None)


def _ingest(engine: Engine, folder: Path, options: dict[str, str]) -> object:
    (folder / "in.jsonl").write_text('{"before": null, "after": {"id": 1}, "op": "c"}\n')
    spec = IngestSpec("debezium-json", "d.i", path=str(folder / "in.jsonl"), key=("id",), infer=True)
    return engine.ingest(replace(spec, options=options))


def _command(engine: Engine, folder: Path, options: dict[str, str]) -> None:
    (folder / "in.jsonl").write_text('{"before": null, "after": {"id": 1}, "op": "c"}\n')
    words = ["ingest", "debezium-json", "--path", str(folder / "in.jsonl"), "--into", "d.c", "--key", "id"]
    words += [*("--warehouse", engine.warehouse), "--infer"]
    for key, text in options.items():
        words += ["--option", f"{key}={text}"]
    if main(words):
        raise AssertionError("an error has a code")


PLACES: dict[str, Place] = {
    "CREATE TABLE": lambda _engine, _folder, options: _planned(options),
    "write to a table": lambda _engine, _folder, options: _planned(options, _planned({})),
    "ALTER TABLE": lambda _engine, _folder, options: alter_schema(
        _planned({}), SetProperties(tuple(options.items())), ()
    ),
    "table_properties": lambda _engine, _folder, options: _dbt(table_properties=options),
    "tblproperties": lambda _engine, _folder, options: _dbt(tblproperties=options),
    "meta.tablestore": lambda _engine, _folder, options: _dbt(
        meta={"tablestore": {"table_properties": options}}
    ),
    "create_table": lambda engine, _folder, options: engine.create_table("d.p", ROWS, options=options),
    "Engine.write": lambda engine, _folder, options: engine.write(
        "d.w", ROWS, WriteSpec(TableSpec(options=options))
    ),
    "Engine.ingest": _ingest,
}
KEPT = {
    "target-file-size": "64 mb", "file.compression": "snappy", "fields.id.stats-mode": "full", "branch": "main",
    "write-buffer-size": "64 mb", "sink.parallelism": "4", "parquet.block.size": "1", "comment": "c", "owner": "o",
    "flink.x": "1", "spark.y": "1", "hive.z": "1", "option.a": "1", "dbt.b": "1", "meta.team": "sales",
    "transient_lastDdlTime": "1",
}  # fmt: skip
UNKNOWN = {  # key → the nearest one
    "bukcet": "bucket", "BUCKET": "bucket", "snapshot.time-retention": "snapshot.time-retained",
    "compression": "file.compression", "scan.modes": "scan.mode", "parquet.row-group-row": "parquet.row-group-rows",
    "write-buffer-sise": "write-buffer-size", "fields.id.stat-mode": "fields.<column>.stats-mode",
    "log.systems": "log.system", "tablestore.compactoin": "tablestore.compaction", "zzqqxx": None, "owner.team": None,
}  # fmt: skip


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    """One without Spark."""
    with Engine(str(tmp_path / "w")) as engine:
        yield engine


@pytest.mark.parametrize("place", PLACES)
def test_unknown_option_in_each_place_is_refused_with_the_nearest_name(
    place: str, engine: Engine, tmp_path: Path
) -> None:
    """TS1006 for each misspelt or foreign key; the same place takes what has a reader somewhere."""
    for key, near in UNKNOWN.items():
        with pytest.raises(FixRequest) as caught:
            PLACES[place](engine, tmp_path, {key: "1"})
        assert (caught.value.code, repr(key) in caught.value.what) == ("TS1006", True)
        assert near is None or repr(near) in caught.value.why, caught.value.why
        assert "meta." in caught.value.fix
    PLACES[place](engine, tmp_path, KEPT)


def test_command_line_refuses_unknown_option(
    engine: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`tablestore ingest --option` prints the error and makes no table."""
    engine.create_database("d")
    with pytest.raises(AssertionError, match="has a code"):
        _command(engine, tmp_path, {"bukcet": "2"})
    assert "TS1006" in (told := capsys.readouterr().err)
    assert "'bucket'" in told
    assert engine.find_table("d.c") is None
    _command(engine, tmp_path, {"bucket": "2", "flink.x": "1"})
    assert engine.table("d.c").schema.options["flink.x"] == "1"


def test_unknown_option_of_another_engine_stays(engine: Engine) -> None:
    """A table that has one is altered and written, also by a write that repeats it; another value is refused."""
    foreign = replace(_planned({}), options={**_planned({}).options, "of.another": "1"})
    assert "of.another" in alter_schema(foreign, AddColumns(()), ()).options
    assert alter_schema(foreign, SetProperties((("of.another", "1"),)), ()).options["of.another"] == "1"
    assert (
        _planned({"of.another": "1", "snapshot.num-retained.min": "3"}, foreign).options["of.another"] == "1"
    )
    for change in (
        lambda: _planned({"of.another": "2"}, foreign),
        lambda: alter_schema(foreign, SetProperties((("of.another", "2"),)), ()),
    ):
        with pytest.raises(FixRequest, match="TS1006"):
            change()


def test_keys_of_paimon_are_in_one_list() -> None:
    """No key with a row in another table stands in the list, and none that would be refused as a secret."""
    assert not [key for key in PAIMON_KEYS if find_option(key) or key in REFUSED or is_named(key)]
    for key in sorted(PAIMON_KEYS):
        if key.startswith(("scan.", "log.")):  # known to Paimon and read by nothing here
            with pytest.raises(TablestoreError, match="TS1072"):
                check_options({key: "1"})
        else:
            check_options({key: "1"})
