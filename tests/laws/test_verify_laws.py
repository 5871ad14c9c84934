"""Laws of verify: what it computes from differences is what a look at each snapshot alone finds."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from tablestore_engine.errors import FixData
from tablestore_engine.fileio.local import LocalFileIO
from tablestore_engine.format.binary_row import EMPTY_ROW
from tablestore_engine.format.manifest import FileKind, ManifestEntry, merge_entries
from tablestore_engine.format.snapshot import encode_snapshot
from tablestore_engine.store.files.file_read import FileReader
from tablestore_engine.store.files.stored_file import StoredFile
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.store.verify.bucket_check import LevelRanges, count_overlaps
from tablestore_engine.store.verify.bucket_history import BucketTurn
from tablestore_engine.store.verify.key_history import count_repeats, key_windows
from tablestore_engine.store.verify.live_files import LiveFiles
from tablestore_engine.store.verify.table_check import verify_snapshot, verify_table
from tests.doses import examples, pairs
from tests.unit.format.manifest_samples import make_entry
from tests.unit.store.file_meta import meta
from tests.unit.store.table_world import delete, make_table, open_table, put

DAMAGES = ("flip", "longer", "missing", "other file", "count", "no index", "other lists", "other index")

# ---- live files --------------------------------------------------------------------------------------------

ENTRIES = st.builds(
    lambda kind, number: make_entry(f"f{number}", kind),
    st.sampled_from([FileKind.ADD, FileKind.ADD, FileKind.DELETE]),
    st.integers(0, 5),
)
MANIFESTS = st.lists(st.lists(ENTRIES, min_size=1, max_size=3), min_size=1, max_size=6)
LISTS = st.lists(st.lists(st.integers(0, 5), max_size=6), min_size=1, max_size=8)


def _outcome(work: Callable[[], object]) -> Any:
    """What it returns, or the text of its error."""
    try:
        return work()
    except FixData as error:
        return str(error)


@given(manifests=MANIFESTS, lists=LISTS)
def test_moving_from_list_to_list_is_merging_each(
    manifests: list[list[ManifestEntry]], lists: list[list[int]]
) -> None:
    """Same files, rows and pending removals, or the same error; and all changes add up to the files."""
    live, seen = LiveFiles(), Counter[ManifestEntry]()
    for numbers in lists:
        names = [str(number) for number in numbers if number < len(manifests)]
        entries = [entry for name in names for entry in manifests[int(name)]]
        expected = _outcome(partial(merge_entries, entries))
        moved = _outcome(partial(live.move_to, names, lambda name: manifests[int(name)]))
        if isinstance(expected, str):
            assert moved == expected
            continue
        assert moved is None
        assert dict(live.entries) == expected
        added = [one for one in expected.values() if one.kind is FileKind.ADD]
        assert [*live.pending.values()] == [one for one in expected.values() if one not in added]
        assert live.rows == sum(one.file.row_count for one in added)
        changes = live.take_changes()
        seen.subtract(changes.gone)
        seen.update(changes.came)
        assert Counter(seen.elements()) == Counter(added)
        assert min(seen.values(), default=0) >= 0


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 9), st.integers(0, 9)), max_size=30))
def test_overlaps_of_a_level_are_counted_as_files_come_and_go(steps: list[tuple[bool, int, int]]) -> None:
    """After each step the count is that of the sorted ranges."""
    ranges = LevelRanges()
    for is_new, low, high in steps:
        one = ((low,), (max(low, high),))
        if is_new:
            ranges.add(one)
        elif one in ranges.ranges:
            ranges.remove(one)
        assert ranges.overlaps == count_overlaps(sorted(ranges.ranges))


# ---- keys that are visible twice ---------------------------------------------------------------------------


def _file(name: str, rows: int, level: int) -> StoredFile:
    return StoredFile((), EMPTY_ROW, "", 0, 1, meta(name, rows=rows, level=level), name, None)  # type: ignore[arg-type]


def _random_turns(rng: random.Random, keys: dict[str, list[int]]) -> list[tuple[BucketTurn, bool]]:
    """Files come, go, and get other vectors; now and then a state cannot be read."""
    live: dict[tuple[object, ...], StoredFile] = {}
    turns = []
    for at in range(12):
        shown = {}
        gone = [one for one in live if rng.random() < 0.15]
        for one in gone:
            del live[one]
        for name, values in keys.items():
            identity = (name,)
            if (identity in live and rng.random() < 0.4) or (identity not in live and rng.random() < 0.25):
                file = live.get(identity) or _file(name, len(values), rng.choice([0, 1, 1, 2]))
                hidden = BitMap(n for n in range(len(values)) if rng.random() < 0.5)
                shown[identity] = live[identity] = replace(file, deleted=hidden or None)
        turns.append((BucketTurn(at, tuple(gone), shown), rng.random() < 0.85))
    return turns


@pytest.mark.parametrize("seed", range(examples(40, 2_000)))
def test_keys_visible_twice_are_counted_for_each_state(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as a count over the visible rows of each state alone has, also over several windows."""
    rng = random.Random(seed)
    monkeypatch.setattr("tablestore_engine.store.verify.key_history.WINDOW_FILES", rng.choice([1, 3, 256]))
    keys = {f"f{n}": sorted(rng.sample(range(12), rng.randint(1, 6))) for n in range(6)}
    frames = {name: pl.DataFrame({"0": values}) for name, values in keys.items()}
    turns = _random_turns(rng, keys)
    reader = FileReader(LocalFileIO("/nowhere"), None)  # type: ignore[arg-type]
    found: dict[int, int] = {}
    for window in key_windows(turns, len(turns)):
        found |= count_repeats(reader, window, frames)
    live: dict[tuple[object, ...], StoredFile] = {}
    expected = {}
    for turn, is_readable in turns:
        for one in turn.gone:
            live.pop(one, None)
        live |= turn.shown
        visible = Counter(
            key
            for file in live.values()
            if file.meta.level
            for at, key in enumerate(keys[file.path])
            if at not in (file.deleted or ())
        )
        repeats = sum(count - 1 for count in visible.values())
        if is_readable and repeats:
            expected[turn.at] = repeats
    assert found == expected


