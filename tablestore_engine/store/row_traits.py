"""What a table's options mean for its rows: which of them count, which version wins, what a changelog says.

CHANGE     the effect of an option on rows of a table
INVARIANT  as of table_traits, which has the options of files.
"""

# ruff: noqa: PLC0415 - imports in functions: a table that needs none of it loads none of it (decision 0137)
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from tablestore_engine.format.row_kind import RowKind
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.lsm.changelog_producer import ChangelogProducer, get_producer

if TYPE_CHECKING:
    from tablestore_engine.lsm.merge_engine import MergeEngine
    from tablestore_engine.options import OptionSet
    from tablestore_engine.store.retention import RecordRule


@dataclass(frozen=True)
class RowTraits:
    """`overrides`: options of one write, which go before the table's. Answers raise what OptionSet raises."""

    schema: TableSchema
    overrides: Mapping[str, str] = field(default_factory=dict, hash=False)

    @cached_property
    def _options(self) -> OptionSet:
        from tablestore_engine.options import OptionSet

        return OptionSet({**self.schema.options, **self.overrides})

    def _stored(self, key: str, default: str) -> str:
        """As the table says; `default` is the format's, since the table may be another engine's."""
        from tablestore_engine.options import stored_text

        return stored_text(self.schema.options, key) or default

    def _is_stored(self, key: str) -> bool:
        return self._stored(key, "false").strip().lower() == "true"

    @cached_property
    def has_vectors(self) -> bool:
        """Whether readers look for deletion vectors."""
        return self._is_stored("deletion-vectors.enabled")

    @property
    def has_64_bit_vectors(self) -> bool:
        """The form of new ones; readers know both."""
        return self._options.boolean("deletion-vectors.bitmap64")

    @property
    def has_inbox(self) -> bool:
        """Whether level 0 is an inbox: keyed, with vectors or an engine without need of any. Else readers merge, also
        where they have vectors (option deletion-vectors.merge-on-read).
        """
        hides = self.has_vectors and not self._is_stored("deletion-vectors.merge-on-read")
        return self.schema.is_keyed and (hides or self.merge_engine.keeps_stored)

    @property
    def merges_by_lookup(self) -> bool:
        """Whether compactions of Java merge level 0 with the newest stored version, which stays where it is."""
        return self._stored("changelog-producer", "none") == "lookup" or self._is_stored("force-lookup")

    @property
    def changelog_producer(self) -> ChangelogProducer:
        """Where the changelog of a keyed table comes from."""
        return get_producer(self._stored("changelog-producer", "none"))

    @cached_property
    def unlogged_columns(self) -> tuple[str, ...]:
        """An update of these columns alone has no changelog."""
        return self._options.columns("changelog-producer.row-deduplicate-ignore-fields")

    @property
    def tells_all(self) -> bool:
        """Whether its changelog has the row before and the row after of every change."""
        return not self.schema.is_keyed or (self.changelog_producer.is_complete and not self.unlogged_columns)

    @cached_property
    def told_level(self) -> int:
        """From this level on rows have been in a changelog; those below it come with a later snapshot."""
        if not self.schema.is_keyed:
            return 0
        producer = self.changelog_producer
        return self.level_count - 1 if producer.tells_last else int(producer.tells_late)

    @cached_property
    def merge_engine(self) -> MergeEngine:
        """How versions of a key become one. Raises Unsupported TS1655."""
        from tablestore_engine.lsm.merge_engine_registry import get_engine

        return get_engine(self.merge_engine_name, self.schema)

    @property
    def merge_engine_name(self) -> str:
        return self._stored("merge-engine", "deduplicate")

    @cached_property
    def ignores_deletes(self) -> bool:
        """Whether -U and -D rows are left out (option `ignore-delete`)."""
        return self._is_stored("ignore-delete")

    @cached_property
    def unwritten_kinds(self) -> tuple[RowKind, ...]:
        """Rows that a write leaves out (options ignore-delete, ignore-update-before)."""
        if self.ignores_deletes:
            return RowKind.UPDATE_BEFORE, RowKind.DELETE
        return (RowKind.UPDATE_BEFORE,) if self._is_stored("ignore-update-before") else ()

    @cached_property
    def sequence_fields(self) -> tuple[str, ...]:
        """Columns that say which row of a key is newer; () without."""
        return self._options.columns("sequence.field")

    @cached_property
    def is_sequence_descending(self) -> bool:
        """Whether the smaller value is newer."""
        return self._options.text("sequence.field.sort-order") == "descending"

    @cached_property
    def skips_identical(self) -> bool:
        """Whether an update that changes nothing is left out."""
        return self._options.boolean("changelog-producer.row-deduplicate")

    @cached_property
    def last_wins(self) -> bool:
        """Whether of repeated keys with nothing to order them the last is taken, instead of a refusal."""
        return self._options.text("tablestore.duplicates") == "last"

    @cached_property
    def level_count(self) -> int:
        """Levels of a keyed table. Raises FixRequest TS1651."""
        from tablestore_engine.lsm.levels import level_count

        return level_count(self.schema.options)

    @cached_property
    def record_rule(self) -> RecordRule | None:
        """Which records expire; None: none does."""
        from tablestore_engine.store.retention import RecordRule

        age_ms = self._options.find_duration_ms("record-level.expire-time") if self.schema.is_keyed else None
        return (
            None
            if age_ms is None
            else RecordRule(age_ms // 1000, self._options.find("record-level.time-field"))
        )
