"""What a process loads for work that needs no Spark and no broker (decision 0137). Modules are counted, never time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from tablestore_engine import api, spi
from tablestore_engine.api import Engine
from tablestore_engine.lazy_names import load_on_use

ENGINE = "tablestore_engine"
# Neither these nor what lies below them; a raise of a number needs a reason in the record.
HEAVY = (
    "pyspark",
    "py4j",
    "pandas",
    "polars",
    "duckdb",
    "confluent_kafka",
    "obstore",
    "dbt",
    "sqlglot",
    "sqlite3",
)
PARTS = (
    "queryplan",
    "ingest",
    "datasource",
    "devservers",
    "postgres",
    "certify",
    "store.verify",
    "store.write",
    "cli",
)
LIGHT_SPARK = {f"{ENGINE}.spark{name}" for name in ("", ".lazy_resolver", ".lazy_session", ".spark_settings")}
LIGHT_SPARK |= {
    f"{ENGINE}.spark.{name}" for name in ("executors", "shard_executors")
}  # the session is begun by large work
_PRINT = "\nimport sys; print(*sys.modules, sep='\\n')"


def _loaded(program: str, *words: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", program + _PRINT, *words],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def _needless(loaded: set[str], but: tuple[str, ...] = ()) -> list[str]:
    roots = [one for one in (*HEAVY, *(f"{ENGINE}.{part}" for part in PARTS)) if one not in but]
    spark = {one for one in loaded if one.startswith(f"{ENGINE}.spark")} - LIGHT_SPARK
    return sorted(
        [one for one in loaded if any(one == r or one.startswith(f"{r}.") for r in roots)] + [*spark]
    )


def _count(loaded: set[str]) -> int:
    return sum(one.split(".")[0] == ENGINE for one in loaded)


def test_the_engine_loads_what_every_table_needs_and_no_more() -> None:
    """631 modules of the engine and 1,078 of others were loaded before this rule."""
    loaded = _loaded("from tablestore_engine.api import Engine")
    assert _needless(loaded) == []
    assert "pyarrow.compute" not in loaded
    assert _count(loaded) <= 170
    assert len(loaded) <= 480


def test_a_scan_loads_what_reading_needs(tmp_path: Path) -> None:
    """pyarrow itself imports pandas with the first value that it makes of Python's."""
    with Engine(tmp_path) as engine:
        engine.create_database("demo")
        orders = engine.create_table("demo.orders", pa.schema([("id", pa.int64())]), primary_key="id")
        orders.upsert(pa.table({"id": [1, 2]}))
    read = "import sys; from tablestore_engine.api import Engine\n"
    read += "with Engine(sys.argv[1]) as engine: assert engine.table('demo.orders').scan().to_arrow().num_rows == 2"
    loaded = _loaded(read, str(tmp_path))
    assert _needless(loaded, but=("pandas",)) == []
    assert _count(loaded) <= 195


@pytest.mark.parametrize("package", [api, spi], ids=["api", "spi"])
def test_no_name_of_a_lazy_package_is_a_module_of_it(package: object) -> None:
    """Import of such a module would put it in place of the name."""
    folder = Path(getattr(package, "__file__", "")).parent
    assert {path.stem for path in folder.glob("*.py")} & set(getattr(package, "__all__", ())) == set()


def test_a_lazy_package_refuses_names_that_it_does_not_have() -> None:
    """As a package of plain imports does, so that `hasattr` and `from … import` answer."""
    with pytest.raises(AttributeError, match=r"module 'tablestore_engine\.api' has no attribute 'Motor'"):
        load_on_use("tablestore_engine.api")("Motor")
    assert load_on_use("tablestore_engine.api")("Engine") is Engine


def test_commands_that_list_load_what_reading_needs(tmp_path: Path) -> None:
    """Several commands in one process: the modules of all of them together."""
    with Engine(tmp_path) as engine:
        engine.create_database("demo")
        orders = engine.create_table("demo.orders", pa.schema([("id", pa.int64())]), primary_key="id")
        orders.upsert(pa.table({"id": [1, 2]}))
    run = "import sys; from tablestore_engine.cli import main\nmain.leave_out_pandas()\n"
    run += "for command in ('show', 'snapshots', 'files', 'head', 'consumers', 'branch list', 'tag list'):\n"
    run += "    assert main.main([*command.split(), 'demo.orders', '--warehouse', sys.argv[1]]) == 0\n"
    loaded = _loaded(
        "import contextlib, io\nwith contextlib.redirect_stdout(io.StringIO()):\n" + _indented(run),
        str(tmp_path),
    )
    assert [
        one for one in _needless(loaded) if not one.startswith((f"{ENGINE}.cli", f"{ENGINE}.spark.type_ddl"))
    ] == []
    assert _count(loaded) <= 245


def _indented(program: str) -> str:
    return "".join(f"    {line}\n" for line in program.splitlines())


def test_the_adapter_loads_no_frames_and_no_clients_at_its_start() -> None:
    """dbt itself brings 1,550 modules; the adapter and the engine added 1,600 before this rule."""
    loaded = _loaded("import dbt.cli.main, dbt.adapters.spark, dbt.adapters.tablestore")
    assert not {"pandas", "confluent_kafka", "duckdb"} & loaded
    assert _count(loaded) <= 310


def test_a_process_that_is_forked_for_commands_has_loaded_what_they_import_in_functions(
    tmp_path: Path,
) -> None:
    """Otherwise each command of `tablestore dbt` would load it again (decision 0088)."""
    program = """
import sys, pyarrow as pa
from tablestore_engine.spi import load_for_builds
load_for_builds()
before = set(sys.modules)
from tablestore_engine.api import Engine
with Engine(sys.argv[1]) as engine:
    engine.create_database("demo")
    orders = engine.create_table("demo.orders", pa.schema([("id", pa.int64())]), primary_key="id")
    orders.upsert(pa.table({"id": [1, 2]}))
    orders.delete("id = 2")
    assert orders.scan().to_arrow().num_rows == 1
assert not {name for name in set(sys.modules) - before if name.startswith("tablestore_engine.")}
"""
    _loaded(program, str(tmp_path))
