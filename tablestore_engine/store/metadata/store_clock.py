"""The time by which files are old: of the store that gives them their times, not of this machine.

WHY        a machine whose clock is ahead of an object store's would take files of running writers for old ones.
"""

from __future__ import annotations

from tablestore_engine.fileio.base import FileIO
from tablestore_engine.runtime.outside_world import Runtime


def store_now_ms(fileio: FileIO, runtime: Runtime, folder: str) -> int:
    """Epoch milliseconds: without folders the time of a file that is written into `folder` now, and deleted.

    0, at which no file is old, when somebody else deleted it meanwhile.
    """
    if fileio.folders is not None:
        return runtime.now_ms()
    probe = f"{folder}/clock-{runtime.new_uuid()}"
    fileio.write(probe, b"now")
    try:
        return next((one.modified_ms for one in fileio.list(folder) if one.path == probe), 0)
    finally:
        fileio.delete(probe)
