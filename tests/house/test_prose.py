"""Text for users has short sentences and the field's words (spelling: `make spelling`).

Not checked: records of decisions, which are history; pages that are written from the code or by a test.
Of docs/errors.md the texts of the raises are checked, code by code.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.generate import PACKAGES, collect_errors
from tests.house.prose import banned_words, long_sentences, messages_of
from tests.house.prose_exceptions import BANNED_WORDS, LONG_SENTENCES

ROOT = Path(__file__).resolve().parents[2]
WRITTEN_BY_PROGRAMS = {"docs/errors.md", "docs/options.md", "docs/conformance.md", "docs/where.md"}


def _pages(left_out: set[str]) -> dict[str, str]:
    """Name and text of each page; of the glossary without the column and the section of former words."""
    paths = (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md")))
    texts = {str(path.relative_to(ROOT)): path.read_text() for path in paths}
    lines = texts["docs/glossary.md"].partition("## Other former words")[0].splitlines()
    former = [line.rpartition("|")[0].rpartition("|")[0] if line.startswith("|") else line for line in lines]
    texts["docs/glossary.md"] = "\n".join(former)
    return {name: text for name, text in texts.items() if name not in left_out}


def test_sentences_of_pages_are_short() -> None:
    """At most 25 words; the exceptions are a number for each page, and a page that got better lowers it."""
    found = {name: long_sentences(text) for name, text in _pages(WRITTEN_BY_PROGRAMS).items()}
    new = {name: long for name, long in found.items() if len(long) > LONG_SENTENCES.get(name, 0)}
    assert new == {}
    assert {name: len(found[name]) for name in LONG_SENTENCES} == LONG_SENTENCES


def test_pages_have_no_banned_words() -> None:
    """Told, anew, behind (for after) and the like; the exceptions are a number for each page."""
    found = {name: banned_words(text) for name, text in _pages({"docs/errors.md"}).items()}
    new = {name: words for name, words in found.items() if len(words) > BANNED_WORDS.get(name, 0)}
    assert new == {}
    assert {name: len(found[name]) for name in BANNED_WORDS} == BANNED_WORDS


def test_error_texts_have_no_banned_words() -> None:
    """What failed, why and next, of each code; what is filled in is not seen."""
    found: dict[str, list[str]] = {}
    for error in collect_errors():
        if words := banned_words(f"{error.what}\n{error.why}\n{error.fix}"):
            found.setdefault(error.code, []).extend(words)
    assert found == {}


def test_messages_of_commands_have_no_banned_words() -> None:
    """What commands and the adapter print, and the help of arguments."""
    modules = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    found = {
        f"{path.relative_to(ROOT)}: {text}": words
        for path in modules
        for text in messages_of(path)
        if (words := banned_words(text))
    }
    assert found == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("It is built anew.", ["anew"]),
        ("Rows behind the snapshot, and a reader that lags behind.", ["behind"]),
        ("Dead letters, letters and digits, letters of a model.", ["letters"]),
        ("Who reads it has the table. Users who read it have it, too.", ["Who reads"]),
        ("It lets old snapshots go.", ["lets old snapshots go"]),
        ("`--anew` starts again, and {told} is filled in.\n\n```\nanew\n```", []),
    ],
)
def test_banned_words_are_found(text: str, words: list[str]) -> None:
    """The check itself: words of the field, code and filled-in words pass."""
    assert banned_words(text) == words


def test_long_sentences_are_found() -> None:
    """Lists, tables, headings and code are no part of a sentence; wrapped lines and links are."""
    words = " ".join(["word"] * 13)
    assert (
        long_sentences(
            f"{words}.\n{words}.\n\n- {words}\n- {words}\n\n| {words} {words} |\n# {words} {words}"
        )
        == []
    )
    assert len(long_sentences(f"A [{words}](x.md)\n{words}.")) == 1
