"""What Spark says of its workers' Python, as errors with a fix. Texts are Spark's own (4.3.0, standalone)."""

from __future__ import annotations

import pytest

from tablestore_engine.spark.worker_errors import find_worker_error

OTHER = (
    "PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker has different version: "
    "3.12 than that in driver: 3.11, PySpark cannot run with different minor versions.\nPlease check environment"
)
MISSING = (
    "File \"/x/serializers.py\", line 1\nModuleNotFoundError: No module named 'pyarrow.lib'\n\tat org.apache"
)
ABSENT = 'java.io.IOException: Cannot run program "/nowhere/python": error=2, No such file or directory\n\tat java.base'


@pytest.mark.parametrize(
    ("text", "code", "parts"),
    [
        (OTHER, "TS1541", ("3.12", "3.11", "spark.pyspark.python")),
        (MISSING, "TS1542", ("pyarrow.lib", "spark.pyspark.python")),
        (ABSENT, "TS1543", ("/nowhere/python", "No such file or directory")),
    ],
)
def test_trouble_with_the_python_of_workers_has_a_fix(text: str, code: str, parts: tuple[str, ...]) -> None:
    """Each has a code of its own, both versions or the name, and the setting to change."""
    found = find_worker_error(text)
    assert found is not None
    assert found.code == code
    assert all(part in str(found) for part in parts), str(found)


def test_other_errors_are_left_alone() -> None:
    """A failed cast has nothing to do with the workers' Python."""
    assert find_worker_error("[CAST_INVALID_INPUT] The value 'x' cannot be cast; see worker.py") is None
