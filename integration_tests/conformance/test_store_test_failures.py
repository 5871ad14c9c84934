"""dbt-tests-adapter, area store_test_failures."""

from dbt.tests.adapter.store_test_failures_tests.basic import (
    StoreTestFailuresAsExceptions,
    StoreTestFailuresAsGeneric,
    StoreTestFailuresAsInteractions,
    StoreTestFailuresAsProjectLevelEphemeral,
    StoreTestFailuresAsProjectLevelOff,
    StoreTestFailuresAsProjectLevelView,
)
from dbt.tests.adapter.store_test_failures_tests.test_store_test_failures import (
    BaseStoreTestFailures,
    BaseStoreTestFailuresLimit,
)


class TestStoreTestFailures(BaseStoreTestFailures):
    """Failing rows as tables."""


class TestStoreTestFailuresLimit(BaseStoreTestFailuresLimit):
    """At most so many of them."""


class TestAsInteractions(StoreTestFailuresAsInteractions):
    """store_failures against store_failures_as."""


class TestAsProjectLevelOff(StoreTestFailuresAsProjectLevelOff):
    """Off for the project."""


class TestAsProjectLevelView(StoreTestFailuresAsProjectLevelView):
    """Views for the project."""


class TestAsProjectLevelEphemeral(StoreTestFailuresAsProjectLevelEphemeral):
    """Nothing stored for the project."""


class TestAsGeneric(StoreTestFailuresAsGeneric):
    """Generic tests."""


class TestAsExceptions(StoreTestFailuresAsExceptions):
    """A value that does not exist."""
