"""A Python for workers: everything that tasks import is installed, our package is not."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

from tablestore_engine.runtime.java import cache_folder


def worker_python() -> str:
    """A venv in the cache whose .pth line adds our environment's packages; editable installs are not followed."""
    home = cache_folder() / "worker-venv"
    python = home / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home)], check=True)
    (_packages(str(python)) / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    return str(python)


def _packages(python: str) -> Path:
    asked = [python, "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"]
    return Path(subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip())
