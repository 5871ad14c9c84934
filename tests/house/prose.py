"""Sentences and words of text for users: pages, texts of errors, help and messages of commands.

Code, tables and headings are no sentences. Inline code counts as one word, a link as its text.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.statements import parsed

SENTENCE_WORDS_MAX = 25
_NO_PROSE = re.compile(r"^```.*?^```$|<!--.*?-->", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"``.+?``|`[^`]*`|(?<!\S)--[a-z][a-z-]*")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_ITEM = re.compile(r"(?:[-*]|\d+\.) ")
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')]*\s+|:\s+(?=[A-Z])")
_WORD = re.compile(r"[\w'’-]+")
_FILLED_IN = re.compile(r"\{[^{}]*\}")
# words and turns that have a standard term or a plainer form; "dead letters" and "lags behind" are the field's words
BANNED = re.compile(
    r"\b(?:told|tells|anew|whoever|rooms|(?:is|are|was) said|(?:gives?|gave) way|remembers? rows|go(?:es)? on"
    r"|lets?(?: [\w-]+){0,4} go)\b"
    r"|\b(?:un)?fold(?:s|ed|ing)?\b|\b(?:leftovers?|phantoms?|early rows|dead (?:rows|ones)|put aside|inbox|begun)\b"
    r"|\b(?:made again|tak(?:e|es|en) away|go(?:es)? out|nobody|somebody|(?:is|are) (?:red|green)|red test)\b"
    r"|\b(?:lies?|stands?) (?:in|on|beside)\b|\b(?:between two|failed) rounds\b"
    r"|(?<!lag )(?<!lags )\bbehind\b"
    r"|(?<!dead )(?<!dead-)\bletters\b(?!,? (?:and )?(?:digits|a-z))"
    r"|(?:^|[.,;:(] |\b(?:to|from|of|for|by|with|and|or|than) )who \w+",
    re.IGNORECASE | re.MULTILINE,
)
_MESSAGE_CALLS = {"say", "write_out", "info", "warning", "add_argument", "add_parser"}


def sentences(page: str) -> Iterator[str]:
    """Sentences of a Markdown page, paragraph by paragraph."""
    for paragraph in _paragraphs(_NO_PROSE.sub("\n\n", page)):
        plain = re.sub(r"\*{1,2}", "", _LINK.sub(r"\1", _CODE.sub("code", paragraph)))
        yield from filter(None, _SENTENCE_END.split(plain))


def _paragraphs(text: str) -> Iterator[str]:
    lines: list[str] = []
    for line in (*map(str.strip, text.splitlines()), ""):
        item = _ITEM.match(line)
        if lines and (not line or line.startswith(("#", "|")) or item):
            yield " ".join(lines)
            lines = []
        if line and not line.startswith(("#", "|")):
            lines.append(line[item.end() :] if item else line)


def long_sentences(page: str) -> list[str]:
    """Sentences of more than 25 words."""
    return [one for one in sentences(page) if len(_WORD.findall(one)) > SENTENCE_WORDS_MAX]


def banned_words(text: str) -> list[str]:
    """Banned words of a page or a message, tables and headings included, code and filled-in words left out."""
    plain = _LINK.sub(r"\1", _CODE.sub("code", _FILLED_IN.sub("…", _NO_PROSE.sub("", text))))
    return [found[0].strip() for found in BANNED.finditer(plain)]


def messages_of(module: Path) -> Iterator[str]:
    """Literal texts that are printed, logged or describe an argument."""
    for node in ast.walk(parsed(module.read_text())):
        if _is_message(node):
            for part in ast.walk(node):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part.value


def _is_message(node: ast.AST) -> bool:
    """A call that prints, logs or describes, or `text = …`, by which helps of arguments get their text."""
    match node:
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)):
            return name in _MESSAGE_CALLS
        case ast.Assign(targets=[ast.Name(id="text")]):
            return True
        case _:
            return False
