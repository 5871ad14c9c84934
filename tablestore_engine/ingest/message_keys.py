"""Names in the keys of many messages of Debezium, without reading each.

Steps      1 keys with a schema: do all begin with the text of the first one's? 2 keys without: by Arrow's parser, all
           at once 3 where they are not all alike: each that is another one
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.json as pj

from tablestore_engine.ingest.debezium import DebeziumJson

_ENVELOPE = frozenset({"schema", "payload"})


def key_names(
    keys: Sequence[bytes | None], numbers: npt.NDArray[np.int64], reader: DebeziumJson
) -> Mapping[tuple[str, ...], int]:
    """Names → the first message of `numbers` with them."""
    places = [at for at in numbers.tolist() if keys[at]]
    texts = [key for at in places if (key := keys[at])]
    if not texts:
        return {}
    names, begin = reader.key_names(texts[0]), reader.begin_of(texts[0])
    if _same_names(texts) if begin is None else all(key.startswith(begin) for key in texts):
        return {names: places[0]} if names else {}
    found: dict[tuple[str, ...], int] = {}
    for key, at in dict(zip(reversed(texts), reversed(places), strict=True)).items():
        names = reader.key_names(key)
        if names:
            found[names] = min(at, found.get(names, at))
    return found


def _same_names(keys: Sequence[bytes]) -> bool:
    """Whether all are objects of the same members, none of which is null."""
    if len(keys) < 2 or any(key[:1] != b"{" or key[-1:] != b"}" for key in keys):
        return False  # Arrow's parser ends the process at a document that is `null`
    joined = b"\n".join(keys)
    if joined.count(b"\n") != len(keys) - 1:
        return False
    try:
        table = pj.read_json(io.BytesIO(joined), read_options=pj.ReadOptions(use_threads=False))
    except pa.ArrowException:
        return False
    is_whole = table.num_rows == len(keys) and not any(one.null_count for one in table.columns)
    return is_whole and set(table.column_names) != _ENVELOPE
