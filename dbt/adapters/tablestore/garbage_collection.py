"""Python's cyclic garbage collector in the process of a `dbt` command: collected less often, and not at the exit.

CHANGE     how often Python collects garbage in a dbt command
WHY        a small build makes a million objects that live as long as the process, most of them at import: collections
           took half a second of it, and the one at the exit as long (decision 0084).
INVARIANT  nothing of ours waits for the collector: files, sessions and producers are closed by their owners.
INVARIANT  a program that runs dbt inside itself keeps its own settings.
"""

from __future__ import annotations

import atexit
import gc
import sys
from collections.abc import Sequence
from pathlib import PurePath

_OBJECTS = 50_000  # new containers between two collections of the youngest generation; Python's own: 700


def is_dbt_command(arguments: Sequence[str]) -> bool:
    """Whether the process is the program `dbt`, or `python -m dbt.cli.main`."""
    program = PurePath(arguments[0] if arguments else "")
    return program.stem == "dbt" or program.parts[-3:] == ("dbt", "cli", "main.py")


def collect_less(arguments: Sequence[str]) -> None:
    """For the process of a dbt command; nothing in any other."""
    if is_dbt_command(arguments):
        gc.set_threshold(_OBJECTS, *gc.get_threshold()[1:])
        atexit.register(gc.freeze)


collect_less(sys.argv)  # at import: most objects are made by the imports that follow
