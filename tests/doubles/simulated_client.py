"""Clients of a simulated store as obstore's are of S3, and the FileIO on them, so that all of ObjectFileIO runs.

What       requests, conditions, pages, bulk deletes and multipart uploads are those that obstore makes for S3.
INVARIANT  as obstore's client without retries, a call makes each request once; only an upload repeats its requests.
INVARIANT  nothing is shared with ObjectFileIO but the interface of the client: retries, pauses, tokens are its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from obstore.exceptions import AlreadyExistsError, BaseError, GenericError, PreconditionError

from tablestore_engine.fileio.object_clients import Clients
from tablestore_engine.fileio.object_store import ObjectFileIO
from tablestore_engine.fileio.store_address import StoreAddress
from tablestore_engine.runtime.outside_world import SYSTEM, Runtime
from tests.doubles.simulated_store import SimulatedStore, StoredObject

if TYPE_CHECKING:
    from obstore import (
        GetOptions,
        ListResult,
        ObjectMeta,
        PutMode,
        PutResult,
    )  # exist for type checkers alone

T = TypeVar("T")
_PAGE = 1_000  # names of a listing, or of a bulk delete
_PART_BYTES = 10 << 20  # obstore's buffer of a multipart upload
_UPLOAD_TURNS, _UPLOAD_PAUSE_S = 7, 0.1
_TOGETHER = 16


@dataclass(frozen=True)
class FoundObject:
    """As obstore's GetResult."""

    meta: ObjectMeta
    attributes: Mapping[str, str]
    data: bytes

    def bytes(self) -> bytes:
        """The content."""
        return self.data


@dataclass(frozen=True)
class _Page:
    names: Sequence[str]
    objects: Sequence[ObjectMeta]
    next_after: str | None


@dataclass(frozen=True)
class SimulatedClient:
    """As S3Store of obstore, with one attempt for each request."""

    store: SimulatedStore

    def get(self, path: str, *, options: GetOptions | None = None) -> FoundObject:
        """GET, or HEAD."""
        asked = options or {}
        wanted = asked.get("range")
        method = "HEAD" if asked.get("head") else "GET"

        def work() -> FoundObject:
            found = self.store.get(path)
            data = found.data
            if method == "HEAD":
                data = b""
            elif isinstance(wanted, dict):
                if not data:
                    raise GenericError("status 416: <Error><Code>InvalidRange</Code></Error>")
                data = data[-int(str(wanted["suffix"])) :]  # type: ignore[typeddict-item]  # the one that is asked
            return FoundObject(_meta(path, found), found.attributes, data)

        return self.store.ask(method, path, work, received=lambda one: len(one.data))

    def get_range(self, path: str, *, start: int, end: int) -> bytes:
        """GET."""
        return self.store.ask("GET", path, lambda: self.store.get(path).data[start:end], received=len)

    def head(self, path: str) -> ObjectMeta:
        """HEAD."""
        return self.store.ask("HEAD", path, lambda: _meta(path, self.store.get(path)))

    def list_with_delimiter(self, prefix: str | None = None) -> ListResult[Sequence[ObjectMeta]]:
        """LIST for each page; one that fails makes the whole call fail."""
        start = f"{prefix}/" if prefix else ""
        objects: list[ObjectMeta] = []
        folders: list[str] = []
        last: str | None = start
        while last is not None:
            page = self.store.ask("LIST", start, partial(self._page, self.store.entries_after, start, last))
            folders += [name[:-1] for name in page.names if name.endswith("/")]
            objects += page.objects
            last = page.next_after
        return {"common_prefixes": folders, "objects": objects}

    def _page(self, names_of: Callable[[str, str, int], Sequence[str]], start: str, last: str) -> _Page:
        names = names_of(last, start, _PAGE + 1)
        shown, objects = names[:_PAGE], self.store.objects
        found = [_meta(name, objects[name]) for name in shown if name in objects]
        return _Page(shown, found, shown[-1] if len(names) > _PAGE else None)

    def put(
        self, path: str, file: bytes, *, attributes: dict[str, str], use_multipart: bool, mode: PutMode
    ) -> PutResult:
        """PUT, with a condition unless `mode` is overwrite."""
        assert not use_multipart

        def work() -> PutResult:
            if mode == "create" and path in self.store.objects:
                raise AlreadyExistsError("status 412: <Error><Code>PreconditionFailed</Code></Error>")
            if isinstance(mode, dict) and self.store.get(path).e_tag != mode.get("e_tag"):
                raise PreconditionError("status 412: <Error><Code>PreconditionFailed</Code></Error>")
            return {"e_tag": self.store.put(path, file, attributes).e_tag, "version": None}

        conditional = mode != "overwrite"
        return self.store.ask("PUT", path, work, sent=len(file), is_conditional=conditional)

    def copy(self, from_: str, to: str) -> None:
        """COPY, with its metadata."""

        def work() -> None:
            found = self.store.get(from_)
            self.store.put(to, found.data, found.attributes)

        self.store.ask("COPY", to, work)

    def delete(self, paths: str | Sequence[str]) -> None:
        """DELETE of one, or a POST for each thousand."""
        if isinstance(paths, str):
            self.store.ask("DELETE", paths, lambda: self.store.remove(paths))
            return
        for at in range(0, len(paths), _PAGE):
            batch = paths[at : at + _PAGE]
            self.store.ask("POST", batch[0], partial(self._remove_all, batch))

    def _remove_all(self, names: Sequence[str]) -> None:
        for name in names:
            self.store.remove(name)

    def list(self, prefix: str | None = None, *, chunk_size: int = 50) -> Iterator[Sequence[ObjectMeta]]:
        """LIST for each page."""
        start = f"{prefix}/" if prefix else ""
        last: str | None = start
        while last is not None:
            page = self.store.ask("LIST", start, partial(self._page, self.store.names_after, start, last))
            found = page.objects
            yield from (found[at : at + chunk_size] for at in range(0, len(found), chunk_size))
            last = page.next_after


