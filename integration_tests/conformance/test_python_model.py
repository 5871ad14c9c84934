"""dbt-tests-adapter, area python_model."""

import pytest
from dbt.tests.adapter.python_model import test_spark
from dbt.tests.adapter.python_model.test_python_model import (
    BasePythonEmptyTests,
    BasePythonIncrementalTests,
    BasePythonMetaGetTests,
    BasePythonModelTests,
    BasePythonSampleTests,
)
from dbt.tests.adapter.python_model.test_spark import BasePySparkTests
from dbt.tests.util import run_dbt


class TestPythonModel(BasePythonModelTests):
    """ref, source and config."""


class TestPythonIncremental(BasePythonIncrementalTests):
    """is_incremental and merge."""


class TestPythonMetaGet(BasePythonMetaGetTests):
    """config.meta_get."""


class TestPythonEmpty(BasePythonEmptyTests):
    """--empty does not limit what a Python model reads."""


class TestPythonSample(BasePythonSampleTests):
    """Nor does --sample."""


class TestPySpark(BasePySparkTests):
    """Frames of pandas, Spark and pandas-on-Spark."""

    differs = "without the model of databricks.koalas, which no Python since 3.10 can install"

    @pytest.fixture(scope="class")
    def models(self):
        """pandas-on-Spark took the place of koalas."""
        return {
            "pandas_df.py": test_spark.PANDAS_MODEL,
            "pyspark_df.py": test_spark.PYSPARK_MODEL,
            "pandas_on_spark_df.py": test_spark.PANDAS_ON_SPARK_MODEL,
        }

    def test_different_dataframes(self, project):
        """Three of the original's four."""
        assert len(run_dbt(["run"])) == 3
