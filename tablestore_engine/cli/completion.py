"""`tablestore completion bash|zsh|fish`: the script to source; and the answer to each TAB of it (argcomplete).

Steps      the script calls `tablestore` with _ARGCOMPLETE set → main → complete(): a parser of all command names and
           of the arguments of one command, from completion.json → names of the warehouse (warehouse_names.py)
INVARIANT  a TAB imports neither the engine nor a command, starts nothing, and prints nothing but completions.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Mapping
from functools import partial
from importlib.metadata import entry_points
from pathlib import Path

from argcomplete.completers import BaseCompleter, FilesCompleter
from argcomplete.finders import CompletionFinder
from argcomplete.shell_integration import shellcode

from tablestore_engine.cli.argument_tree import Described, add_described
from tablestore_engine.cli.command_list import ENTRIES
from tablestore_engine.cli.output import write_out
from tablestore_engine.cli.warehouse_names import LISTS, find_local_warehouse, list_staged_of, list_tables_of

Complete = Callable[..., list[str]]
SHELLS = ("bash", "zsh", "fish")
TREE = Path(__file__).with_name("completion.json")
_BREAKS = "_ARGCOMPLETE_COMP_WORDBREAKS"
_STAGED_ACTIONS = ("list", "show", "publish", "drop")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="the shell that sources the script")


def run(arguments: argparse.Namespace) -> int:
    write_out(shellcode(["tablestore"], use_defaults=False, shell=arguments.shell))
    return 0


def complete() -> int:
    """Answers the shell, and ends the process."""
    tree: Mapping[str, Described] = json.loads(TREE.read_text("utf-8"))
    # bash breaks words at @, but not at the first character of one: argcomplete would answer `staged` for `@staged`
    breaks = os.environ.get(_BREAKS, "")
    os.environ[_BREAKS] = breaks.replace("@", "")
    root = completing_parser(tree, os.environ.get("COMP_LINE", "").split())
    CompletionFinder()(root, always_complete_options=False, default_completer=_Nothing())
    return 0


def completing_parser(tree: Mapping[str, Described], words: list[str]) -> argparse.ArgumentParser:
    """All commands by name; the arguments of the one among `words` that is being typed."""
    root = argparse.ArgumentParser(prog="tablestore")
    root.add_argument("--version", "-V", action="store_true", help="installed versions")
    commands = root.add_subparsers(dest="command")
    plugins = (point.name for point in entry_points(group="tablestore.commands"))
    for name in dict.fromkeys([*(one for one in ENTRIES if one in tree), *plugins]):
        parser = commands.add_parser(name, help=ENTRIES[name].text if name in ENTRIES else None)
        if name in words[1:2] and name in tree:
            taking = [(one, takes) for one, takes in add_described(parser, tree[name]) if takes is not None]
            for action, takes in taking:
                action.completer = completer_of(takes)  # type: ignore[attr-defined]  # argcomplete's way
    return root


def completer_of(takes: str) -> Complete:
    """Of an argument that takes such names."""
    if takes == "files":
        files: Complete = FilesCompleter()
        return files
    if takes == "staged-words":
        return _staged_words
    return partial(_names, takes.split())


class _Nothing(BaseCompleter):
    """Of an argument whose values are not known; argcomplete would list files."""

    def __call__(self, **_: object) -> list[str]:
        return []


def _names(kinds: list[str], *, parsed_args: argparse.Namespace, **_: object) -> list[str]:
    warehouse = _warehouse(parsed_args)
    if warehouse is None:
        return []
    table = getattr(parsed_args, "table", None) or ""
    return [name for kind in kinds for name in LISTS[kind](warehouse, table)]


def _staged_words(*, parsed_args: argparse.Namespace, **_: object) -> list[str]:
    """`[list] [db[.table]]`, or an action, a table, a name."""
    words, warehouse = getattr(parsed_args, "words", None) or [], _warehouse(parsed_args)
    tables = [] if warehouse is None else list_tables_of(warehouse)
    if not words:
        return [*_STAGED_ACTIONS, *tables]
    if len(words) == 1 and words[0] in _STAGED_ACTIONS:
        return tables
    is_named = len(words) == 2 and words[0] != "list" and warehouse is not None
    return list_staged_of(warehouse, words[1]) if is_named and warehouse is not None else []


def _warehouse(parsed_args: argparse.Namespace) -> Path | None:
    return find_local_warehouse(getattr(parsed_args, "warehouse", None), os.environ, Path.cwd())
