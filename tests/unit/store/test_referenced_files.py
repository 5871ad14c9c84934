"""Which files snapshots name, where a table of ours alone would not show it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tablestore_engine.errors import NotFound
from tablestore_engine.format.manifest import FileKind, ManifestEntry
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.store.expiry.referenced_files import dropped_data, live_data
from tablestore_engine.store.table_store import TableStore
from tests.unit.store.table_world import make_table, put, row


def _with_delta(store: TableStore, *entries: ManifestEntry) -> Snapshot:
    """The newest snapshot with these changes instead of its own."""
    newest, manifests = store.latest(), store.context.manifests
    assert newest is not None
    metas = manifests.write_manifests(entries, [], compression="zstd", target_bytes=1 << 20)
    return replace(newest, delta_manifest_list=manifests.write_list(metas, "zstd")[0])


def test_an_upgraded_file_is_not_dropped(tmp_path: Path) -> None:
    """DELETE and ADD of one name (another level), in either order or by a later snapshot, is the same file on disk."""
    store = make_table(tmp_path)
    put(store, row(1))
    newest = store.latest()
    assert newest is not None
    (entry,) = store.context.scanner.live_entries(newest)
    went = replace(entry, kind=FileKind.DELETE)
    came = replace(entry, file=replace(entry.file, level=3))
    gone = _with_delta(store, went)
    assert dropped_data(store.context, [gone], floor=0) == live_data(store.context, newest)
    for delta in ((went, came), (came, went)):
        assert dropped_data(store.context, [_with_delta(store, *delta)], floor=0) == {}
    assert dropped_data(store.context, [gone, _with_delta(store, came)], floor=0) == {}


def test_only_a_snapshot_on_its_way_out_may_lack_manifests(tmp_path: Path) -> None:
    """Below the floor a missing manifest has nothing more to say; anywhere else it is damage."""
    store = make_table(tmp_path)
    put(store, row(1))
    newest = store.latest()
    assert newest is not None
    lost = replace(newest, delta_manifest_list="manifest-list-gone")
    assert dropped_data(store.context, [lost], floor=newest.id + 1) == {}
    with pytest.raises(NotFound, match="TS1201"):
        dropped_data(store.context, [lost], floor=newest.id)
