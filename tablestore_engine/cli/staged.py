"""`tablestore staged`: staged snapshots that are not published: list, show, drop, publish.

INVARIANT  the rule is the engine's (warehouse/gate/gate_rule.py), the same that dbt uses: every gate is green for these
           very rows, and what one test read together is published together; --force publishes one all the same.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from tablestore_engine.cli.command_parser import did_you_mean
from tablestore_engine.cli.commit_record import exit_status, publication_record
from tablestore_engine.cli.output import print_facts, print_json, print_table, say, write_out
from tablestore_engine.cli.warehouse_choice import (
    add_brokers,
    add_place,
    check_readable,
    list_databases,
    list_names,
    open_engine,
)
from tablestore_engine.errors import FixRequest, NotFound, RetryError
from tablestore_engine.spi import (
    DAMAGED,
    PUBLISHED,
    bound_group,
    describe_damage,
    find_obstacle,
    kept_text,
    order_group,
    short_name,
)
from tablestore_engine.sql.table_version import TableVersion, versioned_database
from tablestore_engine.ui.staged_records import failing_of, staged_record, tests_of, verdict_of, waits_each

if TYPE_CHECKING:
    from tablestore_engine.api import Engine
    from tablestore_engine.spi import Publication, Staged

_GREEN = "green"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    words = "[list] [db[.table]] | show|drop|publish db.table [NAME]"
    parser.add_argument("words", metavar=words, nargs="*", help="what to do, and with which staged snapshot")
    parser.add_argument("--force", action="store_true", help="publish it whatever its tests said, and alone")
    add_place(parser, name=None)
    add_brokers(parser)


def run(arguments: argparse.Namespace) -> int:
    parser: argparse.ArgumentParser = arguments.parser
    words = arguments.words
    action, rest = (words[0], words[1:]) if words and words[0] in _ACTIONS else ("list", words)
    if action == "list" and len(rest) > 1:
        is_second = words[1] in _ACTIONS
        hint = f"; did you mean {words[1]} {words[0]}?" if is_second else did_you_mean(words[0], _ACTIONS)
        parser.error(
            "list takes at most a table or a database"
            if words[0] == action
            else f"there is no action {words[0]!r} (choose from {', '.join(_ACTIONS)}){hint}"
        )
    if action != "list" and not 1 <= len(rest) <= 2:
        parser.error(f"{action} takes db.table, and the name of a staged snapshot if there are several")
    with open_engine(arguments) as engine:
        return _ACTIONS[action](engine, rest, arguments)


def _list(engine: Engine, rest: list[str], arguments: argparse.Namespace) -> int:
    names = _names(engine, rest[0] if rest else None)
    items, problems = _read_each(engine, names)
    found = list(zip(items, waits_each(engine, items), strict=True))
    if arguments.json:
        print_json([staged_record(engine, item, wait) for item, wait in found])
    else:
        rows = [
            (
                item.table,
                item.name,
                item.snapshot,
                _outcomes_text(item),
                wait.reason,
                kept_text(wait.until_ms),
            )
            for item, wait in found
        ]
        print_table(("table", "staged", "snapshot", "tests", "state", "kept until"), rows)
        if not items:
            say("nothing is staged")
    check_readable(problems, len(names))
    return 0


def _names(engine: Engine, wanted: str | None) -> tuple[str, ...]:
    """Tables, and views for whose place a table waits. Raises TS1414, TS1925."""
    if wanted is not None and "." in wanted:
        return (_relation(engine, wanted),)
    databases = list_databases(engine, wanted, _ACTIONS)
    waiting = [name for database in databases for name in engine.replacements(database)]
    return tuple(dict.fromkeys((*list_names(engine, wanted), *waiting)))


def _read_each(engine: Engine, names: tuple[str, ...]) -> tuple[tuple[Staged, ...], dict[str, str]]:
    """What is staged, table by table, and why the damaged tables cannot say it."""
    found: list[Staged] = []
    problems: dict[str, str] = {}
    for name in names:
        try:
            found += engine.gate.read_book(name).staged
        except DAMAGED as damage:
            problems[name] = describe_damage(damage)
    return tuple(found), problems


def _show(engine: Engine, rest: list[str], arguments: argparse.Namespace) -> int:
    item = get_staged(engine, rest)
    (wait,) = waits_each(engine, (item,))
    record = staged_record(engine, item, wait)
    if arguments.json:
        print_json([record])
        return 0
    database, table = item.table.split(".", maxsplit=1)
    waiting = versioned_database(database, TableVersion(branch=item.name))
    facts = {key: record[key] for key in ("table", "name", "snapshot", "base_snapshot", "owner", "reason")}
    facts["kept until"] = kept_text(wait.until_ms)
    print_facts({**facts, "rows": f"select * from `{waiting}`.`{table}`"})
    print_table(
        ("test", "said", "read"),
        [(test, verdict_of(item, test), _reads_text(item, test)) for test in tests_of(item)],
    )
    for test in tests_of(item):
        failing = failing_of(item, test)
        if failing is not None:
            write_out(f"\nrows that fail {short_name(test)}")
            print_table(failing.columns, failing.rows)
    return 0


def _drop(engine: Engine, rest: list[str], arguments: argparse.Namespace) -> int:
    item = get_staged(engine, rest)
    gone = engine.gate.read_book(*engine.databases()).with_children(item)
    for one in gone:
        engine.gate.drop(one)
    if arguments.json:
        print_json([{"table": one.table, "name": one.name} for one in gone])
    else:
        for one in gone:
            also = "" if one.key == item.key else f": it was built from {item.table}"
            write_out(f"{one.table}: staged snapshot {one.name} is dropped{also}")
    return 0


def _publish(engine: Engine, rest: list[str], arguments: argparse.Namespace) -> int:
    done = publish_staged(engine, get_staged(engine, rest), force=arguments.force)
    if arguments.json:
        print_json([publication_record(one) for one in done])
    else:
        for one in done:
            if one.state == PUBLISHED or len(done) > 1:  # what refused the only one is raised
                write_out(one.line())
    check_published(done)
    return max((exit_status(one.report) for one in done if one.report is not None), default=0)


_ACTIONS = {"list": _list, "show": _show, "drop": _drop, "publish": _publish}


def publish_staged(engine: Engine, item: Staged, *, force: bool) -> tuple[Publication, ...]:
    """With all that tests have read together with it. Raises FixRequest TS1923."""
    if force or item.is_out:
        return engine.gate.publish((item,))
    book = engine.gate.complete_book(engine.gate.read_book(item.table))
    group, world = bound_group(item, book), engine.gate.see(book)
    asked = frozenset(one.table for one in group)
    found = find_obstacle(group, book, world, asked)
    if found is not None:
        whose, reason = found
        raise FixRequest(
            "TS1923",
            f"staged snapshot {item.name} of {item.table} is not published",
            why=reason if whose.key == item.key else f"is published together with {whose.table}: {reason}",
            fix="run its tests (dbt test), or correct the data and build it again; --force publishes it all the same",
        )
    return engine.gate.publish(order_group(group))


def check_published(done: tuple[Publication, ...]) -> None:
    """Raises RetryError TS1977, or what refused the only one."""
    failed = [one for one in done if one.state != PUBLISHED]
    if len(done) == 1 and failed and failed[0].error is not None:
        raise failed[0].error
    if failed:
        raise RetryError(
            "TS1977",
            f"{len(failed)} of {len(done)} staged snapshots are not completely published",
            why="; ".join(one.line() for one in failed),
            fix="do what each says; the command can be repeated",
        )


def get_staged(engine: Engine, rest: list[str]) -> Staged:
    """The one that is named, or the only one. Raises NotFound TS1975."""
    table, name = _relation(engine, rest[0]), rest[1] if len(rest) > 1 else None
    there = engine.gate.read_book(table).staged
    found = [one for one in there if name in (None, one.name)]
    if len(found) == 1:
        return found[0]
    raise NotFound(
        "TS1975",
        f"{table} has no staged snapshot {name!r}" if name else f"{table} has {len(found)} staged snapshots",
        why=f"staged: {', '.join(sorted(one.name for one in there)) or 'none'}",
        fix="name one of these; it may be published or dropped already",
    )


def _relation(engine: Engine, name: str) -> str:
    """A table or view: a table may wait to take the place of either. Raises NotFound TS1414."""
    return str(engine.relation(name).identifier)


def _reads_text(item: Staged, test: str) -> str:
    if test not in item.counted:
        return ""
    reads = item.counted[test].reads
    return ", ".join(f"{read.table} {'staged ' if read.stage else ''}{read.snapshot}" for read in reads)


def _outcomes_text(item: Staged) -> str:
    """A count; the state names the tests that are red."""
    green = sum(1 for one in item.counted.values() if one.verdict == _GREEN)
    asked = [test for test in tests_of(item) if test not in item.abstained]
    return f"{green} of {len(asked)} green" if asked else "none"
