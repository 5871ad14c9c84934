"""The browser: the distribution's Chromium. As root on Debian it is installed by apt; elsewhere one line says how."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

_NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
_ON_MACOS = Path("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome")
_PACKAGES = ("chromium", "fonts-dejavu-core")
HOW = "the page is tested in Chromium: apt-get update && apt-get install --no-install-recommends chromium"


def find_chromium() -> str | None:
    """The program, where there is one."""
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    return found or (str(_ON_MACOS) if _ON_MACOS.exists() else None)


def get_chromium() -> str:
    """Installed if it has to be, and may. Raises RuntimeError with one line."""
    found = find_chromium()
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        problem = _install()
        found = find_chromium()
        if found is None:
            raise RuntimeError(f"{HOW} (apt-get as root failed: {problem})")
    if found is None:
        raise RuntimeError(HOW)
    return found


def _install() -> str:
    """The last line of what went wrong; empty when nothing did."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    wait = ["-o", "DPkg::Lock::Timeout=600", "-o", "Acquire::Retries=3"]
    for words in (["update"], ["install", "--yes", "--no-install-recommends", *_PACKAGES]):
        done = subprocess.run(
            ["apt-get", *wait, *words], env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            return (done.stderr.strip() or done.stdout.strip()).rpartition("\n")[2]
    return ""
