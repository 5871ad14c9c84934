"""Whatever texts a warehouse has, the page's JSON says the same and stays inside its element."""

from __future__ import annotations

import json
import re

from hypothesis import given
from hypothesis import strategies as st

from tablestore_engine.runtime.json_plain import cell_text
from tablestore_engine.ui.page_file import render_page
from tablestore_engine.ui.page_json import render_json
from tablestore_engine.warehouse.gate.failing_rows import (
    CELL_MAX,
    COLUMNS_MAX,
    ROWS_MAX,
    decode_failing_rows,
    encode_failing_rows,
    pick_failing_rows,
)

TEXTS = st.text() | st.sampled_from(
    [
        "</script>",
        "<!--",
        "]]>",
        "\u2028",
        "\u2029",
        "&lt;",
        "{{data}}",
        "\ud800",
        "\u202e",
        "{{script}}",
        "\x00",
    ]
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
DATA = re.compile(r'id="page-data">(.*?)</script>', re.DOTALL)


@given(VALUES)
def test_json_of_the_page_round_trips_without_markup(value: object) -> None:
    """No character of it can end the element, a line of a script, or the encoding."""
    text = render_json(value)
    assert json.loads(text) == value
    assert text.isascii()
    assert not set("<>&\n\r") & set(text)


@given(VALUES)
def test_page_has_the_data_that_it_was_given(value: object) -> None:
    """Once, in its place, in a document of one shape."""
    page = render_page({"mode": "report", "x": value}, connects=False)
    (found,) = DATA.findall(page)
    assert json.loads(found)["x"] == value
    assert page.count("<script") == 2


@given(st.integers())
def test_numbers_are_exact(value: int) -> None:
    """What a double cannot hold is text."""
    found = json.loads(render_json(value))
    assert int(found) == value
    assert isinstance(found, str) == (abs(value) > 2**53)


@given(st.lists(TEXTS, max_size=60), st.lists(st.lists(VALUES | st.binary(), max_size=60), max_size=8))
def test_failing_rows_are_bounded_and_round_trip(columns: list[str], rows: list[list[object]]) -> None:
    """Through the JSON that is stored."""
    found = pick_failing_rows(columns, rows)
    assert len(found.columns) <= COLUMNS_MAX
    assert len(found.rows) <= ROWS_MAX
    assert all(cell is None or len(cell) <= CELL_MAX for row in found.rows for cell in row)
    assert decode_failing_rows(json.loads(json.dumps(encode_failing_rows(found)))) == found
    assert decode_failing_rows({}) is None


@given(VALUES, st.integers(2, 40))
def test_cell_is_short(value: object, most: int) -> None:
    """None alone is NULL."""
    text = cell_text(value, most)
    assert (text is None) == (value is None)
    assert text is None or len(text) <= most
