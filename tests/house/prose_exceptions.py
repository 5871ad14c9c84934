"""Pages that the checks of tests/house/test_prose.py do not accept yet. These lists only shrink."""

from __future__ import annotations

# page -> number of sentences of more than 25 words
LONG_SENTENCES = {"docs/format.md": 9}
# page -> number of banned words
BANNED_WORDS: dict[str, int] = {}
