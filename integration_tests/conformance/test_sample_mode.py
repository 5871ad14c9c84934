"""dbt-tests-adapter, area sample_mode."""

from dbt.tests.adapter.sample_mode.test_sample_mode import BaseSampleModeTest


class TestSampleMode(BaseSampleModeTest):
    """--sample reads the last day of a model with event_time."""
