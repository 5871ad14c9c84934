"""Avro object container files of the metadata (format.md#avro-files): schemas as values, one way to write and read.

Steps      read: checksum → avro_blocks unpacks and bounds it → known compression? → records → the caller's objects
PAIMON     record names are Java's; the codec `zstd` is called zstandard in Avro, its level is 1.
INVARIANT  unions are ["null", X], in that order.
INVARIANT  whatever the bytes are, reading gives objects, FixData TS1131, TS1160 or Unsupported TS1134.
"""

from __future__ import annotations

import importlib.util
import io
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import fastavro
from fastavro.schema import SchemaParseException
from fastavro.write import Writer

from tablestore_engine.errors import FixData, FixRequest, Unsupported
from tablestore_engine.format.avro_blocks import open_container
from tablestore_engine.format.checksum import (
    CHECKSUM_KEY,
    CHECKSUM_PLACEHOLDER,
    insert_checksum,
    verify_checksum,
)

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdError
else:
    from backports.zstd import ZstdError

# option value → Avro's name; what we write every Paimon since 0.9 reads
_WRITTEN = {
    "zstd": "zstandard",
    "zstandard": "zstandard",
    "none": "null",
    "null": "null",
    "deflate": "deflate",
}
_HAS_SNAPPY = importlib.util.find_spec("cramjam") is not None  # what fastavro decodes snappy with
_READ = {"null", "deflate", "zstandard", *(["snappy"] if _HAS_SNAPPY else [])}
_ZSTD_LEVEL = 1
_MARKER_BYTES = 16
_PLACEHOLDER = {
    CHECKSUM_KEY: CHECKSUM_PLACEHOLDER
}  # in the header, beside the schema: user metadata as Avro has it
_DAMAGE = (
    ValueError, EOFError, LookupError, TypeError, AttributeError, OverflowError, RecursionError,
    zlib.error, ZstdError, SchemaParseException,
)  # fmt: skip
ROOT_NAME = "org.apache.paimon.avro.generated.record"
T = TypeVar("T")
Record = Mapping[str, Any]


def optional(name: str, avro_type: object) -> dict[str, object]:
    return {"name": name, "type": ["null", avro_type], "default": None}


@dataclass(frozen=True)
class AvroCodec:
    what: str
    parsed: Any

    @classmethod
    def of(cls, what: str, fields: list[dict[str, Any]], record: str = ROOT_NAME) -> AvroCodec:
        """A codec for records with these fields; `record`: their name."""
        return cls(what, fastavro.parse_schema({"type": "record", "name": record, "fields": fields}))

    def write(
        self, records: Iterable[Record], compression: str, header: Mapping[str, str] | None = None
    ) -> bytes:
        """Bytes of a container file with all records; `header`: texts in its header. Raises FixRequest TS1135 for an
        unknown compression.
        """
        sink = io.BytesIO()
        codec, level = _settings(compression)
        fastavro.writer(
            sink,
            self.parsed,
            records,
            codec=codec,
            codec_compression_level=level,
            metadata={**_PLACEHOLDER, **(header or {})},
        )
        return insert_checksum(sink.getvalue())

    def encode(self, record: Record) -> bytes:
        """One record, without a file."""
        sink = io.BytesIO()
        fastavro.schemaless_writer(sink, self.parsed, record)
        return sink.getvalue()

    def write_encoded(self, records: Sequence[bytes], header: Mapping[str, str]) -> bytes:
        """`write` of records that are encoded already, in one block, compressed by deflate.

        WHY: parts of a record that files have in common are encoded once, and not for each file.
        """
        sink = io.BytesIO()
        fastavro.writer(sink, self.parsed, (), codec="deflate", metadata={**_PLACEHOLDER, **header})
        if records:
            marker = sink.getvalue()[-_MARKER_BYTES:]  # the header ends with it
            packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
            data = packer.compress(b"".join(records)) + packer.flush()
            sink.write(encode_avro_long(len(records)) + encode_avro_long(len(data)) + data + marker)
        return insert_checksum(sink.getvalue())

    def write_rolled(
        self,
        items: Iterable[T],
        to_record: Callable[[T], dict[str, Any]],
        compression: str,
        target_bytes: int,
    ) -> Iterator[tuple[bytes, tuple[T, ...]]]:
        """(bytes, items) of one file after another, each closed once it has `target_bytes`; no items, no file."""
        codec, level = _settings(compression)
        held: list[T] = []
        sink, writer = io.BytesIO(), None
        for item in items:
            if writer is None:
                sink = io.BytesIO()
                writer = Writer(
                    sink, self.parsed, codec=codec, compression_level=level, metadata=dict(_PLACEHOLDER)
                )
            writer.write(to_record(item))
            held.append(item)
            if sink.tell() >= target_bytes:  # grows block by block, so a file may be one block too large
                writer.flush()
                yield insert_checksum(sink.getvalue()), tuple(held)
                held, writer = [], None
        if writer is not None:
            writer.flush()
            yield insert_checksum(sink.getvalue()), tuple(held)

    def read(self, data: bytes, build: Callable[[Record], T], name: str = "") -> list[T]:
        """One object per record; `build` gets records as the writer's schema has them, unknown fields missing.

        Raises FixData TS1160 for damaged bytes, TS1131 naming the file when the bytes are no such Avro file,
        Unsupported TS1134 when they are compressed in a way that cannot be read here.
        """
        verify_checksum(data, self.what, name)
        try:
            codec, plain = open_container(data, dict.fromkeys(_READ))
            if codec in _READ:
                return [build(record) for record in fastavro.reader(io.BytesIO(plain))]  # type: ignore[arg-type]
        except _DAMAGE as error:
            raise FixData(
                "TS1131",
                f"the {self.what} {name or '(no name)'} cannot be read",
                why=f"it is no Avro file of the expected form: {type(error).__name__}: {error}",
                fix="run tablestore verify; restore the file from a copy",
            ) from error
        raise Unsupported(
            "TS1134",
            f"the {self.what} {name or '(no name)'} cannot be read",
            why=f"it is compressed as {codec!r}; expected one of {', '.join(sorted(_READ))}",
            fix="write the table with manifest.compression zstd, or for snappy: pip install cramjam",
        )


def encode_avro_long(value: int) -> bytes:
    """An int or long in Avro: seven bits a byte, the sign in the lowest bit."""
    rest = (value << 1) ^ (value >> 63)
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def _settings(compression: str) -> tuple[str, int | None]:
    """Avro's codec and its level. Raises FixRequest TS1135."""
    codec = _WRITTEN.get(compression)
    if codec is None:
        raise FixRequest(
            "TS1135",
            f"manifest.compression {compression!r} is not known",
            why=f"expected one of {', '.join(sorted(_WRITTEN))}",
            fix="set manifest.compression to zstd",
        )
    return codec, _ZSTD_LEVEL if codec == "zstandard" else None
