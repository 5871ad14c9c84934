"""Files of JSON lines as messages with a position: one file, or a folder of them in the order of their names.

Position   {"file", "byte", "tail", "files", "before"}: up to which byte of which file; a checksum of what lies before
           it, so that a file that was written anew is noticed; how many files lie before it, and a checksum of each
           with its size, so that one that comes too late is, and one that grows. Of many files it is one of all
Rules      the file of the position may grow, and later ones may come; earlier ones may go, while they are not many. A
           last line without a line break counts once it is a whole JSON object, or once a later file is there
INVARIANT  what was read and is another now, and what came too late, is an error (TS1432), never left out in silence.
"""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tablestore_engine.errors import FixRequest, NotFound
from tablestore_engine.fileio.storage_errors import explained
from tablestore_engine.log.message_source import RawMessages
from tablestore_engine.runtime.outside_world import Runtime

_TAIL_BYTES = 256
_LISTED_MAX = 1_000  # files with a checksum each, of _SUM_CHARS; a position stands in every snapshot
_SUM_CHARS = 8
_OF_ALL = "all:"
_BLOCK_BYTES = 16 << 20


@dataclass(frozen=True)
class _Spot:
    """`file` '': before the first one. `before`: of the files before it; None where nobody has noted it."""

    file: str
    byte: int
    tail: int = 0
    files: int = 0
    before: str | None = None

    def text(self) -> str:
        said = {"file": self.file, "byte": self.byte, "tail": self.tail, "files": self.files}
        noted = said if self.before is None else {**said, "before": self.before}
        return json.dumps(noted, ensure_ascii=False, separators=(",", ":"))

    def strangers(self, files: Mapping[str, int]) -> list[str]:
        """Files before it that are not what was read; all of them where it cannot be told which."""
        earlier = {name: size for name, size in files.items() if name < self.file}
        if self.before is None:
            return list(earlier) if len(earlier) > self.files else []
        if self.before.startswith(_OF_ALL):
            return list(earlier) if _sums(earlier) != self.before else []
        ends = range(0, len(self.before), _SUM_CHARS)
        known = {self.before[at : at + _SUM_CHARS] for at in ends}
        return [name for name, size in earlier.items() if _sum(name, size) not in known]

    def moved(self, name: str, byte: int, tail: int, files: Mapping[str, int]) -> _Spot:
        """On, to a byte of a file. What lies between is empty, and its own file was left where it is."""
        earlier = {
            one: size if one < self.file else self.byte if one == self.file else 0
            for one, size in files.items()
            if one < name
        }
        return _Spot(name, byte, tail, len(earlier), _sums(earlier))


def _sum(name: str, size: int) -> str:
    return f"{zlib.crc32(f'{name}/{size}'.encode()):0{_SUM_CHARS}x}"


def _sums(files: Mapping[str, int]) -> str:
    told = "".join(_sum(name, size) for name, size in files.items())
    return told if len(files) <= _LISTED_MAX else _OF_ALL + hashlib.sha256(told.encode()).hexdigest()[:16]


