"""Time-travel clauses in SQL text: what is rewritten, what is left alone, what is refused."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablestore_engine.errors import FixRequest
from tablestore_engine.sql.as_of_clause import plain_words, qualified_names, rewrite
from tablestore_engine.sql.table_version import TableVersion


def _rewrite(text: str) -> str:
    return rewrite(text, lambda parts, selector: f"<{'.'.join(parts)}@{selector}>")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("select * from a.b version as of 5 where x", "select * from <a.b@snapshot 5> where x"),
        ("select * from a.b FOR SYSTEM_VERSION AS OF '5'", "select * from <a.b@snapshot 5>"),
        ("select * from `a`.`b c` version as of 'v1' t", "select * from <a.b c@tag v1> t"),
        ("from t join (a.b version as of 1) on x", "from t join (<a.b@snapshot 1>) on x"),
        (
            "select 1 from x, a.b timestamp as of '2026-01-01', y",
            "select 1 from x, <a.b@timestamp 1767225600000>, y",
        ),
        ("from a timestamp as of timestamp '2026-01-01 01:00:00+01:00'", "from <a@timestamp 1767225600000>"),
        ("from a for system_time as of 1767225600", "from <a@timestamp 1767225600000>"),
        (
            "from a version as of 1 /* c */ join b version as of 2",
            "from <a@snapshot 1> /* c */ join <b@snapshot 2>",
        ),
        ("select 'from a version as of 1' -- from a version as of 1", None),
        ("select timestamp as of, version from t version", None),
        ("select t.version as of from t", None),
    ],
)
def test_rewrite(text: str, expected: str | None) -> None:
    """Clauses after a table name become the state's name; strings, comments and columns stay as they are."""
    assert _rewrite(text) == (text if expected is None else expected)


@pytest.mark.parametrize(
    "clause",
    ["version as of x", "version as of 5 + 1", "version as of", "timestamp as of current_timestamp()",
     "timestamp as of '2026-01-01' - interval 1 day", "timestamp as of 'yesterday'", "version as of 1.5"],
)  # fmt: skip
def test_only_literals(clause: str) -> None:
    """Anything but a literal is refused, never evaluated."""
    with pytest.raises(FixRequest, match="TS1503"):
        _rewrite(f"select * from a.b {clause}")


def test_session_zone() -> None:
    """A timestamp without offset is in the session's time zone."""
    zone = dt.timezone(dt.timedelta(hours=2))
    seen: list[TableVersion] = []
    rewrite(
        "from a timestamp as of '1970-01-01 02:00:01'",
        lambda _, s: seen.append(s) or "",
        session_zone=lambda: zone,
    )  # type: ignore[func-returns-value]
    assert seen == [TableVersion(timestamp_ms=1000)]


@settings(deadline=None)
@given(st.text(alphabet="ab.`'\" -/*\n1version of as from", max_size=60))
def test_text_without_clause_is_kept(text: str) -> None:
    """Whatever has no clause is returned byte for byte."""
    try:
        out = _rewrite(text)
    except FixRequest:
        return
    assert "@" in out or out == text


def test_names() -> None:
    """Dotted names are found once each, also three-part ones, and not inside strings and comments."""
    text = "select t.id, 'x.y' from `Demo`.orders t join spark_catalog.demo.other on 1.5 /* a.b */ -- c.d"
    assert qualified_names(text) == (("t", "id"), ("Demo", "orders"), ("demo", "other"))
    assert {"orders", "Demo", "t"} <= plain_words(text)
    assert "x" not in plain_words(text)