@dataclass
class SimulatedUpload:
    """As obstore's writer: POST, a PUT for each part, POST. Each request is repeated, as the library does."""

    store: SimulatedStore
    key: str
    _data: bytearray = field(default_factory=bytearray)
    _sent: int = 0

    def __enter__(self) -> SimulatedUpload:
        self._repeated("POST", lambda: None)
        return self

    def write(self, data: bytes, /) -> int:
        """Full parts go at once."""
        self._data += data
        while len(self._data) - self._sent >= _PART_BYTES:
            self._part(_PART_BYTES)
        return len(data)

    def _part(self, count: int) -> None:
        self._repeated("PUT", lambda: None, count)
        self._sent += count

    def __exit__(self, kind: object, error: object, trace: object, /) -> None:
        if error is not None:
            self._repeated("DELETE", lambda: None)
            return
        if len(self._data) > self._sent:
            self._part(len(self._data) - self._sent)
        done: list[bool] = []

        def complete() -> None:
            if done:
                raise FileNotFoundError("<Error><Code>NoSuchUpload</Code></Error>")
            self.store.put(self.key, bytes(self._data), {})
            done.append(True)

        self._repeated("POST", complete)

    def _repeated(self, method: str, work: Callable[[], None], sent: int = 0) -> None:
        for turn in range(1, _UPLOAD_TURNS + 1):
            try:
                self.store.ask(method, self.key, work, sent=sent)
            except BaseError:
                if turn == _UPLOAD_TURNS:
                    raise
                self.store.time.sleep(_UPLOAD_PAUSE_S * 2**turn)
            else:
                return


def _meta(path: str, found: StoredObject) -> ObjectMeta:
    return {
        "path": path,
        "last_modified": datetime.fromtimestamp(int(found.modified_s), UTC),
        "size": len(found.data),
        "e_tag": found.e_tag,
        "version": None,
    }


class SimulatedFileIO(ObjectFileIO):
    """ObjectFileIO on a simulated store, as one process has it. Its pauses take simulated time."""

    def __init__(self, address: StoreAddress, store: SimulatedStore, runtime: Runtime = SYSTEM) -> None:
        clients = Clients(SimulatedClient(store), lambda key: SimulatedUpload(store, key))
        super().__init__(address, replace(runtime, sleep=store.time.sleep), connected=lambda _: clients)
        self.store = store

    def run_together(self, calls: Sequence[Callable[[], T]]) -> Sequence[T]:
        """As FileIO, by lanes of simulated time."""
        return self.store.time.together(calls, _TOGETHER)
