"""Errors put into the adapter on purpose: the attack has to find each of them.

`PLANTS` maps a name to what the error does with the text of the SELECT that gives the affected keys. `SEAM` names the
function that makes this text; it is replaced by name, in its module and wherever it was imported.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

SEAM = ("dbt.adapters.tablestore.plan.affected_keys_sql", "affected_select")


def _no_last_branch(text: str) -> str:
    """The keys that the last input's changes affect are forgotten."""
    head, word, _ = text.rpartition("\nunion all\n")
    return f"{head}\n)" if word else text


def _no_first_branch(text: str) -> str:
    """The same with the first input."""
    parts = text.split("\nunion all\n")
    return (
        "\nunion all\n".join(["select distinct * from (\n" + parts[1], *parts[2:]])
        if len(parts) > 1
        else text
    )


def _kinds(text: str, kinds: str) -> str:
    """Only changes of these kinds."""
    return re.sub(r"(from `?\w+__changes\w*`?\.`?\w+`?)", rf"\1 where _row_kind in ({kinds})", text)


def _only_after(text: str) -> str:
    """Rows before a change, and deleted ones, are forgotten: a row that leaves a key leaves it as it was."""
    return _kinds(text, "'+I', '+U'")


def _only_before(text: str) -> str:
    """Rows after a change are forgotten."""
    return _kinds(text, "'-U', '-D'")


def _no_inserts(text: str) -> str:
    """New rows are forgotten."""
    return _kinds(text, "'-U', '+U', '-D'")


def _half(text: str) -> str:
    """Of the affected keys every second one."""
    return f"select * from (\n{text}\n) planted where pmod(xxhash64(struct(planted.*)), 2) = 0"


def _no_nulls(text: str) -> str:
    """Keys of rows that an outer join has extended with NULLs are forgotten."""
    return (
        f"select * from (\n{text}\n) planted where not exists(array(struct(planted.*)), one -> one is null)"
    )


PLANTS: dict[str, Callable[[str], str]] = {
    "no-last-branch": _no_last_branch,
    "no-first-branch": _no_first_branch,
    "only-after": _only_after,
    "only-before": _only_before,
    "no-inserts": _no_inserts,
    "half": _half,
    "no-nulls": _no_nulls,
}


@contextmanager
def planted(name: str) -> Iterator[None]:
    """While it lasts, the adapter has the error."""
    module, function = importlib.import_module(SEAM[0]), SEAM[1]
    right, spoil = getattr(module, function), PLANTS[name]

    def wrong(*words: Any, **named: Any) -> str:
        return spoil(right(*words, **named))

    users = [one for one in list(sys.modules.values()) if getattr(one, function, None) is right]
    for one in users:
        setattr(one, function, wrong)
    try:
        yield
    finally:
        for one in users:
            setattr(one, function, right)
