"""A short run of the metadata fuzz (make fuzz runs 20,000 of each kind and writer)."""

from __future__ import annotations

import pytest

from tablestore_engine.errors import FixData
from tablestore_engine.format.checksum import CHECKSUM_KEY
from tests.doses import examples
from tests.doubles.faults import without_checksum
from tests.fuzz.metadata import KINDS, World, Writer, fuzz

MUTATIONS = {Writer.OURS: examples(7, 20), Writer.OTHER: examples(14, 45)}


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> dict[Writer, World]:
    """Two tables for all kinds: each change is taken back."""
    return {writer: World(tmp_path_factory.mktemp("fuzz"), writer) for writer in Writer}


@pytest.mark.parametrize("writer", Writer)
@pytest.mark.parametrize("kind", KINDS)
def test_changed_metadata_is_refused_or_means_the_same(
    kind: str, writer: Writer, worlds: dict[Writer, World]
) -> None:
    """Whatever the bytes of a metadata file become: the same rows or an error with a code, nothing else. Only a file
    that another writer made so, whole and with what checksums it has, may say something else.
    """
    found = fuzz(worlds[writer], kind, range(MUTATIONS[writer]), seed=7)
    assert found.total() == MUTATIONS[writer]
    assert found["refused"] or kind == "hints"
    assert not found["believed"] or (writer is Writer.OTHER and kind != "hints")


@pytest.mark.parametrize("kind", ["manifest list", "manifest", "index manifest", "deletion vectors"])
def test_another_file_of_ours_under_the_name(kind: str, worlds: dict[Writer, World]) -> None:
    """Whole, of the right kind and with a right checksum, not the named one: TS1160, by the checksum in the name."""
    world, refusals = worlds[Writer.OURS], []
    files = world.files(kind)
    for path, other in zip(files, [*files[1:], files[0]], strict=True):
        good = path.read_bytes()
        path.write_bytes(other.read_bytes())
        try:
            assert world.read() == world.expected, path
        except FixData as error:
            refusals.append((path.name, str(error)))
        finally:
            path.write_bytes(good)
    assert refusals
    assert all("TS1160" in said and name in said for name, said in refusals), refusals


@pytest.mark.parametrize("kind", ["snapshot", "schema", "tag", "view", "audit"])
def test_a_lost_checksum_is_damage(kind: str, worlds: dict[Writer, World]) -> None:
    """Damage that hits the name of the checksum does not make the file one of another engine."""
    world = worlds[Writer.OURS]
    (path, *_) = world.files(kind)
    good = path.read_bytes()
    changes = [good.replace(CHECKSUM_KEY.encode(), b"tablestore.crc33")]
    if kind in ("view", "audit"):  # which no other engine writes
        changes.append(without_checksum(good))
    for changed in changes:
        assert changed != good
        path.write_bytes(changed)
        try:
            with pytest.raises(FixData, match="TS1160"):
                world.read()
        finally:
            path.write_bytes(good)
