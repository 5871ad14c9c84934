"""Examples of the Python API that start Spark: they run, and print what they say."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.api_examples import ApiName, api_names, run_example
from tests.doses import cases


@pytest.mark.parametrize(
    "one", cases([one for one in api_names() if one.needs_spark], 3), ids=lambda one: one.name
)
def test_example_with_spark_prints_what_it_says(
    one: ApiName, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As tests/unit/api/test_api_examples.py does with all others."""
    monkeypatch.chdir(tmp_path)
    assert run_example(one) == ""
