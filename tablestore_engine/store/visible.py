"""Which rows of a data file are not deleted.

Names      visible_mask   row number -> is it there
"""

from __future__ import annotations

import numpy as np
from pyroaring import BitMap

from tablestore_engine.errors import FixData


def visible_mask(path: str, rows: int, deleted: BitMap | None) -> np.ndarray:
    """`rows` booleans. Raises FixData TS1390 when a position is behind the file's last row."""
    visible = np.ones(rows, dtype=bool)
    if deleted:
        if deleted.max() >= rows:
            raise FixData(
                "TS1390",
                f"the deletion vector of {path} does not fit it",
                why=f"it marks row {deleted.max()}, the file has {rows} rows",
                fix="run tablestore verify; roll back to an earlier snapshot",
            )
        visible[np.asarray(deleted.to_array())] = False
    return visible
