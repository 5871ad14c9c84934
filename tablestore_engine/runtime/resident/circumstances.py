"""What a process is started with, as a digest: a command is served only by a process that was started with the same.

CHANGE     when a loaded process may serve a command
WHY        libraries read variables and limits while they are imported: a process that was loaded under others could
           give another result.
INVARIANT  every variable of the environment counts, but those that only name a terminal or a shell.
"""

from __future__ import annotations

import hashlib
import json
import os
import resource
import sys
from collections.abc import Iterator, Mapping

OF_TERMINALS = (
    *("_", "COLUMNS", "LINES", "OLDPWD", "PWD", "SHLVL", "STY", "TMUX", "TMUX_PANE", "WINDOW", "WINDOWID"),
    *("ITERM_SESSION_ID", "SSH_CLIENT", "SSH_CONNECTION", "SSH_TTY", "TERM_SESSION_ID", "XDG_SESSION_ID"),
)
_LIMITS = tuple(sorted(name for name in vars(resource) if name.startswith("RLIMIT_")))
_NAMESPACES = ("cgroup", "ipc", "mnt", "net", "pid", "user", "uts")


def circumstances_of(environ: Mapping[str, str]) -> str:
    """Of this process, with that environment. Linux only; other threads must not create files meanwhile (umask)."""
    mask = os.umask(0o77)
    os.umask(mask)
    told = [
        sorted((key, value) for key, value in environ.items() if key not in OF_TERMINALS),
        [sys.executable, sys.version, __file__],
        [os.getuid(), os.geteuid(), os.getgid(), os.getegid(), sorted(os.getgroups())],
        [mask, os.getpriority(os.PRIO_PROCESS, 0), sorted(os.sched_getaffinity(0))],
        [resource.getrlimit(getattr(resource, name)) for name in _LIMITS],
        list(_kernel_links()),
    ]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()


def _kernel_links() -> Iterator[str]:
    for name in ("root", *(f"ns/{one}" for one in _NAMESPACES)):
        try:
            yield os.readlink(f"/proc/self/{name}")
        except OSError:  # a kernel without it, or no /proc, without which nothing is served
            yield ""
