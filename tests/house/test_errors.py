"""Error codes: each raise has one, one code means one thing, and the generated page is up to date."""

from __future__ import annotations

import ast
import re

from docs.feature_table import render_features
from docs.generate import (
    ROOT,
    collect_errors,
    render_api,
    render_engines,
    render_errors,
    render_options,
    render_reliability,
    render_where,
)
from docs.interop_table import render_interop
from tablestore_engine.errors import Area
from tests.statements import parsed


def test_codes_are_well_formed_and_in_their_range() -> None:
    """Every raised TablestoreError has a code of the form TS####."""
    errors = collect_errors()
    assert len(errors) > 20
    for error in errors:
        assert error.code.startswith("TS"), error
        assert error.code[2:].isdigit(), error
        assert len(error.code) == 6, error
        assert int(error.code[2:4]) in set(Area), error


def test_a_code_is_raised_from_one_module_only() -> None:
    """A code means one thing: two modules never share it."""
    homes: dict[str, set[str]] = {}
    for error in collect_errors():
        homes.setdefault(error.code, set()).add(error.module)
    assert {code: sorted(mods) for code, mods in homes.items() if len(mods) > 1} == {}


def test_a_class_that_names_codes_is_raised_with_these_alone() -> None:
    """A caller that catches the class gets exactly the errors that its docstring begins with."""
    named: dict[str, set[str]] = {}
    for module in ("tablestore_engine/errors.py", "dbt/adapters/tablestore/inputs/query_errors.py"):
        for node in parsed((ROOT / module).read_text()).body:
            text = (ast.get_docstring(node) or "") if isinstance(node, ast.ClassDef) else ""
            codes = re.match(r"TS\d{4}(?:, TS\d{4})*(?=:)", text)
            if isinstance(node, ast.ClassDef) and codes is not None:
                named[node.name] = set(codes[0].split(", "))
    raised: dict[str, set[str]] = {name: set() for name in named}
    others: dict[str, str] = {}
    for error in collect_errors():
        raised.get(error.kind, set()).add(error.code)
        others |= {} if error.kind in named else {error.code: error.kind}
    assert len(named) > 10
    assert raised == named
    assert {code: kind for code, kind in others.items() if code in set().union(*named.values())} == {}


def test_generated_pages_are_current() -> None:
    """docs/errors.md and docs/options.md say what the code says (make docs writes them)."""
    assert (ROOT / "docs/errors.md").read_text() == render_errors()
    assert (ROOT / "docs/options.md").read_text() == render_options()
    assert (ROOT / "docs/where.md").read_text() == render_where()
    assert (ROOT / "docs/python-api.md").read_text() == render_api()
    assert (ROOT / "docs/reliability.md").read_text() == render_reliability()
    assert (ROOT / "docs/engines.md").read_text() == render_engines()
    assert (ROOT / "docs/features.md").read_text() == render_features()
    assert (ROOT / "docs/interop.md").read_text() == render_interop()


def test_the_page_of_errors_says_when_auto_gates() -> None:
    """With the place where all policies stand."""
    text = render_errors()
    assert "publish='auto'" in text
    (link,) = [part.split(")")[0] for part in text.split("](")[1:] if part.startswith("publishing.md")]
    page, _, anchor = link.partition("#")
    headings = [line for line in (ROOT / "docs" / page).read_text().splitlines() if line.startswith("## ")]
    assert anchor in [heading.removeprefix("## ").lower().replace(" ", "-") for heading in headings]
