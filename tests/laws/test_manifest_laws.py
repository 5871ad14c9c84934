"""Laws of manifests: round trip, merging in parts, merging as planned, and damage that is always named."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from hypothesis import given
from hypothesis import strategies as st

from tablestore_engine.errors import FixData, Unsupported
from tablestore_engine.format.data_file import DataFileMeta, SimpleStats
from tablestore_engine.format.index_manifest import (
    DELETION_VECTORS,
    DvRange,
    IndexEntry,
    decode_index_manifest,
    encode_index_manifest,
    replace_entries,
)
from tablestore_engine.format.manifest import (
    FileKind,
    ManifestEntry,
    decode_manifest,
    merge_entries,
)
from tablestore_engine.format.manifest_compaction import MergeLimits, is_full_merge_due, is_untidy
from tablestore_engine.format.manifest_list import (
    ManifestFileMeta,
    decode_manifest_list,
    describe_manifest,
    encode_manifest_list,
)
from tablestore_engine.store.commit.base_manifest_list import merge_manifests
from tests.doubles.faults import without_checksum
from tests.unit.format.manifest_samples import encode_manifest, make_entry

INTS, LONGS = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
SIZES, COUNTS = st.integers(0, 2**63 - 1), st.integers(0, 2**31 - 1)
BYTES, NAMES = st.binary(max_size=40), st.text(st.characters(codec="utf-8"), max_size=20)
STATS = st.builds(SimpleStats, BYTES, BYTES, st.lists(st.none() | LONGS, max_size=4).map(tuple))
TEXTS = st.lists(NAMES, max_size=3).map(tuple)
FILES = st.builds(
    DataFileMeta, NAMES, SIZES, COUNTS, BYTES, BYTES, STATS, STATS, LONGS, LONGS, LONGS, COUNTS,
    creation_time=st.none() | st.integers(-(10**13), 10**14), extra_files=TEXTS,
    delete_row_count=st.none() | LONGS, embedded_file_index=st.none() | BYTES, file_source=st.none() | INTS,
    value_stats_cols=st.none() | TEXTS, first_row_id=st.none() | LONGS,
    write_cols=st.none() | TEXTS,
)  # fmt: skip
ENTRIES = st.lists(
    st.builds(ManifestEntry, st.sampled_from(FileKind), BYTES, INTS, INTS, FILES), min_size=1, max_size=5
)
RANGE = INTS | st.none()
METAS = st.lists(
    st.builds(ManifestFileMeta, NAMES, LONGS, LONGS, LONGS, STATS, LONGS, RANGE, RANGE, RANGE, RANGE), max_size=5
)  # fmt: skip
RANGES = st.lists(st.builds(DvRange, NAMES, INTS, INTS, st.none() | LONGS), max_size=3).map(tuple)
VECTORS = st.builds(IndexEntry, BYTES, INTS, st.just(DELETION_VECTORS), NAMES, LONGS, LONGS, RANGES)
HASHES = st.builds(IndexEntry, BYTES, INTS, st.just("HASH"), NAMES, LONGS, LONGS)
CODECS = st.sampled_from(["zstd", "deflate", "none"])


@given(ENTRIES, CODECS)
def test_manifests_round_trip(entries: list[ManifestEntry], codec: str) -> None:
    """Any entries with any optional facts come back equal and in order, whatever the compression."""
    assert decode_manifest(encode_manifest(entries, codec)) == entries


@given(METAS, CODECS)
def test_manifest_lists_round_trip(metas: list[ManifestFileMeta], codec: str) -> None:
    """So do the records of lists."""
    assert decode_manifest_list(encode_manifest_list(metas, codec)) == metas


@given(st.lists(VECTORS | HASHES, max_size=5), CODECS)
def test_index_manifests_round_trip(entries: list[IndexEntry], codec: str) -> None:
    """So do index files with and without vectors."""
    assert decode_index_manifest(encode_index_manifest(entries, codec)) == entries


@given(ENTRIES, CODECS, st.data())
def test_damage_gives_entries_or_a_named_error(
    entries: list[ManifestEntry], codec: str, data: st.DataObject
) -> None:
    """Cut anywhere or with any bytes changed, a manifest gives entries or TS1131/TS1134, never anything else."""
    good = without_checksum(encode_manifest(entries, codec))
    broken = bytearray(good[: data.draw(st.integers(0, len(good)))] if data.draw(st.booleans()) else good)
    if broken:
        for place in data.draw(st.lists(st.integers(0, len(broken) - 1), max_size=4)):
            broken[place] = data.draw(st.integers(0, 255))
    try:
        assert isinstance(decode_manifest(bytes(broken), "m"), list)
    except (FixData, Unsupported) as error:
        assert error.code in {"TS1131", "TS1134"}  # noqa: PT017 — either outcome is right


@st.composite
def histories(draw: st.DrawFn) -> list[list[ManifestEntry]]:
    """Manifests of a table in order: files come, move to another level, and go; names never come back."""
    live: list[ManifestEntry] = []
    out = []
    for number in range(draw(st.integers(1, 12))):
        part: list[ManifestEntry] = []
        for serial in range(draw(st.integers(0, 3))):
            entry = make_entry(f"f{number}-{serial}", level=0)
            live.append(entry)
            part.append(entry)
        for index in draw(st.lists(st.integers(0, 50), max_size=3)):
            if not live:
                break
            gone = live.pop(index % len(live))
            part.append(dataclasses.replace(gone, kind=FileKind.DELETE))
            if gone.file.level < 3 and draw(st.booleans()):
                moved = dataclasses.replace(
                    gone, file=dataclasses.replace(gone.file, level=gone.file.level + 1)
                )
                live.append(moved)
                part.append(moved)
        if part:
            out.append(part)
    return out


def _flat(manifests: list[list[ManifestEntry]]) -> list[ManifestEntry]:
    return [entry for part in manifests for entry in part]


def batched(entries: Iterable[ManifestEntry], size: int) -> Iterator[tuple[ManifestEntry, ...]]:
    """Tuples of `size` entries, the last one maybe shorter (itertools has it from Python 3.12 on)."""
    rest = iter(entries)
    while part := tuple(islice(rest, size)):
        yield part


def _live(entries: list[ManifestEntry]) -> set[ManifestEntry]:
    return set(merge_entries(entries).values())


@given(histories(), st.integers(0, 50), st.integers(0, 50))
def test_merging_any_stretch_changes_nothing(
    history: list[list[ManifestEntry]], at: int, length: int
) -> None:
    """A consecutive part merged by itself, pending DELETEs kept, leaves the same files as merging all at once."""
    entries = _flat(history)
    start = at % (len(entries) + 1)
    stop = start + length
    merged = [*entries[:start], *merge_entries(entries[start:stop]).values(), *entries[stop:]]
    assert _live(merged) == _live(entries)
    assert all(entry.kind is FileKind.ADD for entry in _live(entries))


@given(histories(), st.integers(1, 8), st.integers(1, 40), st.integers(1, 6))
def test_merging_as_planned_changes_nothing(
    history: list[list[ManifestEntry]], target: int, full: int, min_count: int
) -> None:
    """Whatever the limits, the new list has the same live files; after a full merge nothing but them."""
    limits = MergeLimits(target, full, min_count)
    parts: dict[str, Sequence[ManifestEntry]] = {}

    def write(entries: Iterable[ManifestEntry]) -> list[ManifestFileMeta]:
        made = []
        for part in batched(entries, target):  # a byte per entry
            name = f"m{len(parts)}"
            parts[name] = part
            made.append(describe_manifest(name, len(part), part, []))
        return made

    metas = [meta for part in history for meta in write(part)]
    new = merge_manifests(metas, limits, parts.__getitem__, write)
    entries = [entry for meta in new for entry in parts[meta.file_name]]
    assert _live(entries) == _live(_flat(history))
    if is_full_merge_due(metas, limits):
        assert all(entry.kind is FileKind.ADD for entry in entries)
    full_size = {meta for meta in metas if not is_untidy(meta, limits)}
    if not is_full_merge_due(metas, limits):
        assert full_size <= set(new)


@given(st.lists(VECTORS | HASHES, max_size=6), VECTORS)
def test_a_bucket_has_one_vector_entry_after_replacing(entries: list[IndexEntry], new: IndexEntry) -> None:
    """Whatever was there, one DELETION_VECTORS entry of the bucket is left; replacing again changes nothing."""
    after = replace_entries(entries, {(new.partition, new.bucket): new})
    own = [
        e
        for e in after
        if (e.index_type, e.partition, e.bucket) == (DELETION_VECTORS, new.partition, new.bucket)
    ]
    assert own == [new]
    assert replace_entries(after, {(new.partition, new.bucket): new}) == after
