"""What a model's config changes of its table that rows already lie by: key, partitions, buckets, order, log.

INVARIANT  pure. What decides which rows a key has or who reads them goes back to its default when the model no longer
           names it; any other option that it leaves out is the table's own choice, and no reason to make it anew.
INVARIANT  a table without a log may get one at any time: that is no change of its layout.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dbt.adapters.tablestore.config.model_config import TableSettings
from tablestore_engine.spi import OPTIONS, Scope

_BACK_TO_DEFAULT = frozenset({
    "merge-engine", "sequence.field", "sequence.field.sort-order", "changelog-producer", "log.system", "kafka.topic",
})  # fmt: skip


@dataclass(frozen=True)
class ModelLayout:
    """Key, partitions and options of a table."""

    key: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def has_log(self) -> bool:
        """Whether its changelog goes to a topic."""
        return self.options.get("log.system", "none") != "none"


@dataclass(frozen=True)
class LayoutChange:
    """`present` and `wanted` as a user would write them; `is_asked`: the model names it, it is no default."""

    what: str
    present: object
    wanted: object
    is_asked: bool = True


def list_changes(settings: TableSettings, table: ModelLayout) -> tuple[LayoutChange, ...]:
    """Empty when the table can stay as it is."""
    changes = [
        LayoutChange(what, list(present), list(wanted))
        for what, present, wanted in (
            ("primary_key", table.key, settings.primary_key),
            ("partition_by", table.partition_by, settings.partition_by),
        )
        if tuple(map(str.lower, present)) != tuple(map(str.lower, wanted))
    ]
    asked = dict(settings.options)
    for key, option in OPTIONS.items():
        if (
            option.mutable
            or option.scope is Scope.ENGINE
            or (option.scope is Scope.LOG and not table.has_log)
        ):
            continue
        present = table.options.get(key, option.default)
        concerns = bool(settings.primary_key) or option.scope is Scope.LOG  # without a key nothing is merged
        left_out = option.default if concerns and key in _BACK_TO_DEFAULT else present
        wanted = asked.get(key, left_out)
        wanted = present if (key, wanted) == ("bucket", "auto") else wanted  # an answer for a new table
        if present != wanted:
            changes.append(LayoutChange(key, present, wanted, is_asked=key in asked))
    return tuple(changes)