class FileSource:
    """Values alone: lines have no keys. Not thread-safe."""

    def __init__(self, path: str, runtime: Runtime) -> None:
        """Raises NotFound TS1431, StorageError."""
        self._path, self._runtime = Path(path).expanduser().absolute(), runtime
        with explained(str(self._path)):
            if not self._path.exists():
                raise NotFound(
                    "TS1431",
                    f"there is no file or folder {path}",
                    why=f"looked for {self._path}",
                    fix="correct the path",
                )
            self._is_folder = self._path.is_dir()

    @property
    def source_id(self) -> str:
        """`files:` and the path."""
        return f"files:{self._path}"

    @property
    def title(self) -> str:
        return f"files {self._path}"

    @property
    def incarnation(self) -> str:
        """Files have no ids; their places say enough."""
        return ""

    def begin(self) -> str:
        return _Spot("", 0).text()

    def ends(self) -> str:
        """As MessageSource: behind the last whole line that there is."""
        with explained(str(self._path)):
            for name in reversed(self._files()):
                path = self._file(name)
                behind = path.stat().st_size - len(_unfinished(path))
                if behind:
                    return _Spot(name, behind).text()
        return self.begin()

    def check(self, position: str) -> None:
        """As MessageSource. Raises FixRequest TS1432, TS1438."""
        spot = _spot(position, self.title)
        if not spot.file:
            return
        with explained(str(self._path)):
            files = self._files()
            self._check_earlier(spot, files)
            if spot.file not in files:
                raise self._changed(f"{spot.file}, which was read up to byte {spot.byte}, is gone")
            path = self._file(spot.file)
            if path.stat().st_size < spot.byte or _tail(path, spot.byte) != spot.tail:
                raise self._changed(f"{spot.file} is not what it was up to byte {spot.byte}")

    def is_at(self, position: str, end: str) -> bool:
        at, last = _spot(position, self.title), _spot(end, self.title)
        return (at.file, at.byte) >= (last.file, last.byte)

    def is_one_line(self) -> bool:
        """Files follow each other."""
        return True

    def read(
        self,
        position: str,
        rows_max: int,
        bytes_max: int,
        wait_s: float,
        most_s: float | None = None,  # noqa: ARG002 - the port's; files have ends
    ) -> RawMessages:
        spot = _spot(position, self.title)
        with explained(str(self._path)):
            files = self._files()
            self._check_earlier(spot, files)
            last = max(files, default="")
            for name in files:
                start = spot.byte if name == spot.file else 0
                if name < spot.file:
                    continue
                lines, behind = self._lines(name, start, rows_max, bytes_max, is_last=name == last)
                if behind > start:
                    reached = spot.moved(name, behind, _tail(self._file(name), behind), files)
                    return _messages(name, lines, reached.text())
        self._runtime.sleep(wait_s)
        return _messages("", (), position)

    def close(self) -> None:
        """Nothing is held."""

    def _check_earlier(self, spot: _Spot, files: Mapping[str, int]) -> None:
        """Raises FixRequest TS1432."""
        strange = spot.strangers(files)
        if strange:
            more = f" and {len(strange) - 3} more" if len(strange) > 3 else ""
            raise self._changed(
                f"{', '.join(strange[:3])}{more} sort before {spot.file}, up to which all was read: files that came "
                "since then, or are not as long as they were"
            )

    def _files(self) -> dict[str, int]:
        """Name → bytes, in the order of the names."""
        if not self._is_folder:
            return {self._path.name: self._path.stat().st_size}
        with os.scandir(self._path) as found:
            sizes = {
                one.name: one.stat().st_size for one in found if one.name[0] not in "._" and one.is_file()
            }
        return dict(sorted(sizes.items()))

    def _file(self, name: str) -> Path:
        return self._path / name if self._is_folder else self._path

    def _lines(
        self, name: str, start: int, rows_max: int, bytes_max: int, *, is_last: bool
    ) -> tuple[Sequence[tuple[int, bytes]], int]:
        """(byte, line) of some lines, and the byte behind them."""
        found: list[tuple[int, bytes]] = []
        at, size = start, 0
        with self._file(name).open("rb", buffering=_BLOCK_BYTES) as file:
            file.seek(start)
            while len(found) < rows_max and size < bytes_max:
                line = file.readline()
                if not line or (is_last and not line.endswith(b"\n") and not _is_object(line)):
                    break
                text = line.strip()
                if text:
                    found.append((at, text))
                at, size = at + len(line), size + len(line)
        return found, at

    def _changed(self, why: str) -> FixRequest:
        return FixRequest(
            "TS1432",
            f"{self.title} are not what was read before",
            why=why,
            fix="let files only grow, and new ones sort last; what came too late can be ingested as a source of its "
            "own",
        )


def _messages(name: str, lines: Sequence[tuple[int, bytes]], reached: str) -> RawMessages:
    offsets = np.array([byte for byte, _ in lines], dtype=np.int64)
    return RawMessages(
        np.zeros(len(lines), np.int64), offsets, [None] * len(lines), [line for _, line in lines], reached, {0: name}
    )  # fmt: skip


def _spot(position: str, title: str) -> _Spot:
    try:
        said = json.loads(position)
        before = None if said.get("before") is None else str(said["before"])
        return _Spot(str(said["file"]), int(said["byte"]), int(said["tail"]), int(said["files"]), before)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise FixRequest(
            "TS1438",
            f"the position in {title} is not understood",
            why=f"expected file, byte, tail and files, got {position[:200]!r}",
            fix="the table was filled by another program under this name: ingest into a new table",
        ) from error


def _tail(path: Path, byte: int) -> int:
    """A checksum of what lies before a byte of a file."""
    with path.open("rb") as file:
        file.seek(max(0, byte - _TAIL_BYTES))
        return zlib.crc32(file.read(min(byte, _TAIL_BYTES)))


def _unfinished(path: Path) -> bytes:
    """What lies behind the last line that counts."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        look = _TAIL_BYTES
        while True:
            file.seek(max(0, size - look))
            tail = file.read()
            begin = tail.rfind(b"\n") + 1
            if begin or look >= size:
                rest = tail[begin:]
                return b"" if _is_object(rest) else rest
            look *= 4


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False
