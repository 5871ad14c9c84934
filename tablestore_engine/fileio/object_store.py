"""Object stores behind the FileIO port: S3 and its like, Google Cloud Storage, Azure, by obstore.

CHANGE     how a file of a table becomes requests of an object store
Steps      what another writer may make too is a conditional put (conditional_put). Everything else is repeated with a
           growing, jittered pause
INVARIANT  «missing» is an answer, never repeated and never kept.
INVARIANT  a small file is one put; a large one is a multipart upload that appears when it is completed, or never.
CRASH      an upload that was not completed leaves parts that no listing shows; a lifecycle rule of the bucket removes
           them.
INVARIANT  a key that is no path (object_clients.py) hides no other one: it is left out, and a warning names it, once
           for each folder of a process.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import pyarrow as pa
from obstore.exceptions import BaseError
from obstore.store import AzureStore

from tablestore_engine.display import visible
from tablestore_engine.errors import FileTooLarge, ForeignKeyListed, NotFound
from tablestore_engine.fileio.base import FileStatus, SeenFile
from tablestore_engine.fileio.concurrent_requests import run_together
from tablestore_engine.fileio.conditional_put import ConditionalPuts, first_byte
from tablestore_engine.fileio.object_clients import Clients, Connect, StoreClient, connect
from tablestore_engine.fileio.object_errors import (
    answer_unknown,
    explained_store,
    head_or_reason,
    is_range_refused,
)
from tablestore_engine.fileio.object_input import Range, open_object
from tablestore_engine.fileio.object_output import ObjectOutput
from tablestore_engine.fileio.size_limits import check_size, seen_unread
from tablestore_engine.fileio.storage_errors import outside_root
from tablestore_engine.fileio.store_address import StoreAddress
from tablestore_engine.fileio.store_retries import Retries
from tablestore_engine.runtime.outside_world import SYSTEM, Runtime

_LOGGER = logging.getLogger("tablestore_engine.fileio")


@dataclass(frozen=True)
class ObjectListing:
    """`clients` of this process."""

    clients: Callable[[], Clients]
    retries: Retries
    _warned: set[str] = field(default_factory=set)

    def list_folder(self, path: str, key: str) -> Sequence[FileStatus]:
        """Sorted by name, without hidden ones."""
        try:
            found = self.retries.repeat(path, lambda: self.clients().single.list_with_delimiter(key or None))
        except ForeignKeyListed as refused:
            return _shown(self.list_any(path, key, refused, is_recursive=False))
        start = len(key) + 1 if key else 0
        entries = [
            FileStatus(
                f"{path}/{one['path'][start:]}",
                one["path"][start:],
                one["size"],
                int(one["last_modified"].timestamp() * 1000),
                is_dir=False,
                mark=one["e_tag"],
            )
            for one in found["objects"]
            if one["path"] != key
        ]
        entries += [
            FileStatus(f"{path}/{one[start:]}", one[start:], 0, 0, is_dir=True)
            for one in map(_without_slash, found["common_prefixes"])
        ]
        return _shown(entries)

    def list_any(
        self, path: str, key: str, refused: ForeignKeyListed, *, is_recursive: bool
    ) -> Sequence[FileStatus]:
        """What lies in a folder that the usual client refused to list. Raises `refused` where no other client can."""
        listing = self.clients().list_any
        if listing is None:
            raise refused
        try:
            found = listing(key, is_recursive)
        except OSError as error:
            raise answer_unknown(path, str(error)) from error
        if path not in self._warned:
            self._warned.add(path)
            _LOGGER.warning(
                "TS1292 %s holds objects whose keys are no paths: %s. They are left out of every listing and are never "
                "deleted. Delete them with a tool of the store.",
                path,
                found.shown or visible(refused.why),
            )
        return found.entries


def _shown(entries: Iterable[FileStatus]) -> Sequence[FileStatus]:
    return sorted((one for one in entries if not one.name.startswith(".")), key=lambda one: one.name)


def _without_slash(prefix: str) -> str:
    return prefix.rstrip("/")


T = TypeVar("T")
_DELETES = 1000
_COPY_MAX = 5 << 30  # bytes that one copy request takes


class ObjectFileIO:
    """Objects under one prefix; paths begin with `address.root`. Picklable: a worker connects by itself."""

    folders = None

    def __init__(
        self,
        address: StoreAddress,
        runtime: Runtime = SYSTEM,
        *,
        connected: Connect = connect,
        before_claim: Callable[[ObjectFileIO], None] = lambda _: None,
    ) -> None:
        """`before_claim`: the check of the store (store_races); workers claim nothing, and have none."""
        self._before_claim = before_claim
        self.address, self.root = address, address.root
        self._connect, self._retries = connected, Retries(runtime)
        self._listing = ObjectListing(self._clients, self._retries)
        self._puts = ConditionalPuts(self._store, self._retries, runtime)

    @property
    def conditional(self) -> ObjectFileIO:
        return self

    def __reduce__(self) -> tuple[type[ObjectFileIO], tuple[StoreAddress]]:
        return ObjectFileIO, (self.address,)

    def _key(self, path: str) -> str:
        """The object's name in the bucket. Raises FixRequest TS1202 for a path outside of the root."""
        inside = path == self.root or path.startswith(f"{self.root}/")
        parts = path[len(self.root) :].strip("/").split("/")
        if not inside or (any(part in ("", ".", "..") for part in parts) and path != self.root):
            raise outside_root(path, self.root)
        return path[len(f"{self.address.scheme}://{self.address.bucket}/") :]

    def _clients(self) -> Clients:
        return self._connect(self.address)

    def _store(self) -> StoreClient:
        return self._clients().single

    # reading -------------------------------------------------------------------------------------

    def read(self, path: str) -> bytes:
        """All bytes. Raises NotFound TS1201, FixData TS1293."""
        return self.read_seen(path).data

    def read_seen(self, path: str) -> SeenFile:
        """All bytes with the store's marks of them. Raises NotFound TS1201, FixData TS1293."""
        key = self._key(path)

        def look() -> SeenFile:
            found = self._store().get(key)
            marks = (found.meta["e_tag"], found.meta["version"])
            check_size(
                path, found.meta["size"], marks
            )  # known with the first bytes: the rest is not asked for
            return SeenFile(bytes(found.bytes()), marks)

        return self._retries.repeat(path, look)

    def open_input(self, path: str) -> pa.NativeFile:
        """Random access by ranged requests; the end of the file comes with the first one. Raises NotFound TS1201."""
        return open_object(partial(self.read_end, path), partial(self.read_ranges, path))

    def read_end(self, path: str, count: int) -> tuple[int, bytes]:
        """The object's size and its last bytes: one request where the store knows the end without the size."""
        key = self._key(path)
        return self._retries.repeat(path, lambda: self._read_end(key, count))

    def read_ranges(self, path: str, ranges: Sequence[Range]) -> Sequence[bytes]:
        key = self._key(path)
        return self.run_together([partial(self._read_range, path, key, one) for one in ranges])

    def _read_end(self, key: str, count: int) -> tuple[int, bytes]:
        store = self._store()
        if not isinstance(store, AzureStore):
            try:
                found = store.get(key, options={"range": {"suffix": count}})
                return int(found.meta["size"]), bytes(found.bytes())
            except BaseError as error:
                if not is_range_refused(error):
                    raise
        size = self._head_size(key)
        start = max(size - count, 0)
        return size, bytes(store.get_range(key, start=start, end=size)) if size else b""

    def _read_range(self, path: str, key: str, wanted: Range) -> bytes:
        start, end = wanted
        return self._retries.repeat(path, lambda: bytes(self._store().get_range(key, start=start, end=end)))

    def list(self, path: str) -> Sequence[FileStatus]:
        """Entries sorted by name, without hidden ones; () for a missing folder. Keys that are no paths are left out."""
        return self._listing.list_folder(path, self._key(path))

    def exists(self, path: str) -> bool:
        """Whether an object has this name, or names below it."""
        key = self._key(path)
        if key and self._puts.find_token(path, key) is not None:
            return True

        def first() -> bool:
            return any(len(chunk) > 0 for chunk in self._store().list(key or None, chunk_size=1))

        try:
            return self._retries.repeat(path, first)
        except ForeignKeyListed:
            return True  # it is below this name

    def exists_file(self, path: str) -> bool:
        """Whether an object has this name: one request."""
        return self._puts.find_token(path, self._key(path)) is not None

    def size(self, path: str) -> int:
        """Bytes. Raises NotFound TS1201."""
        key = self._key(path)
        return self._retries.repeat(path, lambda: self._head_size(key))

    def _head_size(self, key: str) -> int:
        store = self._store()
        found = head_or_reason(lambda: store.head(key), partial(first_byte, store, key))
        return int(found["size"])

    # writing -------------------------------------------------------------------------------------

    def mkdirs(self, path: str) -> None:
        """Nothing: a folder is the common part of names. Raises FixRequest TS1202."""
        self._key(path)

    def write(self, path: str, data: bytes) -> None:
        """A new object, durable on return. Raises FileExistsError when the name is taken."""
        if not self._puts.create(path, self._key(path), data, None):
            raise FileExistsError(path)

    def create_exclusive(self, path: str, data: bytes, *, check: Callable[[], None] | None = None) -> bool:
        """A conditional put decides; `check` is called before each try.

        Raises StoreAnswerUnknown when the outcome stays open, Unsupported TS1203.
        """
        self._before_claim(self)
        return self._puts.create(path, self._key(path), data, check)

    def put_once(self, path: str, data: bytes) -> bool:
        """One conditional put, not repeated and not read back; False when it is refused."""
        return self._puts.once(path, self._key(path), data)

    def replace_if(self, path: str, data: bytes, seen: SeenFile) -> bool:
        """A conditional put on the marks of `seen`. Raises as create_exclusive."""
        self._before_claim(self)
        return self._puts.replace(path, self._key(path), data, seen, partial(self._has_changed, path, seen))

    def _has_changed(self, path: str, seen: SeenFile) -> bool:
        try:
            return self.read_seen(path).marks != seen.marks
        except FileTooLarge as large:
            return seen_unread(large).marks != seen.marks
        except NotFound:
            return True

    def replace(self, path: str, data: bytes) -> None:
        """Old or new content, never a mixture; durable on return."""
        self._puts.overwrite(path, self._key(path), data)

    def copy(self, source: str, target: str) -> None:
        """A copy by the store. Raises FileExistsError, NotFound TS1201. REQUIRES that nobody else makes `target`."""
        old, new = self._key(source), self._key(target)
        if self._puts.find_token(target, new) is not None:
            raise FileExistsError(target)
        if self.size(source) <= _COPY_MAX:
            self._retries.repeat(source, lambda: self._store().copy(old, new))
            return
        with self.open_input(source) as data, self.open_output(target) as sink:
            while block := data.read(16 << 20):
                sink.write(block)

    @contextlib.contextmanager
    def open_output(self, path: str) -> Iterator[pa.NativeFile]:
        """A stream whose object appears, whole, when the block ends well."""
        key = self._key(path)
        output = ObjectOutput(
            put=lambda data: self.replace(path, data),
            upload=lambda: self._clients().open_upload(key),
            size=lambda: self.size(path),
            explained=lambda: explained_store(path),
        )
        try:
            sink = pa.PythonFile(output, mode="w")
            yield sink
            sink.flush()
            output.complete()
        except BaseException:
            output.abort()
            raise

    def delete(self, path: str) -> None:
        """One object; a missing one is fine."""
        key = self._key(path)
        with contextlib.suppress(NotFound):
            self._retries.repeat(path, lambda: self._store().delete(key))

    def delete_many(self, paths: Sequence[str]) -> None:
        """Objects, a thousand with each request, the requests together; a missing one is fine."""
        keys = [(path, self._key(path)) for path in dict.fromkeys(paths)]
        batches = [keys[at : at + _DELETES] for at in range(0, len(keys), _DELETES)]
        self.run_together([partial(self._delete_batch, batch) for batch in batches])

    def _delete_batch(self, batch: Sequence[tuple[str, str]]) -> None:
        try:
            names = [key for _, key in batch]
            self._retries.repeat(batch[0][0], lambda: self._store().delete(names))
        except NotFound:  # a store that counts a missing one as an error, and may have left out the rest
            self.run_together([partial(self.delete, path) for path, _ in batch])

    def run_together(self, calls: Sequence[Callable[[], T]]) -> Sequence[T]:
        """At once, as many as concurrent_requests allows."""
        return run_together(calls)

    def delete_tree(self, path: str) -> None:
        """All objects below a name, in batches. The root itself is refused."""
        key = self._key(path)
        if path == self.root:
            raise outside_root(path, self.root)

        def batches() -> None:
            for chunk in self._store().list(key, chunk_size=_DELETES):
                self._store().delete([one["path"] for one in chunk])

        try:
            self._retries.repeat(path, batches)
        except NotFound:
            pass
        except ForeignKeyListed as refused:
            found = self._listing.list_any(path, key, refused, is_recursive=True)
            self.delete_many([one.path for one in found if not one.is_dir])
        self.delete(path)
