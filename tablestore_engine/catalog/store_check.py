"""Whether a store keeps what commits stand on: of two conditional puts of one name one wins.

WHY        some stores accept the condition of a put and ignore it; two writers would then both have committed.
"""

from __future__ import annotations

from tablestore_engine.errors import FixRequest
from tablestore_engine.fileio.base import FileIO
from tablestore_engine.fileio.storage_errors import no_exclusive_create
from tablestore_engine.runtime.outside_world import Runtime

_ATTEMPTS = 4


def check_store(fileio: FileIO, warehouse: str, runtime: Runtime) -> None:
    """Claim a name twice, replace it twice, and remove it.

    Raises FixRequest TS1416; Unsupported TS1203 when both were won.
    """
    try:
        is_safe = _asked_again(fileio, warehouse, runtime)
    except OSError as error:
        raise FixRequest(
            "TS1416",
            f"warehouse {warehouse} cannot be written",
            why=str(error),
            fix="correct `warehouse` in the profile, or its permissions",
        ) from error
    if not is_safe:
        raise no_exclusive_create(warehouse, "its store accepted two conditional puts of one name")


def _asked_again(fileio: FileIO, warehouse: str, runtime: Runtime) -> bool:
    """A put that must be refused, and whose answer is lost, says nothing: the next try has another name."""
    for turn in range(1, _ATTEMPTS + 1):
        path = f"{warehouse}/.tablestore/check-{runtime.new_uuid()}"
        try:
            return _is_safe(fileio, path)
        except OSError:
            if turn == _ATTEMPTS:
                raise
        finally:
            fileio.delete(path)
    return False


def _is_safe(fileio: FileIO, path: str) -> bool:
    fileio.write(path, b"first")
    return not fileio.create_exclusive(path, b"second") and _replaces_what_was_seen(fileio, path)


def _replaces_what_was_seen(fileio: FileIO, path: str) -> bool:
    conditional = fileio.conditional
    if conditional is None:
        return True
    seen = conditional.read_seen(path)
    return conditional.replace_if(path, b"third", seen) and not conditional.replace_if(path, b"fourth", seen)
