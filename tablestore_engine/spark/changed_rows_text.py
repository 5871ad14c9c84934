"""The SQL text of the changed rows of a table.

INVARIANT  a row that is removed and added again with the same values changes nothing: it is left out, where the types
           say which values are the same. A grouping column itself is 0.0 for -0.0, so values are any_value().
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from tablestore_engine.sql.scanner import quote_name

_IS_ADDED = "_row_kind in ('+I', '+U')"


class ChangedKind(Enum):
    """Rows before and after changes, rows before, or signed rows: the sign is the last column, 1 for added rows, or of
    OPPOSITE for removed ones.
    """

    BOTH, PAST, SIGNED, OPPOSITE = range(4)


def changed_rows_text(source: str, names: Sequence[str], groups: Sequence[str], kind: ChangedKind) -> str:
    """`source`: all changes of a table. `groups`: expressions by which equal rows are one group, or none."""
    items = [*map(quote_name, names)]
    if kind in (ChangedKind.SIGNED, ChangedKind.OPPOSITE):
        return _signed(source, items, groups, 1 if kind is ChangedKind.SIGNED else -1)
    if kind is ChangedKind.PAST:
        return f"select {', '.join(items) or '1 as one'} from {source} where _row_kind in ('-U', '-D')"
    if items and groups:
        net = _net(source, items, groups)
        return f"select {', '.join(items)} from (\n{net}\n) where __ts_net <> 0"
    return f"select {', '.join(items) or '1 as one'} from {source}"


def _signed(source: str, items: Sequence[str], groups: Sequence[str], added: int) -> str:
    if not items or not groups:
        return (
            f"select {', '.join([*items, f'if({_IS_ADDED}, {added}, {-added}) as __ts_sign'])} from {source}"
        )
    signs = f"array_repeat(if(__ts_net > 0, {added}, {-added}), cast(abs(__ts_net) as int))"
    net = _net(source, items, groups)
    return f"select {', '.join(items)}, explode({signs}) as __ts_sign from (\n{net}\n) where __ts_net <> 0"


def _net(source: str, items: Sequence[str], groups: Sequence[str]) -> str:
    """Each row once, with how often it was added more than removed."""
    values = ", ".join(f"any_value({item}) as {item}" for item in items)
    return (
        f"select {values}, sum(if({_IS_ADDED}, 1, -1)) as __ts_net from {source} group by {', '.join(groups)}"
    )
