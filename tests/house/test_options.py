"""Options: each one in the table is read somewhere and has a test; what nobody reads is refused by name."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path

import pytest

from tablestore_engine.errors import FixRequest
from tablestore_engine.options import OPTIONS, REFUSED, check_options

ROOT = Path(__file__).resolve().parents[2]
# key → who reads it instead of us, and the test that shows it
READ_BY_OTHERS = {"write-only": "integration_tests/interop/test_in_turns.py"}
# client settings go to librdkafka as a group (log/settings.py); this test sees one arrive in the client's settings
CLIENT_TEST = "tests/unit/log/test_settings.py"


def _reads(files: Iterable[Path]) -> set[str]:
    """Constants that are arguments or subscripts, as in `options.integer("x")`; not keys of a dict that we write."""
    found: set[str] = set()
    for path in files:
        for node in ast.walk(ast.parse(path.read_text())):
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
    packages = [ROOT / "tablestore_engine", ROOT / "dbt" / "adapters" / "tablestore"]
    table = ROOT / "tablestore_engine" / "options" / "table.py"
    return _reads(path for package in packages for path in package.rglob("*.py") if path != table)


@pytest.fixture(scope="module")
def tested() -> str:
    """The text of all tests."""
    folders = [ROOT / "tests", ROOT / "integration_tests"]
    texts = [
        path.read_text() for folder in folders for path in folder.rglob("*.py") if path != Path(__file__)
    ]
    return "\n".join(texts)


@pytest.mark.parametrize("key", OPTIONS)
def test_an_option_has_a_reader_and_a_test(key: str, reads: set[str], tested: str) -> None:
    """What the table documents is read by code, not only set by it, and some test names it."""
    if key in READ_BY_OTHERS:
        assert key in (ROOT / READ_BY_OTHERS[key]).read_text() or key in tested
        return
    if key.startswith("kafka.") and key != "kafka.topic":
        assert "kafka." in (ROOT / "tablestore_engine/log/settings.py").read_text()
        assert "kafka.linger.ms" in (ROOT / CLIENT_TEST).read_text()
        return
    named = "metadata.stats-mode" if key.startswith("fields.<column>.") else key
    assert named in reads, f"nothing reads {key}"
    assert key in tested or key.replace("<column>", "") in tested or key.startswith("fields."), (
        f"no test of {key}"
    )


@pytest.mark.parametrize("key", REFUSED)
def test_an_option_without_reader_is_refused(key: str) -> None:
    """Its name is known, so the error can say why and what to do."""
    assert key not in OPTIONS
    with pytest.raises(FixRequest) as refused:
        check_options({key: "1"})
    assert refused.value.code == "TS1161"
    assert key in refused.value.what
