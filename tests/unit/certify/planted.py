"""A package named pypaimon that returns planted rows: a reader that is wrong in a known way."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

_READER = """
import os, signal
import pyarrow as pa

class FileStoreTable:
    @classmethod
    def from_path(cls, location):
        return cls()
    def copy(self, options):
        assert set(options) == {"scan.snapshot-id"}
        return self
    def new_read_builder(self):
        return self
    new_read = new_scan = plan = splits = new_read_builder
    splits = lambda self: []
    def to_arrow_batch_reader(self, splits):
        print("not a row")
        table = pa.ipc.open_file(os.path.join(os.path.dirname(__file__), "rows.arrow")).read_all()
        def batches():
            yield from table.to_batches(max_chunksize=2)
            END
        return pa.RecordBatchReader.from_batches(table.schema, batches())
"""


def plant(folder: Path, patch: pytest.MonkeyPatch, rows: pa.Table, end: str = "return") -> None:
    """Installs it for processes that this one starts; `end`: what it does after the last row."""
    package = folder / "planted" / "pypaimon" / "table"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").touch()
    (package / "__init__.py").touch()
    (package / "file_store_table.py").write_text(_READER.replace("END", end))
    with pa.OSFile(str(package / "rows.arrow"), "wb") as sink, pa.ipc.new_file(sink, rows.schema) as writer:
        writer.write_table(rows)
    facts = folder / "planted" / "pypaimon-9.9.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: pypaimon\nVersion: 9.9\n")
    patch.setenv("PYTHONPATH", str(folder / "planted"))
