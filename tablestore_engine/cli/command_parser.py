"""The parser of all commands: wrong options and actions are reported with the nearest name.

INVARIANT  a word of the command line reaches the terminal through `say`, as everything that a command prints does.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NoReturn

from tablestore_engine.cli.output import say
from tablestore_engine.display import visible


class CommandParser(argparse.ArgumentParser):
    """Ends with exit status 2 for wrong usage; parsers of subcommands are of this class, too."""

    _words: Sequence[str] = ()

    def parse_known_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:  # noqa: ANN401 - overloads of argparse
        """As in argparse; keeps the words for `error`."""
        self._words = tuple(args or ())
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """Prints the usage, the message and the nearest options, and ends the process."""
        say(self.format_usage().rstrip())
        say(f"{self.prog}: error: {visible(message)}{''.join(self._hints())}")
        self.exit(2)

    def _check_value(self, action: argparse.Action, value: object) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as wrong:
            hint = did_you_mean(str(value), map(str, action.choices or ()))
            raise argparse.ArgumentError(action, f"{wrong.message}{hint}") from None

    def _hints(self) -> Iterator[str]:
        known = sorted(set(_options(self)))
        for word in self._words:
            if word == "--":
                return
            option = word.partition("=")[0]
            if word.startswith("--") and not any(one.startswith(option) for one in known):
                near = did_you_mean(option, known)
                yield near and f"{near[:-1]} instead of {visible(option)}?"


def add_data_dir(parser: argparse.ArgumentParser, what: str) -> None:
    """--data-dir of a development server; None where none is named."""
    text = f"folder of {what} (default: in the cache folder)"
    parser.add_argument("--data-dir", type=lambda name: Path(name) if name else None, help=text)


def did_you_mean(word: str, names: Iterable[str]) -> str:
    """`; did you mean start?`, or nothing."""
    near = get_close_matches(word, list(names), n=1)
    return f"; did you mean {near[0]}?" if near else ""


def _options(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        yield from action.option_strings
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from _options(below)
