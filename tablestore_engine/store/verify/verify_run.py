"""One run of verify: snapshots are added in order, then their files are read, then there are the problems.

INVARIANT  a snapshot whose metadata cannot be read has that one problem: nothing else is known of it.
INVARIANT  what is held: entries of all files, vectors, the keys of one bucket that fit into a step (row_budget).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pyroaring import BitMap

from tablestore_engine.errors import TablestoreError
from tablestore_engine.format.layout import POSTPONE_BUCKET
from tablestore_engine.format.manifest import ManifestEntry
from tablestore_engine.format.partition import PartitionSpec
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.runtime.progress import NO_METER, Meter
from tablestore_engine.store.files.bucket_state import BucketId
from tablestore_engine.store.files.file_read import FileReader
from tablestore_engine.store.files.row_budget import step_rows
from tablestore_engine.store.files.stored_file import StoredFile
from tablestore_engine.store.read.scan import plan_order
from tablestore_engine.store.table_context import TableContext
from tablestore_engine.store.table_traits import TableTraits
from tablestore_engine.store.verify.bucket_check import BucketCheck
from tablestore_engine.store.verify.bucket_history import BucketHistory
from tablestore_engine.store.verify.file_check import FileCheck, FileOutcome
from tablestore_engine.store.verify.file_sizes import FileSizes
from tablestore_engine.store.verify.live_files import FileChanges, Identity
from tablestore_engine.store.verify.problems import Problem, ReportPart, describe_error
from tablestore_engine.store.verify.snapshot_check import SnapshotChecks, VectorFiles

_FILES_AHEAD = 64  # are fetched together from an object store


@dataclass
class _SeenFile:
    """`spans`: the snapshots that have the file, each from one to before another one; `place`: among others."""

    file: StoredFile
    place: tuple[Any, ...]
    spans: list[list[int]] = field(default_factory=list)


class VerifyRun:
    """`deep`: see verify_table."""

    def __init__(self, context: TableContext, *, deep: bool) -> None:
        self._context, self._deep = context, deep
        self._sizes = FileSizes(context.fileio)
        self._checks = SnapshotChecks(context, self._sizes)
        self._names: list[str] = []
        self._snapshots: list[Snapshot | None] = []
        self._unknown: set[int] = set()  # snapshots whose metadata cannot be read
        self._found: list[Problem] = []
        self._shape: object = None
        self._is_new_shape = False
        self._mixed: set[bytes] = set()  # partitions with several numbers of buckets
        self._buckets: dict[BucketId, BucketHistory] = {}
        self._ended: list[BucketHistory] = []
        self._vectors: VectorFiles = {}
        self._totals: dict[bytes, Counter[int]] = {}
        self._unfit: dict[Identity, tuple[ManifestEntry, str]] = {}
        self._files: dict[str, _SeenFile] = {}
        self._open: dict[Identity, list[int]] = {}
        self._outcomes: dict[str, FileOutcome] = {}
        self._file_check = FileCheck(context.fileio, self._sizes, deep)
        self._meter = NO_METER

    # ---- metadata, snapshot by snapshot --------------------------------------------------------------------

    def add_unreadable(self, name: str, problem: str) -> None:
        """A snapshot whose file cannot be read."""
        self._begin(None, name)
        self._fail(problem)

    def add(self, snapshot: Snapshot) -> None:
        """The snapshot after the ones before."""
        self._begin(snapshot, f"snapshot {snapshot.id}")
        try:
            schema = self._context.schemas.get(snapshot.schema_id)
            found = list(self._checks.run(snapshot, schema))
            changelog = self._context.manifests.read_changelog_entries(snapshot)
            if _shape_of(schema) != self._shape:
                self._begin_shape(schema)
            vectors = self._changed_vectors(snapshot)
        except TablestoreError as broken:
            self._fail(describe_error(broken))
            return
        for text in found:
            self._report(ReportPart.METADATA, (), text)
        self._move(schema)
        for key, of_bucket in vectors.items():
            self._history(key, schema).change_at(self._at).vectors = of_bucket
        spec = PartitionSpec.of(schema)
        for number, entry in enumerate(changelog):
            file = self._stored(entry, spec)
            if file is not None:
                self._see(file, (1, number)).spans.append([self._at, self._at + 1])
        self._report_entries()

    @property
    def _at(self) -> int:
        return len(self._names) - 1

    def _begin(self, snapshot: Snapshot | None, name: str) -> None:
        self._snapshots.append(snapshot)
        self._names.append(name)

    def _fail(self, problem: str) -> None:
        self._unknown.add(self._at)
        self._report(ReportPart.METADATA, (), problem)

    def _report(self, part: ReportPart, place: tuple[Any, ...], text: str) -> None:
        self._found.append(Problem(self._at, part, place, text))

    def _begin_shape(self, schema: TableSchema) -> None:
        """Another schema, with other keys or rules: for the histories all files come again."""
        self._end_histories(self._at)
        self._shape, self._is_new_shape = _shape_of(schema), True

    def _changed_vectors(self, snapshot: Snapshot) -> dict[BucketId, Mapping[str, BitMap]]:
        """All vectors of each bucket whose index files are others than in the snapshot before."""
        before, after = self._vectors, self._checks.vector_files(snapshot)
        if after is before:
            return {}
        changed = [key for key in {*after, *before} if after.get(key) != before.get(key)]
        found: dict[BucketId, Mapping[str, BitMap]] = {
            key: self._checks.read_vectors(after.get(key, ())) for key in changed
        }
        self._vectors = after
        return found

    def _move(self, schema: TableSchema) -> None:
        """From the files of the snapshot before to those of this one."""
        live = self._checks.live
        changes = live.take_changes()
        self._count_buckets(changes)
        spec, came = PartitionSpec.of(schema), changes.came
        if self._is_new_shape:
            self._is_new_shape, came = False, tuple(live.entries.values())
        for entry in changes.gone:
            self._leave(entry)
        for entry in came:
            self._enter(entry, schema, spec)

    def _count_buckets(self, changes: FileChanges) -> None:
        for entries, sign in ((changes.gone, -1), (changes.came, 1)):
            for entry in entries:
                if entry.bucket == POSTPONE_BUCKET:
                    continue
                counts = self._totals.setdefault(entry.partition, Counter())
                counts[entry.total_buckets] += sign
                if not counts[entry.total_buckets]:
                    del counts[entry.total_buckets]
                (self._mixed.add if len(counts) > 1 else self._mixed.discard)(entry.partition)

    def _history(self, key: BucketId, schema: TableSchema) -> BucketHistory:
        if key not in self._buckets:
            self._buckets[key] = BucketHistory(key, schema)
        return self._buckets[key]

    def _end_histories(self, at: int) -> None:
        for history in self._buckets.values():
            history.end = at
            self._ended.append(history)
        self._buckets, self._vectors = {}, {}
        for span in self._open.values():
            span[1] = at
        self._open.clear()
        self._unfit.clear()

    def _enter(self, entry: ManifestEntry, schema: TableSchema, spec: PartitionSpec) -> None:
        identity = entry.identity
        if entry.bucket == POSTPONE_BUCKET:
            return  # its rows wait, in a format of their writer's choice, and no reader opens it
        try:
            (file,) = self._context.scanner.stored_files([entry], spec)
        except TablestoreError as broken:
            self._unfit[identity] = (entry, describe_error(broken))
            return
        self._history((entry.partition, entry.bucket), schema).add(self._at, entry, file)
        seen = self._see(file, (0, *plan_order(entry), len(self._files)))
        self._open[identity] = [self._at, -1]
        seen.spans.append(self._open[identity])

    def _leave(self, entry: ManifestEntry) -> None:
        identity = entry.identity
        self._unfit.pop(identity, None)
        span = self._open.pop(identity, None)
        if span is not None:
            span[1] = self._at
            self._buckets[entry.partition, entry.bucket].change_at(self._at).gone.append(identity)

    def _stored(self, entry: ManifestEntry, spec: PartitionSpec) -> StoredFile | None:
        """A changelog file; None after its entry was reported."""
        try:
            return self._context.scanner.stored_files([entry], spec)[0]
        except TablestoreError as broken:
            self._report(ReportPart.ENTRIES, (1,), describe_error(broken))
            return None

    def _see(self, file: StoredFile, place: tuple[Any, ...]) -> _SeenFile:
        return self._files.setdefault(file.path, _SeenFile(file, place))

    def _report_entries(self) -> None:
        for partition in sorted(self._mixed):
            text = f"a partition has files of {sorted(self._totals[partition])} buckets"
            self._report(ReportPart.METADATA, (), text)
        for entry, problem in self._unfit.values():
            self._report(ReportPart.ENTRIES, (0, *plan_order(entry)), problem)

    # ---- files ---------------------------------------------------------------------------------------------

    def read_files(self, meter: Meter = NO_METER) -> None:
        """Look at each file once, and at the rules of each bucket. `meter` counts rows."""
        self._end_histories(len(self._names))
        meter.expect(sum(seen.file.meta.row_count for seen in self._files.values()))
        self._meter = meter
        waiting: list[BucketHistory] = []
        for history in self._ended:
            waiting.append(history)
            if sum(len(one.changes) for one in waiting) >= _FILES_AHEAD:
                self._read_buckets(waiting)
                waiting = []
        self._read_buckets(waiting)
        others = [seen.file for path, seen in self._files.items() if path not in self._outcomes]
        for start in range(0, len(others), _FILES_AHEAD):
            self._fetch(others[start : start + _FILES_AHEAD])
            for file in others[start : start + _FILES_AHEAD]:
                self._look_at(file)

    def problems(self, has_expired: Callable[[Snapshot], bool]) -> tuple[str, ...]:
        """All of them, in order; none of a snapshot that has expired since."""
        expired: dict[int, bool] = {}

        def is_there(at: int) -> bool:
            snapshot = self._snapshots[at]
            if at not in expired:
                expired[at] = snapshot is not None and has_expired(snapshot)
            return not expired[at]

        found = [problem for problem in self._found if is_there(problem.at)]
        for path, outcome in self._outcomes.items():
            seen = self._files[path]
            spans = (at for span in sorted(seen.spans) for at in range(*span)) if outcome.problems else ()
            first = next((at for at in spans if at not in self._unknown and is_there(at)), None)
            if first is not None:
                found += [Problem(first, ReportPart.FILES, seen.place, text) for text in outcome.problems]
        return tuple(f"{self._names[problem.at]}: {problem.text}" for problem in sorted(found))

    def _read_buckets(self, histories: Sequence[BucketHistory]) -> None:
        self._fetch([file for history in histories for file in history.files().values()])
        for history in histories:
            self._read_bucket(history)

    def _read_bucket(self, history: BucketHistory) -> None:
        reader, files = FileReader(self._context.fileio, history.schema), history.files()
        keeps = sum(file.meta.row_count for file in files.values()) <= step_rows(files.values())
        for file in files.values():
            self._look_at(file, reader if history.schema.is_keyed else None, keeps=keeps)
        check = BucketCheck(reader, history, self._outcomes.__getitem__, self._deep)
        for number, (start, end, text) in enumerate(check.run()):
            for at in range(start, end):
                if at not in self._unknown:
                    self._found.append(Problem(at, ReportPart.BUCKETS, (*history.id, number), text))
        for path in files:
            self._outcomes[path] = self._outcomes[path].without_keys()

    def _look_at(self, file: StoredFile, reader: FileReader | None = None, *, keeps: bool = False) -> None:
        if file.path not in self._outcomes:
            self._outcomes[file.path] = self._file_check.run(file, reader, keeps=keeps)
            self._meter.advance(file.meta.row_count)

    def _fetch(self, files: Sequence[StoredFile]) -> None:
        """Where each request is a round trip: have the sizes and the ends of these files at hand."""

        def open_one(path: str) -> None:
            with suppress(TablestoreError, OSError), self._context.fileio.open_input(path) as source:
                source.size()

        paths = [file.path for file in files if file.path not in self._outcomes and not file.is_external]
        if self._context.fileio.folders is None:
            self._sizes.list_together(paths)
            self._context.fileio.run_together([partial(open_one, path) for path in paths])


def _shape_of(schema: TableSchema) -> object:
    """What the rules of buckets depend on."""
    keys = tuple((name, schema.field(name).type) for name in schema.trimmed_primary_keys)
    return schema.is_keyed, keys, TableTraits(schema).has_inbox, PartitionSpec.of(schema)
