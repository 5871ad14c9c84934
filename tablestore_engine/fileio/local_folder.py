"""Folders of the local disk, made."""

from __future__ import annotations

import errno
import os
from pathlib import Path


def make_folder(clean: str) -> None:
    """One folder, if it is not there. Raises OSError ENOTDIR for another file, EPERM where no folder can be made."""
    if os.path.isdir(clean):
        return
    try:
        os.mkdir(clean)
    except FileExistsError:
        if os.path.lexists(clean) and not os.path.isdir(clean):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), clean) from None
    except FileNotFoundError:
        if os.path.isdir(os.path.dirname(clean)):  # /proc and its like take no folder
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), clean) from None
        raise


def make_folders(path: str) -> None:
    """A folder and its parents. Raises OSError as make_folder."""
    for one in reversed([path, *map(str, Path(path).parents)]):
        make_folder(one)
