"""Entry of the command `tablestore`: finds the command's module, runs it, prints errors for people.

Steps      1 the first word picks a module from command_list.py (only that one is imported; the overview,
             --version and completion import none)
           2 its add_arguments, then its run   3 errors print as code, why, next; exit status 1
INVARIANT  a TablestoreError never shows a traceback unless --debug is given; anything else is a bug and does.
Other packages add commands by the entry point group `tablestore.commands` (the dbt adapter adds `run-stream`).
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.metadata import EntryPoint, PackageNotFoundError, entry_points, version
from types import ModuleType

from tablestore_engine.cli.command_list import ENTRIES, overview, unknown_command
from tablestore_engine.cli.command_parser import CommandParser
from tablestore_engine.cli.output import say, write_out
from tablestore_engine.cli.without_pandas import leave_out_pandas
from tablestore_engine.errors import TablestoreError
from tablestore_engine.runtime.interrupts import Terminated, interrupted_by_sigterm

Run = Callable[[argparse.Namespace], int]
Register = Callable[[argparse.ArgumentParser], Run]
COMPLETION_ENV = "_ARGCOMPLETE"  # set by the script of `tablestore completion`

COMMANDS: Mapping[str, tuple[str, str]] = {
    name: (one.module, one.text) for name, one in ENTRIES.items() if one.module is not None
}
_PACKAGES = ("dbt-tablestore", "pyspark", "dbt-core")


def _plugins() -> Mapping[str, EntryPoint]:
    return {point.name: point for point in entry_points(group="tablestore.commands")}


def _package(point: EntryPoint) -> str:
    return point.value.split(":")[0] if point.dist is None else point.dist.name


def version_lines() -> str:
    """Installed versions, by their metadata: no package is imported."""
    lines = [f"python {platform.python_version()}"]
    for name in _PACKAGES:
        try:
            lines.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            lines.append(f"{name} is not installed")
    return "\n".join([lines[1], lines[0], *lines[2:]])


def _find_register(name: str, plugins: Mapping[str, EntryPoint]) -> Register | None:
    if name in COMMANDS:
        return partial(_register, importlib.import_module(COMMANDS[name][0]))
    if name in plugins:
        loaded: Register = plugins[name].load()
        return loaded
    return None


def _register(command: ModuleType, parser: argparse.ArgumentParser) -> Run:
    command.add_arguments(parser)
    run: Run = command.run
    return run


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit status is 0, 1 for an error of ours, 2 for wrong usage, 128 + the signal's number."""
    if COMPLETION_ENV in os.environ and argv is None:
        complete: Callable[[], int] = importlib.import_module("tablestore_engine.cli.completion").complete
        return complete()
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or words[0] in {"-h", "--help", "help"}:
        write_out(overview({name: _package(point) for name, point in _plugins().items()}))
        return 0
    if words[0] in {"-V", "--version"}:
        write_out(version_lines())
        return 0
    plugins = {} if words[0] in COMMANDS else _plugins()
    if argv is None and words[0] in COMMANDS and not ENTRIES[words[0]].is_passed_on:
        leave_out_pandas()
    register = _find_register(words[0], plugins)
    if register is None:
        say(unknown_command(words[0], [*COMMANDS, *plugins, "--version", "--help"]))
        return 2
    return _run_command(words, register)


def find_registers() -> Mapping[str, Register]:
    """Of all commands of this package, those of its entry points among them; imports every one."""
    plugins = {name: point for name, point in _plugins().items() if name in ENTRIES}
    found = {name: _find_register(name, plugins) for name in ENTRIES}
    return {name: register for name, register in found.items() if register is not None}


def make_parser(name: str, register: Register) -> tuple[argparse.ArgumentParser, Run]:
    text = ENTRIES[name].text if name in ENTRIES else None
    parser = CommandParser(prog=f"tablestore {name}", description=text)
    parser.add_argument("--debug", action="store_true", help="show tracebacks")
    return parser, register(parser)


def _run_command(words: Sequence[str], register: Register) -> int:
    parser, run = make_parser(words[0], register)
    if words[0] in ENTRIES and ENTRIES[words[0]].is_passed_on:
        arguments = argparse.Namespace(words=words[1:], debug=False)
    else:
        arguments = parser.parse_args(words[1:])
        arguments.parser = parser  # its `error` reports wrong usage that the parser does not see
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
