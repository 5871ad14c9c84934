"""Entry of the command `tablestore`: finds the command's module, runs it, prints errors for people.

Steps      1 the first word picks a module from COMMANDS (only that one is imported: start stays under a second)
           2 the module adds its arguments and returns a function   3 errors print as code, why, next; exit status 1
INVARIANT  a TablestoreError never shows a traceback unless --debug is given; anything else is a bug and does.
Other packages add commands by the entry point group `tablestore.commands` (the dbt adapter adds `run-stream`).
"""

from __future__ import annotations

import argparse
import importlib
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points

from tablestore_engine.cli.output import say, write_out
from tablestore_engine.errors import TablestoreError
from tablestore_engine.runtime.interrupts import Terminated, interrupted_by_sigterm

Run = Callable[[argparse.Namespace], int]
Register = Callable[[argparse.ArgumentParser], Run]

COMMANDS: Mapping[str, tuple[str, str]] = {
    "broker": ("tablestore_engine.cli.broker", "a Kafka broker for development: start, stop, status, url"),
    "s3": ("tablestore_engine.cli.s3", "an S3 server for development: start, stop, status"),
    "cluster": ("tablestore_engine.cli.cluster", "a Spark cluster for development: start, stop, status"),
    "show": ("tablestore_engine.cli.show", "columns, keys, options and facts of a table"),
    "snapshots": ("tablestore_engine.cli.snapshot_list", "snapshots of a table, newest last"),
    "files": ("tablestore_engine.cli.file_list", "live files of a table with levels and deleted rows"),
    "diff": ("tablestore_engine.cli.diff", "what changed between two snapshots"),
    "changelog": ("tablestore_engine.cli.changelog_rows", "changelog rows since a snapshot"),
    "tail": ("tablestore_engine.cli.tail", "changes as they come, a line for each row"),
    "ingest": ("tablestore_engine.cli.ingest", "change messages of others into a keyed table"),
    "connect": ("tablestore_engine.cli.connect", "changes of a PostgreSQL into Kafka: start, stop, status"),
    "sync": ("tablestore_engine.cli.connect", "a whole database, that `connect` follows, into tables"),
    "consumers": ("tablestore_engine.cli.consumers", "who follows a table, and how far each is"),
    "streams": (
        "tablestore_engine.cli.streams",
        "which tables keep up with what, and how far behind they are",
    ),
    "staged": ("tablestore_engine.cli.staged", "staged snapshots that wait for their tests"),
    "publish": ("tablestore_engine.cli.publish", "publish a staged snapshot, or what the log still lacks"),
    "log": ("tablestore_engine.cli.log", "where the logs of tables stand, what they lack, who writes them"),
    "compact": ("tablestore_engine.cli.compact", "fold sorted runs and small files"),
    "expire": ("tablestore_engine.cli.expire", "let old snapshots go, with the files that only they need"),
    "orphans": (
        "tablestore_engine.cli.orphans",
        "files that nothing names: of killed writers, dropped stages",
    ),
    "rescale": ("tablestore_engine.cli.rescale", "another number of buckets"),
    "tag": ("tablestore_engine.cli.tag", "create, delete and list tags"),
    "restore": ("tablestore_engine.cli.restore", "the rows of a snapshot again, as the newest"),
    "rollback": ("tablestore_engine.cli.rollback", "go back to a snapshot"),
    "verify": ("tablestore_engine.cli.verify", "check every on-disk invariant of a table"),
    "sql": ("tablestore_engine.cli.sql", "run one statement through Spark"),
    "session": ("tablestore_engine.cli.session_command", "a Spark session that stays for the next command"),
    "doctor": ("tablestore_engine.cli.doctor", "check Java, Spark, warehouse and broker"),
}


def _plugins() -> Mapping[str, EntryPoint]:
    return {point.name: point for point in entry_points(group="tablestore.commands")}


def _overview(plugins: Mapping[str, EntryPoint]) -> str:
    lines = ["usage: tablestore COMMAND [arguments]   (tablestore COMMAND --help for its arguments)", ""]
    lines += [f"  {name:<10} {text}" for name, (_, text) in COMMANDS.items()]
    lines += [f"  {name:<10} (from {point.value.split(':')[0]})" for name, point in plugins.items()]
    return "\n".join(lines)


def _find_register(name: str, plugins: Mapping[str, EntryPoint]) -> Register | None:
    if name in COMMANDS:
        module = importlib.import_module(COMMANDS[name][0])
        register: Register = module.REGISTER[name]
        return register
    if name in plugins:
        loaded: Register = plugins[name].load()
        return loaded
    return None


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit status is 0, 1 for an error of ours, 2 for wrong usage, 128 + the signal's number."""
    words = list(sys.argv[1:] if argv is None else argv)
    plugins = _plugins()
    register = _find_register(words[0], plugins) if words else None
    if register is None:
        write_out(_overview(plugins))
        return 0 if not words or words[0] in {"-h", "--help", "help"} else 2
    parser = argparse.ArgumentParser(
        prog=f"tablestore {words[0]}", description=COMMANDS.get(words[0], ("", None))[1]
    )
    parser.add_argument("--debug", action="store_true", help="show tracebacks")
    run = register(parser)
    arguments = parser.parse_args(words[1:])
    try:
        with interrupted_by_sigterm():
            return run(arguments)
    except KeyboardInterrupt as signalled:
        say("stopped by SIGTERM" if isinstance(signalled, Terminated) else "interrupted")
        return 128 + (signal.SIGTERM if isinstance(signalled, Terminated) else signal.SIGINT)
    except TablestoreError as error:
        if arguments.debug:
            raise
        say(str(error))
        return 1


if __name__ == "__main__":
    sys.exit(main())
