"""Laws are judged by truth, not by time: the machine is shared, so there is no deadline per example."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("laws", deadline=None)
settings.load_profile("laws")
