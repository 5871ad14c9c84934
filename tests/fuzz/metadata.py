"""Metadata files changed at random, one at a time: reading must give the same rows or an error of ours.

Steps      change one file → read everything with a fresh engine → put the file back
Usage      python -m tests.fuzz.metadata [mutations per kind and writer] [seed]   (make fuzz)
INVARIANT  an exception that is none of ours fails the run, with the seed that makes it again.
INVARIANT  a file of ours that chance changed never gives other rows: that fails the run too. One of another writer may
           say something else; what no other engine writes (view, audit) has a checksum that fits then.
"""

from __future__ import annotations

import random
import re
import shutil
import struct
import sys
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa

from tablestore_engine.api import Engine, TableSpec, WriteSpec
from tablestore_engine.errors import EngineBug, TablestoreError
from tablestore_engine.format.avro_blocks import open_container
from tablestore_engine.format.checksum import CHECKSUM_KEY
from tablestore_engine.store.metadata import manifests
from tests.doubles.faults import with_new_checksum, without_checksum

NAME = "demo.t"
KINDS: dict[str, str] = {
    "snapshot": "demo.db/t/snapshot/snapshot-3",
    "schema": "demo.db/t/schema/schema-0",
    "manifest list": "demo.db/t/manifest/manifest-list-*",
    "manifest": "demo.db/t/manifest/manifest-[!l]*",
    "index manifest": "demo.db/t/manifest/index-manifest-*",
    "deletion vectors": "demo.db/t/index/index-*",
    "tag": "demo.db/t/tag/tag-*",
    "view": "demo.db/.tablestore/views/v.json",
    "hints": "demo.db/t/snapshot/[LE]A*",
    "audit": "demo.db/t/branch/branch-*/audit/*",
    "staged snapshot": "demo.db/t/branch/branch-*/snapshot/snapshot-4",
}
_ROUND = 250
_ONLY_OURS = ("view", "audit")
_AVRO = ("manifest list", "manifest", "index manifest")
_TEXTS = (b"..", b"../../../etc/passwd", b"/etc/passwd", b"\\ud800", b"\\u0000", b"", b"main", b"\xff\xfe")
_VALUES = (
    b"null", b"true", b"-1", b"0", b"1e400", b"NaN", b"9" * 5000, b"9" * 19, b"[]", b"{}", b'""', b'{"a":1}',
    b"[" * 3000 + b"]" * 3000, b"[" * 200 + b"]" * 200, b'"' + b"x" * 3000 + b'"', b"0.5", b'"1"',
)  # fmt: skip


class Writer(StrEnum):
    """Who made the changed file: then a checksum is there, or there is none that could tell."""

    OURS = "ours"
    OTHER = "other"


class World:
    """The table: partitions, keys, deletion vectors, a tag, a view, a staged snapshot with an outcome."""

    def __init__(self, folder: Path, writer: Writer) -> None:
        self.folder, self.writer = folder, writer
        if writer is Writer.OURS:
            self._make()
        else:
            with patch.object(manifests, "name_with_checksum", lambda stem, _: f"{stem}-0"):
                self._make()
        self.expected = self.read()

    def _make(self) -> None:
        with Engine(str(self.folder)) as engine:
            engine.create_database("demo")
            spec = WriteSpec(
                table=TableSpec(primary_key=("id", "day"), partition_by=("day",), options={"bucket": "1"})
            )
            for low in (0, 2, 4):
                engine.write(NAME, _rows(low), spec)
            table = engine.table(NAME)
            table.tag("kept", 2)
            table.write(_rows(6), WriteSpec(table=spec.table, stage="s1"))
            table.record_outcome("s1", "test.p.unique", "pass")
            engine.create_view("demo.v", "select 1 as one", comment="c", column_comments={"one": "first"})

    def read(self) -> dict[str, object]:
        """Everything that metadata leads to, with nothing remembered."""
        with Engine(str(self.folder)) as engine:
            # first what is quickly read: a file that is refused ends the rest
            view = engine.find_view("demo.v")
            table = engine.table(NAME)
            staged = [(one.name, dict(one.outcomes)) for one in table.staged()]
            tagged = sorted(table.scan(tag="kept").to_arrow().to_pylist(), key=repr)
            rows = sorted(table.scan().to_arrow().to_pylist(), key=repr)
            for name in ("relations", "databases"):
                getattr(engine, name)(*(("demo",) if name == "relations" else ()))
            table.facts()
            table.store.verify(deep=False)  # the rows were read above, and deep costs half of a run
            return {"rows": rows, "tag": tagged, "staged": staged, "view": view and view.sql}

    def files(self, kind: str) -> list[Path]:
        """The files of a kind, in order."""
        found = sorted(self.folder.glob(KINDS[kind]))
        assert found, kind
        return found


def _rows(low: int) -> pa.Table:
    ids = list(range(low, low + 4))
    return pa.table({"id": pa.array(ids, pa.int64()), "day": [f"d{n % 2}" for n in ids], "v": [low] * 4})


