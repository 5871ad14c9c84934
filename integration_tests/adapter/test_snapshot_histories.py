"""Random histories of a source under dbt snapshots, by a clock that stands still or goes back.

The oracle walks one key at a time through the states of the source; the product joins all keys in one query.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest

from integration_tests.adapter.conftest import Shop
from tablestore_engine.api import TableSpec, WriteMode, WriteSpec

Row = dict[str, Any]
Key = tuple[Any, ...]
Kind = tuple[str, str, str]
START = datetime(2026, 3, 1, 12, tzinfo=UTC)
FAR = "timestamp '9999-01-01 00:00:00'"
KEYS: tuple[Key, ...] = (
    (1, ""),
    (1, None),
    (None, ""),
    (None, None),
    (1, "|"),
    (2, "x"),
    (None, "x"),
    (2, "\\"),
)
NAMES = {
    "dbt_valid_from": "begins",
    "dbt_valid_to": "ends",
    "dbt_scd_id": "version_id",
    "dbt_updated_at": "seen",
    "dbt_is_deleted": "gone",
}
STRATEGIES = {
    "ts": "strategy='timestamp', updated_at='at'",
    "check": "strategy='check', check_cols=['v']",
    "check_at": "strategy='check', check_cols=['v'], updated_at='at'",
}
DELETES = ("ignore", "invalidate", "new_record")
ADDED = {"plain": "", "named": f', snapshot_meta_column_names={NAMES}, dbt_valid_to_current="{FAR}"'}
ALL = [(strategy, deletes, added) for strategy in STRATEGIES for deletes in DELETES for added in ADDED]
SOME = [
    ("ts", "invalidate", "named"),
    ("check", "new_record", "plain"),
    ("check_at", "ignore", "plain"),
]


@dataclass(frozen=True)
class Version:
    """One version of a key; `end` None: the current one."""

    value: int | None
    begin: datetime
    end: datetime | None = None
    is_deleted: bool = False


def follow(
    history: list[Version], row: Row | None, now: datetime, strategy: str, deletes: str
) -> list[Version]:
    """The oracle: the versions of one key after a run that finds `row` in the source."""
    last = history[-1] if history else None
    current = last if last is not None and last.end is None else None
    if row is None:
        if current is None or deletes == "ignore" or current.is_deleted:
            return history
        moment = max(now, current.begin)
        ended = [*history[:-1], replace(current, end=moment)]
        record = Version(current.value, moment, is_deleted=True)
        return [*ended, record] if deletes == "new_record" else ended
    wanted = now if strategy == "check" else row["at"]
    if current is not None and not current.is_deleted:
        is_changed = wanted > current.begin if strategy == "ts" else row["v"] != current.value
        if not is_changed:
            return history
    edges = [moment for one in history for moment in (one.begin, one.end) if moment is not None]
    is_later = all(wanted > one.begin for one in history) and all(wanted >= edge for edge in edges)
    begin = wanted if is_later else max([now, *edges])
    before = history if current is None else [*history[:-1], replace(current, end=begin)]
    return [*before, Version(row["v"], begin)]


def write_project(shop: Shop, kinds: Sequence[Kind], *, is_followed: bool) -> None:
    """A snapshot of each kind over one table; the clock is a variable of the environment.

    A query with a date of today is not followed: all keys are compared.
    """
    columns = "*" if is_followed else "*, current_date() as today"
    shop.write("models/feed.yml", "sources: [{name: feed, schema: demo, tables: [{name: src}]}]")
    shop.write(
        "macros/clock.sql",
        "{% macro tablestore__snapshot_get_time() %}timestamp '{{ env_var('SNAPSHOT_NOW') }}'{% endmacro %}",
    )
    for strategy, deletes, added in kinds:
        name = f"s_{strategy}_{deletes}_{added}"
        config = f"unique_key=['a', 'b'], hard_deletes='{deletes}', {STRATEGIES[strategy]}{ADDED[added]}"
        shop.write(
            f"snapshots/{name}.sql",
            f"{{% snapshot {name} %}} {{{{ config({config}) }}}} select {columns}"
            " from {{ source('feed', 'src') }} {% endsnapshot %}",
        )


def write_source(shop: Shop, before: dict[Key, Row], state: dict[Key, Row], *, is_followed: bool) -> None:
    """All rows of the source; of one with a key those that differ, and the rest is known to be as it was."""
    schema = pa.schema(
        {"place": pa.int32(), "a": pa.int32(), "b": pa.string(), "v": pa.int32(), "at": pa.timestamp("us", tz="UTC")}
    )  # fmt: skip
    key = ("place",) if is_followed else ()
    spec = WriteSpec(
        table=TableSpec(key), mode=WriteMode.UPSERT if before and is_followed else WriteMode.OVERWRITE_TABLE
    )
    written = {key: row for key, row in state.items() if not is_followed or before.get(key) != row}
    rows = [{"place": KEYS.index(key), "a": key[0], "b": key[1], **row} for key, row in written.items()]
    shop.engine.write("demo.src", pa.Table.from_pylist(rows, schema=schema), spec)
    for key in before.keys() - state.keys() if is_followed else ():
        shop.engine.table("demo.src").delete(f"place = {KEYS.index(key)}")


def stored(shop: Shop, strategy: str, deletes: str, added: str) -> dict[Key, list[Version]]:
    """The versions of each key, in the order of their ends; fails when two overlap or two have one id."""
    name = {key: NAMES[key] if added == "named" else key for key in NAMES}
    rows = shop.engine.table(f"demo.s_{strategy}_{deletes}_{added}").scan().to_arrow().to_pylist()
    ids = [row[name["dbt_scd_id"]] for row in rows]
    assert len(set(ids)) == len(ids)
    found: dict[Key, list[Version]] = {}
    for row in rows:
        end = row[name["dbt_valid_to"]]
        is_deleted = row.get(name["dbt_is_deleted"]) == "True"
        is_open = end is None or end.year == 9999
        version = Version(row["v"], row[name["dbt_valid_from"]], None if is_open else end, is_deleted)
        found.setdefault((row["a"], row["b"]), []).append(version)
    return {key: in_order(versions) for key, versions in found.items()}


def in_order(versions: Iterable[Version]) -> list[Version]:
    """Of one key. Versions that begin and end at one moment have no order between them."""
    far = datetime.max.replace(tzinfo=UTC)
    return sorted(versions, key=lambda one: (one.begin, one.end or far, one.is_deleted, one.value or 0))


def change(state: dict[Key, Row], now: datetime, chance: random.Random) -> dict[Key, Row]:
    """The next state of the source: rows come, change, with an older or newer time, and go."""
    after = dict(state)
    for key in chance.sample(KEYS, chance.randint(1, 5)):
        if key in after and chance.random() < 0.35:
            del after[key]
            continue
        at = now + timedelta(minutes=chance.choice((-5, -1, 0, 0, 1)))
        if key in after and chance.random() < 0.3:
            at = after[key]["at"]
        after[key] = {"v": chance.choice((None, 1, 2)), "at": at}
    return after


@pytest.mark.parametrize("is_followed", [pytest.param(False, marks=pytest.mark.nightly), True])
@pytest.mark.parametrize(
    ("seed", "steps", "kinds"),
    [(3, 2, SOME), *(pytest.param(seed, 40, ALL, marks=pytest.mark.nightly) for seed in range(10, 14))],
)
def test_snapshot_histories_equal_the_oracle_and_never_overlap(
    shop: Shop,
    seed: int,
    steps: int,
    kinds: Sequence[Kind],
    is_followed: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """NULL in a composite key is a value; ranges of a key never overlap; the current versions are the source.

    Also when only the keys that changes of the source affect are compared.
    """
    write_project(shop, kinds, is_followed=is_followed)
    chance, now = random.Random(seed), START
    state: dict[Key, Row] = {}
    expected: dict[Kind, dict[Key, list[Version]]] = {each: {} for each in kinds}
    for step in range(steps):
        now += timedelta(minutes=0 if step == 0 else chance.choice((0, 0, 1, 7, -3)))
        monkeypatch.setenv("SNAPSHOT_NOW", now.strftime("%Y-%m-%d %H:%M:%S"))
        before, state = state, change(state, now, chance)
        write_source(shop, before, state, is_followed=is_followed)
        shop.dbt("snapshot")
        evaluated = {shop.response(f"s_{'_'.join(each)}")["evaluated"] for each in kinds}
        assert evaluated == {"affected keys" if is_followed and step else "all rows"}
        for each, histories in expected.items():
            for key in histories.keys() | state.keys():
                histories[key] = follow(histories.get(key, []), state.get(key), now, each[0], each[1])
            got = stored(shop, *each)
            assert got == {key: in_order(history) for key, history in histories.items() if history}, (
                step,
                each,
            )
            for history in got.values():
                assert all(one.end is not None and one.end <= two.begin for one, two in pairwise(history))


def test_snapshot_of_a_repeated_key_is_refused(shop: Shop) -> None:
    """In the first run and in later ones; the table stays as it was."""
    shop.write(
        "snapshots/s.sql",
        "{% snapshot s %} {{ config(unique_key=['a', 'b'], strategy='timestamp', updated_at='at') }}"
        " select * from {{ ref('src') }} {% endsnapshot %}",
    )
    head = (
        "{{ config(materialized='table') }} select a, cast(b as string) as b,"
        " timestamp '2026-01-01 00:00:00' + make_interval(0, 0, 0, n) as at"
    )
    once, twice = "(1, null, 1), (1, '', 1)", "(1, null, 1), (1, null, 2)"
    shop.write("models/src.sql", f"{head} from values {twice} as t(a, b, n)")
    shop.dbt("build", "--select", "src", "s", ok=False)
    assert "TS2071" in shop.log
    shop.write("models/src.sql", f"{head} from values {once} as t(a, b, n)")
    shop.dbt("build", "--select", "src", "s")
    shop.write("models/src.sql", f"{head} from values {once}, {twice} as t(a, b, n)")
    shop.dbt("build", "--select", "src", "s", ok=False)
    assert "TS2071" in shop.log
    assert shop.rows("select a, b, dbt_valid_to from demo.s order by b") == [(1, None, None), (1, "", None)]
