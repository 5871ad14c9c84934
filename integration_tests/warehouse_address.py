"""Where a suite's warehouses lie: in the folder that it names, or on the object store of the run."""

from __future__ import annotations

import os
import uuid

ADDRESS_ENV = "TABLESTORE_TEST_WAREHOUSE"  # an address with its settings behind `?`; unset: folders


def warehouse_address(folder: str) -> str:
    """`folder` itself, or a new prefix below the address of the run."""
    given = os.environ.get(ADDRESS_ENV)
    if given is None:
        return folder
    place, _, settings = given.partition("?")
    return f"{place}/{uuid.uuid4().hex}?{settings}"
