"""docs/conformance.md says what the recorded run saw, of every class there is."""

import json
from pathlib import Path

import pytest

from integration_tests.conformance.inventory import find_originals, list_tests, reason_not_expected
from integration_tests.conformance.page import (
    CORES,
    EXCEPTIONS,
    PAGE,
    RECORD,
    Verdict,
    judge,
    render,
    summarise,
)
from integration_tests.conformance.record import add_run, describe, redescribe
from integration_tests.conformance.selection import SELECTED


def of_us(**changes):
    """A class of ours that changes nothing and passed its two tests."""
    return {
        "originals": ["a.B"], "says": "B.", "fixtures": [], "expected": [], "replaced": [], "differs": None,
        "tests": {"test_x": "passed", "test_y": "passed"},
    } | changes  # fmt: skip


TESTS = ("test_x", "test_y")


@pytest.mark.parametrize(
    ("classes", "verdict"),
    [
        ({}, Verdict("not run", "")),
        ({"t": of_us()}, Verdict("passes", "")),
        ({"t": of_us(tests={"test_x": "passed"})}, Verdict("fails", "does not pass: `test_y`")),
        (
            {"t": of_us(tests={"test_x": "skipped", "test_y": "passed"})},
            Verdict("fails", "does not pass: `test_x`"),
        ),
        ({"t": of_us(tests={"test_x": "skipped", "test_y": "skipped"})}, Verdict("not run", "")),
        ({"t": of_us(expected=["NAMES"])}, Verdict("passes", "expected values `NAMES` (B)")),
        ({"t": of_us(differs="why")}, Verdict("differs", "**differs**: why")),
        ({"t": of_us(fixtures=["models"])}, Verdict("passes", "fixtures `models` (B)")),
        ({"t": of_us(differs="why"), "u": of_us()}, Verdict("passes", "")),
        ({"t": of_us(originals=["c.D"])}, Verdict("not run", "")),
    ],
)
def test_a_class_passes_only_whole(classes, verdict):
    """A test that failed, was skipped or never ran keeps its class from passing; a replaced check shows."""
    assert judge("a.B", TESTS, classes) == verdict


def test_a_run_replaces_only_what_it_ran():
    """Other classes and other versions of dbt-core stay as they were recorded."""
    before = {"1.11": {"versions": {"x": "1"}, "classes": {"t": 1, "u": 2}}, "1.12": {"classes": {"t": 3}}}
    after = add_run(before, "1.11", {"x": "2"}, {"u": 5})
    assert after == {
        "1.11": {"versions": {"x": "2"}, "classes": {"t": 1, "u": 5}},
        "1.12": {"classes": {"t": 3}},
    }


def test_what_a_class_changes_is_seen():
    """Fixtures, expected values and replaced checks of ours are told apart, inherited ones included."""
    originals = find_originals()

    class Mixin:
        def helper(self):
            """Not a test."""

    class Ours(Mixin, originals["basic.test_empty.BaseEmpty"]):
        """Says."""

        differs = "why"

        @pytest.fixture
        def models(self):
            """A fixture."""

        def test_empty(self, project):
            """Replaced."""

    assert describe(Ours) == {
        "originals": ["basic.test_empty.BaseEmpty"], "says": "Says.", "differs": "why",
        "fixtures": ["models"], "expected": [], "replaced": ["test_empty"],
    }  # fmt: skip


def test_a_function_that_tests_check_by_is_a_check():
    """check_hooks of ours in the place of the original's is a difference; names of types are expected values."""
    hooks, types = (
        type("Ours", (originals[name],), {key: lambda *_: None for key in keys})
        for originals in [find_originals()]
        for name, keys in (
            ("hooks.test_model_hooks.BaseHookRefs", ("check_hooks",)),
            ("simple_seed.test_seed_type_override.BaseSimpleSeedColumnOverride", ("seed_enabled_types",)),
        )
    )
    assert (describe(hooks)["replaced"], describe(hooks)["expected"]) == (["check_hooks"], [])
    assert (describe(types)["replaced"], describe(types)["expected"]) == ([], ["seed_enabled_types"])


def test_no_check_is_replaced_without_a_reason():
    """In the record as in a run: whoever replaces one says what it compares instead."""
    record = json.loads(RECORD.read_text())
    silent = {
        name: found["replaced"]
        for run in record.values()
        for name, found in run["classes"].items()
        if found["replaced"] and not found["differs"]
    }
    assert silent == {}


def test_why_a_class_does_not_pass_on_one_core_is_told():
    """dbt seed --empty came with 1.12: the page says so beside 1.11."""
    (line,) = [line for line in PAGE.read_text().splitlines() if "BaseTestEmptySeedFlag" in line]
    assert "| – | ✓ |" in line
    assert "dbt seed --empty exists from dbt-core 1.12" in line


def test_the_selection_names_classes_that_exist():
    """A class that was renamed would silently leave `make test`."""
    modules = {path.stem: path.read_text() for path in Path(__file__).parent.glob("test_*.py")}
    assert set(SELECTED) == set(modules)
    gone = [
        (file, name)
        for file, names in SELECTED.items()
        for name in names or ()
        if f"class {name}(" not in modules[file]
    ]
    assert gone == []


def test_the_page_is_what_the_record_says():
    """Neither the page nor the classes have changed since the whole suite ran."""
    record = json.loads(RECORD.read_text())
    assert record == redescribe(record)
    assert PAGE.read_text() == render(json.loads(RECORD.read_text())), "run make test-conformance"


def everything_passes():
    """A record in which a class of ours stands for each original as it is."""
    classes = {
        name: of_us(originals=[name], tests=dict.fromkeys(list_tests(cls), "passed"))
        for name, cls in find_originals().items()
    }
    return {core: {"versions": {}, "classes": dict(classes)} for core in CORES}


def test_187_of_189_is_enough_on_each_dbt_core():
    """Two classes may be missing; a third one on one of the versions makes the run fail."""
    record = everything_passes()
    expected = [name for name in find_originals() if reason_not_expected(name) is None]
    assert len(expected) == 189
    for name in expected[:2]:
        del record["1.12"]["classes"][name]
    assert summarise(record) == (
        ["dbt-core 1.11: 189 of 189 expected classes pass", "dbt-core 1.12: 187 of 189 expected classes pass"], True
    )  # fmt: skip
    del record["1.12"]["classes"][expected[2]]
    assert summarise(record)[1] is False


def test_each_exception_is_an_expected_class():
    """A reason for a class that is not expected, or no longer there, would be noise."""
    expected = {name for name in find_originals() if reason_not_expected(name) is None}
    assert set(EXCEPTIONS) <= expected
