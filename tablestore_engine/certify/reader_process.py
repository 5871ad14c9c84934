"""Readers of others as processes: what is installed, and the rows of a snapshot as batches.

INVARIANT  a reader cannot harm this process: what it prints, raises, loads or uses up stays in its own.
CRASH      a reader whose stream is not read to the end is killed.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from tablestore_engine.certify import reader_program
from tablestore_engine.errors import FixRequest
from tablestore_engine.fileio.store_address import is_object_store, parse_address


def reader_store(address: str, environ: Mapping[str, str]) -> Mapping[str, object] | None:
    """endpoint, region, path_style and anonymous of an S3 store; None for a folder, and for stores of other kinds."""
    if not is_object_store(address):
        return None
    found = parse_address(address)
    if found.scheme != "s3":
        return None
    return {
        "endpoint": found.endpoint(environ),
        "region": found.region(environ),
        "path_style": found.settings.path_style,
        "anonymous": found.settings.anonymous,
    }


READERS = tuple(reader_program.READERS)
ICEBERG_READERS = ("duckdb", "pyiceberg")
_PROGRAM = str(Path(reader_program.__file__))


class ReaderRefused(Exception):
    """A reader that ended with an error of its own; the text is its reason."""


@dataclass(frozen=True)
class ReaderEnvironment:
    """The Python interpreter whose packages are the readers, None: this one."""

    python: str | None = None

    def versions(self) -> Mapping[str, str | None]:
        """Of each reader; None: not installed. Raises FixRequest TS1583."""
        try:
            done = subprocess.run([*self._command, "versions"], capture_output=True, text=True, check=True)
            return dict(json.loads(done.stdout))
        except (OSError, subprocess.CalledProcessError, ValueError) as error:
            said = str(getattr(error, "stderr", None) or error).strip()
            raise FixRequest(
                "TS1583",
                f"the interpreter {self.python or sys.executable} cannot run readers",
                why=said.splitlines()[-1] if said else "it gave no answer",
                fix="name the python program of an environment that has the readers: --python env/bin/python",
            ) from error

    def start(
        self, reader: str, location: str, snapshot: int, store: Mapping[str, object] | None = None
    ) -> ReaderRows:
        """A process that reads a snapshot of the table; `store`: of reader_store()."""
        more = () if store is None else (json.dumps(dict(store)),)
        return ReaderRows([*self._command, "read", reader, location, str(snapshot), *more])

    @property
    def _command(self) -> list[str]:
        return [self.python or sys.executable, _PROGRAM]


class ReaderRows:
    """The rows that one reader returns; `close` ends its process."""

    def __init__(self, command: list[str]) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - close() closes it
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self._errors)
        self._stream: pa.RecordBatchReader | None = None

    def schema(self) -> pa.Schema:
        """Of the rows. Raises ReaderRefused."""
        return self._opened().schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows; complete when it ends without ReaderRefused."""
        stream = self._opened()
        while True:
            try:
                batch = stream.read_next_batch()
            except StopIteration:
                break
            except (pa.ArrowInvalid, OSError) as error:
                raise self._refused() from error
            yield batch
        if self._process.wait() != 0:
            raise self._refused()

    def close(self) -> None:
        """Kills the reader when it has more to say."""
        assert self._process.stdout is not None
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()
        self._errors.close()

    def _opened(self) -> pa.RecordBatchReader:
        if self._stream is None:
            try:
                self._stream = pa.ipc.open_stream(self._process.stdout)
            except (pa.ArrowInvalid, OSError) as error:
                raise self._refused() from error
        return self._stream

    def _refused(self) -> ReaderRefused:
        status = self._process.wait()
        if status < 0:
            return ReaderRefused(f"it was ended by signal {-status}")
        self._errors.seek(0)
        lines = [line.strip() for line in self._errors.read().decode(errors="replace").splitlines()]
        said = [line for line in lines if line]
        if status == reader_program.REFUSED and said:
            return ReaderRefused(said[-1])
        return ReaderRefused(": ".join([f"it ended with status {status}", *said[-1:]]))
