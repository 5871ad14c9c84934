"""Refusals of options that a merge engine does not go with, each code in one place."""

from __future__ import annotations

from tablestore_engine.errors import FixRequest, Unsupported


def refused_option(key: str, why: str, fix: str = "leave it out, or use another merge engine") -> FixRequest:
    """FixRequest TS1658."""
    return FixRequest(
        "TS1658", f"option {key!r} does not go with the merge engine of the table", why=why, fix=fix
    )


def not_exact(what: str, why: str, fix: str) -> Unsupported:
    """Unsupported TS1667: Paimon's own result hangs on something that is not the rows."""
    return Unsupported("TS1667", f"{what} is not supported", why=why, fix=fix)
