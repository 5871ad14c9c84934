"""dbt-tests-adapter, area dbt_clone."""

from dbt.tests.adapter.dbt_clone.test_dbt_clone import (
    BaseClonePossible,
    BaseCloneSameSourceAndTarget,
    BaseCloneSameTargetAndState,
)


class TestClonePossible(BaseClonePossible):
    """Tables become tables."""


class TestCloneSameSourceAndTarget(BaseCloneSameSourceAndTarget):
    """A relation is not cloned onto itself."""


class TestCloneSameTargetAndState(BaseCloneSameTargetAndState):
    """A state that is the target folder is refused."""
