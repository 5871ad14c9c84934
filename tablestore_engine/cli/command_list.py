"""Commands by task: the module of each, and the line that the overview and `--help` print.

The groups and their order are those of docs/commands.md. A command without a module comes from the entry point group
`tablestore.commands`; its text is here, because importing dbt for one line takes seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

_CLI = "tablestore_engine.cli."


@dataclass(frozen=True)
class CommandEntry:
    """`module` None: the command of an entry point. `is_passed_on`: its words are another program's, and not parsed."""

    module: str | None
    text: str
    is_passed_on: bool = False


def _ours(module: str, text: str) -> CommandEntry:
    return CommandEntry(_CLI + module, text)


GROUPS: Mapping[str, Mapping[str, CommandEntry]] = {
    "inspect tables": {
        "show": _ours("show", "columns, keys, options and facts of a table"),
        "head": _ours("head", "the first rows of a table, or of a past state"),
        "snapshots": _ours("snapshot_list", "snapshots of a table, newest last"),
        "files": _ours("file_list", "live files of a table with levels and deleted rows"),
        "system-table": _ours(
            "system_table_command", "system tables: snapshots, files, partitions, options and others"
        ),
        "diff": _ours("diff", "what changed between two snapshots"),
        "changelog": _ours("changelog_rows", "changelog rows of snapshots"),
        "sql": _ours("sql", "run one statement through Spark"),
        "ui": _ours("ui_page", "a page with the tables of a warehouse, on 127.0.0.1"),
        "report": _ours("table_report", "the page of one table as one HTML file"),
        "verify": _ours("verify", "check every on-disk invariant of a table"),
        "certify": _ours("certify", "compare what other readers show with what this engine shows"),
    },
    "follow changes": {
        "tail": _ours("tail", "changes as they are committed, a line for each row"),
        "consumers": _ours("consumers", "readers of a table with their progress"),
        "streams": _ours("streams", "tables that follow others, with their lag"),
        "explain": _ours("explain", "how runs of a changed_keys model follow its inputs"),
        "run-stream": CommandEntry(None, "run streaming models of a dbt project repeatedly"),
    },
    "load data": {
        "ingest": _ours("ingest", "apply change messages to a table with a primary key"),
        "connect": _ours("connect", "send changes of a PostgreSQL database to Kafka: start, stop, status"),
        "sync": _ours("sync", "bring the tables of a database that `connect` follows up to date"),
    },
    "publish": {
        "staged": _ours("staged", "staged snapshots: list, show, publish, drop"),
        "publish": _ours("publish", "publish a staged snapshot, or what the log lacks"),
        "log": _ours("log", "state of the logs of tables; drop topics that dropped tables left"),
    },
    "maintain": {
        "compact": _ours("compact", "compact sorted runs and small files"),
        "gc": _ours("garbage", "expire old snapshots and delete orphan files, in one step"),
        "expire": _ours("expire", "expire old snapshots, or old partitions"),
        "orphans": _ours("orphans", "find and delete orphan files"),
        "partition": _ours("partition_command", "drop partitions by a condition, or mark them as done"),
        "tag": _ours("tag", "create, delete and list tags"),
        "branch": _ours("branch", "create, list, fast-forward and delete branches"),
        "iceberg": _ours("iceberg_command", "write Iceberg metadata that a table lacks"),
        "analyze": _ours("analyze_command", "count rows and values of columns for query planners"),
        "convert": _ours("convert", "make a table of another engine writable here"),
        "rescale": _ours("rescale", "change the number of buckets"),
    },
    "undo": {
        "restore": _ours("restore", "commit the rows of an earlier snapshot as the newest"),
        "rollback": _ours("rollback", "go back to a snapshot and delete the later ones"),
    },
    "set up": {
        "init": _ours("init", "create a small dbt project that builds at once"),
        "doctor": _ours("doctor", "check Java, Spark, warehouse and broker"),
        "session": _ours("session_command", "Spark and dbt stay loaded for the next command"),
        "dbt": CommandEntry(
            f"{_CLI}dbt_command", "dbt, without its start while a session stays", is_passed_on=True
        ),
        "completion": _ours("completion", "print the completion script of a shell: bash, zsh, fish"),
        "broker": _ours("broker", "a Kafka broker for development: start, stop, status, url"),
        "s3": _ours("s3", "an S3 server for development: start, stop, status"),
        "cluster": _ours("cluster", "a Spark cluster for development: start, stop, status"),
        "demo": CommandEntry(None, "the demo of the README: flights, tested snapshots, a topic"),
    },
}
ENTRIES: Mapping[str, CommandEntry] = {name: one for group in GROUPS.values() for name, one in group.items()}


def overview(plugins: Mapping[str, str]) -> str:
    """Groups, then commands of other packages. `plugins`: name → the package that has it."""
    width = max(map(len, [*ENTRIES, *plugins]))
    lines = ["usage: tablestore COMMAND [arguments]", "       tablestore COMMAND --help | --help | --version"]
    for title, group in _groups(plugins):
        lines += ["", title, *(f"  {name:<{width}}  {text}" for name, text in group.items())]
    return "\n".join(lines)


def _groups(plugins: Mapping[str, str]) -> Iterator[tuple[str, Mapping[str, str]]]:
    for title, group in GROUPS.items():
        is_there = {name: one.text for name, one in group.items() if one.module or name in plugins}
        yield title, is_there
    others = {name: f"from {package}" for name, package in plugins.items() if name not in ENTRIES}
    if others:
        yield "of other packages", others


def unknown_command(word: str, names: Iterable[str]) -> str:
    near = get_close_matches(word, list(names), n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    return f"tablestore: there is no command {word!r}\n{hint}tablestore --help lists the commands"