# ---- all snapshots, and each alone -------------------------------------------------------------------------


def _table(root: Path, kind: str, rng: random.Random) -> None:
    """Nine commits that merge manifests now and then, hide rows, and compact."""
    options = {"manifest.merge-min-count": "4", "bucket": "2"}
    columns = {"p": "INT", "id": "BIGINT", "name": "STRING"}
    if kind == "keyed":
        store = make_table(root, keys=("p", "id"), partitions=("p",), columns=columns, options=options)
    else:
        options = {**options, "bucket": "-1", "deletion-vectors.enabled": "true"}
        store = make_table(root, keys=(), partitions=("p",), columns=columns, options=options)
    for number in range(9):
        ids = list(range(20)) if not number else rng.sample(range(30), rng.randint(1, 6))
        if kind == "keyed" and number in (3, 6):
            delete(store, *({"p": n % 2, "id": n} for n in ids))
        elif kind == "keyed" and number == 5:
            store.compact(full=rng.random() < 0.5)
        else:
            put(store, *({"p": n % 2, "id": n, "name": f"v{number}"} for n in ids))


def _damage(root: Path, how: str, rng: random.Random) -> None:
    folder = root / "demo.db/t"
    path = rng.choice(
        sorted([*folder.glob("p=*/bucket-*/*"), *folder.glob("manifest/*"), *folder.glob("index/*")])
    )
    if how == "flip":
        data = bytearray(path.read_bytes())
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        path.write_bytes(data)
    elif how == "longer":
        path.write_bytes(path.read_bytes() + b"x")
    elif how == "missing":
        path.unlink()
    elif how == "other file":
        same = sorted(path.parent.glob(f"{path.name.partition('-')[0]}-*"))
        path.write_bytes(rng.choice(same).read_bytes())
    else:
        _damage_snapshot(open_table(root), how, rng)


def _damage_snapshot(store: TableStore, how: str, rng: random.Random) -> None:
    ids = store.snapshots.list_ids()
    one, other = store.snapshots.get(rng.choice(ids)), store.snapshots.get(rng.choice(ids))
    facts: dict[str, object] = {
        "count": {"total_record_count": 99, "delta_record_count": 7},
        "no index": {"index_manifest": None},
        "other index": {"index_manifest": other.index_manifest},
        "other lists": {
            "base_manifest_list": other.base_manifest_list,
            "base_manifest_list_size": other.base_manifest_list_size,
        },
    }[how]
    changed = encode_snapshot(replace(one, **facts))  # type: ignore[arg-type]
    store.fileio.replace(store.context.layout.snapshot_path(one.id), changed)


@pytest.mark.parametrize(("look", "how"), pairs(list(product(["keyed", "append"], [True, False])), DAMAGES))
def test_all_snapshots_have_the_problems_that_each_has_alone(
    tmp_path: Path, look: tuple[str, bool], how: str
) -> None:
    """Whatever is damaged; only the problems of a file as such are reported once, of the first that has it."""
    kind, deep = look
    for seed in range(examples(1, 40)):
        rng, root = random.Random(f"{kind} {how} {seed}"), tmp_path / str(seed)
        _table(root, kind, rng)
        _damage(root, how, rng)
        context = open_table(root).context
        found = Counter(verify_table(context, deep=deep))
        seen: set[str] = set()
        for snapshot in context.snapshots.list_all():
            alone = verify_snapshot(open_table(root).context, snapshot, deep=deep)
            first = Counter(one for one in alone if one.split(": ", 1)[1] not in seen)
            texts = {one.split(": ", 1)[1] for one in alone if f"{root}/demo.db/t/p=" in one}
            seen |= {text for text in texts if not text.startswith("p=")}  # else of a bucket
            mine = Counter(
                {one: n for one, n in found.items() if one.startswith(f"snapshot {snapshot.id}: ")}
            )
            assert mine == first, (seed, snapshot.id)