def mutate(data: bytes, kind: str, writer: Writer, dice: random.Random) -> bytes:
    """A changed version: damage to the bytes, to the values, or well-formed nonsense."""
    if writer is Writer.OTHER:
        if kind not in _ONLY_OURS:
            data = without_checksum(data)
        if kind in _AVRO and dice.random() < 0.75:  # below the compression, where the records are
            data = open_container(data, {"zstandard": None, "null": None})[1]
    elif dice.random() < 0.3:  # damage to the name of the checksum, and then to something else
        data = data.replace(CHECKSUM_KEY.encode(), CHECKSUM_KEY.upper().encode(), 1)
    ways: list[Callable[[bytes, random.Random], bytes]] = [
        _flip,
        _flip,
        _cut,
        _insert,
        _replace_value,
        _replace_text,
        _rename_key,
    ]
    changed = data
    for _ in range(dice.choice((1, 1, 1, 2, 4))):
        changed = dice.choice(ways)(changed, dice)
    if writer is Writer.OTHER and kind in _ONLY_OURS:
        return with_new_checksum(changed)
    return _with_checksum(changed) if kind == "deletion vectors" and dice.random() < 0.7 else changed


def _flip(data: bytes, dice: random.Random) -> bytes:
    if not data:
        return b"\0"
    out = bytearray(data)
    out[dice.randrange(len(out))] = dice.choice((0, 1, 0x7F, 0x80, 0xFF, dice.randrange(256)))
    return bytes(out)


def _cut(data: bytes, dice: random.Random) -> bytes:
    at, to = sorted((dice.randint(0, len(data)), dice.randint(0, len(data))))
    return data[:at] if dice.random() < 0.5 else data[:at] + data[to:]


def _insert(data: bytes, dice: random.Random) -> bytes:
    at = dice.randint(0, len(data))
    return data[:at] + dice.choice((dice.randbytes(dice.randint(1, 12)), *_TEXTS)) + data[at:]


def _replace_value(data: bytes, dice: random.Random) -> bytes:
    """The value behind some colon: what JSON files hold."""
    places = [at for at, byte in enumerate(data) if byte == ord(":")]
    if not places:
        return _flip(data, dice)
    at = dice.choice(places) + 1
    ends = [end for end in (data.find(b",", at), data.find(b"\n", at), data.find(b"}", at)) if end > 0]
    return data[:at] + dice.choice(_VALUES) + data[min(ends, default=len(data)) :]


def _replace_text(data: bytes, dice: random.Random) -> bytes:
    """A slice becomes a text of the same or another length."""
    at = dice.randint(0, len(data))
    text = dice.choice(_TEXTS)
    return data[:at] + text + data[at + dice.choice((0, len(text), 8)) :]


def _rename_key(data: bytes, dice: random.Random) -> bytes:
    """Some JSON key is another one: unknown, or one that exists already."""
    keys = list(re.finditer(rb'"([^"]+)"\s*:', data))
    if not keys:
        return _flip(data, dice)
    old, other = dice.choice(keys), dice.choice(keys)
    new = dice.choice((other[1], old[1] + b"_", old[1].swapcase(), b""))
    return data[: old.start(1)] + new + data[old.end(1) :]


def _with_checksum(data: bytes) -> bytes:
    """The first vector's checksum made right again, so that what is behind it is read."""
    if len(data) < 9:
        return data
    (size,) = struct.unpack_from(">i", data, 1)
    if not 0 <= size <= len(data) - 9:
        return data
    return data[: 5 + size] + struct.pack(">I", zlib.crc32(data[5 : 5 + size])) + data[9 + size :]


def fuzz(world: World, kind: str, numbers: range, seed: int) -> Counter[str]:
    """Outcomes: `same`, `refused`, and for another writer's files `believed` (well-formed, says something else)."""
    outcomes: Counter[str] = Counter()
    for number in numbers:
        told = f"{seed}-{kind}-{world.writer}-{number}"
        dice = random.Random(told)
        path = dice.choice(world.files(kind))
        good = path.read_bytes()
        path.write_bytes(mutate(good, kind, world.writer, dice))
        try:
            outcome = "same" if world.read() == world.expected else "believed"
        except EngineBug:
            raise
        except TablestoreError:
            outcome = "refused"
        except Exception as error:
            raise AssertionError(f"mutation {told}: {error!r}") from error
        finally:
            path.write_bytes(good)
        assert world.writer is Writer.OTHER or outcome != "believed", f"mutation {told} gives other rows"
        outcomes[outcome] += 1
    return outcomes


def main(count: int = 10_000, seed: int = 1) -> None:
    """`count` for each writer and kind, in turns; prints the sums after each round, in case the run is ended early."""
    folder = Path(tempfile.mkdtemp())
    sums: dict[tuple[Writer, str], Counter[str]] = {
        (writer, kind): Counter() for writer in Writer for kind in KINDS
    }
    try:
        worlds = {writer: World(folder / writer, writer) for writer in Writer}
        for first in range(0, count, _ROUND):
            numbers = range(first, min(first + _ROUND, count))
            for (writer, kind), outcomes in sums.items():
                outcomes += fuzz(worlds[writer], kind, numbers, seed)
            for (writer, kind), outcomes in sums.items():
                told = ", ".join(f"{outcomes[one]} {one}" for one in sorted(outcomes))
                print(f"{writer:<6} {kind:<18} {outcomes.total():>6} mutations: {told}", flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
