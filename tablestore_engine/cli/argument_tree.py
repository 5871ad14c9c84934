"""Arguments of all commands as data, so that completion imports no command: completion.json beside this module.

Steps      describe: parsers → dictionaries (`python -m docs.generate` writes them, a test compares)
           build: a dictionary → a parser that only completes
WHY        a command's module imports the engine, pyspark and pyarrow: 1.5 s at each TAB; this takes a tenth of it.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from typing import Any

Described = dict[str, Any]
_ANY_TABLE = {"db.table": "tables", "db[.table]": "databases tables", "db": "databases"}
# (command, argument) → what it takes: keys of warehouse_names.LISTS, or "files"
_TAKES: Mapping[tuple[str, str], str] = {
    ("head", "snapshot"): "snapshots tags @staged",
    ("files", "snapshot"): "snapshots @staged",
    ("files", "tag"): "tags",
    ("diff", "a"): "snapshots tags @staged",
    ("diff", "b"): "snapshots tags @staged",
    ("changelog", "since"): "snapshots tags",
    ("changelog", "until"): "snapshots tags @staged",
    ("certify", "snapshot"): "snapshots",
    ("tail", "snapshot"): "snapshots",
    ("tail", "until"): "snapshots",
    ("tail", "consumer"): "consumers",
    ("consumers", "reset"): "consumers",
    ("consumers", "delete"): "consumers",
    ("consumers", "to"): "snapshots",
    ("staged", "words"): "staged-words",
    ("publish", "staged"): "staged",
    ("publish", "reset"): "snapshots",
    ("tag create", "snapshot"): "snapshots",
    ("tag delete", "name"): "tags",
    ("branch create", "snapshot"): "snapshots",
    ("branch create", "tag"): "tags",
    ("system-table", "snapshot"): "snapshots",
    ("system-table", "tag"): "tags",
    ("system-table", "since"): "snapshots",
    ("system-table", "until"): "snapshots",
    ("restore", "to"): "snapshots",
    ("restore", "tag"): "tags",
    ("rollback", "to"): "snapshots",
}
_FILES = {
    "warehouse",
    "kafka_config",
    "prometheus",
    "path",
    "data_dir",
    "folder",
    "project_dir",
    "profiles_dir",
    "python",
}


def describe_parser(name: str, parser: argparse.ArgumentParser) -> Described:
    """Arguments, and commands below; `takes` says which names of the warehouse an argument takes."""
    arguments, commands = [], {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            commands = {one: describe_parser(f"{name} {one}", below) for one, below in action.choices.items()}
        elif action.help is not argparse.SUPPRESS and action.dest != "help":
            arguments.append(_describe_argument(name, action))
    return {"arguments": arguments, "commands": commands}


def _describe_argument(name: str, action: argparse.Action) -> Described:
    takes = _TAKES.get((name, action.dest)) or _ANY_TABLE.get(str(action.metavar))
    found: Described = {
        "flags": list(action.option_strings),
        "dest": action.dest,
        "nargs": action.nargs,
        "choices": None if action.choices is None else [str(one) for one in action.choices],
        "repeats": isinstance(action, argparse._AppendAction),
        "takes": takes or ("files" if action.dest in _FILES else None),
        "help": action.help,
    }
    return {
        key: value for key, value in found.items() if value is not None and value is not False and value != []
    }


def render_tree(tree: Mapping[str, Described]) -> str:
    """The file: a line for each argument, so that a change is a small difference."""
    return json.dumps(tree, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def add_described(
    parser: argparse.ArgumentParser, tree: Described
) -> Iterator[tuple[argparse.Action, str | None]]:
    """Adds the arguments; each with what it takes."""
    for one in tree["arguments"]:
        yield _add(parser, one), one.get("takes")
    if tree["commands"]:
        actions = parser.add_subparsers(dest="action")
        for name, below in tree["commands"].items():
            yield from add_described(actions.add_parser(name, add_help=True), below)


def _add(parser: argparse.ArgumentParser, one: Described) -> argparse.Action:
    flags = one.get("flags", [])
    if flags and one.get("nargs") == 0:
        return parser.add_argument(*flags, dest=one["dest"], action="store_true", help=one.get("help"))
    keywords: dict[str, Any] = {key: one[key] for key in ("nargs", "choices", "help") if key in one}
    if one.get("repeats"):
        keywords["action"] = "append"
    if flags:
        keywords["dest"] = one["dest"]
    return parser.add_argument(*(flags or [one["dest"]]), **keywords)
