"""dbt-tests-adapter, area concurrency."""

from dbt.tests.adapter.concurrency.test_concurrency import BaseConcurrency


class TestConcurrency(BaseConcurrency):
    """Many models on several threads, one of them failing."""
