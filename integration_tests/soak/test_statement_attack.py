"""Random statements with right and wrong names, and every place of a statement where a name of the target can stand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from integration_tests.soak.statement_attack.attack import attack
from integration_tests.soak.statement_attack.draws import FAULTS
from tablestore_engine.api import Engine, SparkSettings, TablestoreError
from tablestore_engine.spark import named_columns, parsed_changes
from tests.doses import examples

SEED = 20261128
STATEMENTS = examples(by_day=40, by_night=10_000)
MERGE = "merge into demo.k as t using (select 1 as id, 2 as v) as q on t.id = q.id "
PLACES = {  # {} is the name of a column; demo.k has a key, demo.p is partitioned by h
    "INSERT list": "insert into demo.k (id, {}) values (1, 2)",
    "INSERT OVERWRITE list": "insert overwrite demo.k (id, {}) select 1, 2",
    "INSERT BY NAME": "insert into demo.k by name select 1 as id, 2 as {}",
    "INSERT static PARTITION": "insert into demo.p partition ({} = 1) select 1, 2",
    "INSERT dynamic PARTITION": "insert into demo.p partition ({}) select 1, 2, 3",
    "UPDATE SET": "update demo.k set {} = 2",
    "UPDATE SET field": "update demo.k set s.{} = 2",
    "UPDATE WHERE": "update demo.k set v = 2 where {} = 1",
    "DELETE WHERE": "delete from demo.k where {} = 1",
    "MERGE ON": "merge into demo.k as t using (select 1 as id) as q on t.{} = q.id when matched then delete",
    "MERGE condition": MERGE + "when matched and t.{} = 1 then delete",
    "MERGE UPDATE": MERGE + "when matched then update set t.{} = 2",
    "MERGE INSERT": MERGE + "when not matched then insert (id, {}) values (q.id, 2)",
    "MERGE BY SOURCE": MERGE + "when not matched by source then update set {} = 2",
    "CREATE TABLE AS list": "create or replace table demo.c (id int, {} int) as select 1 as id, 2 as v",
    "PRIMARY KEY": "create or replace table demo.c (id int, v int, h int, primary key ({}))",
    "PARTITIONED BY": "create or replace table demo.c (id int, v int, h int) partitioned by ({})",
}


def _make(engine: Engine) -> None:
    engine.sql(
        "create or replace table demo.k (id int, v int, s struct<v:int,y:int>) tblproperties ('primary-key'='id')"
    )
    engine.sql("create or replace table demo.p (id int, v int, h int) partitioned by (h)")
    engine.sql("insert into demo.k values (1, 10, named_struct('v', 1, 'y', 2)), (2, 20, null)")


def test_name_at_every_place_of_a_statement_is_a_column_or_refused(tmp_path: Any) -> None:
    """At each place the right name is taken, in any case; a wrong one is refused and nothing changes."""
    with Engine(str(tmp_path / "warehouse"), spark=SparkSettings("local[2]")) as engine:
        engine.create_database("demo")
        _make(engine)
        for place, text in PLACES.items():
            engine.sql("drop table if exists demo.c")
            engine.sql(text.format("H" if "demo.p" in text else "V"))
            for name in ("nope", "v" if "demo.p" in text else "v.nope"):
                before = _rows(engine)
                with pytest.raises(TablestoreError):
                    print(place, name, engine.sql(text.format(name)))
                assert _rows(engine) == before, place


def _rows(engine: Engine) -> list[Any]:
    return [engine.table(f"demo.{name}").scan().to_arrow().to_pylist() for name in ("k", "p")]


def test_random_statements_are_answered_as_by_spark_and_duckdb() -> None:
    """Right ones are accepted and give DuckDB's rows, wrong ones are refused; every kind came."""
    report = attack(SEED, STATEMENTS)
    assert not report.findings, "\n".join(report.findings)
    assert {kind.split(" ", 1)[1] for kind in report.counts} == set(FAULTS)


def _any_name(right: Callable[..., str]) -> Callable[..., str]:
    def wrong(name: str, known: Any, **words: Any) -> str:
        try:
            return right(name, known, **words)
        except TablestoreError:
            return name

    return wrong


def _last_part(right: Callable[..., tuple[str, ...]]) -> Callable[..., tuple[str, ...]]:
    return lambda *words: right(*words)[-1:]


PLANTS: dict[str, tuple[object, str, Callable[[Any], Any]]] = {
    "unknown names of INSERT vanish": (named_columns, "find_column", _any_name),
    "the last part of a name counts": (parsed_changes._Places, "_path", _last_part),
    "repeated names pass": (parsed_changes, "check_paths", lambda _: lambda *_: None),
    "each clause sees both sides": (
        parsed_changes,
        "_WHENS",
        lambda whens: tuple(
            parsed_changes._When(one.match, one.actions, parsed_changes.Sees.BOTH) for one in whens
        ),
    ),
}


@pytest.mark.nightly
@pytest.mark.parametrize("plant", PLANTS)
def test_planted_error_of_the_front_end_is_found(plant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The attack finds each within 300 statements."""
    owner, name, spoil = PLANTS[plant]
    monkeypatch.setattr(owner, name, spoil(getattr(owner, name)))
    assert attack(SEED, 300, stop_after=1).findings
