"""Several conditions of rows, all of which must be TRUE."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tablestore_engine.format.schema import TableSchema
from tablestore_engine.lsm.key_order import Mask
from tablestore_engine.store.files.column_facts import FindFacts
from tablestore_engine.store.files.comparable_values import Comparable
from tablestore_engine.store.files.stored_file import StoredFile
from tablestore_engine.store.rows.row_condition import BoundCondition, RowCondition


@dataclass(frozen=True)
class JointCondition:
    """Implements RowCondition."""

    parts: tuple[RowCondition, ...]

    def bind(self, schema: TableSchema) -> BoundJoint:
        """Raises what the parts raise."""
        return BoundJoint(tuple(part.bind(schema) for part in self.parts), schema)


@dataclass(frozen=True)
class BoundJoint:
    """Implements BoundCondition."""

    parts: tuple[BoundCondition, ...]
    schema: TableSchema

    @property
    def columns(self) -> tuple[str, ...]:
        """Those of all parts, in table order."""
        asked = {name for part in self.parts for name in part.columns}
        return tuple(name for name in self.schema.field_names if name in asked)

    def mask(self, rows: pa.Table) -> Mask:
        truth = np.ones(rows.num_rows, np.bool_)
        for part in self.parts:
            truth &= part.mask(rows)
        return truth

    def prune(self, files: Iterable[StoredFile]) -> tuple[StoredFile, ...]:
        left = tuple(files)
        for part in self.parts:
            left = part.prune(left)
        return left

    def possible(self, sets: Sequence[FindFacts]) -> Sequence[bool]:
        each = [part.possible(sets) for part in self.parts]
        return [all(answers) for answers in zip(*each, strict=True)]

    def key_values(self, columns: Sequence[str]) -> Sequence[frozenset[Comparable]] | None:
        """Of each column the values that all parts leave."""
        found = []
        for name in columns:
            known = [values[0] for part in self.parts if (values := part.key_values([name])) is not None]
            if not known:
                return None
            found.append(frozenset.intersection(*known))
        return found
