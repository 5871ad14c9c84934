r"""`sasl.jaas.config` of Java clients, read: which login module, with which options.

Names      LoginModule   its class without the package, and its options
           parse_jaas()  text → LoginModule, None when it cannot be read
Grammar    class flag (name=value)* `;` with values in " or ' (where \ escapes) or bare, as Java's own reader has it
           (a StreamTokenizer: \n \t and octal numbers mean what they mean in C); one module, no more
INVARIANT  the text holds a password: nothing of it goes into an error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_TOKEN = re.compile(
    r"""\s*(?:(?P<sign>[=;])|"(?P<double>(?:[^"\\\n]|\\.)*)"|'(?P<single>(?:[^'\\\n]|\\.)*)'|(?P<bare>[^\s=;"']+))""",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\([0-3][0-7]{0,2}|[4-7][0-7]?|.)", re.DOTALL)
_LETTERS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_FLAGS = frozenset({"required", "requisite", "sufficient", "optional"})


@dataclass(frozen=True)
class LoginModule:
    """`name` as in ScramLoginModule."""

    name: str
    options: Mapping[str, str] = field(repr=False)


def parse_jaas(text: str) -> LoginModule | None:
    tokens = _tokens(text)
    if tokens is None or len(tokens) < 3 or tokens[-1] != ("sign", ";"):
        return None
    (kind, name), (_, flag), *rest = tokens[:-1]
    if kind == "sign" or flag.lower() not in _FLAGS or len(rest) % 3:
        return None
    options: dict[str, str] = {}
    for at in range(0, len(rest), 3):
        key, sign, value = rest[at : at + 3]
        if key[0] == "sign" or sign != ("sign", "=") or value[0] == "sign" or key[1] in options:
            return None
        options[key[1]] = value[1]
    return LoginModule(name.rpartition(".")[2], options)


def _tokens(text: str) -> list[tuple[str, str]] | None:
    """(sign, = or ;), (word, text) …; None for a quote that is not closed."""
    found: list[tuple[str, str]] = []
    at, end = 0, len(text.rstrip())
    while at < end:
        token = _TOKEN.match(text, at)
        if token is None:
            return None
        if token["sign"]:
            found.append(("sign", token["sign"]))
        elif token["bare"] is not None:
            found.append(("word", token["bare"]))
        else:
            quoted = token["double"] if token["double"] is not None else token["single"]
            found.append(("word", _ESCAPE.sub(_unescape, quoted)))
        at = token.end()
    return found


def _unescape(found: re.Match[str]) -> str:
    text = found[1]
    if text[0] in "01234567":
        return chr(int(text, 8))
    return _LETTERS.get(text, text)
