"""Laws are judged by truth, not by time: the machine is shared, so there is no deadline per example.

Examples are the same in each run of `make test`; the nightly run, which sets TABLESTORE_TEST_SEED, draws new ones.
"""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("laws", deadline=None, derandomize="TABLESTORE_TEST_SEED" not in os.environ)
settings.load_profile("laws")
