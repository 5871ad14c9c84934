"""Object stores behind the FileIO port: S3 and its like, Google Cloud Storage, Azure, by obstore.

CHANGE     the conditional put of a claim on an object store
Steps      claim: check -> one conditional put without retries below us -> no clear answer: read back, and try the same
           claim again while nothing is there. Everything else is repeated with a growing, jittered pause
INVARIANT  every object carries the token of the call that made it (metadata `claim`), so that a put whose answer was
           lost is recognised, as a hard link is by its inode; «exists» means another token.
INVARIANT  «missing» is an answer, never repeated and never kept; a 409 means «try again», not «taken».
INVARIANT  a small file is one put; a large one is a multipart upload that appears when it is completed, or never.
CRASH      an upload that was not completed leaves parts that no listing shows; a lifecycle rule of the bucket removes
           them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa
from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError
from obstore.store import AzureStore

from tablestore_engine.errors import FileTooLarge, ForeignKeyListed, NotFound, StoreAnswerUnknown
from tablestore_engine.fileio.base import FileStatus, SeenFile
from tablestore_engine.fileio.object_clients import Clients, Connect, StoreClient, connect
from tablestore_engine.fileio.object_errors import (
    TAKEN_BY_NOTHING,
    answer_unknown,
    explained_store,
    head_or_reason,
    is_range_refused,
    while_open,
)
from tablestore_engine.fileio.object_input import Range, open_object
from tablestore_engine.fileio.object_listing import ObjectListing
from tablestore_engine.fileio.object_output import ObjectOutput
from tablestore_engine.fileio.size_limits import check_size, seen_unread
from tablestore_engine.fileio.storage_errors import outside_root
from tablestore_engine.fileio.store_address import StoreAddress
from tablestore_engine.fileio.store_retries import ATTEMPTS, Retries
from tablestore_engine.runtime.outside_world import SYSTEM, Runtime

if TYPE_CHECKING:
    from obstore import PutMode, UpdateVersion  # exist for type checkers alone

T = TypeVar("T")
_CLAIM_KEY = "claim"
_DELETES = 1000
_TOGETHER = 16  # requests of one caller at once: more make a store ask for pauses
_allowed = ContextVar("requests of this thread and of those it starts", default=_TOGETHER)
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
        self._runtime, self._connect, self._retries = runtime, connected, Retries(runtime)
        self._listing = ObjectListing(self._clients, self._retries)

    @property
    def conditional(self) -> ObjectFileIO:
        """Itself."""
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
        """A request for each range."""
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
        if key and self._token(path, key) is not None:
            return True

        def first() -> bool:
            return any(len(chunk) > 0 for chunk in self._store().list(key or None, chunk_size=1))

        try:
            return self._retries.repeat(path, first)
        except ForeignKeyListed:
            return True  # it is below this name

    def exists_file(self, path: str) -> bool:
        """Whether an object has this name: one request."""
        return self._token(path, self._key(path)) is not None

    def size(self, path: str) -> int:
        """Bytes. Raises NotFound TS1201."""
        key = self._key(path)
        return self._retries.repeat(path, lambda: self._head_size(key))

    def _head_size(self, key: str) -> int:
        store = self._store()
        found = head_or_reason(lambda: store.head(key), partial(_first_byte, store, key))
        return int(found["size"])

    def _token(self, path: str, key: str) -> str | None:
        """Who made the object: the token of the call, empty for another program's; None when there is no object."""

        def look() -> str:
            store = self._store()
            head = partial(store.get, key, options={"head": True})
            kept = head_or_reason(head, partial(_first_byte, store, key)).attributes
            return next(
                (str(value) for name, value in kept.items() if str(name).casefold() == _CLAIM_KEY), ""
            )

        try:
            return self._retries.repeat(path, look)
        except NotFound:
            return None

    # writing -------------------------------------------------------------------------------------

    def mkdirs(self, path: str) -> None:
        """Nothing: a folder is the common part of names. Raises FixRequest TS1202."""
        self._key(path)

    def write(self, path: str, data: bytes) -> None:
        """A new object, durable on return. Raises FileExistsError when the name is taken."""
        if not self._create(path, data, None):
            raise FileExistsError(path)

    def create_exclusive(self, path: str, data: bytes, *, check: Callable[[], None] | None = None) -> bool:
        """A conditional put decides; one whose answer was lost is recognised by its token.

        `check` is called before each put. Raises StoreAnswerUnknown when the outcome stays open, Unsupported TS1203.
        """
        self._before_claim(self)
        return self._create(path, data, check)

    def put_once(self, path: str, data: bytes) -> bool:
        """One conditional put, not repeated and not read back; False when it is refused."""
        try:
            with explained_store(path):
                self._put(self._key(path), data, self._runtime.new_uuid(), "create")
        except (AlreadyExistsError, PreconditionError):
            return False
        return True

    def _create(self, path: str, data: bytes, check: Callable[[], None] | None) -> bool:
        key, token = self._key(path), self._runtime.new_uuid()
        problem: StoreAnswerUnknown | None = None
        for turn in range(1, ATTEMPTS + 1):
            if check is not None:
                with while_open(problem):
                    check()
            try:
                with while_open(problem), explained_store(path):
                    self._put(key, data, token, "create")
            except StoreAnswerUnknown as failure:
                problem = failure
            except (AlreadyExistsError, PreconditionError):
                pass
            else:
                return True
            with while_open(problem):
                found = self._token(path, key)
            if found is not None:
                return found == token
            # a conflict of two puts, or a lost request: the same claim again
            self._retries.pause(turn, problem)
        raise problem or answer_unknown(path, TAKEN_BY_NOTHING)

    def replace_if(self, path: str, data: bytes, seen: SeenFile) -> bool:
        """A conditional put on the marks of `seen`; one whose answer was lost is recognised by its token.

        Raises StoreAnswerUnknown when the outcome stays open, Unsupported TS1203.
        """
        self._before_claim(self)
        key, token = self._key(path), self._runtime.new_uuid()
        problem: StoreAnswerUnknown | None = None
        for turn in range(1, ATTEMPTS + 1):
            try:
                with while_open(problem), explained_store(path):
                    self._put(key, data, token, _while_seen(seen))
            except StoreAnswerUnknown as failure:
                problem = failure
            except NotFound:
                return False
            except (AlreadyExistsError, PreconditionError):
                pass
            else:
                return True
            with while_open(problem):
                if self._token(path, key) == token:
                    return True
                has_changed = self._has_changed(path, seen)
            if has_changed:
                if problem is not None:
                    raise problem  # a put without an answer may have landed, and been replaced since
                return False
            # a conflict of two puts, or a lost request: the same put again
            self._retries.pause(turn, problem)
        raise problem or answer_unknown(path, "the store reports a conflict, and no change")

    def _has_changed(self, path: str, seen: SeenFile) -> bool:
        try:
            return self.read_seen(path).marks != seen.marks
        except FileTooLarge as large:
            return seen_unread(large).marks != seen.marks
        except NotFound:
            return True

    def _put(self, key: str, data: bytes, token: str, mode: PutMode) -> None:
        self._store().put(key, data, attributes={_CLAIM_KEY: token}, use_multipart=False, mode=mode)

    def replace(self, path: str, data: bytes) -> None:
        """Old or new content, never a mixture; durable on return."""
        key, token = self._key(path), self._runtime.new_uuid()
        self._retries.repeat(path, lambda: self._put(key, data, token, "overwrite"))

    def copy(self, source: str, target: str) -> None:
        """A copy by the store. Raises FileExistsError, NotFound TS1201. REQUIRES that nobody else makes `target`."""
        old, new = self._key(source), self._key(target)
        if self._token(target, new) is not None:
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
        """At once, in threads: each call mostly waits for the store. Calls within calls share the threads left."""
        allowed = _allowed.get()
        threads = min(len(calls), allowed)
        if threads < 2:
            return [call() for call in calls]
        with ThreadPoolExecutor(threads, initializer=_allowed.set, initargs=(allowed // threads,)) as pool:
            running = [pool.submit(call) for call in calls]
            for one in wait(running, return_when=FIRST_EXCEPTION).not_done:
                one.cancel()  # nothing begins after a failure
        failed = (one.exception() for one in running if not one.cancelled())
        for error in failed:
            if error is not None:
                raise error
        return [one.result() for one in running]

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


def _first_byte(store: StoreClient, key: str) -> object:
    """A request whose refusal has a reason."""
    return store.get_range(key, start=0, end=1)


def _while_seen(seen: SeenFile) -> UpdateVersion:
    """Stores know a content by entity tag, generation, or both."""
    found: UpdateVersion = {}
    if seen.marks[0] is not None:
        found["e_tag"] = seen.marks[0]
    if seen.marks[1] is not None:
        found["version"] = seen.marks[1]
    return found
