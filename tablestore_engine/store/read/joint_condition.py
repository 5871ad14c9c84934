"""Several conditions of rows, all of which must be TRUE."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tablestore_engine.format.schema import TableSchema
from tablestore_engine.lsm.key_order import Mask
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
        """TRUE of all parts."""
        truth = np.ones(rows.num_rows, np.bool_)
        for part in self.parts:
            truth &= part.mask(rows)
        return truth

    def prune(self, files: Iterable[StoredFile]) -> tuple[StoredFile, ...]:
        """What no part leaves out."""
        left = tuple(files)
        for part in self.parts:
            left = part.prune(left)
        return left
