"""Whether the options of a schema fit its merge engine; asked when a table is made or altered, before anything changes.

CHANGE     which options go with which merge engine
INVARIANT  an option that would have no effect is refused, so is one that Paimon refuses with this engine.
"""

from __future__ import annotations

from collections.abc import Mapping

from tablestore_engine.errors import FixRequest
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.lsm.merge_engine_registry import get_engine
from tablestore_engine.options import OptionSet

# merge engine → options of a new table that differ from those of other keyed tables
_DEFAULTS: Mapping[str, Mapping[str, str]] = {"first-row": {"deletion-vectors.enabled": "false"}}


def engine_defaults(options: Mapping[str, str]) -> Mapping[str, str]:
    """Options of a new keyed table that differ from those of other tables by its merge engine."""
    return _DEFAULTS.get(OptionSet(options).text("merge-engine"), {})


def check_merge_options(schema: TableSchema) -> None:
    """Raises FixRequest TS1658; Unsupported TS1655."""
    if not schema.is_keyed:
        return
    name = OptionSet(schema.options).text("merge-engine")
    engine = get_engine(name, schema)
    if engine.keeps_stored:
        _check_keeps_stored(name, schema)


def _check_keeps_stored(name: str, schema: TableSchema) -> None:
    if schema.options.get("sequence.field"):
        raise refused_option(
            "sequence.field", f"merge-engine {name} keeps the row that came first, whatever its values are"
        )
    if schema.options.get("deletion-vectors.enabled", "false").strip().lower() == "true":
        raise refused_option(
            "deletion-vectors.enabled",
            f"merge-engine {name} replaces no row, and Paimon refuses both together",
        )


def refused_option(key: str, why: str, fix: str = "leave it out, or use another merge engine") -> FixRequest:
    """FixRequest TS1658."""
    return FixRequest(
        "TS1658", f"option {key!r} does not go with the merge engine of the table", why=why, fix=fix
    )
