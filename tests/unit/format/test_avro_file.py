"""Avro containers: codecs by option value, rolling, and damage that always becomes one of our errors."""

from __future__ import annotations

import io

import fastavro
import pytest

from tablestore_engine.errors import FixData, FixRequest, Unsupported
from tablestore_engine.format.avro_file import ROOT_NAME, AvroCodec, optional
from tablestore_engine.options import OPTIONS
from tests.doubles.faults import without_checksum
from tests.unit.format.manifest_samples import writer_schema

CODEC = AvroCodec.of("sample", [{"name": "n", "type": "long"}, optional("t", "string")])
ROWS = [{"n": i, "t": f"text {i}"} for i in range(1000)]


@pytest.mark.parametrize(
    ("option", "avro"),
    [("zstd", "zstandard"), ("zstandard", "zstandard"), ("none", "null"), ("null", "null"), ("deflate", "deflate")],
)  # fmt: skip
def test_option_values_become_avro_codecs(option: str, avro: str) -> None:
    """The codec in the header is Avro's name for the option, and the file reads back."""
    data = CODEC.write(ROWS, option)
    assert fastavro.reader(io.BytesIO(data)).codec == avro
    assert CODEC.read(data, dict) == ROWS


def test_every_value_of_the_option_can_be_written() -> None:
    """What CREATE lets through as manifest.compression, the first commit can write."""
    for option in OPTIONS["manifest.compression"].values:
        assert CODEC.read(CODEC.write(ROWS, option), dict) == ROWS


def test_optional_fields_are_unions_with_null_first() -> None:
    """The header has Java's record name and unions in the one order that Java decodes."""
    schema = writer_schema(CODEC.write([], "zstd"))
    assert schema["name"] == ROOT_NAME or f"{schema['namespace']}.{schema['name']}" == ROOT_NAME
    assert schema["fields"][1] == {"name": "t", "type": ["null", "string"], "default": None}


@pytest.mark.parametrize("option", ["lz4", "snappy", ""])
def test_an_unknown_compression_is_refused_before_writing(option: str) -> None:
    """Compressions that not every Paimon reads are never written."""
    with pytest.raises(FixRequest) as caught:
        CODEC.write(ROWS, option)
    assert caught.value.code == "TS1135"
    with pytest.raises(FixRequest) as caught:
        list(CODEC.write_rolled(ROWS, dict, option, 10))
    assert caught.value.code == "TS1135"


def test_a_compression_that_cannot_be_read_is_named() -> None:
    """A file of a codec we lack is no damage: the error names codec and file."""
    data = without_checksum(CODEC.write(ROWS, "null")).replace(
        b"\x14avro.codec\x08null", b"\x14avro.codec\x08lz44"
    )
    with pytest.raises(Unsupported, match="'lz44'") as caught:
        CODEC.read(data, dict, "manifest-7")
    assert caught.value.code == "TS1134"
    assert "manifest-7" in str(caught.value)


def test_files_roll_once_they_reach_the_target() -> None:
    """All rows come back in order; each file but the last has the target size; the last one has rows."""
    rows = [{"n": i, "t": "x" * 100} for i in range(5000)]
    parts = list(CODEC.write_rolled(rows, dict, "null", 100_000))
    assert len(parts) > 2
    assert all(len(data) >= 100_000 for data, _ in parts[:-1])
    assert [row for data, _ in parts for row in CODEC.read(data, dict)] == rows
    assert [row for _, held in parts for row in held] == rows
    assert all(held for _, held in parts)


def test_rolling_nothing_gives_no_file() -> None:
    """Without rows there is no file, not an empty one."""
    assert list(CODEC.write_rolled([], dict, "zstd", 100)) == []


@pytest.mark.parametrize("data", [b"", b"Obj\x01", b"PAR1" * 20, bytes(64)])
def test_what_is_no_avro_is_named(data: bytes) -> None:
    """Empty, cut and foreign files raise FixData naming kind and file."""
    with pytest.raises(FixData, match="the sample m-1 cannot be read") as caught:
        CODEC.read(data, dict, "m-1")
    assert caught.value.code == "TS1131"


@pytest.mark.parametrize("option", ["zstd", "deflate"])
def test_damaged_blocks_are_our_error(option: str) -> None:
    """Any byte of a compressed block changed gives rows or FixData, never an exception of the compression library."""
    good = without_checksum(CODEC.write(ROWS[:50], option))
    block = good.index(good[-16:]) + 16  # the header ends with the sync marker that ends the file, too
    refused = 0
    for place in range(block, len(good)):
        broken = good[:place] + bytes([good[place] ^ 0xFF]) + good[place + 1 :]
        try:
            assert len(CODEC.read(broken, dict)) <= 50
        except FixData as error:
            assert error.code == "TS1131"  # noqa: PT017 — either outcome is right
            refused += 1
    assert refused > 20
