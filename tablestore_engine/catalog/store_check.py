"""Whether a store has conditional puts: of two puts of one name exactly one wins.

CHANGE     the check of an object store when a database is created
WHY        some stores accept the condition of a put and ignore it; two writers would then both have committed.
"""

from __future__ import annotations

from tablestore_engine.errors import FixRequest, StorageError, StoreAnswerUnknown
from tablestore_engine.fileio.base import FileIO
from tablestore_engine.fileio.storage_errors import no_exclusive_create
from tablestore_engine.runtime.outside_world import Runtime

_ATTEMPTS = 4


def check_store(fileio: FileIO, warehouse: str, runtime: Runtime) -> None:
    """Claim a name twice, replace it twice, remove it, and claim it again: names come again after DROP and rollback.

    Raises FixRequest TS1416, StorageError, StoreAnswerUnknown; Unsupported TS1203 when both were won.
    """
    try:
        is_safe = _asked_again(fileio, warehouse, runtime)
    except (StorageError, StoreAnswerUnknown):
        raise  # an error with a cause and a fix of its own
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
        except StorageError:
            raise
        except OSError:
            if turn == _ATTEMPTS:
                raise
        finally:
            fileio.delete(path)
    return False


def _is_safe(fileio: FileIO, path: str) -> bool:
    fileio.write(path, b"first")
    is_safe = not fileio.create_exclusive(path, b"second") and _replaces_what_was_seen(fileio, path)
    fileio.delete(path)
    fileio.write(path, b"again")
    return is_safe


def _replaces_what_was_seen(fileio: FileIO, path: str) -> bool:
    conditional = fileio.conditional
    if conditional is None:
        return True
    seen = conditional.read_seen(path)
    return conditional.replace_if(path, b"third", seen) and not conditional.replace_if(path, b"fourth", seen)
