"""`orders VERSION AS OF 5` -> the name of a view of that state; names of tables found in SQL text.

CHANGE     the clauses for a past state in SQL
INVARIANT  text outside the clauses is kept byte for byte.
INVARIANT  only literals select a state; an expression is refused (TS1503), never evaluated or guessed.
WHY        Spark answers UNSUPPORTED_FEATURE.TIME_TRAVEL for views, so the clause must be gone before.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator

from tablestore_engine.errors import FixRequest
from tablestore_engine.sql.scanner import (
    NUMBER,
    STRING,
    Token,
    name_text,
    scan,
    significant,
    string_value,
)
from tablestore_engine.sql.table_version import TableVersion

_VERSION = ("VERSION", "SYSTEM_VERSION")
_TIME = ("TIMESTAMP", "SYSTEM_TIME")
_BEFORE_NAME = ("FROM", "JOIN", "TABLE", "USING")
NameOf = Callable[[tuple[str, ...], TableVersion], str]


def rewrite(text: str, name_of: NameOf, *, session_zone: Callable[[], dt.tzinfo] = lambda: dt.UTC) -> str:
    """The text with `name [FOR] VERSION|TIMESTAMP AS OF literal` replaced by `name_of(name parts, version)`.

    `session_zone` is asked when a timestamp has no offset.
    """
    tokens = significant(scan(text))
    pieces: list[str] = []
    done = 0
    index = 0
    while index < len(tokens):
        found = _clause(tokens, index, session_zone)
        if found is None:
            index += 1
            continue
        parts, version, after = found
        pieces += [text[done : tokens[index].start], name_of(parts, version)]
        done = tokens[after - 1].end
        index = after
    return "".join([*pieces, text[done:]])


def _clause(
    tokens: tuple[Token, ...], index: int, zone: Callable[[], dt.tzinfo]
) -> tuple[tuple[str, ...], TableVersion, int] | None:
    """(name parts, version, index behind the clause) when a table name with such a clause starts at `index`."""
    if not tokens[index].is_name or index == 0 or not _may_precede_name(tokens[index - 1]):
        return None
    parts, at = _dotted(tokens, index)
    if at < len(tokens) and tokens[at].is_word("FOR"):
        at += 1
    if at + 2 >= len(tokens) or not tokens[at].is_word(*_VERSION, *_TIME):
        return None
    if not (tokens[at + 1].is_word("AS") and tokens[at + 2].is_word("OF")):
        return None
    version, after = _literal(tokens, at + 3, is_version=tokens[at].is_word(*_VERSION), zone=zone)
    return parts, version, after


def _may_precede_name(token: Token) -> bool:
    return token.is_word(*_BEFORE_NAME) or token.is_operator(",", "(")


def _dotted(tokens: tuple[Token, ...], index: int) -> tuple[tuple[str, ...], int]:
    parts = [name_text(tokens[index])]
    at = index + 1
    while at + 1 < len(tokens) and tokens[at].is_operator(".") and tokens[at + 1].is_name:
        parts.append(name_text(tokens[at + 1]))
        at += 2
    return tuple(parts), at


def _literal(
    tokens: tuple[Token, ...], at: int, *, is_version: bool, zone: Callable[[], dt.tzinfo]
) -> tuple[TableVersion, int]:
    start = at
    if not is_version and at + 1 < len(tokens) and tokens[at].is_word("TIMESTAMP", "DATE"):
        at += 1
    token = tokens[at] if at < len(tokens) else None
    ends = at + 1 >= len(tokens) or tokens[at + 1].is_name or tokens[at + 1].is_operator(")", ",", ";")
    if token is None or not ends or token.kind not in (STRING, NUMBER):
        raise _not_literal(tokens, start, is_version=is_version)
    if token.kind == NUMBER:
        if not token.text.isdigit():
            raise _not_literal(tokens, start, is_version=is_version)
        number = int(token.text)
        return (
            TableVersion(snapshot=number) if is_version else TableVersion(timestamp_ms=number * 1000)
        ), at + 1
    value = string_value(token)
    if not is_version:
        return TableVersion(timestamp_ms=moment_millis(value, zone())), at + 1
    return (TableVersion(snapshot=int(value)) if value.isdigit() else TableVersion(tag=value)), at + 1


def moment_millis(value: str, zone: dt.tzinfo) -> int:
    """Milliseconds of an ISO date or timestamp; without an offset it is in the session's time zone."""
    try:
        moment = dt.datetime.fromisoformat(value.strip())
    except ValueError as error:
        raise FixRequest(
            "TS1503",
            f"{value!r} is not a timestamp to travel to",
            why=str(error),
            fix="write it as '2026-01-31' or '2026-01-31 12:00:00', with an offset such as +01:00 if needed",
        ) from error
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=zone)
    return (aware - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(milliseconds=1)


def _not_literal(tokens: tuple[Token, ...], at: int, *, is_version: bool) -> FixRequest:
    got = " ".join(token.text for token in tokens[at : at + 3]) or "the end of the text"
    wanted = (
        "a snapshot id or a tag name in quotes" if is_version else "a timestamp in quotes or epoch seconds"
    )
    return FixRequest(
        "TS1503",
        "time travel needs a literal",
        why=f"expected {wanted} after AS OF, got {got!r}",
        fix="put the value itself into the SQL text, or use ref('…').at(…)",
    )


def qualified_names(text: str) -> tuple[tuple[str, str], ...]:
    """Distinct (a, b) of every dotted name of two parts, or of three whose first is spark_catalog; in order."""
    names = (parts for parts, _ in _dotted_names(text) if len(parts) >= 2)
    return tuple(dict.fromkeys((parts[0], parts[1]) for parts in names))


def called_names(text: str) -> tuple[tuple[str, str], ...]:
    """Distinct (a, b) of every dotted name before a parenthesis, as of qualified_names: calls of functions."""
    names = (parts for parts, is_call in _dotted_names(text) if is_call and len(parts) == 2)
    return tuple(dict.fromkeys((parts[0], parts[1]) for parts in names))


def _dotted_names(text: str) -> Iterator[tuple[tuple[str, ...], bool]]:
    """(parts without spark_catalog, whether a parenthesis follows) of each name."""
    tokens = significant(scan(text))
    index = 0
    while index < len(tokens):
        if not tokens[index].is_name:
            index += 1
            continue
        parts, index = _dotted(tokens, index)
        if len(parts) > 2 and parts[0].lower() == "spark_catalog":
            parts = parts[1:]
        yield parts, index < len(tokens) and tokens[index].is_operator("(")


def plain_words(text: str) -> frozenset[str]:
    return frozenset(name_text(token) for token in significant(scan(text)) if token.is_name)
