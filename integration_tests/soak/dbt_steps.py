"""A process that runs dbt commands one after the other over one JVM, with changes of its project between them.

Steps      standard input is JSON: a list of {"write": {file: text, or null to remove it}, "words": […], "ok": …}
           each: the files, then the command, whose end must be as `ok` says; the first that is not ends with status 3
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from dbt.adapters.factory import reset_adapters
from dbt.cli.main import dbtRunner


def main() -> int:
    """Run the steps in the current folder, which is the project."""
    for step in json.load(sys.stdin):
        for name, text in step["write"].items():
            if text is None:
                Path(name).unlink()
            else:
                Path(name).write_text(text)
        words = ["--log-level", "debug", *step["words"], "--profiles-dir", "."]
        result = dbtRunner().invoke(words)
        reset_adapters()
        if result.success is not step["ok"]:
            print(f"{words} ended with {result.success}: {result.exception}")
            return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
