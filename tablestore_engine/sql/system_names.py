"""Names with `$`, as Paimon writes them: `orders$files`, `orders$branch_dev`, `orders$branch_dev$files`.

CHANGE     the names of system tables and branches in SQL
INVARIANT  no table's own name has a `$` (catalog/identifier.py), so such a name means one thing only.
INVARIANT  text outside these names is kept byte for byte.
WHY        Spark's catalog takes letters, digits and underscores, so that the name must be gone before Spark sees it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tablestore_engine.sql.scanner import QUOTED, Token, name_text, quote_name, scan, significant

SEPARATOR, BRANCH = "$", "branch_"
_PLAIN = re.compile(r"\w+", re.ASCII)
NameOf = Callable[[str, str], str]


@dataclass(frozen=True)
class SystemName:
    """`branch` None: the main branch; `system` None: the rows of a branch."""

    table: str
    branch: str | None
    system: str | None

    @property
    def rows_name(self) -> str:
        """Of the table or branch itself."""
        return self.table if self.branch is None else f"{self.table}{SEPARATOR}{BRANCH}{self.branch}"

    @property
    def plain(self) -> str:
        """The same in letters, digits and underscores, for Spark's catalog."""
        parts = [self.table, self.branch and f"{BRANCH}{self.branch}", self.system]
        return plain_name("__".join(part for part in parts if part))


def plain_name(text: str) -> str:
    """In letters, digits and underscores; names that differ stay different."""
    if _PLAIN.fullmatch(text):
        return text
    return re.sub(r"\W", "_", text, flags=re.ASCII) + "_" + hashlib.sha256(text.encode()).hexdigest()[:8]


def find_system_name(name: str) -> SystemName | None:
    """None for a name that is none of these."""
    table, *rest = name.split(SEPARATOR)
    if not table or not rest or not all(rest) or len(rest) > 2:
        return None
    branch = rest[0].removeprefix(BRANCH) if rest[0].lower().startswith(BRANCH) else None
    if branch is None:
        return SystemName(table, None, rest[0].lower()) if len(rest) == 1 else None
    return SystemName(table, branch, rest[1].lower() if len(rest) == 2 else None)


def rename_system_names(text: str, name_of: NameOf) -> str:
    """The text with ``database.`orders$files` `` replaced by `name_of(database, name)`.

    A qualifier of columns (`` `orders$files`.level ``) becomes the last part of that name, SystemName.plain.
    """
    if SEPARATOR not in text:
        return text
    tokens = significant(scan(text))
    pieces: list[str] = []
    done = 0
    for index, token in enumerate(tokens):
        named = find_system_name(name_text(token)) if token.kind == QUOTED else None
        if named is None:
            continue
        before = _database(tokens, index)
        start = token.start if before is None else before.start
        new = quote_name(named.plain) if before is None else name_of(name_text(before), name_text(token))
        pieces += [text[done:start], new]
        done = token.end
    return "".join([*pieces, text[done:]])


def _database(tokens: Sequence[Token], index: int) -> Token | None:
    if index >= 2 and tokens[index - 1].is_operator(".") and tokens[index - 2].is_name:
        return tokens[index - 2]
    return None
