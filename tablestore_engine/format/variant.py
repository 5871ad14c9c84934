"""Values of VARIANT columns, stored and incoming ones: what is refused of them. type_arrow.py has their Arrow form.

CHANGE     which values of a VARIANT are refused
PAIMON     Java shreds a VARIANT only in tables that ask for it.
INVARIANT  a shredded variant is refused, never read as its rest: `value` of it lacks what `typed_value` holds.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tablestore_engine.errors import Unsupported
from tablestore_engine.format.type_arrow import VARIANT_ARROW, has_variant_fields

_VERSION = 1  # of the encoding, in the low four bits of the metadata


def stored_variant(array: pa.Array) -> pa.Array:
    """A VARIANT of a data file in its Arrow form. Raises Unsupported TS1162 for a shredded one."""
    if not has_variant_fields(array.type):
        raise _unreadable(f"its fields are {', '.join(field.name for field in array.type)}: it is shredded")
    parts = [array.field(name).cast(pa.binary()) for name in ("value", "metadata")]
    if any(pc.any(pc.and_(array.is_valid(), part.is_null())).as_py() for part in parts if part.null_count):
        raise _unreadable("a value without value or metadata is no variant")
    parts = [part.fill_null(b"") for part in parts]  # below a VARIANT that is NULL
    return pa.StructArray.from_arrays(parts, fields=list(VARIANT_ARROW), mask=array.is_null())


def _unreadable(why: str) -> Unsupported:
    return Unsupported(
        "TS1162",
        "a VARIANT of a data file cannot be read",
        why=f"{why}; only whole values in the two fields value and metadata are read",
        fix="read it by SQL; or compact the table in the engine that wrote it, without the options "
        "variant.inferShreddingSchema and variant.shreddingSchema",
    )


def checked_variant(array: pa.Array) -> pa.Array:
    """An incoming VARIANT in its Arrow form. Raises pa.ArrowInvalid where no reader could decode a value."""
    if not has_variant_fields(array.type):
        raise pa.ArrowInvalid(f"a VARIANT is a struct of the binaries value and metadata, got {array.type}")
    value, metadata = (array.field(name).filter(array.is_valid()) for name in ("value", "metadata"))
    if value.null_count or metadata.null_count:
        raise pa.ArrowInvalid("a VARIANT has a value and metadata, one of them is NULL")
    if pc.any(pc.equal(pc.binary_length(value), 0)).as_py():
        raise pa.ArrowInvalid("the value of a VARIANT is empty: JSON null is one byte, 0")
    if pc.any(pc.less(pc.binary_length(metadata), 3)).as_py():
        raise pa.ArrowInvalid("the metadata of a VARIANT has fewer than three bytes")
    heads = b"".join(pc.binary_slice(metadata, 0, 1).to_pylist())
    if len(heads) and bool(((np.frombuffer(heads, np.uint8) & 0x0F) != _VERSION).any()):
        raise pa.ArrowInvalid(f"the metadata of a VARIANT is not of version {_VERSION}")
    return stored_variant(array)
