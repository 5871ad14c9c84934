"""Every option of Paimon's library is one that this engine follows, stores for others, or refuses by name."""

from __future__ import annotations

import re

from integration_tests.interop.java_paimon import JavaPaimon
from tablestore_engine.options.not_built import is_named
from tablestore_engine.options.paimon_keys import PAIMON_KEYS, PREFIXES
from tablestore_engine.options.table_options import REFUSED, find_option

# set by Paimon itself: a user's value is refused as unknown (TS1006), the scan.* of stored tables by
# format/capability.py
OF_PAIMON = re.compile(
    r"path|key-value\.sequence_number\.enabled|scan\.version|stream-scan-mode|batch-scan-mode|"
    r"materialized-table\..+"
)
# older names, of versions before 1.0
OLD = {"snapshot.expire.clean-empty-directories", "write.compaction-skip", "changelog-producer.lookup-wait"}
OLD |= {"blob.stored-descriptor-fields"}


def is_known(key: str) -> bool:
    """Whether the key has an effect, is another engine's, or is refused with a reason."""
    return (
        find_option(key) is not None
        or is_named(key)
        or key in REFUSED
        or key in PAIMON_KEYS
        or key.startswith(PREFIXES)
    )


def test_each_option_of_java_is_known_here(java: JavaPaimon) -> None:
    """As the classes of the pinned version list them, with their older names."""
    options = {one.key(): [old.getKey() for old in one.fallbackKeys()] for one in java.options()}
    assert len(options) > 250
    unknown = {key for key in options if not (is_known(key) or OF_PAIMON.fullmatch(key))}
    assert unknown == set()
    old = {one for key, names in options.items() if not OF_PAIMON.fullmatch(key) for one in names}
    assert {key for key in old if not is_known(key)} <= OLD
