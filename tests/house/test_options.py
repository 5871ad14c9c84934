"""Options: each one in the table is read somewhere and changes something; what nobody reads is refused by name."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path

import pytest

from tablestore_engine.errors import FixRequest
from tablestore_engine.log.kafka import client_config
from tablestore_engine.options import OPTIONS, REFUSED, check_options
from tests.house.effects import EFFECTS, EFFECTS_OF_A_COLUMN, SHOWN_BY
from tests.statements import parsed

ROOT = Path(__file__).resolve().parents[2]


def _reads(files: Iterable[Path]) -> set[str]:
    """Constants that are arguments or subscripts, as in `options.integer("x")`; not keys of a dict that we write."""
    found: set[str] = set()
    for path in files:
        for node in ast.walk(parsed(path.read_text())):
            inner: list[ast.expr] = []
            if isinstance(node, ast.Call):
                inner = node.args
            elif isinstance(node, ast.Subscript):
                inner = [node.slice]
            elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                inner = [node.value]  # a constant that names the option
            elif isinstance(node, ast.Tuple):
                inner = node.elts
            elif isinstance(node, ast.Compare):
                inner = [node.left]
            found |= {
                one.value for one in inner if isinstance(one, ast.Constant) and isinstance(one.value, str)
            }
    return found


@pytest.fixture(scope="module")
def reads() -> set[str]:
    """Keys that the packages read."""
    packages = [
        ROOT / "tablestore_engine",
        ROOT / "tablestore_demo",
        ROOT / "dbt" / "adapters" / "tablestore",
    ]
    table = ROOT / "tablestore_engine" / "options" / "table_options.py"
    return _reads(path for package in packages for path in package.rglob("*.py") if path != table)


@pytest.mark.parametrize("key", OPTIONS)
def test_an_option_has_a_reader(key: str, reads: set[str]) -> None:
    """What the table documents is read by code, not only set by it."""
    if key in SHOWN_BY and key not in reads:
        assert key == "write-only", f"nothing of ours reads {key}"
        return
    if key.startswith("kafka.") and key != "kafka.topic":  # they go to librdkafka as a group
        assert key in client_config._TUNING
        return
    of_column = key.rpartition("<column>.")[2]
    named = "metadata.stats-mode" if of_column == "stats-mode" else of_column
    assert named in reads, f"nothing reads {key}"


@pytest.mark.parametrize("key", OPTIONS)
def test_an_option_has_an_effect(key: str, tmp_path: Path) -> None:
    """The same work under different values of the option gives observations that differ, each from each; what only
    another program can show has a test of that name, which sets the option and asserts something.
    """
    if key in SHOWN_BY:
        _check_test(key, SHOWN_BY[key])
        return
    if key in EFFECTS_OF_A_COLUMN:
        name, values, see = EFFECTS_OF_A_COLUMN[key]
    else:
        name, (values, see) = key, EFFECTS[key]
    assert len(values) > 1
    seen: dict[str, object] = {}
    for number, value in enumerate(values):
        (folder := tmp_path / str(number)).mkdir()
        seen[str(value)] = see(folder, {} if value is None else {name: value})
    texts = [repr(one) for one in seen.values()]
    assert len(set(texts)) == len(texts), f"{key} changes nothing: {seen}"


def test_effects_are_of_known_options() -> None:
    """No entry outlives its option, and none stands in two places."""
    places = [*EFFECTS, *EFFECTS_OF_A_COLUMN, *SHOWN_BY]
    assert sorted(places) == sorted(OPTIONS)


def _check_test(key: str, named: str) -> None:
    """The function exists, and its own text, or its module's constants, hold the key; it asserts."""
    path, _, function = named.partition("::")
    text = (ROOT / path).read_text()
    found = [one for one in parsed(text).body if isinstance(one, ast.FunctionDef) and one.name == function]
    assert found, f"{named} does not exist"
    constants = {
        target.id
        for one in parsed(text).body
        if isinstance(one, ast.Assign) and key in (ast.get_source_segment(text, one) or "")
        for target in one.targets
        if isinstance(target, ast.Name)
    }
    body = ast.get_source_segment(text, found[0]) or ""
    assert key in body or any(name in body for name in constants), f"{named} does not set {key}"
    asserts = [
        one
        for one in ast.walk(found[0])
        if isinstance(one, ast.Assert)
        or (isinstance(one, ast.Call) and getattr(one.func, "id", "").startswith("assert_"))
    ]
    assert asserts, f"{named} asserts nothing"


@pytest.mark.parametrize("key", REFUSED)
def test_an_option_without_reader_is_refused(key: str) -> None:
    """Its name is known, so the error can say why and what to do."""
    assert key not in OPTIONS
    with pytest.raises(FixRequest) as refused:
        check_options({key: "1"})
    assert refused.value.code == "TS1161"
    assert key in refused.value.what
